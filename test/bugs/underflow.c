// Writes before a block, and so at the end of another one if any two lie side by side: SIZE BY.
#include "bug.h"

static char* nearest_above_another(const blocks_t* all) {
  char*  nearest = all->p[0];
  size_t gap = SIZE_MAX;
  for (size_t i = 0; i < all->n; i++) {
    for (size_t k = 0; k < all->n; k++) {
      size_t distance = (size_t)(all->p[i] - all->p[k]);
      if (i == k || distance >= gap) continue; // also where p[k] is above: then it is a huge number
      gap = distance;
      nearest = all->p[i];
    }
  }
  return nearest;
}

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(nearest_above_another(&all));
  name_blocks(&all);
  memset(p - by, p[-1] == 'x' ? 'y' : 'x', by); // what is there already, one of 256, would be no mistake
  free_all(&all);
  go_on(size);
  return undetected();
}
