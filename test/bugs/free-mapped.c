// Frees memory that mmap gave.
#include "bug.h"
#include <sys/mman.h>

int main(void) {
  char* p = (char*)mmap(NULL, 64 * KiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED) return 3;
  go_on(64);
  name_block(p + 4 * KiB, 0);
  free(hidden(p + 4 * KiB));
  go_on(64);
  return undetected();
}
