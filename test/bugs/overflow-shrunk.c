// Writes to all that a block had before it was made smaller: SIZE BY.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(realloc(middle_of(&all), size - by));
  all.p[all.n / 2] = p;
  name_blocks(&all);
  name_block(p, size - by);
  memset(p + size - by, 'x', by);
  free_all(&all);
  go_on(size);
  return undetected();
}
