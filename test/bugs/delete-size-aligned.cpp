// Deletes an aligned object under the size of another one: SIZE WRONG ALIGNMENT.
#include "bug.h"
#include <new>

int main(int, char** argv) {
  size_t           size = number(argv, 1), wrong = number(argv, 2);
  std::align_val_t alignment{number(argv, 3)};
  go_on(size);
  void* p = ::operator new(size, alignment);
  name_block(p, size);
  ::operator delete(hidden(p), wrong, alignment);
  go_on(size);
  go_on(wrong);
  return undetected();
}
