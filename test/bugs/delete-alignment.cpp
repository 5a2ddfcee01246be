// Deletes an object under an alignment that it has not: SIZE ALIGNMENT.
#include "bug.h"
#include <new>

static bool is_aligned(const void* p, size_t alignment) {
  return (uintptr_t)p % alignment == 0;
}

int main(int, char** argv) {
  size_t size = number(argv, 1), alignment = number(argv, 2);
  go_on(size);
  void* p = ::operator new(size);
  while (is_aligned(p, alignment)) p = ::operator new(size);
  name_block(p, size);
  ::operator delete(hidden(p), std::align_val_t{alignment});
  go_on(size);
  return undetected();
}
