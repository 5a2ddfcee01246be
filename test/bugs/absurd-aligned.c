// Asks for an aligned block so large that size and alignment together are no number: ALIGNMENT SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  void* p = NULL;
  int   error = posix_memalign(&p, number(argv, 1), number(argv, 2));
  return p != NULL || error == 0 ? undetected() : prevented(error == ENOMEM);
}
