// Proves: what the library keeps about blocks is less than 1 % of them, of resident memory, also where there are several heaps; and
// the address space that it takes is a small part of all: of 4 GiB under 4 % at the start, and little more than the blocks later.
#include <mimalloc.h>

#include "../check.h"
#include "../modes/support.h"
#include "base/mode.h"

enum { n_sizes = 3 };

static const size_t sizes[n_sizes] = {64, 1024, 8192}; // of blocks: they fill their pages
static const bool   is_32_bit = (sizeof(void*) == 4);

static size_t vm_size(void) {
  return proc_bytes("/proc/self/status", "\nVmSize:");
}

// Blocks of that size, with what builds that check blocks put behind them; in a list.
static void* allocate(mi_heap_t* heap, size_t size, size_t bytes, void* list) {
  for (size_t sum = 0; sum < bytes; sum += size) {
    void** p = (void**)mi_heap_malloc(heap, size - MI_PADDING_SIZE);
    CHECK(p != NULL);
    if (p == NULL) break;
    memset(p, 1, size - MI_PADDING_SIZE);
    *p = list;
    list = p;
  }
  return list;
}

static void release(void* list) {
  while (list != NULL) {
    void* next = *(void**)list;
    mi_free(list);
    list = next;
  }
}

// In percent of what is there.
static double share(size_t part, size_t all) {
  return 100.0 * (double)part / (double)all;
}

static void check_start(void) {
  release(allocate(mi_heap_main(), 1024, MiB, NULL));
  size_t size = vm_size(), most = (is_32_bit ? 4096 / 25 : 48) * MiB;
  printf("address space at the start: %.1f MiB (at most %.1f)\n", (double)size / (double)MiB,
         (double)most / (double)MiB);
  CHECK(size <= most);
}

static void check_blocks(mi_heap_t* heap, const char* what, void** lists) {
  const size_t bytes = 64 * MiB, all = n_sizes * bytes;
  for (size_t i = 0; i < n_sizes; i++) lists[i] = allocate(heap, sizes[i], MiB, NULL); // what the first ones need
  size_t resident = rss_now();
  for (size_t i = 0; i < n_sizes; i++) lists[i] = allocate(heap, sizes[i], bytes, lists[i]);
  size_t more = minus(rss_now(), resident), used = rss_now(), space = vm_size();
  printf("%s: %.2f %% of metadata; %.1f MiB of address space for %.1f MiB of memory\n", what,
         share(minus(more, all), all), (double)space / (double)MiB, (double)used / (double)MiB);
  CHECK(more >= all && share(more - all, all) < 1);
  // 32 bits: a whole region ahead; others: an eighth.
  CHECK(space <= used + (is_32_bit ? 163 * MiB : used / 100 * 14 + 48 * MiB));
}

int main(int argc, char** argv) {
  void* lists[2][n_sizes];
  test_seed(argc, argv);
  if (!rss_is_meaningful() || vm_size() == 0) {
    test_skip("the footprint", "the resident memory and the address space of the process say nothing here");
    return 77;
  }
  mi_option_set(mi_option_allow_thp, 0); // the last huge OS page would count as if it were full
  check_start();
  check_blocks(mi_heap_main(), "one heap", lists[0]);
  mi_heap_t* heap = mi_heap_new();
  CHECK(heap != NULL);
  if (heap == NULL) return check_result();
  check_blocks(heap, "a second heap", lists[1]);
  for (size_t i = 0; i < 2 * n_sizes; i++) release(lists[i / n_sizes][i % n_sizes]);
  mi_heap_delete(heap);
  return check_result();
}
