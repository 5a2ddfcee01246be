// Asks for COUNT blocks of the size of one that it has just freed: is one of them the same?  SIZE COUNT.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1), n = number(argv, 2);
  go_on(size);
  char* p = get(size);
  free(p);
  bool is_same = false;
  for (size_t i = 0; i < n; i++) is_same |= (hidden(get(size)) == p);
  return is_same ? undetected() : prevented(true);
}
