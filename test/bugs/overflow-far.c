// Writes a word far behind a block, where others of its size may be, and nothing between: SIZE DISTANCE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), distance = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(middle_of(&all));
  name_blocks(&all);
  memset(p + size + distance, 'x', sizeof(void*));
  free_all(&all);
  go_on(size);
  return undetected();
}
