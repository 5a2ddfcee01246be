// Prints the file that malloc comes from, for the runner: a library that was not loaded detects nothing.
#include "bug.h"
#include <dlfcn.h>

int main(void) {
  Dl_info info;
  void*   p = malloc(1);
  if (p == NULL || dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) == 0) return 3;
  say("%s\n", info.dli_fname);
  free(p);
  return 0;
}
