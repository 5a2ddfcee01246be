// Writes behind a block that is never freed, nor are its neighbours; the program goes on: SIZE BY.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(middle_of(&all));
  name_blocks(&all);
  memset(p + size, p[size] == 'x' ? 'y' : 'x', by);
  go_on(size);
  return undetected();
}
