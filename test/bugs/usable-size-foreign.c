// Asks for the size of a variable of the stack.
#include "bug.h"
#include <malloc.h>

int main(void) {
  char array[256] __attribute__((aligned(64)));
  memset(array, 0, sizeof(array));
  go_on(64);
  name_block(array + 64, 0);
  return malloc_usable_size(hidden(array + 64)) > 0 ? undetected() : prevented(true);
}
