// Frees a pointer into a block: SIZE OFFSET.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), offset = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = middle_of(&all);
  name_block(p, size);
  name_block(p + offset, size);
  free(hidden(p + offset));
  free_all(&all);
  go_on(size);
  return undetected();
}
