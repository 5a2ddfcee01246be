// The allocators of mimalloc.h for the containers of the C++ library:
//
//   mi_stl_allocator               blocks of the default heap
//   mi_heap_stl_allocator          blocks of one heap, which can be visited, or counted
//   mi_heap_destroy_stl_allocator  the same; the last container drops the heap as a whole, without freeing element by element
//
// Build and run:
//   c++ -O2 program.cpp $(pkg-config --cflags --libs mimalloc) -o program
//   ./program
// Prints:
//   sum of a vector: 499500
//   a map with 1000 words in a heap of its own
//   the index with 100000 entries was dropped at once; bytes in use have returned to those before: yes
#include <mimalloc-stats.h>
#include <mimalloc.h>

#include <cstdio>
#include <map>
#include <numeric>
#include <string>
#include <vector>

// All bytes in blocks that are in use.
static long long bytes_in_use() {
  mi_stats_t_decl(stats);
  if (!mi_stats_get(&stats)) return -1;
  return stats.malloc_normal.current + stats.malloc_huge.current;
}

template <class T>
using dropped_allocator = mi_heap_destroy_stl_allocator<T>;
using dropped_map = std::map<int, int, std::less<int>, dropped_allocator<std::pair<const int, int>>>;

// The allocator of the map makes a heap.  Its destructor walks no tree: mi_heap_destroy frees all nodes.
static std::size_t make_index(int entries) {
  dropped_map index;
  for (int i = 0; i < entries; i++) index[i * 7919 % entries] = i;
  return index.size();
}

int main() {
  std::vector<int, mi_stl_allocator<int>> numbers(1000);
  std::iota(numbers.begin(), numbers.end(), 0);
  std::printf("sum of a vector: %d\n", std::accumulate(numbers.begin(), numbers.end(), 0));

  // A heap that the program owns.  The allocator uses it and leaves it alone.
  mi_heap_t* heap = mi_heap_new();
  if (heap == nullptr) return 1;
  {
    using pair = std::pair<const int, int>;
    std::map<int, int, std::less<int>, mi_heap_stl_allocator<pair>> words{mi_heap_stl_allocator<pair>(heap)};
    for (int i = 0; i < 1000; i++) words[i] = i;
    std::printf("a map with %zu words in a heap of its own\n", words.size());
  }
  mi_heap_delete(heap);

  long long   before = bytes_in_use();
  std::size_t entries = make_index(100000);
  long long   left = bytes_in_use() - before;
  std::printf("the index with %zu entries was dropped at once; bytes in use have returned to those before: %s\n", entries,
              left < 64 * 1024 ? "yes" : "no");
  return 0;
}
