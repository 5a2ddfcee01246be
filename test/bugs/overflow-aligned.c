// Writes behind an aligned block: SIZE ALIGNMENT BY.
#include "aligned.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), align = number(argv, 2), by = number(argv, 3);
  blocks_t all = get_some_aligned(align, size);
  char*    p = (char*)hidden(middle_of(&all));
  name_blocks(&all);
  if (by > 0) memset(p + size, p[size] == 'x' ? 'y' : 'x', by);
  free_all(&all);
  go_on(size);
  return undetected();
}
