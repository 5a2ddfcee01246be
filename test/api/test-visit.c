// Proves: a visit sees every block in use of a heap once, and nothing else; areas describe them; the questions of whom a
// pointer belongs to are answered for any pointer; mi_heap_check finds what is broken.
#include "../check.h"
#include "../tags.h"
#include "entries.h"
#include <pthread.h>
#include <sys/wait.h>

// ---- what a visitor sees --------------------------------------------------------------------------------------------

enum { max_seen = 30000 };

typedef struct seen_s {
  const mi_heap_t* heap; // NULL: any
  mi_heap_area_t   area; // the last one
  size_t           n_areas, n_blocks, n_used;
  size_t           n_before_stop;
  int              tag;
  uint8_t*         blocks[max_seen];
  size_t           sizes[max_seen];
} seen_t;

static seen_t seen;

static void see_nothing(const mi_heap_t* heap) {
  seen.heap = heap;
  seen.n_areas = seen.n_blocks = seen.n_used = 0;
  seen.n_before_stop = SIZE_MAX;
}

static void see_area(const mi_heap_area_t* area, size_t block_size) {
  CHECK_EQ(block_size, area->block_size);
  CHECK(area->blocks != NULL && area->full_block_size > 0 && area->full_block_size >= area->block_size);
  CHECK_FOR(area->committed <= area->reserved, "%zu of %zu", area->committed, area->reserved);
  CHECK_FOR(area->used * area->full_block_size <= area->reserved, "%zu blocks of %zu in %zu", area->used,
            area->full_block_size, area->reserved);
#if MI_API_LEVEL < 3
  seen.tag = area->heap_tag;
#endif
  seen.area = *area;
  seen.n_areas++;
  seen.n_used += area->used;
}

static bool see(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  CHECK(arg == &seen);
  if (seen.heap != NULL) CHECK(heap == seen.heap);
  if (block == NULL) see_area(area, block_size);
  else {
    CHECK(area->blocks == seen.area.blocks); // blocks come after their area
    CHECK_EQ(block_size, area->block_size);
    uintptr_t at = address_of(block), first = address_of(area->blocks);
    CHECK(at >= first && at + block_size <= first + area->reserved);
    if (seen.n_blocks < max_seen) {
      seen.blocks[seen.n_blocks] = (uint8_t*)block;
      seen.sizes[seen.n_blocks] = block_size;
    }
    seen.n_blocks++;
  }
  return seen.n_areas + seen.n_blocks <= seen.n_before_stop;
}

static int compare_pointers(const void* a, const void* b) {
  uintptr_t x = (uintptr_t)*(void* const*)a, y = (uintptr_t)*(void* const*)b;
  return (x > y) - (x < y);
}

// The block that p points into, -1 if none was seen.  `blocks` must be sorted: by then a size is that of the area.
static size_t seen_block_of(const void* p) {
  size_t from = 0, to = seen.n_blocks;
  while (from < to) {
    size_t middle = (from + to) / 2;
    if ((uintptr_t)seen.blocks[middle] <= (uintptr_t)p) from = middle + 1;
    else to = middle;
  }
  return from - 1;
}

// ---- visits ---------------------------------------------------------------------------------------------------------

typedef struct held_s {
  uint8_t* p;
  size_t   size;
} held_t;

static held_t held[max_seen];
static size_t n_held;

// Each block that is held is seen once, and so many are seen.
static void check_all_seen(const char* what) {
  CHECK_FOR(seen.n_blocks == n_held, "%s: %zu blocks seen, %zu held", what, seen.n_blocks, n_held);
  CHECK_FOR(seen.n_used == seen.n_blocks, "%s: %zu used, %zu blocks", what, seen.n_used, seen.n_blocks);
  if (seen.n_blocks > max_seen) return;
  static bool was_met[max_seen];
  memset(was_met, 0, sizeof(was_met));
  qsort(seen.blocks, seen.n_blocks, sizeof(seen.blocks[0]), &compare_pointers);
  for (size_t i = 0; i < n_held; i++) {
    size_t k = seen_block_of(held[i].p);
    CHECK_FOR(k < seen.n_blocks && !was_met[k], "%s: block %p of %zu bytes", what, (void*)held[i].p, held[i].size);
    if (k < seen.n_blocks) was_met[k] = true;
  }
}

static void check_few(void) {
  mi_heap_t* heap = mi_heap_new();
  uint8_t*   blocks[11];
  for (size_t i = 0; i < 10; i++) blocks[i] = (uint8_t*)mi_heap_malloc(heap, 100);
  blocks[10] = (uint8_t*)mi_heap_malloc(heap, 3 * MiB);
  mi_free(blocks[3]);
  mi_free(blocks[7]);
  n_held = 0;
  for (size_t i = 0; i < 11; i++) {
    held_t block = {blocks[i], i == 10 ? 3 * MiB : 100};
    if (i != 3 && i != 7) held[n_held++] = block;
  }
  see_nothing(heap);
  CHECK(mi_heap_visit_blocks(heap, true, &see, &seen));
  CHECK_EQ(seen.n_areas, 2);
  check_all_seen("few");
  for (size_t i = 0; i < seen.n_blocks && i < 9; i++) CHECK(seen.sizes[i] >= 100 && seen.sizes[i] <= 4 * MiB);

  see_nothing(heap);
  CHECK(mi_heap_visit_blocks(heap, false, &see, &seen));
  CHECK(seen.n_areas == 2 && seen.n_blocks == 0 && seen.n_used == 9);
  for (size_t stop = 1; stop < 11; stop++) {
    see_nothing(heap);
    seen.n_before_stop = stop - 1;
    CHECK(!mi_heap_visit_blocks(heap, true, &see, &seen));
    CHECK_EQ(seen.n_areas + seen.n_blocks, stop);
  }
  see_nothing(heap);
  CHECK(!mi_heap_visit_blocks(heap, true, NULL, NULL));
  mi_heap_destroy(heap);
}

static void hold(mi_heap_t* heap, rng_t* rng) {
  held_t block;
  size_t kind = rng_below(rng, 100);
  block.size = (kind == 0 ? 600 * KiB + rng_below(rng, MiB) : rng_size(rng, 20 * KiB));
  size_t alignment = (size_t)16 << rng_below(rng, 10);
  if (kind < 10) block.p = (uint8_t*)mi_heap_malloc_aligned_at(heap, block.size, alignment, 8 * rng_below(rng, 9));
  else if (kind < 20) block.p = (uint8_t*)mi_heap_malloc_aligned(heap, block.size, alignment);
  else block.p = (uint8_t*)mi_heap_malloc(heap, block.size);
  CHECK(block.p != NULL);
  held[n_held++] = block;
}

static void drop(rng_t* rng) {
  size_t i = rng_below(rng, n_held);
  mi_free(held[i].p);
  held[i] = held[--n_held];
}

static void drop_all(void) {
  while (n_held > 0) mi_free(held[--n_held].p);
}

// Against a model, in several states of the heap; with a second heap that must not be seen.
static void check_model(uint64_t seed) {
  rng_t      rng = rng_make(seed);
  mi_heap_t* heap = mi_heap_new();
  mi_heap_t* other = mi_heap_new();
  n_held = 0;
  for (size_t round = 0; round < 6; round++) {
    while (n_held < 5000) {
      hold(heap, &rng);
      if (rng_below(&rng, 3) == 0) drop(&rng);
      if (rng_below(&rng, 4) == 0) CHECK(mi_heap_malloc(other, rng_size(&rng, 1000)) != NULL);
    }
    see_nothing(heap);
    CHECK(mi_heap_visit_blocks(heap, true, &see, &seen));
    check_all_seen("full");
    while (n_held > 500) drop(&rng);
    if (round % 2 == 0) mi_heap_collect(heap, round % 4 == 0);
    see_nothing(heap);
    CHECK(mi_heap_visit_blocks(heap, true, &see, &seen));
    check_all_seen("nearly empty");
    CHECK(mi_heap_check(heap) && mi_heap_check(other));
  }
  drop_all();
  see_nothing(heap);
  CHECK(mi_heap_visit_blocks(heap, true, &see, &seen));
  check_all_seen("empty");
  mi_heap_destroy(heap);
  mi_heap_destroy(other);
}

// NULL is the main heap, in which there may be blocks of libc beside ours, and no other heap.
static void check_main_heap(void) {
  mi_heap_t* heap = mi_heap_new();
  void *     p = mi_malloc(12345), *q = mi_heap_malloc(heap, 12345);
  see_nothing(mi_heap_main());
  CHECK(mi_heap_visit_blocks(NULL, true, &see, &seen));
  qsort(seen.blocks, seen.n_blocks < max_seen ? seen.n_blocks : max_seen, sizeof(seen.blocks[0]), &compare_pointers);
  CHECK(seen.n_blocks > 0 && seen.n_blocks < max_seen);
  size_t k = seen_block_of(p);
  CHECK(k < seen.n_blocks && seen.blocks[k] == (uint8_t*)p);
  k = seen_block_of(q);
  CHECK(k >= seen.n_blocks || seen.blocks[k] != (uint8_t*)q);
  mi_free(p);
  mi_heap_destroy(heap);
}

// ---- of threads that are gone ---------------------------------------------------------------------------------------

static void* leave_blocks(void* heap) {
  rng_t rng = rng_make(4711);
  n_held = 0;
  for (size_t i = 0; i < 3000; i++) {
    size_t size = 16 + rng_below(&rng, 1000);
    held_t block = {(uint8_t*)mi_heap_malloc((mi_heap_t*)heap, size), size};
    held[n_held++] = block;
  }
  for (size_t i = 0; i < 1000; i++) drop(&rng);
  return NULL;
}

static size_t n_faults;

static void count_faults(int code, void* arg) {
  (void)arg;
  n_faults += code == EFAULT;
}

static void check_abandoned(void) {
  pthread_t  thread;
  mi_heap_t* heap = mi_heap_new_ex(9, true, 0);
  mi_option_set_enabled(mi_option_visit_abandoned, false);
  mi_option_disable(mi_option_show_errors);
  mi_register_error(&count_faults, NULL);
  n_faults = 0;
  CHECK(!mi_abandoned_visit_blocks(mi_subproc_main(), -1, true, &see, &seen));
  CHECK(n_faults > 0);
  mi_register_error(NULL, NULL);
  mi_option_enable(mi_option_visit_abandoned);

  CHECK_EQ(pthread_create(&thread, NULL, &leave_blocks, heap), 0);
  pthread_join(thread, NULL);
  see_nothing(heap);
  CHECK(mi_heap_visit_abandoned_blocks(heap, true, &see, &seen));
  check_all_seen("abandoned, of a heap");
  see_nothing(heap);
  CHECK(mi_heap_visit_blocks(heap, true, &see, &seen));
  check_all_seen("of a heap, abandoned or not");
  see_nothing(heap);
  CHECK(mi_abandoned_visit_blocks(mi_subproc_main(), 9, true, &see, &seen));
  check_all_seen("abandoned, with a tag");
  see_nothing(NULL);
  CHECK(mi_abandoned_visit_blocks(mi_subproc_main(), -1, true, &see, &seen));
  CHECK(seen.n_blocks >= n_held);
  see_nothing(NULL);
  CHECK(mi_abandoned_visit_blocks(mi_subproc_main(), 200, true, &see, &seen));
  CHECK_EQ(seen.n_areas, 0);
  CHECK(!mi_heap_visit_abandoned_blocks(heap, true, NULL, NULL));
  CHECK(!mi_abandoned_visit_blocks(mi_subproc_main(), 9, true, NULL, NULL));
  see_nothing(heap);
  seen.n_before_stop = 5;
  CHECK(!mi_heap_visit_abandoned_blocks(heap, true, &see, &seen));
  CHECK_EQ(seen.n_areas + seen.n_blocks, 6);

  void* p = mi_heap_malloc(heap, 5000); // of this thread: not abandoned
  see_nothing(heap);
  CHECK(mi_heap_visit_abandoned_blocks(heap, true, &see, &seen));
  for (size_t i = 0; i < seen.n_blocks; i++) CHECK(seen.blocks[i] != (uint8_t*)p);
  mi_heap_destroy(heap);
  mi_option_disable(mi_option_visit_abandoned);
}

// ---- whose is it ----------------------------------------------------------------------------------------------------

static void check_not_ours(const void* p, mi_heap_t* heap) {
  CHECK(!mi_is_in_heap_region(p) && !mi_any_heap_contains(p) && !mi_check_owned(p));
  CHECK(mi_heap_of(p) == NULL);
  CHECK(!mi_heap_contains(heap, p) && !mi_heap_contains(NULL, p));
  CHECK(!mi_heap_contains_block(heap, p) && !mi_heap_check_owned(heap, p));
}

static void check_belonging(void) {
  static char static_memory[100];
  char        stack_memory[100];
  mi_heap_t*  heap = mi_heap_new();
  mi_heap_t*  other = mi_heap_new();
  for (size_t size = 1; size <= 80 * MiB; size = size * 7 + 1) {
    uint8_t* p = (uint8_t*)mi_heap_malloc(heap, size);
    for (size_t i = 0; i < 5; i++) {
      size_t   known = (size > 512 * KiB ? (MI_HARDENED ? 32 : 64) * KiB : size); // guarded ones start later
      uint8_t* q = p + (i == 4 ? known - 1 : known / 4 * i);
      bool     is_word = is_aligned(q, sizeof(void*));
      CHECK_FOR(mi_is_in_heap_region(q) && mi_any_heap_contains(q) && mi_check_owned(q), "%zu of %zu", i, size);
      CHECK_FOR(mi_heap_of(q) == heap, "%zu of %zu", i, size);
      CHECK(mi_heap_contains(heap, q) && !mi_heap_contains(other, q) && !mi_heap_contains(NULL, q));
      CHECK(mi_heap_contains_block(heap, q) && !mi_heap_contains_block(other, q));
      CHECK(mi_heap_check_owned(heap, q) == is_word && !mi_heap_check_owned(other, q));
    }
    mi_free(p);
  }
  check_not_ours(NULL, heap);
  check_not_ours(static_memory + 8, heap);
  check_not_ours(stack_memory + 8, heap);
  check_not_ours((void*)&check_belonging, heap);
  static const uintptr_t anywhere[] = {8, 0x3990080, POWER_OF_TWO(40), (uintptr_t)INTPTR_MAX & ~(uintptr_t)7,
                                       UINTPTR_MAX & ~(uintptr_t)7};
  for (size_t i = 0; i < COUNT_OF(anywhere); i++) check_not_ours((void*)anywhere[i], heap);
  void* p = mi_malloc(100);
  CHECK(mi_heap_contains(NULL, p) && mi_heap_contains(mi_heap_main(), p) && mi_heap_check_owned(NULL, p));
  CHECK(mi_heap_contains_block(NULL, p) && !mi_heap_contains(heap, p));
  mi_free(p);
  mi_heap_delete(heap);
  mi_heap_delete(other);
}

// ---- pages that are nearly empty ------------------------------------------------------------------------------------

// Fills pages, frees all blocks but one in 64, and asks: those that are left should move, all but perhaps those in the page
// that allocation takes from.
static void check_under_utilized(void) {
  enum { n = 4096 };
  static void* blocks[n];
  mi_heap_t*   heap = mi_heap_new();
  mi_heap_t*   other = mi_heap_new();
  for (size_t i = 0; i < n; i++) blocks[i] = mi_heap_malloc(heap, 1000);
  size_t n_full = 0, n_sparse = 0, n_at_0 = 0, n_of_other = 0, n_of_any = 0;
  for (size_t i = 0; i < n; i++) n_full += mi_unsafe_heap_page_is_under_utilized(heap, blocks[i], 90);
  CHECK_FOR(n_full < n / 8, "%zu of %d blocks of full pages", n_full, n);
  for (size_t i = 0; i < n; i++) {
    if (i % 64 != 0) mi_free(blocks[i]);
  }
  mi_heap_collect(heap, false);
  for (size_t i = 0; i < n; i += 64) {
    n_sparse += mi_unsafe_heap_page_is_under_utilized(heap, blocks[i], 50);
    n_at_0 += mi_unsafe_heap_page_is_under_utilized(heap, blocks[i], 0);
    n_of_other += mi_unsafe_heap_page_is_under_utilized(other, blocks[i], 50);
    n_of_any += mi_unsafe_heap_page_is_under_utilized(NULL, blocks[i], 50);
  }
  CHECK_FOR(n_sparse >= n / 64 - 4, "%zu of %d", n_sparse, n / 64);
  CHECK_EQ(n_of_any, n_sparse);
  CHECK_EQ(n_at_0, 0);
  CHECK_EQ(n_of_other, 0);
  CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, NULL, 100));
  mi_heap_destroy(heap);
  mi_heap_destroy(other);
}

// ---- finding errors -------------------------------------------------------------------------------------------------

// In a child: what it breaks is broken.  Writes over the links of free blocks; 0 if that is found.
static int run_broken(void) {
  void*      blocks[100];
  mi_heap_t* heap = mi_heap_new();
  int        null = open("/dev/null", O_WRONLY);
  if (null >= 0) dup2(null, 2);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_heap_malloc(heap, 200);
  for (size_t i = 0; i < COUNT_OF(blocks); i += 2) mi_free(blocks[i]);
  mi_heap_collect(heap, false);
  mi_register_error(&count_faults, NULL);
  n_faults = 0;
  if (!mi_heap_check(heap) || !mi_heap_check(NULL) || n_faults != 0) return 2;
  for (size_t i = 0; i < COUNT_OF(blocks); i += 2) memset(hidden_pointer(blocks[i]), 0xAB, 16);
  if (mi_heap_check(heap)) return 3;
  if (n_faults == 0) return 4;
  if (mi_heap_check(NULL)) return 5;
  return mi_heap_check(mi_heap_main()) ? 0 : 6;
}

static void check_broken(void) {
  if (TEST_ASAN || TEST_VALGRIND || MI_TAGS) return; // which report it
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) _exit(run_broken());
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status 0x%x", status);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  check_belonging();
  check_few();
  check_model(seed);
  check_main_heap();
  check_abandoned();
  check_under_utilized();
  CHECK(mi_heap_check(NULL));
  check_broken();
  return check_result();
}
