// Frees a variable of the thread.
#include "bug.h"

static __thread char array[256] __attribute__((aligned(64)));

int main(void) {
  array[0] = 1;
  go_on(64);
  name_block(array + 64, 0);
  free(hidden(array + 64));
  go_on(64);
  return undetected();
}
