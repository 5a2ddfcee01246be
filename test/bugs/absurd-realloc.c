// Asks for a block to become larger than there can be: SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  char* p = get(100);
  errno = 0;
  void* q = realloc(p, number(argv, 1));
  return q != NULL ? undetected() : prevented(errno == ENOMEM);
}
