// Reads a freed block: is the old content still there?  SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1);
  char*  p = get(size);
  write_secret(p, size);
  name_block(p, size);
  free(p);
  return has_secret((char*)hidden(p), size) ? undetected() : prevented(true);
}
