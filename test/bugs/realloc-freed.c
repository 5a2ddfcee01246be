// Resizes a freed block: SIZE NEW.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1);
  char*  p = get(size);
  name_block(p, size);
  free(p);
  char* q = (char*)realloc(hidden(p), number(argv, 2));
  go_on(size);
  free(q);
  go_on(size);
  return undetected();
}
