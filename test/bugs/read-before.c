// Reads before a block: SIZE BY.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), by = number(argv, 2);
  blocks_t all = get_some(size);
  char*    p = (char*)hidden(middle_of(&all));
  name_block(p, size);
  unsigned sum = 0;
  for (size_t i = 1; i <= by; i++) sum += (unsigned char)p[-(ptrdiff_t)i];
  say("sum %u\n", sum);
  free_all(&all);
  return undetected();
}
