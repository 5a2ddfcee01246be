// Writes through malloc(0).
#include "bug.h"

int main(void) {
  blocks_t all = {{NULL}, BUG_N_MAX, 0};
  for (size_t i = 0; i < all.n; i++) all.p[i] = (char*)malloc(0);
  name_blocks(&all);
  *(char*)hidden(middle_of(&all)) = 'x';
  free_all(&all);
  go_on(1);
  return undetected();
}
