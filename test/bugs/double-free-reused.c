// Frees a block twice, when others may have got it between; their owners free them too: SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1);
  char*  p = get(size);
  name_block(p, size);
  free(p);
  blocks_t others = get_some(size);
  free(hidden(p));
  free_all(&others);
  go_on(size);
  return undetected();
}
