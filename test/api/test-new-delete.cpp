// Proves: mimalloc-new-delete.h makes all forms of operator new and delete ours, in a program whose malloc may be another.
#include "operators.h"
#include <mimalloc-new-delete.h>
#include <string>
#include <thread>
#include <vector>

static void check_library() {
  std::string      text(1000, 'x');
  std::vector<int> vector(1000, 1);
  CHECK(mi_is_in_heap_region(text.data()) && mi_is_in_heap_region(vector.data()));
  int*        p = nullptr; // freed by another thread
  std::thread thread([&p] { p = new int[1000]; });
  thread.join();
  CHECK(mi_is_in_heap_region(p));
  delete[] p;
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  mi_option_disable(mi_option_show_errors);
  check_pairs(&mi_is_in_heap_region);
  check_given_back();
  check_failures();
  check_handler_throws();
  check_expressions(&mi_is_in_heap_region);
  check_library();
  return check_result();
}
