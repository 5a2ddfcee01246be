// Reads through malloc(0).
#include "bug.h"

int main(void) {
  char* p = (char*)malloc(0);
  name_block(p, 0);
  volatile char seen = *(char*)hidden(p);
  (void)seen;
  free(p);
  go_on(1);
  return undetected();
}
