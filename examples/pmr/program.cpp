// mimalloc-pmr.h: a std::pmr::memory_resource over a heap, for C++17 containers that take a resource at run time.  In contrast to
// std::pmr::monotonic_buffer_resource it reuses what is freed, and any thread may use it.
//
// Build and run:
//   c++ -std=c++17 -O2 program.cpp $(pkg-config --cflags --libs mimalloc) -o program
//   ./program
// Prints:
//   10 documents of 2000 words
//   every word was in the heap of the resource: yes
//   memory that the documents have left in use: none
#include <mimalloc-pmr.h>
#include <mimalloc-stats.h>

#include <cstdio>
#include <memory_resource>
#include <string>
#include <vector>

#ifndef MI_HAS_HEAP_MEMORY_RESOURCE
#error this standard library has no <memory_resource>
#endif

using words = std::pmr::vector<std::pmr::string>;

static void fill(words& document, int count) {
  for (int i = 0; i < count; i++) document.emplace_back("a word that is too long for the buffer inside a string");
}

static bool all_in(mi_heap_t* heap, const words& document) {
  for (const auto& word : document) {
    if (!mi_heap_contains(heap, word.data())) return false;
  }
  return true;
}

static long long bytes_in_use() {
  mi_stats_t_decl(stats);
  return mi_stats_get(&stats) ? stats.malloc_normal.current + stats.malloc_huge.current : -1;
}

int main() {
  mi_heap_memory_resource pool; // a heap of its own
  bool                    is_in = true;
  const long long         before = bytes_in_use();
  for (int i = 0; i < 10; i++) {
    // The document itself lies in the pool and is never destroyed: release() frees it with all its words.
    words* document = new (pool.allocate(sizeof(words), alignof(words))) words(&pool);
    fill(*document, 2000);
    is_in = is_in && all_in(pool.heap(), *document);
    pool.release();
  }
  std::printf("10 documents of 2000 words\n");
  std::printf("every word was in the heap of the resource: %s\n", is_in ? "yes" : "no");
  std::printf("memory that the documents have left in use: %s\n", bytes_in_use() - before < 64 * 1024 ? "none" : "some");
  return 0;
}
