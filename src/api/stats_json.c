// Statistics as JSON.  Layer: api.
//
// The text is written twice where its length is not known, first without a buffer.
#include <string.h>

#include "../support/format.h"
#include "../support/stat.h"
#include "alloc.h"
#include "stats.h"
#include "subproc.h"

// Writes into buf while there is room, and counts everything.
typedef struct json_s {
  char*  buf;
  size_t size;   // of buf
  size_t length; // of the whole text
} json_t;

mi_printf(2, 3) static void json_add(json_t* json, const char* fmt, ...) {
  char    text[200];
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

static void json_number(json_t* json, const char* name, int64_t n) {
  json_add(json, "  \"%s\": %lld,\n", name, (long long)n);
}

// The members of an object with a number.
static void json_count(json_t* json, const mi_stat_count_t* n) {
  json_add(json, "{ \"total\": %lld, \"peak\": %lld, \"current\": %lld", (long long)n->total, (long long)n->peak,
           (long long)n->current);
}

static void json_bins(json_t* json, const char* name, const mi_stat_count_t* bins, bool is_last) {
  json_add(json, "  \"%s\": [\n", name);
  for (size_t bin = 0; bin <= MI_BIN_HUGE; bin++) {
    size_t page_size = (bin == MI_BIN_HUGE ? 0 : _mi_size_class_info[bin].n_slices * MI_SLICE_SIZE); // 0: pages differ
    json_add(json, "    ");
    json_count(json, &bins[bin]);
    json_add(json, ", \"block_size\": %zu, \"page_size\": %zu }%s\n", mi_stats_get_bin_size(bin), page_size,
             bin < MI_BIN_HUGE ? "," : "");
  }
  json_add(json, "  ]%s\n", is_last ? "" : ",");
}

#if MI_API_LEVEL >= 3

// Chunks by what is in them, of which this allocator has one kind.
static void json_chunks(json_t* json, const mi_stats_t* stats) {
  static const char* const kinds[] = {"S", "X", "M", "L", "H", " "};
  json_add(json, "  \"chunk_bins\": [\n");
  for (size_t bin = 0; bin < MI_CBIN_COUNT; bin++) {
    json_add(json, "    ");
    json_count(json, &stats->chunk_bins[bin]);
    json_add(json, ", \"bin\": \"%s\" }%s\n", kinds[bin], bin + 1 < MI_CBIN_COUNT ? "," : "");
  }
  json_add(json, "  ]\n");
}

#endif

static void json_process(json_t* json, const mi_process_info_t* process, const mi_stat_count_t* commit) {
  json_add(json,
           "  \"process\": {\n    \"elapsed_msecs\": %lld,\n    \"user_msecs\": %lld,\n    \"system_msecs\": %lld,\n",
           (long long)process->elapsed_ms, (long long)process->user_ms, (long long)process->system_ms);
  json_add(json, "    \"page_faults\": %zu,\n    \"page_faults_minor\": %zu,\n", process->major_faults,
           process->minor_faults);
  json_add(json, "    \"rss_current\": %zu,\n    \"rss_peak\": %zu,\n", process->rss_current, process->rss_peak);
  json_add(json, "    \"commit_current\": %lld,\n    \"commit_peak\": %lld\n  },\n", (long long)commit->current,
           (long long)commit->peak);
}

// `process` and `commit` are of the process, whatever the numbers are of.
static void json_write(json_t* json, const mi_stats_t* stats, const mi_process_info_t* process,
                       const mi_stat_count_t* commit) {
  json->length = 0;
  json_add(json, "{\n");
  json_number(json, "stat_version", MI_STAT_VERSION);
  json_number(json, "mimalloc_version", MI_MALLOC_VERSION);
  json_process(json, process, commit);
#define MI_STAT_COUNT(name) \
  json_add(json, "  \"%s\": ", #name); \
  json_count(json, &stats->name); \
  json_add(json, " },\n");
#define MI_STAT_COUNTER(name) json_number(json, #name, stats->name.total);
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  json_bins(json, "malloc_bins", stats->malloc_bins, false);
  json_bins(json, "page_bins", stats->page_bins, MI_API_LEVEL < 3);
#if MI_API_LEVEL >= 3
  json_chunks(json, stats);
#endif
  json_add(json, "}\n");
}

char* mi_stats_as_json(mi_stats_t* stats, size_t buf_size, char* buf) mi_attr_noexcept {
  json_t            json = {buf, buf == NULL ? 0 : buf_size, 0};
  mi_process_info_t process;
  if (!_mi_stats_is_known(stats)) return NULL;
  _mi_prim_process_info(&process);
  mi_stat_count_t commit = _mi_stat_read(&_mi_stat_live.committed);
  if (json.size == 0) { // once to see how long it is
    json_write(&json, stats, &process, &commit);
    json.size = json.length + 1;
    json.buf = (char*)mi_malloc(json.size);
    if (json.buf == NULL) return NULL;
  }
  json.buf[0] = 0;
  json_write(&json, stats, &process, &commit);
  return json.buf;
}

static char* json_get(mi_heap_t* heap, const mi_subproc_t* subproc, size_t buf_size, char* buf) {
  mi_snapshot_t s;
  _mi_stats_take(&s, heap, subproc, false);
  return mi_stats_as_json(&s.stats, buf_size, buf);
}

char* mi_stats_get_json(size_t buf_size, char* buf) mi_attr_noexcept {
  return json_get(NULL, NULL, buf_size, buf);
}

char* mi_heap_stats_get_json(mi_heap_t* heap, size_t buf_size, char* buf) mi_attr_noexcept {
  return json_get(_mi_alloc_heap(heap), NULL, buf_size, buf);
}

char* mi_subproc_stats_get_json(mi_subproc_id_t subproc_id, size_t buf_size, char* buf) mi_attr_noexcept {
  return json_get(NULL, _mi_subproc_of_id(subproc_id), buf_size, buf);
}
