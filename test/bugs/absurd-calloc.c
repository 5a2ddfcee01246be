// Asks for an array whose size in bytes is no number: COUNT SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  errno = 0;
  void* p = calloc(number(argv, 1), number(argv, 2));
  return p != NULL ? undetected() : prevented(errno == ENOMEM);
}
