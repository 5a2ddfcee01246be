// Proves: what programs have compiled in is what the interface says at this level: numbers, names and defaults of all
// options, sizes and offsets of the structures, sizes of the types that are passed by value, and the constants.
#include "../check.h"
#include "entries.h"
#include <mimalloc-stats.h>
#include <strings.h>

// ---- options --------------------------------------------------------------------------------------------------------

typedef struct option_s {
  const char* name;
  mi_option_t option;
  int         number;
  long        initial;
} option_t;

#define OPTION(name, number, initial) {#name, mi_option_##name, number, initial}

// clang-format off
static const option_t options[] = {
#if MI_API_LEVEL < 3
    OPTION(show_errors, 0, 0),
    OPTION(show_stats, 1, 0),
    OPTION(verbose, 2, 0),
    OPTION(eager_commit, 3, 1),
    OPTION(arena_eager_commit, 4, 2),
    OPTION(purge_decommits, 5, 1),
    OPTION(allow_large_os_pages, 6, 0),
    OPTION(reserve_huge_os_pages, 7, 0),
    OPTION(reserve_huge_os_pages_at, 8, -1),
    OPTION(reserve_os_memory, 9, 0),
    OPTION(deprecated_segment_cache, 10, 0),
    OPTION(deprecated_page_reset, 11, 0),
    OPTION(abandoned_page_purge, 12, 0),
    OPTION(deprecated_segment_reset, 13, 0),
    OPTION(eager_commit_delay, 14, 1),
    OPTION(purge_delay, 15, 10),
    OPTION(use_numa_nodes, 16, 0),
    OPTION(disallow_os_alloc, 17, 0),
    OPTION(os_tag, 18, 100),
    OPTION(max_errors, 19, 32),
    OPTION(max_warnings, 20, 32),
    OPTION(max_segment_reclaim, 21, 10),
    OPTION(destroy_on_exit, 22, 0),
    OPTION(arena_reserve, 23, sizeof(void*) > 4 ? 1048576 : 131072),
    OPTION(arena_purge_mult, 24, 10),
    OPTION(purge_extend_delay, 25, 1),
    OPTION(abandoned_reclaim_on_free, 26, 0),
    OPTION(disallow_arena_alloc, 27, 0),
    OPTION(retry_on_oom, 28, 400),
    OPTION(visit_abandoned, 29, 0),
    OPTION(guarded_min, 30, 0),
    OPTION(guarded_max, 31, 1073741824),
    OPTION(guarded_precise, 32, 0),
    OPTION(guarded_sample_rate, 33, 0),
    OPTION(guarded_sample_seed, 34, 0),
    OPTION(target_segments_per_thread, 35, 0),
    OPTION(generic_collect, 36, 10000),
    OPTION(allow_thp, 37, 1),
#else
    OPTION(show_errors, 0, 0),
    OPTION(show_stats, 1, 0),
    OPTION(verbose, 2, 0),
    OPTION(deprecated_eager_commit, 3, 1),
    OPTION(arena_eager_commit, 4, 2),
    OPTION(purge_decommits, 5, 1),
    OPTION(allow_large_os_pages, 6, 0),
    OPTION(reserve_huge_os_pages, 7, 0),
    OPTION(reserve_huge_os_pages_at, 8, -1),
    OPTION(reserve_os_memory, 9, 0),
    OPTION(deprecated_segment_cache, 10, 0),
    OPTION(deprecated_page_reset, 11, 0),
    OPTION(deprecated_abandoned_page_purge, 12, 0),
    OPTION(deprecated_segment_reset, 13, 0),
    OPTION(deprecated_eager_commit_delay, 14, 1),
    OPTION(purge_delay, 15, 1000),
    OPTION(use_numa_nodes, 16, 0),
    OPTION(disallow_os_alloc, 17, 0),
    OPTION(os_tag, 18, 100),
    OPTION(max_errors, 19, 32),
    OPTION(max_warnings, 20, 32),
    OPTION(deprecated_max_segment_reclaim, 21, 10),
    OPTION(destroy_on_exit, 22, 0),
    OPTION(arena_reserve, 23, sizeof(void*) > 4 ? 1048576 : 131072),
    OPTION(arena_purge_mult, 24, 1),
    OPTION(deprecated_purge_extend_delay, 25, 1),
    OPTION(disallow_arena_alloc, 26, 0),
    OPTION(retry_on_oom, 27, 400),
    OPTION(visit_abandoned, 28, 0),
    OPTION(guarded_min, 29, 0),
    OPTION(guarded_max, 30, 1073741824),
    OPTION(guarded_precise, 31, 0),
    OPTION(guarded_sample_rate, 32, 0),
    OPTION(guarded_sample_seed, 33, 0),
    OPTION(generic_collect, 34, 10000),
    OPTION(page_reclaim_on_free, 35, 0),
    OPTION(page_full_retain, 36, 2),
    OPTION(page_max_candidates, 37, 4),
    OPTION(max_vabits, 38, 0),
    OPTION(pagemap_commit, 39, 0),
    OPTION(page_commit_on_demand, 40, 0),
    OPTION(page_max_reclaim, 41, -1),
    OPTION(page_cross_thread_max_reclaim, 42, 32),
    OPTION(allow_thp, 43, 1),
    OPTION(minimal_purge_size, 44, 0),
    OPTION(arena_max_object_size, 45, 2097152),
    OPTION(arena_is_numa_local, 46, 0),
#endif
};
// clang-format on

static void check_older_names(void) {
  CHECK_EQ(mi_option_large_os_pages, mi_option_allow_large_os_pages);
  CHECK_EQ(mi_option_eager_region_commit, mi_option_arena_eager_commit);
  CHECK_EQ(mi_option_reset_decommits, mi_option_purge_decommits);
  CHECK_EQ(mi_option_reset_delay, mi_option_purge_delay);
  CHECK_EQ(mi_option_limit_os_alloc, mi_option_disallow_os_alloc);
#if MI_API_LEVEL < 3
  CHECK_EQ(mi_option_abandoned_page_reset, mi_option_abandoned_page_purge);
#endif
}

typedef struct printed_s {
  size_t n_bytes;
  char   text[16 * 1024];
} printed_t;

static void record_output(const char* text, void* arg) {
  printed_t* printed = (printed_t*)arg;
  size_t     length = strlen(text);
  if (printed->n_bytes + length >= sizeof(printed->text)) return;
  memcpy(printed->text + printed->n_bytes, text, length + 1);
  printed->n_bytes += length;
}

// The library prints its table of names and values in the order of their numbers.
static void check_options(bool is_clean) {
  static printed_t printed;
  mi_options_print_out(&record_output, &printed);
  const char* at = printed.text;
  CHECK_EQ(COUNT_OF(options), (size_t)_mi_option_last);
  for (size_t i = 0; i < COUNT_OF(options); i++) {
    const option_t* o = &options[i];
    char            line[128];
    CHECK_FOR((int)o->option == o->number && o->number == (int)i, "%s is %d", o->name, (int)o->option);
    snprintf(line, sizeof(line), "option '%s': ", o->name);
    const char* found = strstr(at, line);
    CHECK_FOR(found != NULL, "%s is not printed, or not in order", o->name);
    if (found == NULL) continue;
    at = found + strlen(line);
    bool depends = (o->option == mi_option_show_errors); // on the build
    if (is_clean && !depends) {
      CHECK_FOR(strtol(at, NULL, 10) == o->initial, "%s: %ld, not %ld", o->name, strtol(at, NULL, 10), o->initial);
      CHECK_FOR(mi_option_get(o->option) == o->initial, "%s: %ld", o->name, mi_option_get(o->option));
    }
  }
  bool is_prefixed = strncmp(printed.text, "mimalloc: v", 11) == 0;
  CHECK(is_prefixed == (MI_API_LEVEL < 3));
}

// ---- structures -----------------------------------------------------------------------------------------------------

// x86-64 and other systems with 64-bit pointers; on others the fields, not their places, are the interface.
static void check_structures(void) {
  if (sizeof(void*) != 8) return;
  CHECK_EQ(sizeof(mi_heap_area_t), 56);
  CHECK_EQ(offsetof(mi_heap_area_t, blocks), 0);
  CHECK_EQ(offsetof(mi_heap_area_t, reserved), 8);
  CHECK_EQ(offsetof(mi_heap_area_t, committed), 16);
  CHECK_EQ(offsetof(mi_heap_area_t, used), 24);
  CHECK_EQ(offsetof(mi_heap_area_t, block_size), 32);
  CHECK_EQ(offsetof(mi_heap_area_t, full_block_size), 40);
#if MI_API_LEVEL < 3
  CHECK_EQ(offsetof(mi_heap_area_t, heap_tag), 48);
  CHECK_EQ(sizeof(((mi_heap_area_t*)0)->heap_tag), sizeof(int));
#else
  CHECK_EQ(offsetof(mi_heap_area_t, reserved1), 48);
#endif

  CHECK_EQ(sizeof(mi_stat_count_t), 24);
  CHECK_EQ(offsetof(mi_stat_count_t, total), 0);
  CHECK_EQ(offsetof(mi_stat_count_t, peak), 8);
  CHECK_EQ(offsetof(mi_stat_count_t, current), 16);
  CHECK_EQ(sizeof(mi_stat_counter_t), 8);

  CHECK_EQ(sizeof(mi_stats_t), MI_API_LEVEL < 3 ? 4168 : 4368);
  CHECK_EQ(offsetof(mi_stats_t, size), 0);
  CHECK_EQ(offsetof(mi_stats_t, version), 8);
  CHECK_EQ(offsetof(mi_stats_t, pages), 16);
  CHECK_EQ(offsetof(mi_stats_t, malloc_requested), 224);
  CHECK_EQ(offsetof(mi_stats_t, mmap_calls), 248);
  CHECK_EQ(offsetof(mi_stats_t, segments), 360);
  CHECK_EQ(offsetof(mi_stats_t, _stat_reserved), MI_API_LEVEL < 3 ? 488 : 544);
  CHECK_EQ(offsetof(mi_stats_t, malloc_bins), MI_API_LEVEL < 3 ? 616 : 672);
  CHECK_EQ(offsetof(mi_stats_t, page_bins), MI_API_LEVEL < 3 ? 2392 : 2448);
  CHECK_EQ(sizeof(((mi_stats_t*)0)->malloc_bins), 74 * sizeof(mi_stat_count_t));
}

// The fields in order, each with its place: a field that is missing or in the wrong place moves all that follow.
static void check_fields(void) {
  static const char* const names[] = {
      "pages",
      "reserved",
      "committed",
      "reset",
      "purged",
      "page_committed",
      "pages_abandoned",
      "threads",
      "malloc_normal",
      "malloc_huge",
      "malloc_requested",
      "mmap_calls",
      "commit_calls",
      "reset_calls",
      "purge_calls",
      "arena_count",
      "malloc_normal_count",
      "malloc_huge_count",
      "malloc_guarded_count",
      "arena_rollback_count",
      "arena_purges",
      "pages_extended",
      "pages_retire",
      "page_searches",
      "page_searches_count",
      "segments",
      "segments_abandoned",
      "segments_cache",
      "_segments_reserved",
#if MI_API_LEVEL >= 3
      "heaps",
      "theaps",
#endif
      "pages_reclaim_on_alloc",
      "pages_reclaim_on_free",
      "pages_reabandon_full",
      "pages_unabandon_busy_wait",
#if MI_API_LEVEL >= 3
      "heaps_delete_wait",
#endif
  };
  size_t n = 0, offset = offsetof(mi_stats_t, pages);
#define CHECK_FIELD(name) \
  CHECK_FOR(n < COUNT_OF(names) && strcmp(names[n], #name) == 0, "field %zu is %s", n, #name); \
  CHECK_EQ(offsetof(mi_stats_t, name), offset); \
  offset += sizeof(((mi_stats_t*)0)->name); \
  n++;
#define MI_STAT_COUNT(name)   CHECK_FIELD(name)
#define MI_STAT_COUNTER(name) CHECK_FIELD(name)
  MI_STAT_FIELDS()
#undef MI_STAT_COUNT
#undef MI_STAT_COUNTER
  CHECK_EQ(n, COUNT_OF(names));
  CHECK_EQ(offsetof(mi_stats_t, _stat_reserved), offset);
}

// ---- types and constants --------------------------------------------------------------------------------------------

static void check_types(void) {
  CHECK_EQ(sizeof(mi_option_t), sizeof(int));
  CHECK_EQ(sizeof(mi_subproc_id_t), sizeof(void*));
#if MI_API_LEVEL < 3
  CHECK_EQ(sizeof(mi_arena_id_t), sizeof(int));
  mi_theap_t* theap = (mi_heap_t*)NULL; // the same type
  CHECK(theap == NULL);
#else
  CHECK_EQ(sizeof(mi_arena_id_t), sizeof(void*));
  CHECK_EQ(sizeof(mi_chunkbin_t), sizeof(int));
  CHECK_EQ(MI_CBIN_SMALL, 0);
  CHECK_EQ(MI_CBIN_OTHER, 1);
  CHECK_EQ(MI_CBIN_MEDIUM, 2);
  CHECK_EQ(MI_CBIN_LARGE, 3);
  CHECK_EQ(MI_CBIN_HUGE, 4);
  CHECK_EQ(MI_CBIN_NONE, 5);
  CHECK_EQ(MI_CBIN_COUNT, 6);
  CHECK_EQ(sizeof(((mi_stats_t*)0)->chunk_bins), 6 * sizeof(mi_stat_count_t));
#endif
}

static void check_constants(void) {
  CHECK_EQ(MI_MALLOC_VERSION, MI_API_LEVEL < 3 ? 20401 : 30403);
  CHECK_EQ(mi_version(), MI_MALLOC_VERSION);
  CHECK_EQ(MI_STAT_VERSION, MI_API_LEVEL < 3 ? 4 : 5);
  CHECK_EQ(MI_BIN_HUGE, 73);
  CHECK_EQ(MI_SMALL_WSIZE_MAX, 128);
  CHECK_EQ(MI_SMALL_SIZE_MAX, 128 * sizeof(void*));
#if !defined(MIMALLOC_H) || !defined(MIMALLOC_STATS_H)
  CHECK(!"the names of the include guards");
#endif
}

extern char** environ;

int main(int argc, char** argv) {
  test_seed(argc, argv);
  bool is_clean = true;
  for (char** e = environ; *e != NULL; e++) is_clean = is_clean && strncasecmp(*e, "mimalloc_", 9) != 0;
  check_constants();
  check_types();
  check_structures();
  check_fields();
  check_older_names();
  check_options(is_clean);
  return check_result();
}
