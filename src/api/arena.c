// Arenas for the program, and a map of what is in use of them.  Layer: api.
#include "arena.h"

#include <errno.h>

#include "../arena/arena.h"
#include "../arena/mapped.h"
#include "../heap/thread.h"
#include "../support/format.h"
#include "../prim/tag.h"
#include "../support/message.h"

// ---- ids ------------------------------------------------------------------------------------------------------------

// At both levels an id is a number, and all of it is in the lower half of what the caller gives: so a caller that knows ids
// as pointers is understood where they are numbers, and the other way round.
#define ARENA_NO_ID ((mi_arena_id_t)(intptr_t)(MI_API_LEVEL >= 3 ? 0 : -1))

static size_t arena_index(mi_arena_id_t id) {
  return (uint32_t)(uintptr_t)id;
}

mi_cold size_t _mi_arena_of_id(mi_arena_id_t id) {
  size_t index = arena_index(id);
  return _mi_arena_exists(index) ? index : 0;
}

static void arena_store_id(mi_arena_id_t* id, size_t index) {
  if (id != NULL) *id = (index == 0 ? ARENA_NO_ID : (mi_arena_id_t)index);
}

// Is there region 0?  A program may reserve before it allocates.
static bool arena_is_ready(void) {
  return _mi_thread_theap() != NULL || _mi_region_count() > 0;
}

// ---- reserving ------------------------------------------------------------------------------------------------------

mi_cold int mi_reserve_os_memory_ex(size_t size, bool commit, bool allow_large, bool exclusive,
                                    mi_arena_id_t* arena_id) mi_attr_noexcept {
  size_t arena = 0;
  arena_store_id(arena_id, 0);
  int err = arena_is_ready() ? _mi_arena_reserve(size, commit, allow_large, exclusive, &arena) : ENOMEM;
  if (err == 0) arena_store_id(arena_id, arena);
  return err;
}

mi_cold int mi_reserve_os_memory(size_t size, bool commit, bool allow_large) mi_attr_noexcept {
  return mi_reserve_os_memory_ex(size, commit, allow_large, false, NULL);
}

mi_cold bool mi_manage_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero, int numa_node,
                              bool exclusive, mi_commit_fun_t* commit_fun, void* commit_fun_arg,
                              mi_arena_id_t* arena_id) mi_attr_noexcept {
  mi_arena_spec_t spec = {is_committed, is_pinned, is_zero, exclusive, numa_node, commit_fun, commit_fun_arg};
  size_t          arena = arena_is_ready() ? _mi_arena_manage(start, size, &spec) : 0;
  arena_store_id(arena_id, arena);
  return arena != 0;
}

mi_cold bool mi_manage_os_memory_ex(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                    int numa_node, bool exclusive, mi_arena_id_t* arena_id) mi_attr_noexcept {
  return mi_manage_memory(start, size, is_committed, is_pinned, is_zero, numa_node, exclusive, NULL, NULL, arena_id);
}

mi_cold bool mi_manage_os_memory(void* start, size_t size, bool is_committed, bool is_pinned, bool is_zero,
                                 int numa_node) mi_attr_noexcept {
  return mi_manage_memory(start, size, is_committed, is_pinned, is_zero, numa_node, false, NULL, NULL, NULL);
}

mi_cold int mi_reserve_huge_os_pages_at_ex(size_t pages, int numa_node, size_t timeout_msecs, bool exclusive,
                                           mi_arena_id_t* arena_id) mi_attr_noexcept {
  size_t arena = 0, got;
  arena_store_id(arena_id, 0);
  if (!arena_is_ready()) return ENOMEM;
  int err = _mi_arena_reserve_huge(pages, numa_node, timeout_msecs, exclusive, &arena, &got);
  if (arena != 0) arena_store_id(arena_id, arena);
  return err;
}

mi_cold int mi_reserve_huge_os_pages_at(size_t pages, int numa_node, size_t timeout_msecs) mi_attr_noexcept {
  return mi_reserve_huge_os_pages_at_ex(pages, numa_node, timeout_msecs, false, NULL);
}

static int arena_interleave(size_t pages, size_t numa_nodes, size_t timeout_msecs, size_t* got) {
  *got = 0;
  return arena_is_ready() ? _mi_arena_reserve_huge_interleave(pages, numa_nodes, timeout_msecs, got) : ENOMEM;
}

mi_cold int mi_reserve_huge_os_pages_interleave(size_t pages, size_t numa_nodes,
                                                size_t timeout_msecs) mi_attr_noexcept {
  size_t got;
  return arena_interleave(pages, numa_nodes, timeout_msecs, &got);
}

mi_cold int mi_reserve_huge_os_pages(size_t pages, double max_secs, size_t* pages_reserved) mi_attr_noexcept {
  _mi_message_warning("mi_reserve_huge_os_pages is deprecated: use mi_reserve_huge_os_pages_interleave\n");
  size_t got;
  size_t msecs = (max_secs > 0 && max_secs < 1e9 ? (size_t)(max_secs * 1000) : 0);
  int    err = arena_interleave(pages, 0, msecs, &got);
  if (pages_reserved != NULL) *pages_reserved = got;
  return err;
}

// ---- asking ---------------------------------------------------------------------------------------------------------

mi_cold void* mi_arena_area(mi_arena_id_t arena_id, size_t* size) {
  mi_arena_info_t info;
  bool            is_there = _mi_arena_get_info(arena_index(arena_id), &info) && info.is_arena;
  if (size != NULL) *size = (is_there ? info.size : 0);
  return is_there ? (void*)info.start : NULL;
}

mi_cold bool mi_arena_contains(mi_arena_id_t arena_id, const void* p) {
  size_t size;
  void*  start = mi_arena_area(arena_id, &size);
  return (uintptr_t)_mi_prim_tag_strip(p) - (uintptr_t)start < size;
}

size_t mi_arena_min_alignment(void) {
  return MI_ARENA_ALIGN;
}

size_t mi_arena_min_size(void) {
  return MI_ARENA_SIZE_MIN;
}

// ---- the map --------------------------------------------------------------------------------------------------------
// What is printed was copied before: whoever takes the output may allocate.

#define ARENA_ROW 64 // chunks in a line

typedef struct arena_sum_s {
  size_t n_used, n_backed, n_clean; // slices
} arena_sum_t;

typedef struct arena_mib_s {
  char text[24];
} arena_mib_t;

// Slices as MiB with one digit behind the point.
static arena_mib_t arena_mib(size_t n_slices) {
  const size_t per_mib = MI_MiB / MI_SLICE_SIZE;
  arena_mib_t  mib;
  _mi_format(mib.text, sizeof(mib.text), "%zu.%zu MiB", n_slices / per_mib, n_slices % per_mib * 10 / per_mib);
  return mib;
}

// A capital: nothing of it is free.
static char arena_char(const mi_arena_chunk_t* chunk) {
  static const char kinds[2][MI_CHUNK_KINDS + 1] = {".SMXID", ".smxid"};
  if (chunk->kind == MI_CHUNK_NONE) return chunk->n_backed > 0 ? 'o' : '.';
  return kinds[chunk->n_free > 0][chunk->kind];
}

static void arena_print_head(size_t index, const mi_arena_info_t* info) {
  char node[32] = "";
  if (info->numa_node >= 0) _mi_format(node, sizeof(node), ", numa node %d", info->numa_node);
  _mi_message_raw(NULL, NULL, "%s %zu: %p, %zu MiB, committed %s%s%s%s%s%s\n", info->is_arena ? "arena" : "region",
                  index, (void*)info->start, info->size / MI_MiB, arena_mib(info->committed / MI_SLICE_SIZE).text, node,
                  info->is_given ? ", of the program" : "", info->is_exclusive ? ", exclusive" : "",
                  info->is_large ? ", large OS pages" : "", info->is_pinned ? ", pinned" : "");
}

static void arena_print_chunks(size_t index, arena_sum_t* sum) {
  mi_arena_chunk_t chunks[ARENA_ROW];
  char             line[ARENA_ROW + 1];
  size_t           n;
  for (size_t first = 0; (n = _mi_arena_get_chunks(index, first, chunks, ARENA_ROW)) > 0; first += n) {
    for (size_t i = 0; i < n; i++) {
      line[i] = arena_char(&chunks[i]);
      sum->n_used += MI_CHUNK_SLICES - chunks[i].n_free;
      sum->n_backed += chunks[i].n_backed;
      sum->n_clean += chunks[i].n_free - chunks[i].n_backed;
    }
    line[n] = 0;
    _mi_message_raw(NULL, NULL, "%8zu MiB  %s\n", first * (MI_CHUNK_SIZE / MI_MiB), line);
  }
}

static void arena_print_sum(const char* what, const arena_sum_t* sum) {
  _mi_message_raw(NULL, NULL, "%sused %s, free and backed %s, free %s\n", what, arena_mib(sum->n_used).text,
                  arena_mib(sum->n_backed).text, arena_mib(sum->n_clean).text);
}

static void arena_print_mapped(arena_sum_t* total) {
  mi_mapped_sum_t mapped;
  _mi_mapped_get_sum(&mapped);
  _mi_message_raw(NULL, NULL, "mapped: %zu blocks, %s, and %s that the system did not take back\n", mapped.n_blocks,
                  arena_mib(mapped.size / MI_SLICE_SIZE).text, arena_mib(mapped.stuck_size / MI_SLICE_SIZE).text);
  total->n_used += mapped.size / MI_SLICE_SIZE;
}

mi_cold void mi_arenas_print(void) mi_attr_noexcept {
  arena_sum_t total = {0, 0, 0};
  for (size_t i = 0; i < _mi_region_count(); i++) {
    mi_arena_info_t info;
    arena_sum_t     sum = {0, 0, 0};
    if (!_mi_arena_get_info(i, &info)) continue;
    arena_print_head(i, &info);
    arena_print_chunks(i, &sum);
    sum.n_clean += (info.size - info.n_chunks * MI_CHUNK_SIZE) / MI_SLICE_SIZE;
    arena_print_sum("         ", &sum);
    total.n_used += sum.n_used;
    total.n_backed += sum.n_backed;
    total.n_clean += sum.n_clean;
  }
  arena_print_mapped(&total);
  arena_print_sum("all: ", &total);
  _mi_message_raw(NULL, NULL,
                  "(each character: %zu MiB of small pages s, medium pages m, runs of any length x, our own data i, or "
                  "pages in huge-page chunks d; capital if full; o free and backed; . free)\n",
                  MI_CHUNK_SIZE / MI_MiB);
}

mi_cold void mi_debug_show_arenas(void) mi_attr_noexcept {
  mi_arenas_print();
}
