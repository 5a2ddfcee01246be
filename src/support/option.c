// The table of options, and reading them from the environment.  Layer: support.  option.h has the invariants.
//
// The environment is walked directly: getenv may lock or be replaced, and is not there yet when the first malloc of a
// process may come.  While it is empty an option stays UNREAD and is looked up again.  Once settled, malloc and free read it
// no more: it is the program's, which may free it, or replace it in another thread.
#include "option.h"

#include "../prim/prim.h"

// Defaults that a build may change.
#if !defined(MI_DEFAULT_VERBOSE)
  #define MI_DEFAULT_VERBOSE 0
#endif
#if !defined(MI_DEFAULT_EAGER_COMMIT)
  #define MI_DEFAULT_EAGER_COMMIT 1
#endif
#if !defined(MI_DEFAULT_ARENA_EAGER_COMMIT)
  #define MI_DEFAULT_ARENA_EAGER_COMMIT 2
#endif
#if !defined(MI_DEFAULT_ARENA_RESERVE) // KiB; a 32-bit process has no room for 1 GiB in one piece
  #define MI_DEFAULT_ARENA_RESERVE (sizeof(void*) > 4 ? 1024L * 1024 : 128L * 1024)
#endif
#if !defined(MI_DEFAULT_DISALLOW_ARENA_ALLOC)
  #define MI_DEFAULT_DISALLOW_ARENA_ALLOC 0
#endif
#if !defined(MI_DEFAULT_ALLOW_LARGE_OS_PAGES)
  #define MI_DEFAULT_ALLOW_LARGE_OS_PAGES 0
#endif
#if !defined(MI_DEFAULT_RESERVE_HUGE_OS_PAGES)
  #define MI_DEFAULT_RESERVE_HUGE_OS_PAGES 0
#endif
#if !defined(MI_DEFAULT_RESERVE_OS_MEMORY)
  #define MI_DEFAULT_RESERVE_OS_MEMORY 0
#endif
#if !defined(MI_DEFAULT_GUARDED_SAMPLE_RATE)
  #define MI_DEFAULT_GUARDED_SAMPLE_RATE (MI_GUARDED && MI_DEBUG == 0 ? 4000 : 0)
#endif
#if !defined(MI_DEFAULT_ALLOW_THP)
  #if defined(MI_NO_THP)
    #define MI_DEFAULT_ALLOW_THP 0
  #else
    #define MI_DEFAULT_ALLOW_THP 1
  #endif
#endif
#if !defined(MI_DEFAULT_ARENA_MAX_OBJECT_SIZE) // KiB
  #define MI_DEFAULT_ARENA_MAX_OBJECT_SIZE (2L * 1024 * 1024)
#endif
#if !defined(MI_DEFAULT_PAGEMAP_COMMIT)
  #define MI_DEFAULT_PAGEMAP_COMMIT 0
#endif
#if !defined(MI_DEFAULT_PAGE_MAX_RECLAIM)
  #define MI_DEFAULT_PAGE_MAX_RECLAIM -1
#endif
#if !defined(MI_DEFAULT_PAGE_CROSS_THREAD_MAX_RECLAIM)
  #define MI_DEFAULT_PAGE_CROSS_THREAD_MAX_RECLAIM 32
#endif
#if defined(MI_SHOW_ERRORS)
  #define OPTION_SHOW_ERRORS 1
#else
  #define OPTION_SHOW_ERRORS (MI_DEBUG > 0)
#endif
#if defined(MI_VISIT_ABANDONED)
  #define OPTION_VISIT_ABANDONED 1
#else
  #define OPTION_VISIT_ABANDONED 0
#endif

// The table in the order of mi_option_t.  X is for rows of both levels of the interface, X2 and X3 for those of one.
// An option with NO_EFFECT is read by nothing: scripts/check-options.py holds that, and the same words in mimalloc.h,
// against the sources. clang-format off
#define OPTION_TABLE(X, X2, X3) \
  X("show_errors", OPTION_SHOW_ERRORS, SWITCH, EFFECT, NULL) \
  X("show_stats", 0, SWITCH, EFFECT, NULL) \
  X("verbose", MI_DEFAULT_VERBOSE, COUNT, EFFECT, NULL) \
  X2("eager_commit", MI_DEFAULT_EAGER_COMMIT, SWITCH, NO_EFFECT, NULL) \
  X3("deprecated_eager_commit", 1, SWITCH, NO_EFFECT, NULL) \
  X("arena_eager_commit", MI_DEFAULT_ARENA_EAGER_COMMIT, STEP, EFFECT, "eager_region_commit") \
  X("purge_decommits", 1, SWITCH, EFFECT, "reset_decommits") \
  X("allow_large_os_pages", MI_DEFAULT_ALLOW_LARGE_OS_PAGES, SWITCH, EFFECT, "large_os_pages") \
  X("reserve_huge_os_pages", MI_DEFAULT_RESERVE_HUGE_OS_PAGES, COUNT, EFFECT, NULL) \
  X("reserve_huge_os_pages_at", -1, OPTIONAL, EFFECT, NULL) \
  X("reserve_os_memory", MI_DEFAULT_RESERVE_OS_MEMORY, KIB, EFFECT, NULL) \
  X("deprecated_segment_cache", 0, ANY, NO_EFFECT, NULL) \
  X("deprecated_page_reset", 0, SWITCH, NO_EFFECT, NULL) \
  X2("abandoned_page_purge", 0, SWITCH, NO_EFFECT, "abandoned_page_reset") \
  X3("deprecated_abandoned_page_purge", 0, SWITCH, NO_EFFECT, NULL) \
  X("deprecated_segment_reset", 0, SWITCH, NO_EFFECT, NULL) \
  X2("eager_commit_delay", 1, ANY, NO_EFFECT, NULL) \
  X3("deprecated_eager_commit_delay", 1, ANY, NO_EFFECT, NULL) \
  X("purge_delay", MI_OPTION_LEVEL(10, 1000), OPTIONAL, EFFECT, "reset_delay") \
  X("use_numa_nodes", 0, COUNT, EFFECT, NULL) \
  X("disallow_os_alloc", 0, SWITCH, EFFECT, "limit_os_alloc") \
  X("os_tag", 100, ANY, NO_EFFECT, NULL) \
  X("max_errors", 32, ANY, EFFECT, NULL) \
  X("max_warnings", 32, ANY, EFFECT, NULL) \
  X2("max_segment_reclaim", 10, ANY, NO_EFFECT, NULL) \
  X3("deprecated_max_segment_reclaim", 10, ANY, NO_EFFECT, NULL) \
  X("destroy_on_exit", 0, COUNT, NO_EFFECT, NULL) \
  X("arena_reserve", MI_DEFAULT_ARENA_RESERVE, KIB, EFFECT, NULL) \
  X("arena_purge_mult", MI_OPTION_LEVEL(10, 1), COUNT, EFFECT, NULL) \
  X2("purge_extend_delay", 1, ANY, NO_EFFECT, "decommit_extend_delay") \
  X3("deprecated_purge_extend_delay", 1, ANY, NO_EFFECT, "decommit_extend_delay") \
  X2("abandoned_reclaim_on_free", 0, SWITCH, NO_EFFECT, NULL) \
  X("disallow_arena_alloc", MI_DEFAULT_DISALLOW_ARENA_ALLOC, SWITCH, EFFECT, NULL) \
  X("retry_on_oom", 400, ANY, NO_EFFECT, NULL) \
  X("visit_abandoned", OPTION_VISIT_ABANDONED, SWITCH, EFFECT, NULL) \
  X("guarded_min", 0, BYTES, EFFECT, NULL) \
  X("guarded_max", 1024L * 1024 * 1024, BYTES, EFFECT, NULL) \
  X("guarded_precise", 0, SWITCH, EFFECT, NULL) \
  X("guarded_sample_rate", MI_DEFAULT_GUARDED_SAMPLE_RATE, COUNT, EFFECT, NULL) \
  X("guarded_sample_seed", 0, ANY, EFFECT, NULL) \
  X2("target_segments_per_thread", 0, ANY, NO_EFFECT, NULL) \
  X("generic_collect", 10000, ANY, NO_EFFECT, NULL) \
  X3("page_reclaim_on_free", 0, ANY, NO_EFFECT, "abandoned_reclaim_on_free") \
  X3("page_full_retain", 2, ANY, NO_EFFECT, NULL) \
  X3("page_max_candidates", 4, ANY, NO_EFFECT, NULL) \
  X3("max_vabits", 0, ANY, NO_EFFECT, NULL) \
  X3("pagemap_commit", MI_DEFAULT_PAGEMAP_COMMIT, SWITCH, NO_EFFECT, NULL) \
  X3("page_commit_on_demand", 0, ANY, NO_EFFECT, NULL) \
  X3("page_max_reclaim", MI_DEFAULT_PAGE_MAX_RECLAIM, ANY, NO_EFFECT, NULL) \
  X3("page_cross_thread_max_reclaim", MI_DEFAULT_PAGE_CROSS_THREAD_MAX_RECLAIM, ANY, NO_EFFECT, NULL) \
  X("allow_thp", MI_DEFAULT_ALLOW_THP, STEP, EFFECT, NULL) \
  X3("minimal_purge_size", 0, KIB, NO_EFFECT, NULL) \
  X3("arena_max_object_size", MI_DEFAULT_ARENA_MAX_OBJECT_SIZE, KIB, NO_EFFECT, NULL) \
  X3("arena_is_numa_local", 0, SWITCH, NO_EFFECT, NULL) \
  /* our own */ \
  X("background_thread", !MI_TRACK, SWITCH, EFFECT, NULL) \
  X("show_leaks", 0, SWITCH, EFFECT, NULL) \
  X("guarded_before", -1, PERCENT, EFFECT, NULL) \
  X("debug_stacks", 0, SWITCH, EFFECT, NULL) \
  X("keep_deepbind", 0, SWITCH, EFFECT, NULL) \
  X("memory_tagging", MI_TAGS, SWITCH, EFFECT, NULL) \
  X("publish", 0, STEP, EFFECT, NULL) \
  X("limit", 0, LIMIT, EFFECT, NULL) \
  X("limit_soft", 0, LIMIT, EFFECT, NULL) \
  X("retain", 0, LIMIT, EFFECT, NULL) \
  X("profile_rate", 512L * 1024, RATE, EFFECT, NULL) \
  X("profile_signal", 0, COUNT, EFFECT, NULL) \
  X("profile_leaks", 0, COUNT, EFFECT, NULL)
// clang-format on

#define OPTION_SKIP(name, initial, kind, effect, legacy)
#if MI_API_LEVEL < 3
  #define OPTION_ROWS(X) OPTION_TABLE(X, X, OPTION_SKIP)
#else
  #define OPTION_ROWS(X) OPTION_TABLE(X, OPTION_SKIP, X)
#endif

#define OPTION_EFFECT    true
#define OPTION_NO_EFFECT false

#define OPTION_AS_DESC(name, initial, kind, effect, legacy) {name, MI_VALUE_##kind, OPTION_##effect, legacy},
#define OPTION_AS_CELL(name, initial, kind, effect, legacy) \
  {mi_atomic_init(MI_OPTION_UNREAD), mi_atomic_init(false), mi_atomic_init(initial), mi_atomic_init(0)},
const mi_option_desc_t _mi_option_descs[] = {OPTION_ROWS(OPTION_AS_DESC)};
mi_option_cell_t       _mi_option_cells[] = {OPTION_ROWS(OPTION_AS_CELL)};

mi_static_assert(sizeof(_mi_option_cells) == MI_OPTION_COUNT * sizeof(mi_option_cell_t), "a row for each option");

// ---- the environment ------------------------------------------------------------------------------------------------

mi_atomic(bool)        _mi_option_has_faults;
static mi_atomic(bool) option_is_settled; // an empty environment is no longer taken for one that is not there yet
static mi_atomic(bool) option_is_absent;  // the environment was looked through: nothing in it is ours

const char* _mi_option_skip(const char* entry, const char* prefix) {
  if (entry == NULL || prefix == NULL) return NULL;
  for (; *prefix != 0; prefix++, entry++) {
    if (_mi_value_upper(*entry) != _mi_value_upper(*prefix)) return NULL;
  }
  return entry;
}

const char* _mi_option_text(const char* name) {
  const char* entry;
  if (mi_load_relaxed(&option_is_absent) || _mi_prim_is_privileged()) return NULL;
  for (size_t i = 0; name != NULL && (entry = _mi_prim_environment_entry(i)) != NULL; i++) {
    const char* value = _mi_option_skip(_mi_option_skip(entry, "mimalloc_"), name);
    if (value != NULL && *value == '=') return value + 1;
  }
  return NULL;
}

const char* _mi_option_find(mi_option_t option, const char** name) {
  *name = _mi_option_descs[option].name;
  const char* text = _mi_option_text(*name);
  if (text != NULL) return text;
  *name = _mi_option_descs[option].legacy;
  return _mi_option_text(*name);
}

static void option_look_up(mi_option_t option) {
  mi_option_cell_t*       cell = &_mi_option_cells[option];
  const mi_option_desc_t* desc = &_mi_option_descs[option];
  const char*             name = desc->name;
  const char*             text = _mi_option_find(option, &name);
  long                    value = 0;
  bool                    is_found = (text != NULL && _mi_value_parse(desc->kind, text, &value) == NULL);
  int                     state = MI_OPTION_UNREAD;
  if (is_found) mi_store_relaxed(&cell->base, value);
  if (text != NULL && (!is_found || name != desc->name)) {
    mi_store_release(&cell->is_faulty, true);
    mi_store_release(&_mi_option_has_faults, true);
  }
  mi_cas_strong(&cell->state, &state, is_found ? MI_OPTION_FOUND : MI_OPTION_DEFAULTED, acq_rel, acquire); // OP2, OP3
}

long _mi_option_read(mi_option_t option) {
  mi_option_cell_t* cell = &_mi_option_cells[option];
  bool              has_environment = (mi_load_relaxed(&option_is_settled) || _mi_prim_environment_entry(0) != NULL);
  if (has_environment && mi_load_acquire(&cell->state) == MI_OPTION_UNREAD) option_look_up(option);
  return mi_load_acquire(&cell->state) == MI_OPTION_CHOSEN ? mi_load_relaxed(&cell->chosen)
                                                           : mi_load_relaxed(&cell->base);
}

// Most processes set no option, and should not pay a page fault for the table.
bool _mi_option_settle(void) {
  const char* entry;
  bool        is_absent = true;
  for (size_t i = 0; is_absent && (entry = _mi_prim_environment_entry(i)) != NULL; i++) {
    is_absent = (_mi_option_skip(entry, "mimalloc_") == NULL);
  }
  is_absent = (is_absent || _mi_prim_is_privileged());
  mi_store_relaxed(&option_is_settled, true);
  if (is_absent) mi_store_relaxed(&option_is_absent, true);
  else _mi_prim_prepare_stderr();
  for (int i = 0; !is_absent && i < (int)MI_OPTION_COUNT; i++) _mi_option_read((mi_option_t)i);
  return !is_absent;
}

bool _mi_option_is_absent(void) {
  return mi_load_relaxed(&option_is_absent);
}
