// Proves: the statistics agree with a model of what the program has done and with the system: sums are right, nothing
// is negative, current <= peak <= total, committed covers what is resident, and all comes back to where it was.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "support.h"

static void check_amount(const char* name, const mi_stat_count_t* c) {
  CHECK_FOR(c->current >= 0 && c->current <= c->peak && c->peak <= c->total, "%s: current %lld peak %lld total %lld",
            name, (long long)c->current, (long long)c->peak, (long long)c->total);
}

static mi_stats_t get_stats(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
#define MI_STAT_COUNT(name)   check_amount(#name, &stats.name);
#define MI_STAT_COUNTER(name) CHECK_FOR(stats.name.total >= 0, "%s: %lld", #name, (long long)stats.name.total);
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  for (size_t i = 0; i <= MI_BIN_HUGE; i++) {
    check_amount("malloc_bins", &stats.malloc_bins[i]);
    check_amount("page_bins", &stats.page_bins[i]);
  }
  return stats;
}

static void check_refusals(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  CHECK(!mi_stats_get(NULL));
  stats.size--;
  CHECK(!mi_stats_get(&stats));
  stats.size++;
  stats.version++;
  CHECK(!mi_stats_get(&stats));
  CHECK_EQ(mi_stats_get_bin_size(MI_BIN_HUGE + 1), 0);
  for (size_t i = 1; i <= MI_BIN_HUGE; i++) CHECK(mi_stats_get_bin_size(i) > mi_stats_get_bin_size(i - 1) || i == 1);
}

// What the program holds, by the sizes of its blocks.
enum { max_held = 20000 };
static void*  held[max_held];
static size_t n_held, held_bytes;
static size_t
    rss_others; // what may be resident and is not the library's: 4 MiB, or what was at first; wine has 256 MiB then

static void hold(size_t size) {
  void* p = mi_malloc(size);
  CHECK(p != NULL);
  memset(p, 0xAB, size);
  held[n_held++] = p;
  held_bytes += mi_usable_size(p);
}

static void release_all(void) {
  while (n_held > 0) mi_free(held[--n_held]);
  held_bytes = 0;
}

static void check_sums(uint64_t seed) {
  rng_t      rng = rng_make(seed);
  mi_stats_t before = get_stats();
  for (size_t i = 0; i < 8000; i++) hold(1 + rng_size(&rng, 8 * KiB));
  for (size_t i = 0; i < 40; i++) hold(1 * MiB + rng_below(&rng, MiB));
  mi_stats_t with = get_stats();
  double     grown = (double)(with.malloc_requested.current - before.malloc_requested.current);
  printf("held %zu bytes, counted %.0f\n", held_bytes, grown);
  // Blocks in a thread's bins may count as used.
  CHECK(grown > 0.95 * (double)held_bytes && grown < 1.05 * (double)held_bytes + 2.0 * (double)MiB);
  double normal = (double)(with.malloc_normal.current - before.malloc_normal.current);
  double huge = (double)(with.malloc_huge.current - before.malloc_huge.current);
  CHECK(normal + huge > 0.95 * grown && normal + huge < 1.05 * grown);
  int64_t in_bins = 0, pages = 0;
  for (size_t i = 0; i < MI_BIN_HUGE; i++) {
    in_bins += with.malloc_bins[i].current;
    pages += with.page_bins[i].current;
  }
  CHECK_FOR(in_bins >= 8000, "%lld", (long long)in_bins);
  CHECK_FOR(pages > 0 && pages <= with.pages.current, "%lld of %lld", (long long)pages, (long long)with.pages.current);
  CHECK(with.committed.current >= (int64_t)held_bytes && with.reserved.current >= with.committed.current);
  if (rss_is_meaningful()) {
    size_t commit = 0, rss = rss_now();
    mi_process_info(NULL, NULL, NULL, NULL, NULL, &commit, NULL, NULL);
    CHECK_EQ(commit, with.committed.current);
    CHECK_FOR((double)commit > 0.95 * ((double)rss - (double)rss_others), "committed %zu resident %zu", commit, rss);
  }
  release_all();
  mi_collect(true);
  mi_stats_t after = get_stats();
  double     left = (double)(after.malloc_requested.current - before.malloc_requested.current);
  CHECK_FOR(left < 1.0 * (double)MiB && left > -1.0 * (double)MiB, "%.0f", left);
  CHECK_FOR(after.pages.current <= before.pages.current + 100, "%lld", (long long)after.pages.current);
  CHECK(after.malloc_huge.current == before.malloc_huge.current);
  CHECK(after.purged.total > before.purged.total);
}

// ---- while threads run ----------------------------------------------------------------------------------------------

enum { n_threads = 4 };
static atomic_bool    must_stop;
static atomic_size_t  n_started;
static _Atomic(void*) handed[256];

static void* churn(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  bool  has_started = false;
  while (!atomic_load(&must_stop)) {
    size_t kind = rng_below(&rng, 200);
    void*  p = mi_malloc(kind == 0 ? 2 * MiB : rng_size(&rng, 10 * KiB));
    mi_free(atomic_exchange(&handed[rng_below(&rng, COUNT_OF(handed))], p));
    if (kind == 1) mi_collect(false);
    if (!has_started) atomic_fetch_add(&n_started, 1);
    has_started = true;
  }
  return NULL;
}

static void start_threads(pthread_t* threads, void* (*first)(void*)) {
  atomic_store(&must_stop, false);
  for (size_t i = 0; i < n_threads; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, i == 0 ? first : &churn, (void*)(uintptr_t)(i + 1)), 0);
}

static void stop_threads(pthread_t* threads) {
  atomic_store(&must_stop, true);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  for (size_t i = 0; i < COUNT_OF(handed); i++) mi_free(atomic_exchange(&handed[i], NULL));
}

static void check_concurrent(void) {
  pthread_t  threads[n_threads];
  mi_stats_t before = get_stats();
  CHECK_EQ(before.threads.current, 1);
  start_threads(threads, &churn);
  for (size_t i = 0; i < 200; i++) {
    mi_stats_t now = get_stats(); // checks that nothing is negative
    CHECK(now.threads.current >= 1 && now.threads.current <= 1 + n_threads);
    if (i == 100) mi_stats_merge();
    sleep_ms(2);
  }
  while (atomic_load(&n_started) < n_threads) sleep_ms(2); // a busy machine may take long
  CHECK_EQ(get_stats().threads.current, 1 + n_threads);
  stop_threads(threads);
  mi_stats_t after = get_stats();
  CHECK_EQ(after.threads.current, 1);
  CHECK(after.threads.total >= before.threads.total + n_threads);
  CHECK(after.threads.peak >= 1 + n_threads);
}

static void* reset(void* arg) {
  while (!atomic_load(&must_stop)) mi_stats_reset();
  return arg;
}

// Nothing is negative either while others set it back.
static void check_resets(void) {
  enum { n_resets = 20000 };
  pthread_t threads[n_threads];
  start_threads(threads, &reset);
  for (size_t i = 0; i < (TEST_SANITIZED ? n_resets / 10 : n_resets); i++) get_stats();
  stop_threads(threads);
}

// ---- as text --------------------------------------------------------------------------------------------------------

static long long json_number(const char* text, const char* key) {
  const char* at = strstr(text, key);
  if (at == NULL) return -1;
  at = strchr(at, ':');
  return at == NULL ? -1 : strtoll(at + 1, NULL, 10);
}

static void check_json(void) {
  char* text = mi_stats_get_json(0, NULL);
  CHECK(text != NULL);
  if (text == NULL) return;
  size_t length = strlen(text), depth = 0, deepest = 0;
  bool   is_balanced = true;
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '{' || text[i] == '[') depth++;
    if (text[i] == '}' || text[i] == ']') {
      if (depth == 0) is_balanced = false;
      else depth--;
    }
    if (depth > deepest) deepest = depth;
  }
  CHECK(is_balanced && depth == 0 && deepest >= 2 && length > 2000 && length < 32 * KiB);
  CHECK_EQ(json_number(text, "\"stat_version\""), MI_STAT_VERSION);
  CHECK_EQ(json_number(text, "\"mimalloc_version\""), mi_version());
  CHECK(json_number(text, "\"rss_peak\"") > 0);
  CHECK(strstr(text, "\"committed\"") != NULL && strstr(text, "\"malloc_bins\"") != NULL &&
        strstr(text, "\"page_bins\"") != NULL);
  CHECK(strstr(text, "-") == NULL || strstr(text, ": -") == NULL); // no negative number
  mi_free(text);
  char small[64];
  memset(small, 'x', sizeof(small));
  CHECK(mi_stats_get_json(sizeof(small), small) == small);
  CHECK_EQ(strlen(small), sizeof(small) - 1);
  static char enough[32 * 1024];
  CHECK(mi_stats_get_json(sizeof(enough), enough) == enough && strlen(enough) > 2000);
}

static void check_reset(void) {
  mi_stats_reset();
  mi_stats_t stats = get_stats();
  CHECK_EQ(stats.committed.peak, stats.committed.current);
  CHECK_EQ(stats.committed.total, stats.committed.current);
  CHECK(stats.mmap_calls.total <= 2);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(60);
  size_t commit = 0;
  mi_free(mi_malloc(1));
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &commit, NULL, NULL);
  rss_others = minus(rss_now(), commit);
  if (rss_others < 4 * MiB) rss_others = 4 * MiB;
  check_refusals();
  check_sums(seed);
  check_concurrent();
  check_resets();
  check_json();
  check_reset();
  check_sums(seed + 1);
  return check_result();
}
