// Frees a variable of the stack.
#include "bug.h"

int main(void) {
  char array[256] __attribute__((aligned(64)));
  memset(array, 0, sizeof(array));
  go_on(64);
  name_block(array + 64, 0);
  free(hidden(array + 64));
  go_on(64);
  return undetected();
}
