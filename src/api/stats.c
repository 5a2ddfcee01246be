// Statistics for the user: as numbers, as a table, as JSON; process information.  Layer: api.
//
// Everything here works on a snapshot: the live counters (support/stat.h), and the blocks and pages of each size class
// from a walk over all pages (heap/heap_stats.h).  Text is put together in a local buffer, line by line.
#include "../base/public.h"

#include <string.h>

#include "../heap/heap_stats.h"
#include "../page/page.h"
#include "../support/format.h"
#include "../support/message.h"
#include "../support/option.h"
#include "../support/stat.h"

#define STATS_LINE_MAX 200

// ---- the snapshot ---------------------------------------------------------------------------------------------------

// Size classes and bins are the same, up to the last bin: it takes all classes that are left.
#define STATS_BIN_LAST (MI_BIN_HUGE - 1)
mi_static_assert(MI_CLASS_COUNT > STATS_BIN_LAST, "each bin has a class");

typedef struct stats_snapshot_s {
  mi_stats_t        stats;
  mi_process_info_t process;
  size_t            n_classes;
  mi_class_stat_t   classes[MI_CLASS_COUNT];
} stats_snapshot_t;

size_t mi_stats_get_bin_size(size_t bin) mi_attr_noexcept {
  if (bin > MI_BIN_HUGE) return 0;
  if (bin == MI_BIN_HUGE) return PTRDIFF_MAX;
  return bin == STATS_BIN_LAST ? MI_CLASS_SIZE_MAX : _mi_class_block_size(bin);
}

// Bytes in a page of the blocks of a bin; 0 where pages differ.
static size_t stats_bin_page_size(size_t bin) {
  return bin == MI_BIN_HUGE ? 0 : _mi_class_info[bin].n_slices * MI_SLICE_SIZE;
}

// Adds to a number that has no history.
static void stats_add(mi_stat_count_t* count, size_t n) {
  count->current += (int64_t)n;
  count->peak += (int64_t)n;
  count->total += (int64_t)n;
}

static void stats_join(mi_stat_count_t* sum, const mi_stat_count_t* a, const mi_stat_count_t* b) {
  sum->current = a->current + b->current;
  sum->peak = a->peak + b->peak;
  sum->total = a->total + b->total;
}

static void stats_take(mi_stats_t* stats, mi_class_stat_t* classes, size_t n_classes) {
  _mi_stats_snapshot(stats);
  for (size_t i = 0; i < n_classes; i++) {
    const mi_class_stat_t* c = &classes[i];
    size_t                 bin = mi_min(i, STATS_BIN_LAST);
    stats_add(&stats->malloc_bins[bin], c->n_blocks_used);
    stats_add(&stats->page_bins[bin], c->n_pages);
    stats_add(&stats->malloc_normal, c->n_blocks_used * c->block_size);
    stats->malloc_normal_count.total += (int64_t)c->n_blocks_used;
  }
  stats->malloc_bins[MI_BIN_HUGE].total = stats->malloc_huge_count.total;
  stats_join(&stats->malloc_requested, &stats->malloc_normal, &stats->malloc_huge);
}

static void stats_snapshot(stats_snapshot_t* s) {
  s->n_classes = _mi_heap_class_stats(s->classes, MI_CLASS_COUNT);
  stats_take(&s->stats, s->classes, s->n_classes);
  _mi_prim_process_info(&s->process);
}

// Has the caller the structure that this library writes?
static bool stats_is_known(const mi_stats_t* stats) {
  return stats != NULL && stats->size == sizeof(*stats) && stats->version == MI_STAT_VERSION;
}

bool mi_stats_get(mi_stats_t* stats) mi_attr_noexcept {
  if (!stats_is_known(stats)) return false;
  mi_class_stat_t classes[MI_CLASS_COUNT];
  stats_take(stats, classes, _mi_heap_class_stats(classes, MI_CLASS_COUNT));
  return true;
}

void mi_stats_reset(void) mi_attr_noexcept {
  _mi_stats_reset();
}

void mi_stats_merge(void) mi_attr_noexcept {
  // Threads have no numbers of their own that would have to be added.
}

// ---- lines of text --------------------------------------------------------------------------------------------------

typedef struct stats_line_s {
  mi_output_fun* out;
  void*          arg;
  size_t         length;
  char           text[STATS_LINE_MAX];
} stats_line_t;

static void stats_line_begin(stats_line_t* line, mi_output_fun* out, void* arg) {
  line->out = out;
  line->arg = arg;
  line->length = 0;
}

mi_printf(2, 3) static void stats_line_add(stats_line_t* line, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  line->length += _mi_vformat(line->text + line->length, sizeof(line->text) - line->length, fmt, args);
  va_end(args);
}

static void stats_line_end(stats_line_t* line) {
  stats_line_add(line, "\n");
  _mi_message_write(line->out, line->arg, line->text);
  line->length = 0;
}

// A cell of the table, 12 characters wide: "   1.5 MiB  " or "    12.3 K  ".
//   unit 1024: bytes; 1000: a count
static void stats_line_add_cell(stats_line_t* line, int64_t n, int64_t unit) {
  static const char* const units[2][6] = {
      {"", "K", "M", "G", "T", "P"},
      {"B", "KiB", "MiB", "GiB", "TiB", "PiB"},
  };
  int64_t scale = 1;
  size_t  power = 0;
  while (n / scale >= (unit == 1000 && power == 0 ? 10000 : unit) && power < 5) {
    scale *= unit;
    power++;
  }
  const char* name = units[unit == 1024][power];
  long long   whole = n / scale, tenths = n % scale * 10 / scale;
  if (power > 0) stats_line_add(line, "%6lld.%lld %-3s", whole, tenths, name);
  else stats_line_add(line, "%6lld   %-3s", whole, n == 0 ? "" : name);
}

// Whole lines.
static void stats_print_count(stats_line_t* line, const char* label, const mi_stat_count_t* n, int64_t unit) {
  stats_line_add(line, "%10s:", label);
  stats_line_add_cell(line, n->peak, unit);
  stats_line_add_cell(line, n->total, unit);
  stats_line_add_cell(line, n->current, unit);
  stats_line_end(line);
}

static void stats_print_counter(stats_line_t* line, const char* label, const mi_stat_counter_t* n, int64_t unit) {
  stats_line_add(line, "%10s:", label);
  stats_line_add_cell(line, n->total, unit);
  stats_line_end(line);
}

// "1.5 MiB" without the blanks around it.
static void stats_line_add_bytes(stats_line_t* line, const char* label, int64_t n) {
  stats_line_t cell;
  stats_line_begin(&cell, NULL, NULL);
  stats_line_add_cell(&cell, n, 1024);
  size_t from = 0, to = cell.length;
  while (cell.text[from] == ' ') from++;
  while (to > from && cell.text[to - 1] == ' ') to--;
  cell.text[to] = 0;
  stats_line_add(line, "%s%s", label, cell.text + from);
}

static void stats_line_add_seconds(stats_line_t* line, const char* label, int64_t ms) {
  stats_line_add(line, "%s%lld.%03lld s", label, (long long)(ms / 1000), (long long)(ms % 1000));
}

// ---- the table ------------------------------------------------------------------------------------------------------

// Blocks that are in use: their bytes, their size, and how many there are.
static void stats_print_class(stats_line_t* line, const mi_class_stat_t* c) {
  if (c->n_blocks_used == 0) return;
  stats_line_add(line, " bin%6zu:%24s", c->block_size, "");
  stats_line_add_cell(line, (int64_t)(c->n_blocks_used * c->block_size), 1024);
  stats_line_add_cell(line, (int64_t)c->block_size, 1024);
  stats_line_add_cell(line, (int64_t)c->n_blocks_used, 1000);
  stats_line_end(line);
}

static void stats_print_blocks(stats_line_t* line, const stats_snapshot_t* s) {
  for (size_t i = 0; i < s->n_classes; i++) stats_print_class(line, &s->classes[i]);
  stats_print_count(line, "binned", &s->stats.malloc_normal, 1024);
  stats_print_count(line, "huge", &s->stats.malloc_huge, 1024);
  stats_print_count(line, "total", &s->stats.malloc_requested, 1024);
}

static void stats_print_memory(stats_line_t* line, const mi_stats_t* stats) {
  stats_print_count(line, "reserved", &stats->reserved, 1024);
  stats_print_count(line, "committed", &stats->committed, 1024);
  stats_print_counter(line, "reset", &stats->reset, 1024);
  stats_print_counter(line, "purged", &stats->purged, 1024);
  stats_print_count(line, "touched", &stats->page_committed, 1024);
  stats_print_count(line, "segments", &stats->segments, 1000);
  stats_print_count(line, "-abandoned", &stats->segments_abandoned, 1000);
  stats_print_count(line, "-cached", &stats->segments_cache, 1000);
  stats_print_count(line, "pages", &stats->pages, 1000);
  stats_print_count(line, "-abandoned", &stats->pages_abandoned, 1000);
  stats_print_counter(line, "-extended", &stats->pages_extended, 1000);
  stats_print_counter(line, "-retire", &stats->pages_retire, 1000);
  stats_print_counter(line, "arenas", &stats->arena_count, 1000);
  stats_print_counter(line, "-rollback", &stats->arena_rollback_count, 1000);
}

static void stats_print_calls(stats_line_t* line, const mi_stats_t* stats) {
  stats_print_counter(line, "mmaps", &stats->mmap_calls, 1000);
  stats_print_counter(line, "commits", &stats->commit_calls, 1000);
  stats_print_counter(line, "resets", &stats->reset_calls, 1000);
  stats_print_counter(line, "purges", &stats->purge_calls, 1000);
  stats_print_counter(line, "guarded", &stats->malloc_guarded_count, 1000);
  stats_print_count(line, "threads", &stats->threads, 1000);
  int64_t searches = stats->page_searches_count.total;
  int64_t tenths = (searches == 0 ? 0 : stats->page_searches.total * 10 / searches);
  stats_line_add(line, "%10s:%6lld.%lld avg", "searches", (long long)(tenths / 10), (long long)(tenths % 10));
  stats_line_end(line);
}

static void stats_print_process(stats_line_t* line, const mi_process_info_t* process, int64_t peak_commit) {
  stats_line_add(line, "%10s:%6lld.%03lld s", "elapsed", (long long)(process->elapsed_ms / 1000),
                 (long long)(process->elapsed_ms % 1000));
  stats_line_end(line);
  stats_line_add(line, "%10s:", "process");
  stats_line_add_seconds(line, " user: ", process->user_ms);
  stats_line_add_seconds(line, ", system: ", process->system_ms);
  stats_line_add(line, ", faults: %zu", process->page_faults);
  stats_line_add_bytes(line, ", peak rss: ", (int64_t)process->rss_peak);
  stats_line_add_bytes(line, ", peak commit: ", peak_commit);
  stats_line_end(line);
}

void mi_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  stats_snapshot_t s;
  stats_line_t     line;
  stats_snapshot(&s);
  stats_line_begin(&line, out, arg);
  stats_line_add(&line, "%10s: %8s%12s%12s%12s%12s   ", "heap stats", "peak", "total", "current", "block", "total#");
  stats_line_end(&line);
  stats_print_blocks(&line, &s);
  stats_print_memory(&line, &s.stats);
  stats_print_calls(&line, &s.stats);
  long n_nodes = _mi_option_get_fast(mi_option_use_numa_nodes);
  stats_line_add(&line, "%10s:%6ld", "numa nodes", n_nodes > 0 ? n_nodes : (long)_mi_prim_numa_node_count());
  stats_line_end(&line);
  stats_print_process(&line, &s.process, s.stats.committed.peak);
}

void mi_stats_print(void* out) mi_attr_noexcept {
  (void)out;
  mi_stats_print_out(NULL, NULL);
}

void mi_thread_stats_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  mi_stats_print_out(out, arg); // there are no numbers of a thread
}

// ---- the process ----------------------------------------------------------------------------------------------------

static void stats_store(size_t* to, int64_t value) {
  if (to != NULL) *to = (size_t)value;
}

void mi_process_info(size_t* elapsed_msecs, size_t* user_msecs, size_t* system_msecs, size_t* current_rss,
                     size_t* peak_rss, size_t* current_commit, size_t* peak_commit,
                     size_t* page_faults) mi_attr_noexcept {
  mi_process_info_t process;
  mi_stats_t        stats;
  _mi_prim_process_info(&process);
  _mi_stats_snapshot(&stats);
  stats_store(elapsed_msecs, process.elapsed_ms);
  stats_store(user_msecs, process.user_ms);
  stats_store(system_msecs, process.system_ms);
  stats_store(current_rss, (int64_t)process.rss_current);
  stats_store(peak_rss, (int64_t)process.rss_peak);
  stats_store(current_commit, stats.committed.current);
  stats_store(peak_commit, stats.committed.peak);
  stats_store(page_faults, (int64_t)process.page_faults);
}

void mi_process_info_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  mi_process_info_t process;
  mi_stats_t        stats;
  stats_line_t      line;
  _mi_prim_process_info(&process);
  _mi_stats_snapshot(&stats);
  stats_line_begin(&line, out, arg);
  stats_print_process(&line, &process, stats.committed.peak);
}

void mi_process_info_print(void) mi_attr_noexcept {
  mi_process_info_print_out(NULL, NULL);
}

// ---- JSON -----------------------------------------------------------------------------------------------------------

// Writes into buf while there is room, and counts everything.
typedef struct stats_json_s {
  char*  buf;
  size_t size;   // of buf
  size_t length; // of the whole text
} stats_json_t;

mi_printf(2, 3) static void stats_json_add(stats_json_t* json, const char* fmt, ...) {
  char    text[STATS_LINE_MAX];
  va_list args;
  va_start(args, fmt);
  size_t n = _mi_vformat(text, sizeof(text), fmt, args);
  va_end(args);
  if (json->length + 1 < json->size) {
    size_t copied = mi_min(n, json->size - 1 - json->length);
    memcpy(json->buf + json->length, text, copied);
    json->buf[json->length + copied] = 0;
  }
  json->length += n;
}

static void stats_json_add_counter(stats_json_t* json, const char* indent, const char* name, int64_t n, bool is_last) {
  stats_json_add(json, "%s\"%s\": %lld%s\n", indent, name, (long long)n, is_last ? "" : ",");
}

static void stats_json_add_count(stats_json_t* json, const char* name, const mi_stat_count_t* count) {
  stats_json_add(json, "  \"%s\": { \"total\": %lld, \"peak\": %lld, \"current\": %lld },\n", name,
                 (long long)count->total, (long long)count->peak, (long long)count->current);
}

static void stats_json_add_bins(stats_json_t* json, const char* name, const mi_stat_count_t* bins, bool is_last) {
  stats_json_add(json, "  \"%s\": [\n", name);
  for (size_t bin = 0; bin <= MI_BIN_HUGE; bin++) {
    stats_json_add(json, "    { \"total\": %lld, \"peak\": %lld, \"current\": %lld, ", (long long)bins[bin].total,
                   (long long)bins[bin].peak, (long long)bins[bin].current);
    stats_json_add(json, "\"block_size\": %zu, \"page_size\": %zu }%s\n", mi_stats_get_bin_size(bin),
                   stats_bin_page_size(bin), bin == MI_BIN_HUGE ? "" : ",");
  }
  stats_json_add(json, "  ]%s\n", is_last ? "" : ",");
}

// Level 3 only: chunks by what is in them, of which this allocator has one kind.
static void stats_json_add_chunks(stats_json_t* json, const mi_stats_t* stats) {
#if MI_API_LEVEL >= 3
  static const char* const kinds[] = {"S", "X", "M", "L", "H", " "};
  stats_json_add(json, "  \"chunk_bins\": [\n");
  for (size_t bin = 0; bin < MI_CBIN_COUNT; bin++) {
    const mi_stat_count_t* count = &stats->chunk_bins[bin];
    stats_json_add(json, "    { \"total\": %lld, \"peak\": %lld, \"current\": %lld, \"bin\": \"%s\" }%s\n",
                   (long long)count->total, (long long)count->peak, (long long)count->current, kinds[bin],
                   bin + 1 == MI_CBIN_COUNT ? "" : ",");
  }
  stats_json_add(json, "  ]\n");
#else
  (void)json;
  (void)stats;
#endif
}

static void stats_json_add_process(stats_json_t* json, const mi_process_info_t* process,
                                   const mi_stat_count_t* commit) {
  stats_json_add(json, "  \"process\": {\n");
  stats_json_add_counter(json, "    ", "elapsed_msecs", process->elapsed_ms, false);
  stats_json_add_counter(json, "    ", "user_msecs", process->user_ms, false);
  stats_json_add_counter(json, "    ", "system_msecs", process->system_ms, false);
  stats_json_add_counter(json, "    ", "page_faults", (int64_t)process->page_faults, false);
  stats_json_add_counter(json, "    ", "rss_current", (int64_t)process->rss_current, false);
  stats_json_add_counter(json, "    ", "rss_peak", (int64_t)process->rss_peak, false);
  stats_json_add_counter(json, "    ", "commit_current", commit->current, false);
  stats_json_add_counter(json, "    ", "commit_peak", commit->peak, true);
  stats_json_add(json, "  },\n");
}

static void stats_json_write(stats_json_t* json, const mi_stats_t* stats, const mi_process_info_t* process) {
  json->length = 0;
  stats_json_add(json, "{\n");
  stats_json_add_counter(json, "  ", "stat_version", MI_STAT_VERSION, false);
  stats_json_add_counter(json, "  ", "mimalloc_version", MI_MALLOC_VERSION, false);
  stats_json_add_process(json, process, &stats->committed);
#define MI_STAT_COUNT(name)   stats_json_add_count(json, #name, &stats->name);
#define MI_STAT_COUNTER(name) stats_json_add_counter(json, "  ", #name, stats->name.total, false);
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  stats_json_add_bins(json, "malloc_bins", stats->malloc_bins, false);
  stats_json_add_bins(json, "page_bins", stats->page_bins, MI_API_LEVEL < 3);
  stats_json_add_chunks(json, stats);
  stats_json_add(json, "}\n");
}

char* mi_stats_as_json(mi_stats_t* stats, size_t buf_size, char* buf) mi_attr_noexcept {
  stats_json_t      json = {buf, buf == NULL ? 0 : buf_size, 0};
  mi_process_info_t process;
  if (!stats_is_known(stats)) return NULL;
  _mi_prim_process_info(&process);
  if (json.size == 0) { // once to see how long it is
    stats_json_write(&json, stats, &process);
    json.size = json.length + 1;
    json.buf = (char*)mi_malloc(json.size);
    if (json.buf == NULL) return NULL;
  }
  json.buf[0] = 0;
  stats_json_write(&json, stats, &process);
  return json.buf;
}

char* mi_stats_get_json(size_t buf_size, char* buf) mi_attr_noexcept {
  mi_stats_t stats;
  mi_stats_header_init(&stats);
  mi_stats_get(&stats);
  return mi_stats_as_json(&stats, buf_size, buf);
}
