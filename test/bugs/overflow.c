// Writes behind a block: SIZE BY [VALUE].
#include "bug.h"

// The block in the middle, or the next one behind which the write changes something: one byte of 256 is there already.
static char* nearest_changed(const blocks_t* all, int value) {
  size_t i = all->n / 2;
  while (i + 1 < all->n && all->p[i][all->size] == (char)value) i++;
  return all->p[i];
}

int main(int argc, char** argv) {
  size_t   size = number(argv, 1), by = number(argv, 2);
  int      value = argc > 3 ? (int)number(argv, 3) : 'x';
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(by == 1 ? nearest_changed(&all, value) : middle_of(&all));
  name_blocks(&all);
  memset(p + size, value, by);
  free_all(&all);
  go_on(size);
  return undetected();
}
