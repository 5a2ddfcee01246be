// Frees a block by the pointer that it had before it was resized, and then by the one that it has: SIZE NEW.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1), new_size = number_from(argv, 2, size);
  char*  p = get(size);
  char*  neighbour = get(size);
  char*  q = (char*)realloc(p, new_size);
  name_block(p, size);
  name_block(q, new_size);
  free(hidden(p));
  free(q);
  free(neighbour);
  go_on(size);
  return undetected();
}
