// Statistics as a table; process information.  Layer: api.
#include "stats_print.h"

#include "../arena/numa.h"
#include "../support/options.h"
#include "../support/stat.h"
#include "alloc.h"
#include "subproc.h"
#include "line.h"
#include "stats.h"

// ---- rows -----------------------------------------------------------------------------------------------------------

// A number and its unit, `unit` being 1024 for bytes and 1000 for a count: "1.5 MiB", or "12.3 K".  As a cell it is 12 characters
// wide.
static void print_number(mi_line_t* line, int64_t n, int64_t unit, bool is_cell) {
  static const char units[2][6][4] = {{"", "K", "M", "G", "T", "P"}, {"B", "KiB", "MiB", "GiB", "TiB", "PiB"}};
  int64_t           scale = 1;
  size_t            power = 0;
  while (n / scale >= (unit == 1000 && power == 0 ? 10000 : unit) && power < 5) {
    scale *= unit;
    power++;
  }
  const char* name = (n == 0 ? "" : units[unit == 1024][power]);
  long long   whole = n / scale, tenths = n % scale * 10 / scale;
  if (power > 0) _mi_line_add(line, is_cell ? "%6lld.%lld %-3s" : "%lld.%lld %s", whole, tenths, name);
  else _mi_line_add(line, is_cell ? "%6lld   %-3s" : (n == 0 ? "%lld%s" : "%lld   %s"), whole, name);
}

// Peak, total and current; without a history, only what is current.
static void print_cells(mi_line_t* line, const char* label, const mi_stat_count_t* n, int64_t unit, bool has_history) {
  _mi_line_add(line, "%10s:", label);
  if (has_history) print_number(line, n->peak, unit, true);
  if (has_history) print_number(line, n->total, unit, true);
  else _mi_line_add(line, "%24s", "");
  print_number(line, n->current, unit, true);
}

static void print_count(mi_line_t* line, const char* label, const mi_stat_count_t* n, int64_t unit, bool has_history) {
  print_cells(line, label, n, unit, has_history);
  _mi_line_add(line, "\n");
}

static void print_counter(mi_line_t* line, const char* label, const mi_stat_counter_t* n, int64_t unit) {
  _mi_line_add(line, "%10s:", label);
  print_number(line, n->total, unit, true);
  _mi_line_add(line, "\n");
}

// What the program has not freed.
static void print_verdict(mi_line_t* line, size_t n_blocks) {
  print_number(line, (int64_t)n_blocks, 1000, true);
  _mi_line_add(line, n_blocks == 0 ? "ok\n" : "not all freed\n");
}

// Blocks that are in use: their bytes, their size, and how many there are.
static void print_class(mi_line_t* line, size_t cls, size_t n) {
  size_t block_size = _mi_size_class_block(cls);
  if (n == 0) return;
  _mi_line_add(line, " bin%6zu:%24s", block_size, "");
  print_number(line, (int64_t)(n * block_size), 1024, true);
  print_number(line, (int64_t)block_size, 1024, true);
  print_verdict(line, n);
}

static void print_sum(mi_line_t* line, const char* label, const mi_stat_count_t* bytes, size_t n, bool has_history) {
  print_cells(line, label, bytes, 1024, has_history);
  _mi_line_add(line, "%12s", "");
  print_verdict(line, n);
}

static void print_blocks(mi_line_t* line, const mi_snapshot_t* s) {
  size_t n = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    print_class(line, cls, s->blocks.classes[cls].n_blocks_used);
    n += s->blocks.classes[cls].n_blocks_used;
  }
  print_sum(line, "binned", &s->stats.malloc_normal, n, false);
  print_sum(line, "huge", &s->stats.malloc_huge, s->blocks.n_large, s->has_history);
  print_sum(line, "total", &s->stats.malloc_requested, n + s->blocks.n_large, false);
}

static void print_memory(mi_line_t* line, const mi_stats_t* stats) {
  print_count(line, "reserved", &stats->reserved, 1024, true);
  print_count(line, "committed", &stats->committed, 1024, true);
  print_counter(line, "reset", &stats->reset, 1024);
  print_counter(line, "purged", &stats->purged, 1024);
  print_counter(line, "arenas", &stats->arena_count, 1000);
  print_counter(line, "-purges", &stats->arena_purges, 1000);
  print_counter(line, "mmaps", &stats->mmap_calls, 1000);
  print_counter(line, "commits", &stats->commit_calls, 1000);
  print_counter(line, "resets", &stats->reset_calls, 1000);
  print_counter(line, "purges", &stats->purge_calls, 1000);
}

static void print_events(mi_line_t* line, const mi_stats_t* stats) {
  print_counter(line, "-extended", &stats->pages_extended, 1000);
  print_counter(line, "-retire", &stats->pages_retire, 1000);
  print_counter(line, "-adopted", &stats->pages_reclaim_on_alloc, 1000);
  print_counter(line, "-claimed", &stats->pages_reclaim_on_free, 1000);
  print_counter(line, "-parked", &stats->pages_reabandon_full, 1000);
  print_counter(line, "guarded", &stats->malloc_guarded_count, 1000);
  int64_t searches = stats->page_searches_count.total;
  int64_t tenths = (searches == 0 ? 0 : stats->page_searches.total * 10 / searches);
  _mi_line_add(line, "%10s:%6lld.%lld avg\n", "searches", (long long)(tenths / 10), (long long)(tenths % 10));
}

// ---- tables ---------------------------------------------------------------------------------------------------------

// Of the process if both are NULL.
static void print_table(mi_line_t* line, mi_heap_t* heap, const mi_subproc_t* subproc) {
  mi_snapshot_t s;
  bool          is_main = _mi_stats_is_main(heap, subproc);
  if (!_mi_stats_take(&s, heap, subproc, false)) {
    _mi_line_unknown(line, "heap stats");
    return;
  }
  _mi_line_add(line, "%10s: %8s%12s%12s%12s%12s   \n", "heap stats", "peak", "total", "current", "block", "blocks");
  print_blocks(line, &s);
  if (is_main) print_memory(line, &s.stats);
  print_count(line, "touched", &s.stats.page_committed, 1024, s.has_history);
  print_count(line, "pages", &s.stats.pages, 1000, s.has_history);
  print_count(line, "-abandoned", &s.stats.pages_abandoned, 1000, s.has_history);
  if (is_main) print_events(line, &s.stats);
  if (heap == NULL) print_count(line, "heaps", &s.heaps, 1000, s.has_history);
  print_count(line, "theaps", &s.theaps, 1000, s.has_history);
  if (heap == NULL) print_count(line, "threads", &s.stats.threads, 1000, s.has_history);
}

static void print_nodes(mi_line_t* line, size_t n) {
  _mi_line_add(line, "%10s:%6zu\n", "numa nodes", n);
}

static void print_elapsed(mi_line_t* line, int64_t ms) {
  _mi_line_add(line, "%10s:%6lld.%03lld s\n", "elapsed", (long long)(ms / 1000), (long long)(ms % 1000));
}

static void print_seconds(mi_line_t* line, const char* label, int64_t ms) {
  _mi_line_add(line, "%s%lld.%03lld s", label, (long long)(ms / 1000), (long long)(ms % 1000));
}

static void print_peak_commit(mi_line_t* line) {
  _mi_line_add(line, ", peak commit: ");
  print_number(line, _mi_stat_read(&_mi_stat_live.committed).peak, 1024, false);
  _mi_line_add(line, "\n");
}

static void print_process(mi_line_t* line) {
  mi_process_info_t process;
  _mi_prim_process_info(&process);
  print_elapsed(line, process.elapsed_ms);
  print_seconds(line, "   process: user: ", process.user_ms);
  print_seconds(line, ", system: ", process.system_ms);
  _mi_line_add(line, ", major faults: %zu, minor faults: %zu", process.major_faults, process.minor_faults);
  _mi_line_add(line, ", peak rss: ");
  print_number(line, (int64_t)process.rss_peak, 1024, false);
  print_peak_commit(line);
}

void _mi_stats_print_last(int64_t elapsed_ms) {
  mi_line_t line;
  size_t    n_nodes = _mi_numa_known_count();
  _mi_line_begin(&line, NULL, NULL);
  print_table(&line, NULL, NULL);
  if (n_nodes > 0) print_nodes(&line, n_nodes);
  if (elapsed_ms >= 0) print_elapsed(&line, elapsed_ms);
  print_seconds(&line, "   process: cpu: ", _mi_prim_cpu_time_ms());
  print_peak_commit(&line);
}

// ---- the public functions -------------------------------------------------------------------------------------------

void mi_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  mi_line_t line;
  _mi_line_begin(&line, out, arg);
  print_table(&line, NULL, NULL);
  print_nodes(&line, _mi_numa_node_count());
  print_process(&line);
}

void mi_stats_print(void* out) mi_attr_noexcept {
  (void)out;
  mi_stats_print_out(NULL, NULL);
}

void mi_thread_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  mi_stats_print_out(out, arg); // there are no numbers of a thread
}

void mi_heap_stats_print_out(mi_heap_t* heap, mi_output_fun* out, void* arg) mi_attr_noexcept {
  mi_line_t line;
  heap = _mi_alloc_heap(heap);
  _mi_line_begin(&line, out, arg);
  _mi_line_heap(&line, heap);
  print_table(&line, heap, NULL);
}

void mi_subproc_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg) mi_attr_noexcept {
  const mi_subproc_t* subproc = _mi_subproc_of_id(subproc_id);
  mi_line_t           line;
  _mi_line_begin(&line, out, arg);
  _mi_line_add(&line, "%10s: %p%s\n", "subprocess", (const void*)subproc,
               subproc == &_mi_heap_subproc_main ? " (main)" : "");
  print_table(&line, NULL, subproc);
}

static bool print_heap(mi_heap_t* heap, void* arg) {
  const mi_line_t* line = (const mi_line_t*)arg;
  mi_heap_stats_print_out(heap, line->out, line->arg);
  return true;
}

void mi_subproc_heap_stats_print_out(mi_subproc_id_t subproc_id, mi_output_fun* out, void* arg) mi_attr_noexcept {
  mi_line_t line;
  mi_subproc_stats_print_out(subproc_id, out, arg);
  _mi_line_begin(&line, out, arg);
  _mi_heap_visit(_mi_subproc_of_id(subproc_id), &print_heap, &line);
}

static void process_store(size_t* to, int64_t value) {
  if (to != NULL) *to = (size_t)value;
}

void mi_process_info(size_t* elapsed_msecs, size_t* user_msecs, size_t* system_msecs, size_t* current_rss,
                     size_t* peak_rss, size_t* current_commit, size_t* peak_commit,
                     size_t* page_faults) mi_attr_noexcept {
  mi_process_info_t process;
  mi_stat_count_t   committed = _mi_stat_read(&_mi_stat_live.committed);
  _mi_prim_process_info(&process);
  process_store(elapsed_msecs, process.elapsed_ms);
  process_store(user_msecs, process.user_ms);
  process_store(system_msecs, process.system_ms);
  process_store(current_rss, (int64_t)process.rss_current);
  process_store(peak_rss, (int64_t)process.rss_peak);
  process_store(current_commit, committed.current);
  process_store(peak_commit, committed.peak);
  process_store(page_faults, (int64_t)process.major_faults);
}

void mi_process_info_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  mi_line_t line;
  _mi_line_begin(&line, out, arg);
  print_process(&line);
}

void mi_process_info_print(void) mi_attr_noexcept {
  mi_process_info_print_out(NULL, NULL);
}
