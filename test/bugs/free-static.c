// Frees a static variable.
#include "bug.h"

static char array[256] __attribute__((aligned(64)));

int main(void) {
  go_on(64);
  name_block(array + 64, 0);
  free(hidden(array + 64));
  go_on(64);
  return undetected();
}
