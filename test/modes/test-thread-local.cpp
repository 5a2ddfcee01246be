// Proves: destructors of C++ thread_local objects may allocate and free, also when the object was made by another
// destructor; memory stays flat over many threads.
#include "../check.h"
#include <mimalloc.h>
#include <atomic>
#include <thread>
#include <vector>
#include "support.h"

static std::atomic<size_t> n_destroyed, n_wrong;

struct late {
  void* block = mi_malloc(300);
  ~late() {
    mi_free(block);
    void* p = mi_calloc(1, 20000);
    if (p == nullptr || !is_zero(p, 0, 20000)) n_wrong++;
    mi_free(p);
    n_destroyed++;
  }
  void touch() {
    if (block == nullptr) n_wrong++;
  }
};

static thread_local late late_object;

struct early {
  void* blocks[10];
  early() {
    for (size_t i = 0; i < 10; i++) blocks[i] = mi_malloc(1 << i);
  }
  ~early() {
    for (void* p : blocks) mi_free(p);
    late_object.touch(); // made only now, in a destructor
    mi_free(mi_malloc(100));
    n_destroyed++;
  }
};

static thread_local early early_object;

static void live(size_t number) {
  early_object.blocks[0] = mi_realloc(early_object.blocks[0], 10 + number % 1000);
}

static void run_threads(size_t n) {
  for (size_t i = 0; i < n; i += 8) {
    std::vector<std::thread> threads;
    for (size_t k = 0; k < 8; k++) threads.emplace_back(live, i + k);
    for (std::thread& t : threads) t.join();
  }
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(200);
  size_t n_threads = TEST_SANITIZED ? 400 : 2000 * (test_scale() > 50 ? 50 : test_scale());
  run_threads(200);
  size_t before = rss_now();
  n_destroyed = 0;
  run_threads(n_threads);
  CHECK(n_wrong == 0);
  CHECK(n_destroyed == 2 * n_threads);
  CHECK(rss_within("growth of resident memory", minus(rss_now(), before), 1 * MiB));
  return check_result();
}
