// Frees a function.
#include "bug.h"

int main(void) {
  void* p = (void*)((uintptr_t)main & ~(uintptr_t)15);
  go_on(64);
  name_block(p, 0);
  free(hidden(p));
  go_on(64);
  return undetected();
}
