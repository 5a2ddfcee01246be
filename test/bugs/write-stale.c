// Writes through the pointer that a block had before it was resized: does the block change?  SIZE NEW.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1), new_size = number_from(argv, 2, size);
  char*  p = get(size);
  char*  neighbour = get(size);
  name_block(p, size);
  char* q = (char*)realloc(p, new_size);
  name_block(q, new_size);
  size_t at = (size < new_size ? size : new_size) / 2;
  ((char*)hidden(p))[at] = 'x';
  bool is_seen = (q[at] != 'a');
  go_on(size);
  free(q);
  free(neighbour);
  return is_seen ? undetected() : prevented(true);
}
