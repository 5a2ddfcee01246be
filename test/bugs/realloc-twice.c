// Resizes a block twice by the same pointer: SIZE NEW.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1), new_size = number_from(argv, 2, size);
  char*  p = get(size);
  name_block(p, size);
  char* q = (char*)realloc(p, new_size);
  char* again = (char*)realloc(hidden(p), new_size);
  free(q);
  free(again);
  go_on(size);
  return undetected();
}
