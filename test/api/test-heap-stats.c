// Proves: the numbers of a heap are exactly what the program has of it, whoever has allocated and freed; those of a
// subprocess are the sums over its heaps; JSON and tables show them.
#include "../check.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include "../modes/support.h"

enum { n_blocks = 3000, n_large = 5, size = 60, other_size = 5000, large_size = 1 << 20 };

static void* blocks[n_blocks];

// Statistics count whole blocks, with their padding.
static size_t bin_of(size_t wanted) {
  size_t bin = 0;
  while (mi_stats_get_bin_size(bin) < mi_good_size(wanted)) bin++;
  return bin;
}

static mi_stats_t stats_of(mi_heap_t* heap) {
  mi_stats_t_decl(stats);
  CHECK(mi_heap_stats_get(heap, &stats));
  for (size_t i = 0; i <= MI_BIN_HUGE; i++) {
    const mi_stat_count_t* c = &stats.malloc_bins[i];
    CHECK(c->current >= 0 && c->current == c->peak && c->current == c->total);
  }
  CHECK_EQ(stats.malloc_requested.current, stats.malloc_normal.current + stats.malloc_huge.current);
  return stats;
}

static int64_t used_in(mi_heap_t* heap, size_t wanted) {
  mi_stats_t stats = stats_of(heap);
  return stats.malloc_bins[bin_of(wanted)].current;
}

static void check_refusals(void) {
  mi_heap_t* heap = mi_heap_new();
  mi_stats_t_decl(stats);
  CHECK(!mi_heap_stats_get(heap, NULL));
  CHECK(!mi_subproc_stats_get(mi_subproc_main(), NULL));
  CHECK(!mi_subproc_stats_get_exclusive(mi_subproc_main(), NULL));
  stats.version++;
  CHECK(!mi_heap_stats_get(heap, &stats) && !mi_subproc_stats_get(mi_subproc_main(), &stats));
  stats.version--;
  stats.size--;
  CHECK(!mi_heap_stats_get(heap, &stats) && !mi_subproc_stats_get_exclusive(mi_subproc_main(), &stats));
  mi_heap_delete(heap);
}

// ---- one heap -------------------------------------------------------------------------------------------------------

static void check_is_empty(mi_heap_t* heap) {
  mi_stats_t stats = stats_of(heap);
  CHECK(stats.malloc_requested.current == 0 && stats.malloc_huge_count.total == 0);
  for (size_t i = 0; i <= MI_BIN_HUGE; i++) CHECK_EQ(stats.malloc_bins[i].current, 0);
}

static void check_alone(void) {
  mi_heap_t* heap = mi_heap_new();
  mi_heap_t* other = mi_heap_new();
  void*      large[n_large];
  int64_t    pages = 0;
  check_is_empty(heap);
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_heap_malloc(heap, i % 10 == 0 ? other_size : size);
  for (size_t i = 0; i < n_large; i++) large[i] = mi_heap_malloc(heap, large_size);
  mi_stats_t stats = stats_of(heap);
  CHECK_EQ(used_in(heap, size), n_blocks - n_blocks / 10);
  CHECK_EQ(used_in(heap, other_size), n_blocks / 10);
  CHECK_EQ(stats.malloc_bins[MI_BIN_HUGE].current, n_large);
  CHECK_EQ(stats.malloc_huge_count.total, n_large);
  CHECK_EQ(stats.malloc_normal_count.total, n_blocks);
  CHECK_EQ(stats.malloc_huge.current, (int64_t)(n_large * mi_good_size(large_size)));
  CHECK_EQ(stats.malloc_normal.current,
           (int64_t)(mi_good_size(size) * (n_blocks - n_blocks / 10) + mi_good_size(other_size) * (n_blocks / 10)));
  for (size_t i = 0; i < MI_BIN_HUGE; i++) pages += stats.page_bins[i].current;
  CHECK(pages == stats.pages.current && pages >= 20 && stats.page_committed.current >= stats.malloc_normal.current);
  check_is_empty(other);
  for (size_t i = 0; i < n_blocks; i += 2) mi_free(blocks[i]);
  mi_free(large[1]);
  CHECK_EQ(used_in(heap, size), n_blocks / 2);
  CHECK_EQ(used_in(heap, other_size), 0);
  stats = stats_of(heap);
  CHECK_EQ(stats.malloc_huge.current, (int64_t)((n_large - 1) * mi_good_size(large_size)));
  mi_heap_destroy(heap);
  mi_heap_destroy(other);
}

// ---- several threads ------------------------------------------------------------------------------------------------

typedef struct task_s {
  mi_heap_t*        heap;
  pthread_barrier_t barrier;
} task_t;

static void* free_half(void* arg) {
  task_t* t = (task_t*)arg;
  void*   mine[50];
  for (size_t i = 0; i < COUNT_OF(mine); i++) mine[i] = mi_heap_malloc(t->heap, size);
  for (size_t i = 0; i < n_blocks; i += 2) mi_free(blocks[i]);
  for (size_t i = 0; i < 30; i++) mi_free(mine[i]);
  pthread_barrier_wait(&t->barrier);
  pthread_barrier_wait(&t->barrier);
  for (size_t i = 30; i < COUNT_OF(mine); i++) mi_free(mine[i]);
  return NULL;
}

static void check_threads(bool in_main) {
  task_t    t;
  pthread_t thread;
  t.heap = (in_main ? NULL : mi_heap_new()); // NULL: the main heap
  int64_t before = used_in(t.heap, size);
  pthread_barrier_init(&t.barrier, NULL, 2);
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_heap_malloc(t.heap, size);
  CHECK_EQ(used_in(t.heap, size), before + n_blocks);
  pthread_create(&thread, NULL, &free_half, &t);
  pthread_barrier_wait(&t.barrier);
  CHECK_EQ(used_in(t.heap, size), before + n_blocks / 2 + 20);
  pthread_barrier_wait(&t.barrier);
  pthread_join(thread, NULL);
  CHECK_EQ(used_in(t.heap, size), before + n_blocks / 2);
  for (size_t i = 1; i < n_blocks; i += 2) mi_free(blocks[i]);
  CHECK_EQ(used_in(t.heap, size), before);
  if (!in_main) mi_heap_destroy(t.heap);
  pthread_barrier_destroy(&t.barrier);
}

// ---- subprocesses ---------------------------------------------------------------------------------------------------

static mi_subproc_id_t sub;

static void* live_in_sub(void* arg) {
  mi_subproc_add_current_thread(sub);
  blocks[0] = mi_malloc(size);
  mi_heap_t* heap = mi_heap_new();
  blocks[1] = mi_heap_malloc(heap, size);
  blocks[2] = mi_heap_malloc(heap, large_size);
  pthread_barrier_wait((pthread_barrier_t*)arg);
  pthread_barrier_wait((pthread_barrier_t*)arg);
  return NULL;
}

static mi_stats_t stats_of_sub(mi_subproc_id_t id, bool exclusive) {
  mi_stats_t_decl(stats);
  CHECK(exclusive ? mi_subproc_stats_get_exclusive(id, &stats) : mi_subproc_stats_get(id, &stats));
  return stats;
}

typedef struct sum_s {
  int64_t n_heaps, pages, normal, huge;
} sum_t;

static bool add_heap(mi_heap_t* heap, void* arg) {
  mi_stats_t stats = stats_of(heap);
  sum_t*     sum = (sum_t*)arg;
  sum->n_heaps++;
  sum->pages += stats.pages.current;
  sum->normal += stats.malloc_normal.current;
  sum->huge += stats.malloc_huge.current;
  return true;
}

static void check_sum(mi_subproc_id_t id, int64_t n_heaps) {
  sum_t      sum = {0, 0, 0, 0};
  mi_stats_t all = stats_of_sub(id, false), own = stats_of_sub(id, true);
  CHECK(mi_subproc_visit_heaps(id, &add_heap, &sum));
  CHECK_EQ(sum.n_heaps, n_heaps);
  CHECK_EQ(all.pages.current, sum.pages);
  CHECK_EQ(all.malloc_normal.current, sum.normal);
  CHECK_EQ(all.malloc_huge.current, sum.huge);
  CHECK(own.pages.current == 0 && own.malloc_normal.current == 0 && own.malloc_requested.current == 0);
  CHECK(own.threads.current == all.threads.current && own.reserved.current == all.reserved.current);
}

static void check_subprocesses(void) {
  pthread_barrier_t barrier;
  pthread_t         thread;
  sub = mi_subproc_new();
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 10; i < 20; i++) blocks[i] = mi_heap_malloc(heap, size);
  void* large = mi_heap_malloc(heap, large_size);
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, &live_in_sub, &barrier);
  pthread_barrier_wait(&barrier);
  check_sum(mi_subproc_main(), 2);
  check_sum(sub, 2);
  mi_stats_t stats = stats_of_sub(sub, false);
  CHECK_EQ(stats.malloc_bins[bin_of(size)].current, 2);
  CHECK_EQ(stats.malloc_huge.current, mi_good_size(large_size));
  CHECK_EQ(stats.threads.current, 1);
  CHECK_EQ(stats_of_sub(mi_subproc_main(), false).threads.current, 1);
  CHECK_EQ(stats_of_sub(mi_subproc_main(), true).threads.current, 1);
  CHECK_EQ(stats.reserved.current, 0);
  CHECK(stats_of_sub(mi_subproc_main(), true).reserved.current > 0);
  mi_stats_t_decl(process);
  CHECK(mi_stats_get(&process));
  CHECK_EQ(process.threads.current, 2);
  CHECK(process.pages.current >= stats.pages.current + stats_of_sub(mi_subproc_main(), false).pages.current);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  CHECK_EQ(stats_of_sub(sub, false).threads.current, 0);
  mi_free(large);
  mi_heap_destroy(heap);
  mi_subproc_destroy(sub);
  pthread_barrier_destroy(&barrier);
}

// ---- text -----------------------------------------------------------------------------------------------------------

typedef struct text_s {
  size_t n_lines, length;
  char   text[40 * 1024];
} text_t;

static void on_line(const char* line, void* arg) {
  text_t* t = (text_t*)arg;
  size_t  n = strlen(line);
  CHECK(n > 0 && strchr(line, '\n') == line + n - 1);
  t->n_lines++;
  if (t->length + n < sizeof(t->text)) memcpy(t->text + t->length, line, n + 1);
  t->length += n;
}

static size_t count_in(const char* text, const char* what) {
  size_t n = 0;
  for (const char* at = text; (at = strstr(at, what)) != NULL; at++) n++;
  return n;
}

// The last number in the row of that label, -1 if there is none.
static int current_in(const char* text, const char* label) {
  const char* at = strstr(text, label);
  int         peak, total, current = -1;
  return at != NULL && sscanf(at + strlen(label), "%d %d %d", &peak, &total, &current) == 3 ? current : -1;
}

static void check_tables(mi_heap_t* heap) {
  static text_t of_heap, of_sub, of_all, of_process;
  char          bin[32], address[32];
  mi_heap_stats_print_out(heap, &on_line, &of_heap);
  snprintf(bin, sizeof(bin), " bin%6zu:", mi_good_size(size));
  CHECK_FOR(count_in(of_heap.text, bin) == 1 && strstr(of_heap.text, " 123 ") != NULL, "%s", of_heap.text);
  CHECK(count_in(of_heap.text, "heap stats:") == 1 && count_in(of_heap.text, "     pages:") == 1);
  CHECK(count_in(of_heap.text, "    theaps:                             1 ") == 1 &&
        count_in(of_heap.text, "process") == 0);
  mi_subproc_stats_print_out(mi_subproc_main(), &on_line, &of_sub);
  CHECK(count_in(of_sub.text, "subprocess:") == 1 && count_in(of_sub.text, "heap stats:") == 1);
  CHECK(count_in(of_sub.text, " committed:") == 1);
  CHECK_FOR(count_in(of_sub.text, "     heaps:                             2 ") == 1, "%s", of_sub.text);
  mi_subproc_heap_stats_print_out(mi_subproc_main(), &on_line, &of_all);
  CHECK(count_in(of_all.text, "subprocess:") == 1 && count_in(of_all.text, "heap stats:") == 3);
  mi_stats_print_out(&on_line, &of_process);
  CHECK_FOR(current_in(of_process.text, "     heaps:") == 2, "%s", of_process.text);
  CHECK_FOR(current_in(of_process.text, "    theaps:") == 2, "%s", of_process.text);
  snprintf(address, sizeof(address), "%lX\n", (unsigned long)(uintptr_t)heap);
  CHECK_FOR(count_in(of_all.text, address) == 1 && count_in(of_all.text, "(main)") == 2, "%s", of_all.text);
}

// How a bin with so many blocks looks.
static void json_bin(char* text, size_t text_size, int64_t n) {
  snprintf(text, text_size, "{ \"total\": %lld, \"peak\": %lld, \"current\": %lld, \"block_size\": %zu,", (long long)n,
           (long long)n, (long long)n, mi_good_size(size));
}

// The subprocess has others_use blocks of that bin beside those of the heap: libc's, where we serve it.
static void check_json(mi_heap_t* heap, int64_t others_use) {
  static char buf[32 * KiB];
  char        wanted[140], wanted_of_all[140];
  json_bin(wanted, sizeof(wanted), 123);
  json_bin(wanted_of_all, sizeof(wanted_of_all), 123 + others_use);
  char* json = mi_heap_stats_get_json(heap, 0, NULL);
  CHECK(json != NULL && count_in(json, wanted) == 1 && count_in(json, "\"malloc_bins\"") == 1);
  mi_free(json);
  CHECK(mi_heap_stats_get_json(heap, sizeof(buf), buf) == buf && count_in(buf, wanted) == 1);
  CHECK(mi_heap_stats_get_json(heap, 64, buf) == buf && strlen(buf) == 63);
  json = mi_subproc_stats_get_json(mi_subproc_main(), 0, NULL);
  CHECK(json != NULL && count_in(json, wanted_of_all) == 1 && count_in(json, "\"stat_version\"") == 1);
  mi_free(json);
  CHECK(mi_heap_stats_get_json(NULL, sizeof(buf), buf) == buf && count_in(buf, wanted) == 0);
}

static void check_text(void) {
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 0; i < 123; i++) (void)!mi_heap_malloc(heap, size);
  check_tables(heap);
  check_json(heap, used_in(mi_heap_main(), size));
  mi_heap_stats_merge_to_subproc(heap); // nothing changes
  CHECK_EQ(used_in(heap, size), 123);
  mi_heap_destroy(heap);
}

int main(void) {
  watchdog(60);
  mi_option_set(mi_option_purge_delay, -1);
  check_refusals();
  check_alone();
  check_threads(false);
  check_threads(true);
  check_subprocesses();
  check_text();
  return check_result();
}
