// Asks for more than there can be: SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  errno = 0;
  void* p = malloc(number(argv, 1));
  return p != NULL ? undetected() : prevented(errno == ENOMEM);
}
