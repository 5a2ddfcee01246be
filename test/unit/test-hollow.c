// Proves: shared pages that use little are gap pages after some quiet rounds, and of their OS pages only those are backed then that
// blocks touch (HO1, HO2); a list in which pages are shared or adopted is not quiet; pages that use more stay what they are, and so do
// those for which there is no memory.  What the blocks hold stays, whoever frees them and whoever takes what lies between them; no page is
// left when all are free.
#include <pthread.h>
#if !defined(_WIN32)
  #include <sys/mman.h>
#endif

#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "heap/background.h"
#include "heap/gaps.h"
#include "heap/hollow.h"
#include "heap/warm.h"
#include "mimalloc.h"
#include "support/stat.h"

enum { n_quiet = 40, n_again = 200, n_pages = 48, n_kept = 2 }; // of a size, and of a page

static const size_t sizes[] = {64, 448, 2000, 8000};

enum { n_sizes = COUNT_OF(sizes), n_all = n_sizes * n_pages * n_kept, n_dense = 8 * 32 };

static void* kept[n_all];
static void* dense[n_dense]; // blocks in pages half of which is used
static void* lone[n_sizes];  // ... and alone in pages most of whose blocks were not made yet
static void* of_heap;        // ... in a page of a heap that was deleted
static void* late[n_pages];  // ... in pages that are shared where lists were looked at

static int64_t page_count(void) {
  return mi_load_relaxed(&_mi_stat_live.pages.current);
}

static bool is_shared(const void* p) {
  return _mi_page_word_state(mi_load_relaxed(&_mi_page_of(p)->word)) == MI_PAGE_SHARED;
}

static size_t size_of(size_t i) {
  return sizes[i / (n_pages * n_kept)];
}

// Fills pages with blocks of that size, and frees all but so many of each, which are as far from each other as can be.
static size_t fill(size_t size, size_t n, size_t n_of_each, void** to) {
  static void* blocks[n_pages * 1024];
  size_t       each = MI_SLICE_SIZE / _mi_size_class_block(_mi_size_class_of(size)), n_left = 0;
  for (size_t i = 0; i < n * each; i++) blocks[i] = memset(mi_malloc(size), 1, size);
  for (size_t i = 0; i < n * each; i++) {
    if (i % (each / n_of_each) == 0 && i % each / (each / n_of_each) < n_of_each) to[n_left++] = blocks[i];
    else mi_free(blocks[i]);
  }
  return n_left;
}

// One thread for each size: one with several would make gap pages by itself (sparse.h).
static void* leave(void* arg) {
  size_t k = (size_t)(uintptr_t)arg, first = k * n_pages * n_kept;
  if (k == n_sizes) CHECK_EQ(fill(1000, n_dense / 32, 32, dense), n_dense);
  else CHECK_EQ(fill(sizes[k], n_pages, n_kept, kept + first), n_pages * n_kept);
  if (k < n_sizes) lone[k] = memset(mi_malloc(620 + 300 * k), 1, 620);
  for (size_t i = first; k < n_sizes && i < first + n_pages * n_kept; i++) pattern_fill(kept[i], 0, size_of(i), i);
  return arg;
}

static pthread_barrier_t barrier;

static void* leave_late(void* arg) {
  late[(size_t)(uintptr_t)arg] = memset(mi_malloc(sizes[1]), 1, sizes[1]);
  pthread_barrier_wait(&barrier); // so that none takes the page of another
  return arg;
}

static void in_thread(void* (*act)(void*), size_t arg) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, act, (void*)(uintptr_t)arg), 0);
  pthread_join(thread, NULL);
}

static void* leave_heap(void* arg) {
  mi_heap_t* heap = mi_heap_new();
  of_heap = mi_heap_malloc(heap, 5000);
  mi_heap_delete(heap);
  return arg;
}

// What a thread leaves to the next one, as if it slept, is nobody's.
static void leave_nothing_warm(void) {
  _mi_warm_collect();
  for (size_t i = 0; i < n_dense; i++) CHECK(dense[i] == NULL || is_shared(dense[i]));
}

static bool make_round(void) {
  _mi_background_lock();
  bool more = _mi_hollow_round();
  _mi_background_unlock();
  return more;
}

static void check_blocks(void) {
  for (size_t i = 0; i < n_all; i++) CHECK(kept[i] == NULL || pattern_check(kept[i], size_of(i), i) == size_of(i));
}

static size_t n_in_gaps(void) {
  size_t n = 0;
  for (size_t i = 0; i < n_all; i++) n += (kept[i] != NULL && _mi_gaps_is(_mi_page_of(kept[i])));
  return n;
}

// ---- what is backed -----------------------------------------------------------------------------------------------------

static bool is_backed(const char* os_page) {
#if defined(__linux__)
  unsigned char is = 1;
  return mincore((void*)(uintptr_t)os_page, 1, &is) == 0 && (is & 1) != 0;
#else
  return os_page != NULL;
#endif
}

static bool is_touched(const char* os_page, size_t size) {
  for (size_t i = 0; i < n_all; i++) {
    const char* p = (const char*)kept[i];
    if (p != NULL && p < os_page + size && p + size_of(i) > os_page) return true;
  }
  return false;
}

// OS pages of pages with kept blocks, and those that no block touches.
static size_t n_backed(bool only_untouched) {
  size_t n = 0, size = _mi_prim_os_page_size();
  for (size_t i = 1; i < n_all; i += n_kept) {
    const char* start = (const char*)mi_align_down((uintptr_t)kept[i], MI_SLICE_SIZE);
    if (start == NULL) continue;
    for (size_t at = 0; at < MI_SLICE_SIZE; at += size)
      n += (is_backed(start + at) && !(only_untouched && is_touched(start + at, size)));
  }
  return n;
}

static bool can_tell(void) {
#if defined(__linux__)
  return rss_is_meaningful() && _mi_prim_os_page_size() == 4 * KiB;
#else
  return false;
#endif
}

// ---- rounds ---------------------------------------------------------------------------------------------------------------

static void make_rounds(int n) {
  for (int i = 0; i < n; i++) CHECK(make_round());
}

// All that there is to do, twice: lists that stay as they are are looked at again.
static void make_all_rounds(void) {
  for (int i = 0; i < 2 * n_again; i++) make_round();
  CHECK(!make_round());
}

// Where there is no memory for a map, pages stay shared as they are.  This is the first map of all.
static void check_no_maps(void) {
  enum { n_runs = 4096 };
  static mi_run_t runs[n_runs];
  size_t          n = 0;
  in_thread(&leave, 0);
  leave_nothing_warm();
  make_rounds(n_quiet);
  _mi_prim_fail_nth(1, true);
  while (n < n_runs && (runs[n] = _mi_slices_alloc(1, 1, MI_REQUEST_META, MI_ARENA_ANY)).region != NULL) n++;
  make_round();
  _mi_prim_fail_nth(0, false);
  CHECK(n < n_runs);
  CHECK_EQ(n_in_gaps(), 0);
  for (size_t i = 0; i < n_pages * n_kept; i++) CHECK(is_shared(kept[i]));
  while (n-- > 0) _mi_slices_free(runs[n].region, runs[n].slice, runs[n].n_slices, false);
  check_blocks();
  CHECK(mi_heap_check(NULL));
  make_all_rounds();
  CHECK_FOR(n_in_gaps() >= (n_pages - 1) * n_kept, "%zu of %d", n_in_gaps(), n_pages * n_kept);
  for (size_t i = 0; i < n_pages * n_kept; i++) mi_free(kept[i]);
  mi_free(lone[0]);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

static void check_quiet(void) {
  for (size_t k = 0; k <= n_sizes; k++) in_thread(&leave, k);
  in_thread(&leave_heap, 0);
  leave_nothing_warm();
  size_t n_before = n_backed(true);
  make_rounds(n_quiet);
  CHECK_EQ(n_in_gaps(), 0);
  void* p = mi_malloc(sizes[0]); // of a page that this thread adopts: its list is not quiet
  make_rounds(n_quiet);
  CHECK_EQ(n_in_gaps(), n_all - n_pages * n_kept); // other lists
  make_all_rounds();
  CHECK_FOR(n_in_gaps() >= n_all - n_kept, "%zu of %d", n_in_gaps(), (int)n_all);
  for (size_t i = 0; i < n_dense; i++) CHECK(!_mi_gaps_is(_mi_page_of(dense[i])));
  for (size_t k = 0; k < n_sizes; k++)
    CHECK(_mi_gaps_is(_mi_page_of(lone[k])) && _mi_gaps_is_valid(_mi_page_of(lone[k])));
  CHECK(_mi_page_has(_mi_page_of(of_heap), MI_PAGE_IN_HEAP) && !_mi_gaps_is(_mi_page_of(of_heap))); // GP5
  size_t n_after = n_backed(true);
  printf("backed and not in use: %zu OS pages, then %zu\n", n_before, n_after);
  if (can_tell()) CHECK(n_before > (size_t)n_all / n_kept * 8 && n_after <= 16); // one page has an owner
  check_blocks();
  CHECK(mi_heap_check(NULL));
  mi_free(p);
}

static size_t n_late_in_gaps(void) {
  size_t n = 0;
  for (size_t i = 0; i < n_pages; i++) n += (late[i] != NULL && _mi_gaps_is(_mi_page_of(late[i])));
  return n;
}

// In the lists of all pools: there are more threads than those.
static void leave_in_many(void) {
  pthread_t threads[n_pages];
  for (size_t i = 0; i < n_pages; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &leave_late, (void*)(uintptr_t)i), 0);
  for (size_t i = 0; i < n_pages; i++) pthread_join(threads[i], NULL);
  leave_nothing_warm();
}

static void free_late(void) {
  for (size_t i = 0; i < n_pages; i++) mi_free(late[i]);
  memset(late, 0, sizeof(late));
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
}

// A list of which all was done is looked at again as soon as it is quiet with other pages.
static void check_late(void) {
  pthread_barrier_init(&barrier, NULL, n_pages);
  leave_in_many();
  for (int i = 0; i <= n_quiet; i++) make_round();
  CHECK_EQ(n_late_in_gaps(), n_pages);
  free_late();
  leave_in_many();
  CHECK_EQ(n_late_in_gaps(), 0);
  for (int i = 0; i <= n_quiet; i++) make_round();
  CHECK_EQ(n_late_in_gaps(), n_pages);
  free_late();
  pthread_barrier_destroy(&barrier);
}

// Others free blocks of pages that are shared, and the last one of some.
static void* free_some(void* arg) {
  for (size_t i = 0; i < n_all; i++) {
    if (i % 4 != 0 && i % 8 != 1) continue;
    mi_free(kept[i]);
    kept[i] = NULL;
  }
  return arg;
}

static void check_frees(void) {
  in_thread(&free_some, 0);
  make_all_rounds();
  if (can_tell()) CHECK_FOR(n_backed(true) <= 16, "%zu", n_backed(true));
  check_blocks();
  CHECK(mi_heap_check(NULL));
}

// What lies between the blocks serves requests of other sizes, and is given back again when nobody uses it.
static void* take_between(void* arg) {
  enum { n = 20000, size = 320 };
  static void* blocks[n];
  size_t       n_there = 0;
  for (size_t i = 0; i < n; i++) {
    blocks[i] = mi_malloc(size);
    pattern_fill(blocks[i], 0, size, i);
    n_there += _mi_gaps_is(_mi_page_of(blocks[i]));
  }
  CHECK_FOR(n_there > n / 2, "%zu of %d", n_there, (int)n);
  check_blocks();
  for (size_t i = 0; i < n; i++) {
    CHECK_EQ(pattern_check(blocks[i], size, i), size);
    mi_free(blocks[i]);
  }
  return arg;
}

static void check_all_is_free(void) {
  for (size_t i = 0; i < n_all; i++) mi_free(kept[i]);
  for (size_t i = 0; i < n_dense; i++) mi_free(dense[i]);
  for (size_t k = 0; k < n_sizes; k++) mi_free(lone[k]);
  mi_free(of_heap);
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
  CHECK(mi_heap_check(NULL));
}

int main(void) {
  watchdog(60);
  if (!MI_GAPS) {
    test_skip("gap pages", "this build has none");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1); // rounds are those of the test
  mi_free(mi_malloc(1));
  mi_collect(true);
  CHECK(!make_round()); // HO4
  _mi_purge_set_has_thread(true);
  check_no_maps();
  check_late();
  check_quiet();
  check_frees();
  in_thread(&take_between, 0);
  make_all_rounds();
  if (can_tell()) CHECK_FOR(n_backed(true) <= 16, "%zu", n_backed(true));
  check_blocks();
  check_all_is_free();
  return check_result();
}
