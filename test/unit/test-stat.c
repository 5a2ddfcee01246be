// Proves: the statistics have the layout that programs have compiled in; the live counters are right, also when threads
// use them at once, and never read as negative or as less than before; the numbers, the table and the JSON show real blocks.
#include "../check.h"
#include "../modes/support.h"
#include "page/size_class.h"
#include "support/stat.h"

#include <pthread.h>

// ---- layout ---------------------------------------------------------------------------------------------------------

static void check_layout(void) {
  CHECK_EQ(MI_STAT_VERSION, 4);
  CHECK_EQ(MI_BIN_HUGE, 73);
  CHECK_EQ(sizeof(mi_stat_count_t), 24);
  CHECK_EQ(sizeof(mi_stat_counter_t), 8);
  CHECK(offsetof(mi_stat_count_t, total) == 0 && offsetof(mi_stat_count_t, peak) == 8);
  if (sizeof(size_t) != 8) return;
  CHECK_EQ(sizeof(mi_stats_t), 4168);
  CHECK_EQ(offsetof(mi_stats_t, pages), 16);
  CHECK_EQ(offsetof(mi_stats_t, malloc_requested), 224);
  CHECK_EQ(offsetof(mi_stats_t, mmap_calls), 248);
  CHECK_EQ(offsetof(mi_stats_t, segments), 360);
  CHECK_EQ(offsetof(mi_stats_t, _stat_reserved), 488);
  CHECK_EQ(offsetof(mi_stats_t, malloc_bins), 616);
  CHECK_EQ(offsetof(mi_stats_t, page_bins), 2392);
}

// ---- live counters --------------------------------------------------------------------------------------------------

// Of fields that nothing in the library counts.
#define FREE_COUNT   segments_cache
#define FREE_COUNTER arena_rollback_count

// A total of bytes that is more than can be said stays at the greatest number: large blocks that come and go reach that in days.
static void check_large_total(void) {
  const int64_t size = (int64_t)1 << 60;
  mi_stats_t    s;
  int64_t       last = 0;
  for (int i = 0; i < 12; i++) {
    _mi_stat_increase(&_mi_stat_live.FREE_COUNT, size);
    _mi_stat_decrease(&_mi_stat_live.FREE_COUNT, size);
    _mi_stat_snapshot(&s);
    CHECK_FOR(s.FREE_COUNT.total >= last, "%lld after %lld", (long long)s.FREE_COUNT.total, (long long)last);
    last = s.FREE_COUNT.total;
  }
  CHECK_EQ(last, INT64_MAX);
  _mi_stat_decrease(&_mi_stat_live.FREE_COUNT, size); // before the increase it belongs to
  _mi_stat_reset();
  _mi_stat_increase(&_mi_stat_live.FREE_COUNT, size);
  _mi_stat_snapshot(&s);
  CHECK_EQ(s.FREE_COUNT.total, size);
  mi_stats_reset();
}

static void check_live(void) {
  mi_stats_t s;
  _mi_stat_snapshot(&s);
  CHECK(s.FREE_COUNT.total == 0 && s.FREE_COUNTER.total == 0);
  _mi_stat_increase(&_mi_stat_live.FREE_COUNT, 100);
  _mi_stat_increase(&_mi_stat_live.FREE_COUNT, 50);
  _mi_stat_decrease(&_mi_stat_live.FREE_COUNT, 120);
  _mi_stat_increase(&_mi_stat_live.FREE_COUNT, 5);
  _mi_stat_count(&_mi_stat_live.FREE_COUNTER, 3);
  _mi_stat_count(&_mi_stat_live.FREE_COUNTER, 4);
  memset(&s, 0xAB, sizeof(s));
  _mi_stat_snapshot(&s);
  CHECK(s.size == sizeof(s) && s.version == MI_STAT_VERSION);
  CHECK_EQ(s.FREE_COUNT.total, 155);
  CHECK_EQ(s.FREE_COUNT.peak, 150);
  CHECK_EQ(s.FREE_COUNT.current, 35);
  CHECK_EQ(s.FREE_COUNTER.total, 7);
  CHECK(is_zero(s.malloc_bins, 0, sizeof(s.malloc_bins)) && is_zero(s._stat_reserved, 0, sizeof(s._stat_reserved)));
  _mi_stat_decrease(&_mi_stat_live.FREE_COUNT, 1000); // a decrease that comes before its increase
  _mi_stat_snapshot(&s);
  CHECK(s.FREE_COUNT.current == 0 && s.FREE_COUNT.peak == 150);
  mi_store_relaxed(&_mi_stat_live.FREE_COUNT.current, 200); // an increase that is not yet in the peak and the total
  _mi_stat_snapshot(&s);
  CHECK(s.FREE_COUNT.current == 200 && s.FREE_COUNT.peak == 200 && s.FREE_COUNT.total == 200);
  mi_store_relaxed(&_mi_stat_live.FREE_COUNT.current, 35 - 1000);
  _mi_stat_increase(&_mi_stat_live.FREE_COUNT, 1000);
  mi_stats_reset();
  _mi_stat_snapshot(&s);
  CHECK(s.FREE_COUNT.current == 35 && s.FREE_COUNT.peak == 35 && s.FREE_COUNT.total == 35);
  CHECK_EQ(s.FREE_COUNTER.total, 0);
  _mi_stat_decrease(&_mi_stat_live.FREE_COUNT, 35);
  mi_stats_reset();
}

enum { N_THREADS = 4, N_ROUNDS = 200000 };
static long n_done; // atomically

static void* count_in_thread(void* arg) {
  for (int i = 0; i < N_ROUNDS; i++) {
    _mi_stat_increase(&_mi_stat_live.FREE_COUNT, 10);
    _mi_stat_count(&_mi_stat_live.FREE_COUNTER, 2);
    _mi_stat_decrease(&_mi_stat_live.FREE_COUNT, i % 2 == 0 ? 10 : 9);
  }
  __atomic_add_fetch(&n_done, 1, __ATOMIC_RELEASE);
  return arg;
}

static void check_threads(void) {
  pthread_t  threads[N_THREADS];
  mi_stats_t s;
  for (size_t i = 0; i < N_THREADS; i++) pthread_create(&threads[i], NULL, &count_in_thread, NULL);
  int64_t peak = 0;
  for (int i = 0; __atomic_load_n(&n_done, __ATOMIC_ACQUIRE) < N_THREADS; i++) {
    int64_t seen = mi_load_relaxed(&_mi_stat_live.FREE_COUNT.peak);
    if (seen < peak) CHECK_EQ(seen, peak); // a peak never comes down
    peak = seen;
    if (i % 100 != 0) continue;
    _mi_stat_snapshot(&s);
    CHECK(s.FREE_COUNT.current >= 0 && s.FREE_COUNT.current <= s.FREE_COUNT.peak &&
          s.FREE_COUNT.peak <= s.FREE_COUNT.total);
  }
  for (size_t i = 0; i < N_THREADS; i++) pthread_join(threads[i], NULL);
  _mi_stat_snapshot(&s);
  CHECK_EQ(s.FREE_COUNT.total, (int64_t)N_THREADS * N_ROUNDS * 10);
  CHECK_EQ(s.FREE_COUNT.current, (int64_t)N_THREADS * N_ROUNDS / 2);
  CHECK_EQ(s.FREE_COUNTER.total, (int64_t)N_THREADS * N_ROUNDS * 2);
  CHECK(s.FREE_COUNT.peak >= s.FREE_COUNT.current && s.FREE_COUNT.peak <= s.FREE_COUNT.current + 10 * N_THREADS);
}

// ---- numbers for users ----------------------------------------------------------------------------------------------

static void check_get(void) {
  mi_stats_t_decl(s);
  CHECK(!mi_stats_get(NULL));
  CHECK(mi_stats_get(&s));
  s.version++;
  CHECK(!mi_stats_get(&s));
  s.version--;
  s.size--;
  CHECK(!mi_stats_get(&s));
  CHECK_EQ(mi_stats_get_bin_size(0), 8);
  for (size_t bin = 1; bin <= MI_BIN_HUGE; bin++) CHECK(mi_stats_get_bin_size(bin) > mi_stats_get_bin_size(bin - 1));
  CHECK_EQ(mi_stats_get_bin_size(MI_BIN_HUGE - 1), MI_CLASS_SIZE_MAX);
  CHECK_EQ(mi_stats_get_bin_size(MI_BIN_HUGE + 1), 0);
}

static size_t bin_of(size_t size) {
  size_t bin = 0;
  while (mi_stats_get_bin_size(bin) < size) bin++;
  return bin;
}

// 1000 blocks of one size show in the bin of that size, and are gone from it after they were freed.
static void check_blocks(size_t size) {
  enum { N = 1000 };
  static void* blocks[N];
  mi_stats_t_decl(before);
  mi_stats_t_decl(during);
  mi_stats_t_decl(after);
  mi_collect(true);
  CHECK(mi_stats_get(&before));
  size_t block_size;
  for (size_t i = 0; i < N; i++) blocks[i] = mi_umalloc(size, &block_size);
  bool   is_guarded = (MI_HARDENED && size >= 256 * KiB); // it counts as a huge one
  size_t bin = (is_guarded ? MI_BIN_HUGE : bin_of(block_size));
  size_t full = (bin == MI_BIN_HUGE ? size : block_size);
  CHECK(mi_stats_get(&during));
  for (size_t i = 0; i < N; i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK(mi_stats_get(&after));
  int64_t added = during.malloc_requested.current - before.malloc_requested.current;
  CHECK_FOR(added >= (int64_t)(N * full) && added <= (int64_t)(N * full + N * full / 4 + MiB), "size %zu: %lld", size,
            (long long)added);
  if (bin == MI_BIN_HUGE) {
    CHECK_FOR(during.malloc_huge_count.total == before.malloc_huge_count.total + N, "size %zu", size);
    CHECK_FOR(after.malloc_huge.current <= before.malloc_huge.current, "size %zu", size);
    return;
  }
  int64_t n = during.malloc_bins[bin].current - before.malloc_bins[bin].current;
  CHECK_FOR(n >= N && n <= N + 2000, "size %zu: %lld blocks in bin %zu", size, (long long)n, bin); // bins hold some
  CHECK_FOR(after.malloc_bins[bin].current <= before.malloc_bins[bin].current + 64, "size %zu: %lld left", size,
            (long long)after.malloc_bins[bin].current);
  CHECK(during.page_bins[bin].current > before.page_bins[bin].current || before.page_bins[bin].current > 0);
}

static void check_never_negative(void) {
  mi_stats_t_decl(s);
  void* p = mi_malloc(100);
  CHECK(mi_stats_get(&s));
  mi_free(p);
#define MI_STAT_COUNT(name) \
  CHECK_FOR(s.name.current >= 0 && s.name.current <= s.name.peak && s.name.peak <= s.name.total, "%s", #name);
#define MI_STAT_COUNTER(name) CHECK_FOR(s.name.total >= 0, "%s", #name);
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  CHECK(s.pages.current > 0);
  CHECK(s.reserved.current > 0);
  CHECK(s.committed.current > 0);
  CHECK(s.threads.current > 0);
}

// ---- text -----------------------------------------------------------------------------------------------------------

typedef struct table_s {
  size_t n_lines, n_bad, width;
  char   text[64 * 1024];
} table_t;

static void record_line(const char* line, void* arg) {
  table_t* table = (table_t*)arg;
  size_t   n = strlen(line);
  table->n_lines++;
  table->n_bad +=
      (n == 0 || line[n - 1] != '\n' || strchr(line, '\n') != line + n - 1 || strchr(line, '-') == line + 13);
  if (table->width + n < sizeof(table->text)) memcpy(table->text + table->width, line, n + 1);
  table->width += n;
}

static void check_table(void) {
  static const char* const rows[] = {
      "heap stats:", "  reserved:", " committed:",        "     reset:",  "    purged:",
      "   touched:", "     pages:", " -extended:",        "    arenas:",  "     mmaps:",
      "   commits:", "    purges:", "   guarded:",        "   threads:",  "  searches:",
      "numa nodes:", "   elapsed:", "   process: user: ", ", peak rss: ", ", peak commit: ",
  };
  static table_t table;
  size_t         block_size;
  void*          p = mi_umalloc(12345, &block_size);
  mi_stats_print_out(&record_line, &table);
  CHECK(table.n_lines > 25 && table.n_bad == 0);
  for (size_t i = 0; i < COUNT_OF(rows); i++) CHECK_FOR(strstr(table.text, rows[i]) != NULL, "%s", rows[i]);
  char bin[32];
  snprintf(bin, sizeof(bin), " bin%6zu:", block_size);
  CHECK_FOR(strstr(table.text, bin) != NULL, "%s", bin);
  mi_free(p);
  static table_t process;
  mi_process_info_print_out(&record_line, &process);
  CHECK(process.n_lines == 2 && strstr(process.text, "process") != NULL);
}

// Good enough a reader of JSON to see that the text is well formed: the end of the value at s, NULL if there is none.
static const char* json_value(const char* s);

static const char* json_space(const char* s) {
  while (*s == ' ' || *s == '\n') s++;
  return s;
}

static const char* json_string(const char* s) {
  if (*s != '"') return NULL;
  for (s++; *s != '"'; s++) {
    if (*s == 0) return NULL;
  }
  return s + 1;
}

static const char* json_list(const char* s, char end, bool has_names) {
  for (;;) {
    s = json_space(s + 1);
    if (has_names) {
      s = json_string(s);
      if (s == NULL || *s != ':') return NULL;
      s = json_space(s + 1);
    }
    s = json_value(s);
    if (s == NULL) return NULL;
    s = json_space(s);
    if (*s == end) return s + 1;
    if (*s != ',') return NULL;
  }
}

static const char* json_value(const char* s) {
  if (*s == '{') return json_list(s, '}', true);
  if (*s == '[') return json_list(s, ']', false);
  if (*s == '"') return json_string(s);
  const char* start = s;
  while (*s >= '0' && *s <= '9') s++;
  return s == start ? NULL : s;
}

static void check_json(void) {
  char* json = mi_stats_get_json(0, NULL);
  CHECK(json != NULL);
  if (json == NULL) return;
  size_t      length = strlen(json);
  const char* end = json_value(json);
  CHECK(end != NULL && *json_space(end) == 0);
  CHECK(length > 10000 && length < 32 * KiB);
  const char* at = json; // in this order
#define AT(key) \
  do { \
    const char* found = strstr(at, "\"" key "\": "); \
    CHECK_FOR(found != NULL, "%s", key); \
    if (found != NULL) at = found + 1; \
  } while (0);
  // clang-format off
  AT("stat_version") AT("mimalloc_version")
  AT("process") AT("elapsed_msecs") AT("user_msecs") AT("system_msecs") AT("page_faults")
  AT("rss_current") AT("rss_peak") AT("commit_current") AT("commit_peak")
#define MI_STAT_COUNT(name)   AT(#name)
#define MI_STAT_COUNTER(name) AT(#name)
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  AT("malloc_bins") AT("block_size") AT("page_bins") AT("page_size")
      // clang-format on
      mi_free(json);

  static char         buf[40 * KiB];
  static const size_t sizes[] = {1, 2, 64, 1000, 10000};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    memset(buf, '#', sizeof(buf));
    CHECK(mi_stats_get_json(sizes[i], buf) == buf);
    CHECK_FOR(strlen(buf) == sizes[i] - 1 && buf[sizes[i]] == '#', "size %zu: %zu", sizes[i], strlen(buf));
  }
  CHECK(mi_stats_get_json(sizeof(buf), buf) == buf);
  end = json_value(buf);
  CHECK(end != NULL && *json_space(end) == 0);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  if (MI_API_LEVEL < 3) check_layout(); // test/api/test-layout.c has that of level 3
  check_live();
  check_get();
  check_blocks(64);
  check_blocks(1000);
  check_blocks(20000);
  check_blocks(300 * KiB);
  check_blocks(1 * MiB);
  check_threads();
  check_large_total();
  check_never_negative();
  check_table();
  check_json();
  return check_result();
}
