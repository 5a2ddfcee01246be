// Are blocks of one size in the same order in two runs?
#include "layout.h"

int main(int argc, char** argv) {
  if (argc == 1) return layout_compare(argv);
  layout_t  layout;
  uintptr_t first = (uintptr_t)malloc(64);
  for (int i = 0; i < LAYOUT_N_MAX; i++) layout.values[i] = (uintptr_t)malloc(64) - first;
  layout_write(&layout);
  return 0;
}
