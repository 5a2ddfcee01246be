// Proves: mi_heap_memory_resource serves polymorphic containers from one heap, frees everything at once when it is told to
// or ends, and behaves as a memory resource of the standard library.
#include "../check.h"
#include "entries.h"
#include <list>
#include <map>
#include <memory_resource>
#include <mimalloc-pmr.h>
#include <new>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#if !defined(MI_HAS_HEAP_MEMORY_RESOURCE)
  #error "C++17 has it"
#endif

static void check_containers(std::pmr::memory_resource* resource, mi_heap_t* heap, uint64_t seed) {
  rng_t                                                    rng = rng_make(seed);
  std::pmr::vector<std::pmr::string>                       strings(resource);
  std::pmr::map<uint64_t, std::pmr::string>                map(resource);
  std::pmr::unordered_map<uint64_t, std::pmr::vector<int>> hashed(resource);
  std::pmr::list<uint64_t>                                 list(resource);
  for (size_t i = 0; i < 10000; i++) {
    uint64_t x = rng_next(&rng);
    strings.emplace_back(20 + x % 100, 'x');
    map[x % 3000] = strings.back();
    hashed[x % 3000].push_back((int)i);
    list.push_back(x);
    if (x % 3 == 0) list.pop_front();
    if (x % 4 == 0) map.erase(x % 2999);
  }
  for (const auto& s : strings) CHECK(s.find_first_not_of('x') == std::pmr::string::npos);
  CHECK(mi_heap_of(strings.data()) == heap && mi_heap_of(strings[0].data()) == heap);
  CHECK(mi_heap_of(&*map.begin()) == heap && mi_heap_of(&*hashed.begin()) == heap);
  CHECK(mi_heap_of(hashed.begin()->second.data()) == heap && mi_heap_of(&list.front()) == heap);
}

static void check_alignments(std::pmr::memory_resource* resource, mi_heap_t* heap) {
  for (size_t alignment = 1; alignment <= 64 * KiB; alignment *= 2) {
    for (size_t size = 0; size <= 100 * KiB; size = size * 3 + 1) {
      void* p = resource->allocate(size, alignment);
      CHECK_FOR(p != NULL && is_aligned(p, alignment) && mi_heap_of(p) == heap, "%zu, %zu", size, alignment);
      memset(p, 0xAB, size);
      resource->deallocate(p, size, alignment);
    }
  }
}

static void check_release() {
  mi_heap_memory_resource resource;
  size_t                  peak = 0;
  for (size_t round = 0; round < 30; round++) {
    for (size_t i = 0; i < 20000; i++) CHECK(resource.allocate(16 + i % 1000, 8) != NULL);
    CHECK(resource.allocate(5 * MiB, 4096) != NULL);
    resource.release();
    if (round == 3) peak = rss_now();
  }
  CHECK(rss_within("growth over releases", minus(rss_now(), peak), 16 * MiB));
  void* p = resource.allocate(100, 8);
  CHECK(mi_heap_of(p) == resource.heap());
}

static void check_end() {
  size_t peak = 0;
  for (size_t round = 0; round < 30; round++) {
    mi_heap_memory_resource resource;
    for (size_t i = 0; i < 20000; i++) CHECK(resource.allocate(16 + i % 1000, 8) != NULL);
    if (round == 3) peak = rss_now();
  }
  CHECK(rss_within("growth over resources", minus(rss_now(), peak), 16 * MiB));
}

static void check_given_heap(uint64_t seed) {
  mi_heap_t* heap = mi_heap_new();
  uint8_t*   p = NULL;
  {
    mi_heap_memory_resource resource(heap), same(heap), own;
    CHECK(resource.heap() == heap);
    check_containers(&resource, heap, seed);
    p = (uint8_t*)resource.allocate(100, 8);
    memset(p, 0xAB, 100);
    resource.release(); // not its to release
    CHECK(p[99] == 0xAB && mi_heap_of(p) == heap && resource.heap() == heap);
    CHECK(resource.is_equal(same) && resource == same && same == resource && resource == resource);
    CHECK(resource != own && !own.is_equal(resource) && resource != *std::pmr::new_delete_resource());
    CHECK(own.heap() != heap && own.heap() != mi_heap_main());
  }
  CHECK(p[99] == 0xAB && mi_heap_of(p) == heap);
  mi_heap_destroy(heap);
  mi_heap_memory_resource of_main(nullptr);
  CHECK(of_main.heap() == mi_heap_main());
  check_containers(&of_main, mi_heap_main(), seed);
}

// ---- no memory ------------------------------------------------------------------------------------------------------

static int n_handler_calls;

static void count_calls() {
  if (++n_handler_calls == 3) std::set_new_handler(nullptr);
}

static void check_failure() {
  mi_heap_memory_resource resource;
  bool                    is_thrown = false;
  mi_option_disable(mi_option_show_errors);
  std::set_new_handler(&count_calls);
  try {
    resource.deallocate(resource.allocate(hidden(SIZE_MAX / 2 + 1), 16), 1, 16);
  } catch (const std::bad_alloc&) {
    is_thrown = true;
  }
  CHECK(is_thrown && n_handler_calls == 3);
  is_thrown = false;
  n_handler_calls = 0;
  std::set_new_handler(&count_calls);
  try {
    resource.deallocate(resource.allocate(100, hidden(24)), 100, 8); // no handler makes that an alignment
  } catch (const std::bad_alloc&) {
    is_thrown = true;
  }
  CHECK(is_thrown && n_handler_calls == 0);
  std::set_new_handler(nullptr);
}

static void check_threads() {
  mi_heap_memory_resource  resource;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; t++) {
    threads.emplace_back([&resource, t] {
      std::pmr::list<size_t> list(&resource);
      for (size_t i = 0; i < 20000; i++) {
        list.push_back(i * t);
        if (i % 3 == 0) list.pop_front();
      }
      CHECK_EQ(list.back(), 19999 * t);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  {
    mi_heap_memory_resource resource;
    CHECK(resource.heap() != NULL && resource.heap() != mi_heap_main());
    check_containers(&resource, resource.heap(), seed);
    check_alignments(&resource, resource.heap());
    std::pmr::unsynchronized_pool_resource pool(&resource); // as the memory of another
    check_containers(&pool, resource.heap(), seed);
  }
  check_release();
  check_end();
  check_given_heap(seed);
  check_failure();
  check_threads();
  return check_result();
}
