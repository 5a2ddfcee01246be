// Proves: each number of the statistics that is counted is what the test itself has counted, with one thread and with several;
// blocks in bins and outboxes are not in use; when all is freed nothing is; the table says the same as the JSON.
//
// The system calls of the allocator come by here, since a program may have functions of their names.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "../check.h"
#include "../modes/support.h"
#include "../sink.h"
#include "arena/purge_by_clock.h"
#include "arena/slices.h"
#include "heap/heap.h"
#include "heap/warm.h"
#include "mimalloc-profile.h"
#include "page/size_class.h"
#include "support/stat.h"

#include <pthread.h>

// ---- system calls ---------------------------------------------------------------------------------------------------

typedef long long __attribute__((aligned(8))) counter_t; // as atomic operations want it, with pointers of 32 bits too

static struct {
  counter_t map, commit, purge, discard, n_purged, n_discarded; // atomically
} calls;

#if !TEST_TSAN && !TEST_ASAN
static void count(counter_t* n, long long added) {
  __atomic_add_fetch(n, added, __ATOMIC_RELAXED);
}

// The system call of that name takes a pointer to its arguments on some processors; where there is another, it counts in 4 KiB.
void* mmap(void* start, size_t size, int protection, int flags, int fd, off_t offset) {
  count(&calls.map, 1);
  #if defined(__s390x__)
  long arguments[] = {(long)(uintptr_t)start, (long)size, protection, flags, fd, (long)offset};
  long result = syscall(SYS_mmap, arguments);
  #elif defined(SYS_mmap2)
  long result = syscall(SYS_mmap2, start, size, protection, flags, fd, (long)(offset / 4096));
  #else
  long result = syscall(SYS_mmap, start, size, protection, flags, fd, offset);
  #endif
  return (void*)result; // NOLINT(performance-no-int-to-ptr)
}

int mprotect(void* start, size_t size, int protection) {
  count(&calls.commit, protection == (PROT_READ | PROT_WRITE));
  return (int)syscall(SYS_mprotect, start, size, protection);
}

int madvise(void* start, size_t size, int advice) {
  int       result = (int)syscall(SYS_madvise, start, size, advice);
  long long n_bytes = (result == 0 ? (long long)size : 0);
  count(&calls.purge, advice == MADV_DONTNEED);
  count(&calls.discard, advice == MADV_FREE);
  count(&calls.n_purged, advice == MADV_DONTNEED ? n_bytes : 0);
  count(&calls.n_discarded, advice == MADV_FREE ? n_bytes : 0);
  return result;
}
#endif

static bool calls_are_counted(void) {
  return !TEST_SANITIZED;
}

static mi_stats_t get(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  return stats;
}

static void churn_slices(void) {
  static void* p[64];
  for (size_t i = 0; i < COUNT_OF(p); i++) memset(p[i] = mi_malloc(900 * KiB), 1, 900 * KiB);
  for (size_t i = 0; i < COUNT_OF(p); i++) mi_free(p[i]);
  mi_collect(true);
}

static void check_calls(void) {
  if (!calls_are_counted()) return;
  mi_stats_reset();
  memset(&calls, 0, sizeof(calls));
  churn_slices();
  mi_free(mi_malloc(100 * MiB));
  mi_option_disable(mi_option_purge_decommits);
  churn_slices();
  mi_option_enable(mi_option_purge_decommits);
  mi_stats_t now = get();
  CHECK(calls.purge > 0 && (MI_HARDENED || (calls.map > 0 && calls.discard > 0)));
  CHECK_EQ(now.mmap_calls.total, calls.map);
  CHECK_EQ(now.commit_calls.total, calls.commit);
  CHECK_EQ(now.purge_calls.total, calls.purge);
  CHECK_EQ(now.reset_calls.total, calls.discard);
  CHECK_EQ(now.purged.total, calls.n_purged);
  CHECK_EQ(now.reset.total, calls.n_discarded);
}

// ---- memory of the system -------------------------------------------------------------------------------------------

static void check_memory(void) {
  mi_arena_id_t arena;
  const size_t  arena_size = 64 * MiB, block_size = 100 * MiB;
  long long     n_commits = calls.commit;
  mi_stats_t    before = get();
  CHECK_EQ(mi_reserve_os_memory_ex(arena_size, true, false, true, &arena), 0);
  mi_stats_t with_arena = get();
  CHECK_EQ(with_arena.reserved.current - before.reserved.current, arena_size);
  CHECK_EQ(with_arena.committed.current - before.committed.current, arena_size);
  CHECK_EQ(with_arena.arena_count.total - before.arena_count.total, 1);
  if (calls_are_counted())
    CHECK_EQ(with_arena.commit_calls.total - before.commit_calls.total, calls.commit - n_commits);
  void*      p = mi_malloc(block_size - MI_PADDING_SIZE); // a mapping of its own
  mi_stats_t with_block = get();
  int64_t rest = (with_block.committed.current - with_arena.committed.current) - (int64_t)block_size; // and descriptors
  CHECK_FOR(rest >= 0 && rest <= (int64_t)(4 * MiB), "%lld", (long long)rest);
  CHECK_EQ(with_block.reserved.current - with_arena.reserved.current,
           with_block.committed.current - with_arena.committed.current);
  mi_free(p);
  mi_stats_t after = get();
  CHECK_EQ(with_block.committed.current - after.committed.current, block_size);
  CHECK_EQ(after.committed.peak, mi_max(before.committed.peak, with_block.committed.current));
  CHECK_EQ(after.reserved.peak, mi_max(before.reserved.peak, with_block.reserved.current));
}

// A large block that the system resizes or moves is one block all the time, and what it grows by is all that is added.
static void check_resized(void) {
  mi_stats_reset();
  size_t     size = 40 * MiB, n_steps = 10;
  mi_stats_t before = get();
  void*      p = mi_malloc(size / 2 - MI_PADDING_SIZE);
  p = mi_realloc(p, size - MI_PADDING_SIZE);
  CHECK(_mi_page_is_mapped(_mi_page_of(p)));
  mi_stats_t moved = get();
  CHECK_EQ(moved.malloc_huge.current - before.malloc_huge.current, size);
  CHECK_EQ(moved.malloc_huge.peak - before.malloc_huge.current, size);
  CHECK_EQ(moved.malloc_huge.total - before.malloc_huge.total, size);
  for (size_t i = 1; i <= n_steps; i++) p = mi_realloc(p, size + i * MiB - MI_PADDING_SIZE);
  mi_stats_t grown = get();
  CHECK_EQ(grown.malloc_huge.total - moved.malloc_huge.total, n_steps * MiB);
  CHECK_EQ(grown.committed.total - moved.committed.total, n_steps * MiB);
  CHECK_EQ(grown.reserved.total - moved.reserved.total, n_steps * MiB);
  CHECK_EQ(grown.committed.current - moved.committed.current, n_steps * MiB);
  p = mi_realloc(p, size / 2 - MI_PADDING_SIZE);
  mi_stats_t shrunk = get();
  CHECK_EQ(moved.committed.current - shrunk.committed.current, size / 2);
  CHECK_EQ(shrunk.committed.total, grown.committed.total);
  mi_free(p);
  CHECK_EQ(get().malloc_huge.current, before.malloc_huge.current);
}

static void check_purge_rounds(void) {
  mi_stats_t before = get();
  for (int i = 0; i < 5; i++) {
    void* p = mi_malloc(700 * KiB);
    memset(p, 1, 700 * KiB);
    mi_free(p);
    mi_heap_collect(mi_heap_main(), false);
    CHECK(_mi_chunk_purgeable() > 0);
    _mi_purge_by_clock(true);
    _mi_purge_by_clock(true); // finds nothing
  }
  CHECK_EQ(get().arena_purges.total - before.arena_purges.total, 5);
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

enum { n_sizes = 6, n_of_size = 3000, n_large = 5 };
static const size_t sizes[n_sizes] = {32, 64, 500, 1000, 5000, 20000};
static void*        blocks[n_sizes][n_of_size];
static void*        large[n_large];

static size_t bin_of(size_t size) {
  size_t bin = 0;
  while (mi_stats_get_bin_size(bin) < size) bin++;
  return bin;
}

static void check_live(const mi_stats_t* stats, const size_t* n_live, size_t n_live_large, const char* when) {
  int64_t bytes = 0, n = 0;
  for (size_t i = 0; i < n_sizes; i++) {
    size_t bin = bin_of(sizes[i]);
    CHECK_FOR(stats->malloc_bins[bin].current == (int64_t)n_live[i], "%s: %lld of %zu bytes, not %zu", when,
              (long long)stats->malloc_bins[bin].current, sizes[i], n_live[i]);
    bytes += (int64_t)(n_live[i] * mi_stats_get_bin_size(bin));
    n += (int64_t)n_live[i];
  }
  for (size_t bin = 0; bin <= MI_BIN_HUGE; bin++) n -= stats->malloc_bins[bin].current;
  CHECK_FOR(n == -(int64_t)n_live_large, "%s: %lld in other bins", when, (long long)-n);
  CHECK_EQ(stats->malloc_bins[MI_BIN_HUGE].current, n_live_large);
  CHECK_EQ(stats->malloc_normal.current, bytes);
  if (MI_HARDENED && n_live_large > 0) return; // guarded: they take more
  CHECK_EQ(stats->malloc_huge.current, n_live_large * MiB);
  CHECK_EQ(stats->malloc_requested.current, bytes + (int64_t)(n_live_large * MiB));
}

static void check_one_thread(void) {
  size_t     n_live[n_sizes] = {0};
  mi_stats_t stats = get();
  check_live(&stats, n_live, 0, "at first");
  mi_stats_reset();
  for (size_t k = 0; k < n_of_size; k++) {
    for (size_t i = 0; i < n_sizes; i++, n_live[i - 1]++) blocks[i][k] = mi_malloc(sizes[i] - MI_PADDING_SIZE);
    stats = get();
    if (k % 100 == 7) check_live(&stats, n_live, 0, "growing");
  }
  for (size_t i = 0; i < n_large; i++) large[i] = mi_malloc(MiB - MI_PADDING_SIZE);
  stats = get();
  check_live(&stats, n_live, n_large, "all");
  CHECK_EQ(stats.malloc_normal_count.total, n_sizes * n_of_size);
  for (size_t i = 0; i < n_large; i++) mi_free(large[i]);
  for (size_t k = 0; k < n_of_size; k++) {
    for (size_t i = 0; i < n_sizes; i++, n_live[i - 1]--) mi_free(blocks[i][k]);
    stats = get();
    if (k % 100 == 7) check_live(&stats, n_live, 0, "shrinking");
  }
  for (size_t i = 0; i < 100; i++) mi_free(mi_malloc(MiB - MI_PADDING_SIZE)); // the same memory again and again
  mi_collect(true);
  stats = get();
  check_live(&stats, n_live, 0, "nothing");
  CHECK_EQ(stats.malloc_huge_count.total, n_large + 100);
  if (MI_HARDENED) return; // large blocks are guarded
  CHECK_EQ(stats.malloc_huge.peak, n_large * MiB);
  CHECK_EQ(stats.malloc_huge.total, (n_large + 100) * MiB);
}

static void check_guarded(void) {
  void*      p[10];
  mi_stats_t before = get();
  mi_option_set(mi_option_guarded_sample_rate, 1);
  int64_t n = 0;
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = mi_malloc(100);
  mi_option_set(mi_option_guarded_sample_rate, 0);
  for (size_t i = 0; i < COUNT_OF(p); i++) n += _mi_page_has(_mi_page_of(p[i]), MI_PAGE_GUARDED);
  mi_stats_t after = get();
  CHECK(TEST_VALGRIND || MI_TRACK || n > 0); // nothing is guarded where a tool watches
  CHECK_EQ(after.malloc_guarded_count.total - before.malloc_guarded_count.total, n);
  CHECK_EQ(after.malloc_huge_count.total - before.malloc_huge_count.total, n);
  for (size_t i = 0; i < COUNT_OF(p); i++) mi_free(p[i]);
}

// Each block of the profile has a page of its own.
static void check_profiled(void) {
  void*      p[10];
  mi_stats_t before = get();
  if (mi_profile_start(1) != 0) return; // where a tool watches
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = mi_malloc(100);
  mi_profile_stop();
  mi_stats_t after = get();
  int64_t    n = after.malloc_bins[MI_BIN_HUGE].current - before.malloc_bins[MI_BIN_HUGE].current;
  CHECK_FOR(n >= (int64_t)COUNT_OF(p) - 1, "%lld", (long long)n);
  CHECK_EQ(after.malloc_huge_count.total - before.malloc_huge_count.total, n);
  for (size_t i = 0; i < COUNT_OF(p); i++) mi_free(p[i]);
}

// ---- pages ----------------------------------------------------------------------------------------------------------

enum { page_block = 1000, n_paged = 40 * 66, n_pages_max = 100 };
static void*      paged[n_paged];
static mi_page_t* pages[n_pages_max];
static size_t     n_pages, n_extended;
static size_t     extended_of[n_pages_max];

static void see_page(const void* p) {
  mi_page_t* page = _mi_page_of(p);
  size_t     i = 0;
  while (i < n_pages && pages[i] != page) i++;
  if (i == n_pages) {
    CHECK(n_pages < n_pages_max);
    extended_of[n_pages] = 0;
    pages[n_pages++] = page;
  }
  if (page->extended != extended_of[i]) n_extended++;
  extended_of[i] = page->extended;
}

static size_t n_in_state(mi_page_state_t state) {
  size_t n = 0;
  for (size_t i = 0; i < n_pages; i++) n += (_mi_page_word_state(mi_load_acquire(&pages[i]->word)) == state);
  return n;
}

static void fill_pages(mi_heap_t* heap) {
  n_pages = n_extended = 0;
  for (size_t i = 0; i < n_paged; i++) see_page(paged[i] = mi_heap_malloc(heap, page_block));
}

static void free_pages(void) {
  for (size_t i = 0; i < n_paged; i++) mi_free(paged[i]);
}

static void check_pages(void) {
  mi_stats_reset();
  mi_stats_t before = get();
  mi_heap_t* heap = mi_heap_new();
  fill_pages(heap);
  mi_stats_t with = get();
  size_t     n_searched = 0, bin = bin_of(mi_good_size(page_block));
  for (size_t i = 0; i < n_pages; i++) n_searched += 1 + mi_min(i, 4); // itself, and some of those that are full
  CHECK(n_pages > 10);
  CHECK_EQ(with.pages.current - before.pages.current, n_pages);
  CHECK_EQ(with.page_bins[bin].current - before.page_bins[bin].current, n_pages);
  CHECK_EQ(with.page_committed.current - before.page_committed.current, n_pages * MI_SLICE_SIZE);
  CHECK_EQ(with.pages_extended.total, n_extended);
  CHECK_EQ(with.page_searches_count.total, n_pages);
  CHECK_EQ(with.page_searches.total, n_searched);
  CHECK_EQ(with.pages_retire.total, 0);
  CHECK_EQ(with.pages_reabandon_full.total, 0); // there is one thread
  free_pages();
  mi_heap_delete(heap);
  mi_collect(true);
  mi_stats_t after = get();
  CHECK(after.pages.current <= before.pages.current);
  CHECK_EQ(after.pages_retire.total, (int64_t)n_pages + before.pages.current - after.pages.current);
  CHECK_EQ(after.pages.peak, before.pages.current + (int64_t)n_pages);
  CHECK_EQ(after.page_committed.peak, before.page_committed.current + (int64_t)(n_pages * MI_SLICE_SIZE));
}

// ---- several threads ------------------------------------------------------------------------------------------------

enum { n_threads = 4 };
static pthread_barrier_t barrier;

static void* park_and_claim(void* arg) {
  mi_stats_reset();
  fill_pages(mi_heap_main());
  mi_stats_t full = get();
  size_t     n_parked = n_in_state(MI_PAGE_PARKED);
  CHECK(n_parked > 10);
  CHECK_EQ(full.pages_reabandon_full.total, n_parked);
  CHECK_EQ(full.pages_reclaim_on_free.total, 0);
  for (size_t i = 0; i < n_paged; i++) {
    if (i % 2 == 0) mi_free(paged[i]);
  }
  CHECK(n_in_state(MI_PAGE_PARKED) == 0);
  CHECK_EQ(get().pages_reclaim_on_free.total, n_parked);
  return arg; // pages of which half is free go to the pool
}

static void check_hand_over(void) {
  pthread_t  thread;
  mi_stats_t before = get();
  CHECK_EQ(before.pages_abandoned.current, 0);
  CHECK_EQ(pthread_create(&thread, NULL, &park_and_claim, NULL), 0);
  pthread_join(thread, NULL);
  _mi_warm_end_all();
  size_t n_shared = n_in_state(MI_PAGE_SHARED);
  CHECK(n_shared > 10);
  CHECK_EQ(get().pages_abandoned.current, n_shared);
  for (size_t i = 0; i < n_paged / 4; i++) CHECK((paged[2 * i] = mi_malloc(page_block)) != NULL);
  size_t     n_adopted = n_shared - n_in_state(MI_PAGE_SHARED);
  mi_stats_t after = get();
  CHECK(n_adopted > 3);
  CHECK_EQ(after.pages_reclaim_on_alloc.total, n_adopted);
  CHECK_EQ(after.pages_abandoned.current, n_shared - n_adopted);
  for (size_t i = 0; i < n_paged; i++) {
    if (i % 2 == 1 || i < n_paged / 2) mi_free(paged[i]);
  }
  mi_collect(true);
  CHECK_EQ(get().pages_abandoned.current, 0);
}

static void wait_for_all(void) {
  pthread_barrier_wait(&barrier);
}

// Blocks k with k % n_threads == me are its own; it frees those of its neighbour.
static void* work(void* arg) {
  size_t me = (size_t)(uintptr_t)arg;
  for (size_t k = me; k < n_of_size; k += n_threads) {
    for (size_t i = 0; i < n_sizes; i++) blocks[i][k] = mi_malloc(sizes[i] - MI_PADDING_SIZE);
  }
  wait_for_all();
  wait_for_all(); // it is looked at
  for (size_t k = (me + 1) % n_threads; k < n_of_size / 2; k += n_threads) {
    for (size_t i = 0; i < n_sizes; i++) mi_free(blocks[i][k]);
  }
  wait_for_all();
  wait_for_all();
  for (size_t k = n_of_size / 2 + (me + 1) % n_threads; k < n_of_size; k += n_threads) {
    for (size_t i = 0; i < n_sizes; i++) mi_free(blocks[i][k]);
  }
  wait_for_all();
  wait_for_all();
  return NULL;
}

// The threads wait, with what they have in their bins and outboxes.
static void check_then_go_on(size_t n, const char* when) {
  size_t n_live[n_sizes];
  for (size_t i = 0; i < n_sizes; i++) n_live[i] = n;
  wait_for_all();
  if (n == 0) mi_collect(true);
  for (int round = 0; round < 4; round++) { // also while rounds take from them what they do not use
    mi_stats_t stats = get();
    check_live(&stats, n_live, 0, when);
    CHECK_EQ(stats.threads.current, n_threads + 1);
    CHECK_EQ(_mi_stat_read(&_mi_stat_live.theaps).current, n_threads + 1);
    sleep_ms(110);
    mi_free(mi_malloc(10)); // a round may be made by us
    mi_collect(false);
  }
  wait_for_all();
}

static void check_several_threads(void) {
  pthread_t threads[n_threads];
  pthread_barrier_init(&barrier, NULL, n_threads + 1);
  mi_stats_reset();
  mi_stats_t before = get();
  CHECK_EQ(before.threads.current, 1);
  for (size_t i = 0; i < n_threads; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &work, (void*)(uintptr_t)i), 0);
  check_then_go_on(n_of_size, "in threads");
  check_then_go_on(n_of_size / 2, "half of them freed by others");
  check_then_go_on(0, "all of them freed");
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  mi_collect(true);
  mi_stats_t after = get();
  for (size_t bin = 0; bin <= MI_BIN_HUGE; bin++) CHECK_EQ(after.malloc_bins[bin].current, 0);
  CHECK_EQ(after.malloc_requested.current, 0);
  CHECK(after.threads.current == 1 && after.threads.peak == n_threads + 1 && after.threads.total == n_threads + 1);
  pthread_barrier_destroy(&barrier);
}

static void check_heaps(void) {
  mi_heap_t*      heaps[3];
  mi_stat_count_t n = _mi_stat_read(&_mi_stat_live.heaps), n_theaps = _mi_stat_read(&_mi_stat_live.theaps);
  for (size_t i = 0; i < COUNT_OF(heaps); i++) mi_free(mi_heap_malloc(heaps[i] = mi_heap_new(), 10));
  CHECK_EQ(_mi_stat_read(&_mi_stat_live.heaps).current, n.current + 3);
  CHECK_EQ(_mi_stat_read(&_mi_stat_live.theaps).current, n_theaps.current + 3);
  for (size_t i = 0; i < COUNT_OF(heaps); i++) mi_heap_delete(heaps[i]);
  CHECK_EQ(_mi_stat_read(&_mi_stat_live.heaps).current, n.current);
  CHECK_EQ(_mi_stat_read(&_mi_stat_live.theaps).current, n_theaps.current);
  CHECK_EQ(_mi_stat_read(&_mi_stat_live.heaps).total, n.total + 3);
}

// ---- as text --------------------------------------------------------------------------------------------------------

static char   json[32 * KiB];
static sink_t table;

// A number of the JSON: of a field, and of its part, or of bin `bin` of it.
static int64_t json_number(const char* field, const char* part, size_t bin) {
  char quoted[64];
  snprintf(quoted, sizeof(quoted), "\"%s\": ", field);
  const char* at = strstr(json, quoted);
  for (size_t i = 0; at != NULL && part != NULL && i <= bin; i++) {
    snprintf(quoted, sizeof(quoted), "\"%s\": ", part);
    at = strstr(at + 1, quoted);
  }
  CHECK_FOR(at != NULL, "%s", field);
  return at == NULL ? -1 : strtoll(strchr(at, ':') + 1, NULL, 10);
}

// As the table shows it.
static const char* cell(int64_t n, int64_t unit) {
  static const char* const bytes[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  static const char* const counts[] = {"", "K", "M", "G", "T"};
  static char              text[8][32];
  static size_t            next;
  char*                    to = text[next++ % 8];
  int                      power = 0;
  int64_t                  scale = 1;
  while (n / scale >= (unit == 1000 && power == 0 ? 10000 : unit)) scale *= unit, power++;
  const char* name = (unit == 1024 ? bytes : counts)[power];
  long long   whole = n / scale, tenths = n % scale * 10 / scale;
  if (power > 0) snprintf(to, sizeof(text[0]), "%6lld.%lld %-3s", whole, tenths, name);
  else snprintf(to, sizeof(text[0]), "%6lld   %-3s", whole, n == 0 ? "" : name);
  return to;
}

static void expect(const char* row) {
  CHECK_FOR(sink_has(&table, row), "%s, not in:\n%s", row, table.text);
}

static void expect_count(const char* label, const char* field, int64_t unit) {
  char row[200];
  snprintf(row, sizeof(row), "%10s:%s%s%s\n", label, cell(json_number(field, "peak", 0), unit),
           cell(json_number(field, "total", 0), unit), cell(json_number(field, "current", 0), unit));
  expect(row);
}

static void expect_counter(const char* label, const char* field, int64_t unit) {
  char row[200];
  snprintf(row, sizeof(row), "%10s:%s\n", label, cell(json_number(field, NULL, 0), unit));
  expect(row);
}

static void expect_sum(const char* label, const char* field, bool has_history, int64_t n) {
  char row[200];
  snprintf(row, sizeof(row), "%10s:%12s%12s%s%12s%s%s\n", label,
           has_history ? cell(json_number(field, "peak", 0), 1024) : "",
           has_history ? cell(json_number(field, "total", 0), 1024) : "", cell(json_number(field, "current", 0), 1024),
           "", cell(n, 1000), n == 0 ? "ok" : "not all freed");
  expect(row);
}

// The rows of blocks; returns how many there are.
static size_t expect_blocks(void) {
  int64_t n_all = 0;
  size_t  n_rows = 0;
  for (size_t bin = 0; bin < MI_BIN_HUGE - 1; bin++) { // the last bin of classes may take several
    int64_t n = json_number("malloc_bins", "current", bin);
    int64_t size = json_number("malloc_bins", "block_size", bin);
    char    row[200];
    snprintf(row, sizeof(row), " bin%6lld:%24s%s%s%snot all freed\n", (long long)size, "", cell(n * size, 1024),
             cell(size, 1024), cell(n, 1000));
    if (n > 0) expect(row);
    n_rows += (n > 0);
    n_all += n;
  }
  int64_t n_huge = json_number("malloc_bins", "current", MI_BIN_HUGE);
  expect_sum("binned", "malloc_normal", false, n_all);
  expect_sum("huge", "malloc_huge", true, n_huge);
  expect_sum("total", "malloc_requested", false, n_all + n_huge);
  return n_rows;
}

static void check_text(size_t n_rows) {
  sink_clear(&table);
  CHECK(mi_stats_get_json(sizeof(json), json) == json);
  mi_stats_print_out(&sink_write, &table);
  CHECK_EQ(expect_blocks(), n_rows);
  static const char* const counts[][2] = {
      {"pages", "pages"}, {"-abandoned", "pages_abandoned"}, {"threads", "threads"}};
  static const char* const bytes[][2] = {
      {"reserved", "reserved"}, {"committed", "committed"}, {"touched", "page_committed"}};
  static const char* const counters[][2] = {{"arenas", "arena_count"},
                                            {"-purges", "arena_purges"},
                                            {"mmaps", "mmap_calls"},
                                            {"commits", "commit_calls"},
                                            {"resets", "reset_calls"},
                                            {"purges", "purge_calls"},
                                            {"-extended", "pages_extended"},
                                            {"-retire", "pages_retire"},
                                            {"-adopted", "pages_reclaim_on_alloc"},
                                            {"-claimed", "pages_reclaim_on_free"},
                                            {"-parked", "pages_reabandon_full"},
                                            {"guarded", "malloc_guarded_count"}};
  for (size_t i = 0; i < COUNT_OF(counts); i++) expect_count(counts[i][0], counts[i][1], 1000);
  for (size_t i = 0; i < COUNT_OF(bytes); i++) expect_count(bytes[i][0], bytes[i][1], 1024);
  for (size_t i = 0; i < COUNT_OF(counters); i++) expect_counter(counters[i][0], counters[i][1], 1000);
  expect_counter("reset", "reset", 1024);
  expect_counter("purged", "purged", 1024);
  // header, blocks, sums, memory, pages, events, searches, heaps, nodes, process: nothing else
  CHECK_EQ(table.n_calls, 1 + n_rows + 3 + 10 + 3 + 6 + 1 + 3 + 1 + 2);
}

static void check_texts(void) {
  void*  p[3] = {mi_malloc(100), mi_malloc(5000), mi_malloc(2 * MiB)};
  char   row[80];
  double average;
  check_text(2);
  int64_t n = json_number("page_searches_count", NULL, 0);
  average = (n == 0 ? 0 : (double)(json_number("page_searches", NULL, 0) * 10 / n) / 10);
  snprintf(row, sizeof(row), "  searches:%8.1f avg\n", average);
  expect(row);
  for (size_t i = 0; i < COUNT_OF(p); i++) mi_free(p[i]);
  check_text(0);
  CHECK(!sink_has(&table, "not all freed") && !sink_has(&table, "segments") && !sink_has(&table, "rollback"));
}

static void check_faults(void) {
  struct rusage before, after;
  size_t        n_major = 0;
  getrusage(RUSAGE_SELF, &before);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, NULL, NULL, &n_major);
  char* volatile p = (char*)mi_malloc(200 * MiB);
  for (size_t i = 0; i < 1000; i++) p[i * 64 * KiB] = 1;
  CHECK(mi_stats_get_json(sizeof(json), json) == json);
  sink_clear(&table);
  mi_process_info_print_out(&sink_write, &table);
  getrusage(RUSAGE_SELF, &after);
  int64_t n = json_number("page_faults_minor", NULL, 0);
  CHECK_FOR(n > before.ru_minflt && n <= after.ru_minflt, "%ld %lld %ld", before.ru_minflt, (long long)n,
            after.ru_minflt);
  // A page of the program may have been read from the disk in between.
  int64_t n_json = json_number("page_faults", NULL, 0);
  CHECK(before.ru_majflt <= (long)n_major && (int64_t)n_major <= n_json && n_json <= after.ru_majflt);
  const char* at = strstr(table.text, ", minor faults: ");
  CHECK(at != NULL && strstr(table.text, ", major faults: ") != NULL);
  n = (at == NULL ? -1 : strtoll(at + strlen(", minor faults: "), NULL, 10));
  CHECK_FOR(n > before.ru_minflt && n <= after.ru_minflt, "%ld %lld %ld", before.ru_minflt, (long long)n,
            after.ru_minflt);
  mi_free(p);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  watchdog(120);
  mi_free(mi_malloc(1));
  check_one_thread();
  check_pages();
  if (!MI_HARDENED && !MI_TRACK) check_resized(); // else large blocks are copied
  if (!MI_HARDENED) check_memory();               // large blocks are guarded there, and keep their slices for a while
  check_calls();
  if (!MI_HARDENED) check_purge_rounds();
  check_guarded();
  check_profiled();
  check_hand_over();
  check_several_threads();
  check_heaps();
  check_texts();
  check_faults();
  return check_result();
}
