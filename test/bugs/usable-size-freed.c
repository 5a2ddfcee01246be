// Asks for the size of a freed block: SIZE.
#include "bug.h"
#include <malloc.h>

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1);
  char*  p = get(size);
  name_block(p, size);
  free(p);
  return malloc_usable_size(hidden(p)) > 0 ? undetected() : prevented(true);
}
