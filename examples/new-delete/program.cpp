// mimalloc-new-delete.h defines operator new and delete, so that C++ objects come from the library while malloc stays that of the
// C library.  Exactly one source of a program includes it.  A program that links the library as its malloc needs no header.
//
// Build and run:
//   c++ program.cpp $(pkg-config --cflags --libs mimalloc) -o program
//   ./program
// Prints:
//   new int belongs to the library
//   a vector's elements belong to the library
//   new of a type with alignment 64: at a multiple of 64
#include <mimalloc-new-delete.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

struct alignas(64) cache_line {
  char bytes[64];
};

int main() {
  auto number = std::make_unique<int>(7);
  std::printf("new int %s to the library\n", mi_is_in_heap_region(number.get()) ? "belongs" : "does not belong");

  std::vector<double> vector(1000, 1.5);
  std::printf("a vector's elements %s to the library\n", mi_is_in_heap_region(vector.data()) ? "belong" : "do not belong");

  auto line = std::make_unique<cache_line>();
  std::printf("new of a type with alignment 64: %s of 64\n",
              reinterpret_cast<std::uintptr_t>(line.get()) % 64 == 0 ? "at a multiple" : "not at a multiple");
  return 0;
}
