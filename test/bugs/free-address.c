// Frees a number: ADDRESS.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  void* p = (void*)(uintptr_t)number(argv, 1);
  go_on(64);
  name_block(p, 0);
  free(hidden(p));
  go_on(64);
  return undetected();
}
