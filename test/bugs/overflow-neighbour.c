// Writes behind a block that is never freed, while all others of its size are: SIZE BY.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(middle_of(&all));
  name_blocks(&all);
  memset(p + size, p[size] == 'x' ? 'y' : 'x', by);
  for (size_t i = 0; i < all.n; i++) {
    if (all.p[i] != p) free(all.p[i]);
  }
  go_on(size);
  return undetected();
}
