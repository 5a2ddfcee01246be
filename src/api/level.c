// The functions that differ between the levels of the interface, under the names by which programs of this level link to
// them.  Layer: api.
//
// The two levels have different types for the ids of arenas, and different numbers for some options.  A program that was
// compiled for the other one must not get as far as calling them; mimalloc.h has the other half of this (mi_decl_level).
#include "names.h"

#if MI_API_LEVEL < 3
  #define LEVEL_NAME(fun) fun##_level2
#else
  #define LEVEL_NAME(fun) fun##_level3
#endif

#define LEVEL(result, fun, parameters, ...) \
  mi_decl_export result LEVEL_NAME(fun) \
  parameters            MI_NAMES_FORWARD(fun, __VA_ARGS__)

MI_NAMES_BEGIN

// clang-format off

LEVEL(mi_heap_t*, mi_heap_new_ex, (int tag, bool allow_destroy, mi_arena_id_t id), tag, allow_destroy, id)
LEVEL(mi_heap_t*, mi_heap_new_in_arena, (mi_arena_id_t id), id)
LEVEL(int, mi_reserve_os_memory_ex, (size_t size, bool commit, bool allow_large, bool exclusive, mi_arena_id_t* id),
      size, commit, allow_large, exclusive, id)
LEVEL(bool, mi_manage_os_memory_ex, (void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int node,
      bool exclusive, mi_arena_id_t* id), start, size, is_committed, is_pinned, is_zero, node, exclusive, id)
LEVEL(bool, mi_manage_memory, (void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int node,
      bool exclusive, mi_commit_fun_t* fun, void* arg, mi_arena_id_t* id),
      start, size, is_committed, is_pinned, is_zero, node, exclusive, fun, arg, id)
LEVEL(int, mi_reserve_huge_os_pages_at_ex, (size_t pages, int node, size_t msecs, bool exclusive, mi_arena_id_t* id),
      pages, node, msecs, exclusive, id)
LEVEL(void*, mi_arena_area, (mi_arena_id_t id, size_t* size), id, size)
LEVEL(bool, mi_arena_contains, (mi_arena_id_t id, const void* p), id, p)

LEVEL(bool, mi_option_is_enabled, (mi_option_t option), option)
LEVEL(long, mi_option_get, (mi_option_t option), option)
LEVEL(long, mi_option_get_clamp, (mi_option_t option, long min, long max), option, min, max)
LEVEL(size_t, mi_option_get_size, (mi_option_t option), option)
LEVEL(void, mi_option_set, (mi_option_t option, long value), option, value)
LEVEL(void, mi_option_set_default, (mi_option_t option, long value), option, value)
LEVEL(void, mi_option_enable, (mi_option_t option), option)
LEVEL(void, mi_option_disable, (mi_option_t option), option)
LEVEL(void, mi_option_set_enabled, (mi_option_t option, bool enable), option, enable)
LEVEL(void, mi_option_set_enabled_default, (mi_option_t option, bool enable), option, enable)

// clang-format on

MI_NAMES_END
