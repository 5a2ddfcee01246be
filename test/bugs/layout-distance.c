// Are small, medium and large blocks at the same distance from each other in two runs?
#include "layout.h"

int main(int argc, char** argv) {
  if (argc == 1) return layout_compare(argv);
  uintptr_t small = (uintptr_t)malloc(64), medium = (uintptr_t)malloc(20000), large = (uintptr_t)malloc(3 << 20);
  layout_t  layout = {{medium - small, large - small}};
  layout_write(&layout);
  return 0;
}
