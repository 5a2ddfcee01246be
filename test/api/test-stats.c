// Proves: the numbers of a heap and of a subprocess count what is in them and nothing else, in all their forms; the JSON
// text parses, has the keys of this level in order, and is cut off cleanly; what is in use can be listed.
#include "../check.h"
#include "../sink.h"
#include "entries.h"
#include <mimalloc-stats.h>
#include <pthread.h>

// ---- JSON -----------------------------------------------------------------------------------------------------------

static const char* json_value(const char* s);

static const char* json_blanks(const char* s) {
  while (s != NULL && (*s == ' ' || *s == '\n')) s++;
  return s;
}

static const char* json_token(const char* s, const char* token) {
  size_t length = strlen(token);
  s = json_blanks(s);
  return s != NULL && strncmp(s, token, length) == 0 ? s + length : NULL;
}

static const char* json_string(const char* s) {
  s = json_token(s, "\"");
  if (s == NULL) return NULL;
  while (*s != '"' && *s >= ' ' && *s != '\\') s++;
  return *s == '"' ? s + 1 : NULL;
}

// Members of an object or an array up to its end.
static const char* json_members(const char* s, bool is_object) {
  do {
    if (is_object) s = json_token(json_string(s), ":");
    s = json_value(s);
    if (s == NULL) return NULL;
    s = json_blanks(s);
  } while (*s == ',' && s++ != NULL);
  return json_token(s, is_object ? "}" : "]");
}

// Where the value at s ends, NULL if there is none.
static const char* json_value(const char* s) {
  s = json_blanks(s);
  if (s == NULL) return NULL;
  if (*s == '{') return json_members(s + 1, true);
  if (*s == '[') return json_members(s + 1, false);
  if (*s == '"') return json_string(s);
  const char* end = s + (*s == '-');
  while (*end >= '0' && *end <= '9') end++;
  return end == s ? NULL : end;
}

static long long json_number(const char* text, const char* key) {
  char quoted[64];
  snprintf(quoted, sizeof(quoted), "\"%s\": ", key);
  const char* at = strstr(text, quoted);
  return at == NULL ? -1 : strtoll(at + strlen(quoted), NULL, 10);
}

static void check_json(const char* text) {
  CHECK(text != NULL);
  if (text == NULL) return;
  const char* end = json_blanks(json_value(text));
  CHECK(end != NULL && *end == 0);
  CHECK_EQ(json_number(text, "stat_version"), MI_STAT_VERSION);
  CHECK_EQ(json_number(text, "mimalloc_version"), MI_MALLOC_VERSION);
  const char* at = text; // all keys, in order
#define CHECK_KEY(name) \
  do { \
    const char* found = strstr(at, "\"" name "\": "); \
    CHECK_FOR(found != NULL, "%s", name); \
    if (found != NULL) at = found; \
  } while (0)
  CHECK_KEY("stat_version");
  CHECK_KEY("mimalloc_version");
  CHECK_KEY("process");
  CHECK_KEY("elapsed_msecs");
  CHECK_KEY("user_msecs");
  CHECK_KEY("system_msecs");
  CHECK_KEY("page_faults");
  CHECK_KEY("rss_current");
  CHECK_KEY("rss_peak");
  CHECK_KEY("commit_current");
  CHECK_KEY("commit_peak");
#define MI_STAT_COUNT(name)   CHECK_KEY(#name);
#define MI_STAT_COUNTER(name) CHECK_KEY(#name);
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  CHECK_KEY("malloc_bins");
  CHECK_KEY("page_bins");
  CHECK((strstr(at, "\"chunk_bins\"") != NULL) == (MI_API_LEVEL >= 3));
}

// ---- numbers --------------------------------------------------------------------------------------------------------

enum { n_small = 5000, n_large = 3, small_size = 100, large_size = 3 << 20 };
static void* blocks[n_small + n_large];

// What a thread keeps ready to hand out may count as in use; collecting gives it back.
static void fill(mi_heap_t* heap) {
  for (size_t i = 0; i < n_small + n_large; i++)
    blocks[i] = mi_heap_malloc(heap, i < n_small ? small_size : large_size);
  mi_heap_collect(heap, false);
}

static int64_t sum_of_blocks(const mi_stats_t* stats) {
  int64_t n = 0;
  for (size_t i = 0; i <= MI_BIN_HUGE; i++) n += stats->malloc_bins[i].current;
  return n;
}

static void check_counts(const mi_stats_t* stats, int64_t n_blocks, int64_t n_bytes) {
  CHECK_EQ(stats->size, sizeof(*stats));
  CHECK_EQ(stats->version, MI_STAT_VERSION);
  CHECK_FOR(sum_of_blocks(stats) == n_blocks, "%lld blocks, not %lld", (long long)sum_of_blocks(stats),
            (long long)n_blocks);
  int64_t bytes = stats->malloc_requested.current;
  CHECK_FOR(bytes >= n_bytes && bytes <= n_bytes + n_bytes / 3, "%lld bytes, not %lld", (long long)bytes,
            (long long)n_bytes);
  CHECK_EQ(bytes, stats->malloc_normal.current + stats->malloc_huge.current);
  CHECK_EQ(stats->malloc_normal_count.total + stats->malloc_huge_count.total, n_blocks);
  CHECK(stats->pages.current >= (n_blocks > 0));
}

static void check_refused(bool (*get)(mi_stats_t* stats)) {
  mi_stats_t stats;
  mi_stats_init(&stats);
  CHECK(stats.size == sizeof(stats) && stats.version == MI_STAT_VERSION && stats.pages.current == 0);
  CHECK(get(&stats));
  CHECK(!get(NULL));
  stats.version++;
  stats.pages.current = -77;
  CHECK(!get(&stats) && stats.pages.current == -77);
  mi_stats_header_init(&stats);
  CHECK(stats.pages.current == -77 && get(&stats) && stats.pages.current != -77);
  stats.size -= 8;
  CHECK(!get(&stats) && !mi_stats_as_json(&stats, 0, NULL));
}

static bool get_main_heap(mi_stats_t* stats) {
  return mi_heap_stats_get(NULL, stats);
}

static bool get_subproc(mi_stats_t* stats) {
  return mi_subproc_stats_get(mi_subproc_main(), stats);
}

static bool get_exclusive(mi_stats_t* stats) {
  return mi_subproc_stats_get_exclusive(mi_subproc_main(), stats);
}

static void check_refusals(void) {
  check_refused(&mi_stats_get);
  check_refused(&get_main_heap);
  check_refused(&get_subproc);
  check_refused(&get_exclusive);
  CHECK(mi_stats_as_json((mi_stats_t*)hidden_pointer(NULL), 0, NULL) == NULL);
}

static void check_heap_stats(void) {
  mi_heap_t* heap = mi_heap_new();
  mi_heap_t* other = mi_heap_new();
  mi_stats_t_decl(stats);
  mi_stats_t_decl(main_before);
  mi_stats_t_decl(main_after);
  CHECK(mi_heap_stats_get(heap, &stats));
  check_counts(&stats, 0, 0);
  CHECK(mi_heap_stats_get(NULL, &main_before));
  fill(heap);
  CHECK(mi_heap_stats_get(heap, &stats));
  check_counts(&stats, n_small + n_large, n_small * (int64_t)small_size + n_large * (int64_t)large_size);
  CHECK_EQ(stats.malloc_huge_count.total, n_large);
  CHECK(mi_heap_stats_get(other, &stats));
  check_counts(&stats, 0, 0);
  CHECK(mi_heap_stats_get(mi_heap_main(), &main_after));
  CHECK(sum_of_blocks(&main_after) < sum_of_blocks(&main_before) + 100);
  mi_heap_stats_merge_to_subproc(heap); // changes nothing
  mi_heap_stats_merge_to_subproc(NULL);
  CHECK(mi_heap_stats_get(heap, &stats));
  check_counts(&stats, n_small + n_large, n_small * (int64_t)small_size + n_large * (int64_t)large_size);
  for (size_t i = 0; i < n_small + n_large; i++) mi_free(blocks[i]);
  mi_heap_collect(heap, true);
  CHECK(mi_heap_stats_get(heap, &stats));
  check_counts(&stats, 0, 0);
  mi_heap_destroy(heap);
  mi_heap_destroy(other);
}

// The process is the sum of all heaps.
static void check_process_stats(void) {
  mi_heap_t* heap = mi_heap_new();
  mi_stats_t_decl(before);
  mi_stats_t_decl(with);
  CHECK(mi_stats_get(&before));
  fill(heap);
  CHECK(mi_stats_get(&with));
  CHECK_EQ(with.malloc_huge_count.total - before.malloc_huge_count.total, n_large);
  int64_t n = sum_of_blocks(&with) - sum_of_blocks(&before);
  CHECK_FOR(n >= n_small + n_large - 200 && n <= n_small + n_large + 200, "%lld", (long long)n);
  mi_heap_destroy(heap);
  char* text = mi_stats_get_json(0, NULL);
  CHECK_EQ(json_number(text, "malloc_huge_count"), with.malloc_huge_count.total); // it only counts up
  mi_free(text);
}

static void* fill_subproc(void* arg) {
  mi_subproc_add_current_thread(*(mi_subproc_id_t*)arg);
  fill(NULL);
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 0; i < 1000; i++) CHECK(mi_heap_malloc(heap, 500) != NULL);
  return NULL; // its end collects
}

static void check_subproc_stats(void) {
  pthread_t       thread;
  mi_subproc_id_t id = mi_subproc_new();
  CHECK_EQ(pthread_create(&thread, NULL, &fill_subproc, &id), 0);
  pthread_join(thread, NULL);
  mi_stats_t_decl(stats);
  mi_stats_t_decl(exclusive);
  mi_stats_t_decl(main_stats);
  CHECK(mi_subproc_stats_get(id, &stats));
  int64_t n_bytes = n_small * (int64_t)small_size + n_large * (int64_t)large_size + 1000 * 500;
  CHECK_FOR(sum_of_blocks(&stats) >= n_small + n_large + 1000, "%lld", (long long)sum_of_blocks(&stats));
  CHECK(stats.malloc_requested.current >= n_bytes && stats.malloc_requested.current < n_bytes + n_bytes / 3);
  CHECK(mi_subproc_stats_get_exclusive(id, &exclusive));
  CHECK_EQ(sum_of_blocks(&exclusive), 0); // all blocks are in heaps
  CHECK(mi_subproc_stats_get(mi_subproc_main(), &main_stats));
  CHECK(sum_of_blocks(&main_stats) < n_small);
#if MI_API_LEVEL >= 3
  CHECK_EQ(stats.heaps.current, 2);
#endif
  char* json = mi_subproc_stats_get_json(id, 0, NULL);
  check_json(json);
  mi_free(json);
  mi_subproc_destroy(id);
}

// ---- as text --------------------------------------------------------------------------------------------------------

static sink_t printed;

static size_t printed_length(void) {
  size_t length = printed.length;
  CHECK(length < sizeof(printed.text));
  printed.length = 0;
  return length;
}

static bool is_printed(const char* word) {
  return sink_has(&printed, word);
}

static void check_text(void) {
  mi_heap_t* heap = mi_heap_new();
  fill(heap);
  mi_heap_stats_print_out(heap, &sink_write, &printed);
  CHECK(printed_length() > 50 && is_printed("peak") && is_printed("total") && is_printed("MiB"));
  mi_heap_stats_print_out(NULL, &sink_write, &printed);
  CHECK(printed_length() > 50);
  mi_subproc_stats_print_out(mi_subproc_main(), &sink_write, &printed);
  size_t of_subproc = printed_length();
  CHECK(of_subproc > 50 && is_printed("peak"));
  mi_subproc_heap_stats_print_out(mi_subproc_main(), &sink_write, &printed);
  CHECK(printed_length() > of_subproc);
  mi_thread_stats_print_out(&sink_write, &printed);
  CHECK(printed_length() > 50);
  mi_stats_print_out(&sink_write, &printed);
  CHECK(printed_length() > 200);
  mi_register_output(&sink_write, &printed); // where all output goes
  printed_length();
  mi_heap_stats_print_out(heap, NULL, NULL);
  CHECK(printed_length() > 50);
  mi_stats_print(NULL);
  CHECK(printed_length() > 200);
  mi_stats_print_out(NULL, NULL);
  CHECK(printed_length() > 200);
  mi_thread_stats_print_out(NULL, NULL);
  CHECK(printed_length() > 50);
  mi_subproc_stats_print_out(mi_subproc_main(), NULL, NULL);
  CHECK(printed_length() > 50);
  mi_options_print();
  CHECK(printed_length() > 500 && is_printed("purge_delay"));
  mi_process_info_print();
  CHECK(printed_length() > 50 && is_printed("elapsed"));
  mi_register_output(NULL, NULL);
  mi_heap_destroy(heap);
}

// Cut off at any length, the text is terminated and a beginning of the whole; nothing is written behind the buffer.
static void check_cut_off(char* (*get)(size_t size, char* buf)) {
  static char buf[40 * 1024];
  char*       whole = get(0, NULL);
  check_json(whole);
  CHECK(mi_is_in_heap_region(whole));
  size_t length = strlen(whole);
  CHECK_FOR(length > 5000 && length < 32 * 1024, "%zu", length);
  mi_free(whole);
  memset(buf, 0x5A, sizeof(buf));
  CHECK(get(sizeof(buf), buf) == buf);
  check_json(buf);
  for (size_t size = 1; size < 2000; size = size * 3 + 1) {
    memset(buf, 0x5A, sizeof(buf));
    CHECK(get(size, buf) == buf && strlen(buf) == size - 1 && buf[size] == 0x5A);
    CHECK(size < 12 || strncmp(buf, "{\n  \"stat_v", 11) == 0);
  }
  char* other = get(0, buf); // no size: a block of its own
  CHECK(other != NULL && other != buf);
  mi_free(other);
}

static char* get_heap_json(size_t size, char* buf) {
  return mi_heap_stats_get_json(NULL, size, buf);
}

static char* get_subproc_json(size_t size, char* buf) {
  return mi_subproc_stats_get_json(mi_subproc_main(), size, buf);
}

static char* get_as_json(size_t size, char* buf) {
  mi_stats_t stats;
  mi_stats_init(&stats);
  stats.pages.current = 4711;
  char* text = mi_stats_as_json(&stats, size, buf);
  if (text != NULL && (size == 0 || size > 10000)) CHECK(strstr(text, "\"current\": 4711") != NULL);
  return text;
}

static void check_heap_json(void) {
  mi_heap_t* heap = mi_heap_new();
  fill(heap);
  char* text = mi_heap_stats_get_json(heap, 0, NULL);
  check_json(text);
  CHECK_EQ(json_number(text, "malloc_huge_count"), n_large);
  CHECK_EQ(json_number(text, "malloc_normal_count"), n_small);
  size_t commit, peak_commit; // of the process
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &commit, &peak_commit, NULL);
  CHECK(json_number(text, "commit_current") == (int64_t)commit &&
        json_number(text, "commit_peak") == (int64_t)peak_commit);
  mi_free(text);
  mi_heap_destroy(heap);
}

// ---- the sizes of bins ----------------------------------------------------------------------------------------------

static void check_bin_sizes(void) {
  CHECK(mi_stats_get_bin_size(0) <= 8);
  for (size_t i = 2; i <= MI_BIN_HUGE; i++) {
    CHECK_FOR(mi_stats_get_bin_size(i) > mi_stats_get_bin_size(i - 1), "bin %zu", i);
  }
  CHECK_EQ(mi_stats_get_bin_size(MI_BIN_HUGE), (size_t)PTRDIFF_MAX);
  CHECK_EQ(mi_stats_get_bin_size(MI_BIN_HUGE + 1), 0);
  CHECK_EQ(mi_stats_get_bin_size(hidden(SIZE_MAX)), 0);
}

// ---- what is in use -------------------------------------------------------------------------------------------------

static void check_leaks(void) {
  char   line[64];
  void*  p[123];
  size_t block_size = 0;
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = mi_umalloc(7000, &block_size);
  void* large = mi_malloc(77 * MiB);
  mi_collect(false);
  mi_leaks_print_out(&sink_write, &printed);
  CHECK(printed_length() > 50);
  snprintf(line, sizeof(line), "%zu", block_size);
  CHECK_FOR(is_printed(line) && is_printed("123"), "%s", line);
  CHECK(is_printed("large"));
  mi_free(large);
  for (size_t i = 0; i < COUNT_OF(p); i++) mi_free(p[i]);
  mi_collect(true);
  printed.text[0] = 0;
  mi_leaks_print_out(&sink_write, &printed);
  CHECK_FOR(!is_printed(line), "%s", line);
  printed_length();
  mi_register_output(&sink_write, &printed);
  printed_length();
  p[0] = mi_malloc(7000);
  mi_leaks_print_out(NULL, NULL);
  CHECK(printed_length() > 10);
  mi_register_output(NULL, NULL);
  mi_free(p[0]);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_bin_sizes();
  check_cut_off(&mi_stats_get_json);
  check_cut_off(&get_as_json);
  check_refusals();
  check_heap_stats();
  check_process_stats();
  check_subproc_stats();
  check_heap_json();
  check_cut_off(&get_heap_json);
  check_cut_off(&get_subproc_json);
  check_text();
  check_leaks();
  return check_result();
}
