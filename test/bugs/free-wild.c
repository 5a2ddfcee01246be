// Frees a random address, aligned as a block would be.
#include "bug.h"
#include <sys/random.h>

int main(void) {
  uint64_t chance;
  if (getrandom(&chance, sizeof(chance), 0) != sizeof(chance)) return 3;
  void* p = (void*)(uintptr_t)(chance % ((uint64_t)1 << 47) / 16 * 16);
  go_on(64);
  name_block(p, 0);
  free(hidden(p));
  go_on(64);
  return undetected();
}
