// Resizes a block by a pointer into it: SIZE OFFSET NEW.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), offset = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = middle_of(&all);
  name_block(p, size);
  name_block(p + offset, size);
  char* q = (char*)realloc(hidden(p + offset), number(argv, 3));
  free(q);
  go_on(size);
  return undetected();
}
