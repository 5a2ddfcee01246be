// Frees a, b and again a: SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1);
  char*  a = get(size);
  char*  b = get(size);
  name_block(a, size);
  free(a);
  free(b);
  free(hidden(a));
  go_on(size);
  return undetected();
}
