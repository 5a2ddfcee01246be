// Is the first block at the same address in two runs?
#include "layout.h"

int main(int argc, char** argv) {
  if (argc == 1) return layout_compare(argv);
  layout_t layout = {{(uintptr_t)malloc(64)}};
  layout_write(&layout);
  return 0;
}
