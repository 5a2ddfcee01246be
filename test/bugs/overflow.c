// Writes behind a block: SIZE BY [VALUE].
#include "bug.h"

int main(int argc, char** argv) {
  size_t   size = number(argv, 1), by = number(argv, 2);
  int      value = argc > 3 ? (int)number(argv, 3) : 'x';
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(middle_of(&all));
  name_blocks(&all);
  memset(p + size, value, by);
  free_all(&all);
  go_on(size);
  return undetected();
}
