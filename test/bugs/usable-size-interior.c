// Asks for the size of a block by a pointer into it: SIZE OFFSET.
#include "bug.h"
#include <malloc.h>

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1), offset = number(argv, 2);
  char*  p = get(size);
  name_block(p, size);
  name_block(p + offset, size);
  return malloc_usable_size(hidden(p + offset)) > 0 ? undetected() : prevented(true);
}
