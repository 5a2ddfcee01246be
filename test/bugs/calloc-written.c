// Writes into a freed block, and asks for zeros: is one of the blocks not zero?  SIZE.
#include "bug.h"

static bool is_zero(const char* p, size_t size) {
  for (size_t i = 0; i < size; i++) {
    if (p[i] != 0) return false;
  }
  return true;
}

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1);
  blocks_t old = get_some(size);
  char*    p = middle_of(&old);
  name_blocks(&old);
  free_all(&old);
  ((char*)hidden(p))[size / 2] = 'x';
  bool is_found = false;
  for (size_t i = 0; i < 2 * old.n; i++) {
    char* fresh = (char*)hidden(calloc(1, size));
    is_found |= !is_zero(fresh, size);
  }
  return is_found ? undetected() : prevented(true);
}
