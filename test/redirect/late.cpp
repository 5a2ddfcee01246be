// A module that a program loads while it runs.  test-target.c has the program.
#include <cstdlib>
#include <new>
#include <string>

#define LATE extern "C" __declspec(dllexport)

// Of before main, while the loader holds its lock.
static std::string* late_text = new std::string(1000, 'x');

// 0: that one.
LATE void* late_make(std::size_t size) {
  return size == 0 ? late_text : std::malloc(size);
}

LATE void late_drop(void* p) {
  std::free(p);
}

LATE void* late_new(std::size_t size) {
  return late_text->size() == 1000 ? new char[size] : nullptr;
}

LATE void late_delete(void* p) {
  delete[] static_cast<char*>(p);
}
