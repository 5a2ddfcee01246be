// Frees a pointer into an aligned block: SIZE ALIGNMENT OFFSET.
#include "aligned.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), align = number(argv, 2), offset = number(argv, 3);
  blocks_t all = get_some_aligned(align, size);
  char*    p = middle_of(&all);
  name_block(p, size);
  name_block(p + offset, size);
  free(hidden(p + offset));
  free_all(&all);
  go_on(size);
  return undetected();
}
