// Proves: a program that links the library has all forms of operator new and delete from it, without a header of ours.
#include "../api/operators.h"
#include <map>
#include <string>

static void check_library() {
  std::map<int, std::string> map;
  for (int i = 0; i < 1000; i++) map[i] = std::string(100, 'x');
  CHECK(mi_is_in_heap_region(&*map.begin()) && mi_is_in_heap_region(map[7].data()));
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_pairs(&mi_is_in_heap_region);
  check_given_back();
  check_failures();
  check_handler_throws();
  check_expressions(&mi_is_in_heap_region);
  check_library();
  return check_result();
}
