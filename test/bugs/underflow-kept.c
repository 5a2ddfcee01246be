// Writes before a block; neither is freed, nor what lies before it: SIZE BY.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(middle_of(&all));
  name_blocks(&all);
  memset(p - by, p[-1] == 'x' ? 'y' : 'x', by);
  go_on(size);
  return undetected();
}
