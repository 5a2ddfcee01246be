// Writes before a block: SIZE BY.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(middle_of(&all));
  name_blocks(&all);
  memset(p - by, 'x', by);
  free_all(&all);
  go_on(size);
  return undetected();
}
