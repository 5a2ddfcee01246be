// Deletes an object under the size of another one: SIZE WRONG.
#include "bug.h"
#include <new>

int main(int, char** argv) {
  size_t size = number(argv, 1), wrong = number(argv, 2);
  go_on(size);
  void* p = ::operator new(size);
  name_block(p, size);
  ::operator delete(hidden(p), wrong);
  go_on(size);
  go_on(wrong);
  return undetected();
}
