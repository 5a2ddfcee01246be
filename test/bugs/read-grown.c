// Reads what a block has got by growing: does it hold what a former owner left there?  SIZE.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1);
  blocks_t old = get_some(size);
  for (size_t i = 0; i < old.n; i++) write_secret(old.p[i], size);
  free_all(&old);
  bool     is_found = false;
  blocks_t fresh = {{NULL}, old.n, size};
  for (size_t i = 0; i < fresh.n; i++) {
    fresh.p[i] = (char*)realloc(get(size / 2), size);
    is_found |= has_secret((char*)hidden(fresh.p[i]), size);
  }
  free_all(&fresh);
  return is_found ? undetected() : prevented(true);
}
