// Resizes a static variable.
#include "bug.h"

static char array[256] __attribute__((aligned(64)));

int main(void) {
  go_on(64);
  name_block(array + 64, 0);
  char* q = (char*)realloc(hidden(array + 64), 500);
  go_on(64);
  free(q);
  return undetected();
}
