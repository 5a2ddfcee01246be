// Reads an aligned block that it has not written: does it hold what a former owner left there?  SIZE ALIGNMENT.
#include "aligned.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t   size = number(argv, 1), align = number(argv, 2);
  blocks_t old = get_some_aligned(align, size);
  for (size_t i = 0; i < old.n; i++) write_secret(old.p[i], size);
  free_all(&old);
  bool is_found = false;
  for (size_t i = 0; i < old.n; i++) {
    void* p = NULL;
    if (posix_memalign(&p, align, size) != 0) return 3;
    is_found |= has_secret((char*)hidden(p), size);
  }
  return is_found ? undetected() : prevented(true);
}
