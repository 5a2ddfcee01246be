// Statistics as JSON.  Layer: api.
//
// The text is written twice where its length is not known, first without a buffer.
#include <string.h>

#include "../support/format.h"
#include "api.h"
#include "stats.h"

#define STATS_LINE_MAX 200

// Bytes in a page of the blocks of a bin; 0 where pages differ.
static size_t stats_bin_page_size(size_t bin) {
  return bin == MI_BIN_HUGE ? 0 : _mi_size_class_info[bin].n_slices * MI_SLICE_SIZE;
}

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
  size_t n = _mi_format_v(text, sizeof(text), fmt, args);
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
  stats_json_add_counter(json, "    ", "page_faults", (int64_t)process->major_faults, false);
  stats_json_add_counter(json, "    ", "page_faults_minor", (int64_t)process->minor_faults, false);
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
  if (!_mi_stats_is_known(stats)) return NULL;
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
  mi_snapshot_t s;
  _mi_snapshot_process(&s);
  return mi_stats_as_json(&s.stats, buf_size, buf);
}

char* mi_heap_stats_get_json(mi_heap_t* heap, size_t buf_size, char* buf) mi_attr_noexcept {
  mi_snapshot_t s;
  _mi_snapshot_heap(&s, heap);
  return mi_stats_as_json(&s.stats, buf_size, buf);
}

char* mi_subproc_stats_get_json(mi_subproc_id_t subproc_id, size_t buf_size, char* buf) mi_attr_noexcept {
  mi_snapshot_t s;
  _mi_snapshot_subproc(&s, _mi_subproc_of(subproc_id), false);
  return mi_stats_as_json(&s.stats, buf_size, buf);
}
