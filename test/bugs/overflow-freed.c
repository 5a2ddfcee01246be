// Writes behind a block that is never freed, when half of its neighbours are free: SIZE BY.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  name_blocks(&all);
  for (size_t i = 1; i < all.n; i += 2) free(all.p[i]);
  char* p = (char*)hidden(all.p[all.n / 2 / 2 * 2]);
  memset(p + size, p[size] == 'x' ? 'y' : 'x', by);
  go_on(size);
  return undetected();
}
