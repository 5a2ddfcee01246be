// Frees an aligned block twice: SIZE ALIGNMENT.
#include "aligned.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), align = number(argv, 2);
  blocks_t all = get_some_aligned(align, size);
  char*    p = middle_of(&all);
  name_block(p, size);
  free(p);
  free(hidden(p));
  go_on(size);
  return undetected();
}
