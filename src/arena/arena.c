// Arenas: reserving them, taking the program's memory, giving them up.  Layer: arena.
#include "arena.h"

#include <errno.h>
#include <string.h>

#include "../support/message.h"
#include "../support/option.h"
#include "mapped.h"
#include "numa.h"
#include "space.h"
#include "subregion.h"

#define ARENA_HUGE_SIZE    MI_GiB // the largest OS pages
#define ARENA_HUGE_WAIT_MS 500    // for each of those that an option asks for: to clear one takes about 200

// ---- memory of the program ------------------------------------------------------------------------------------------

// Rounds to slices, and to as many of them as make chunks.  False if nothing is left.
static bool arena_fit(void** start, size_t* size) {
  uintptr_t begin = (uintptr_t)*start;
  if (begin == 0 || begin > UINTPTR_MAX - *size || begin > UINTPTR_MAX - MI_ARENA_ALIGN) return false;
  if ((uint64_t)(begin + *size) >> MI_ADDRESS_BITS != 0)
    return false; // the system gives such addresses to who asks for one
  uintptr_t first = mi_align_up(begin, MI_ARENA_ALIGN);
  if (first - begin > *size) return false;
  *start = (void*)first;
  *size = mi_align_down(*size - (first - begin), MI_CHUNK_SIZE);
  return *size >= MI_ARENA_SIZE_MIN;
}

static void arena_describe(mi_region_t* region, const mi_arena_spec_t* spec) {
  // What is pinned is there already, unless somebody says how to commit it.
  region->is_committed = spec->is_committed || (spec->is_pinned && spec->commit == NULL);
  region->is_pinned = spec->is_pinned;
  region->is_dirty = !spec->is_zero;
  region->is_exclusive = spec->is_exclusive;
  region->numa_node = spec->numa_node < 0 ? -1 : spec->numa_node;
  region->commit = spec->commit;
  region->commit_arg = spec->commit_arg;
}

static bool arena_is_ours(const void* start, size_t size) {
  return _mi_subregion_overlaps(start, size) || _mi_region_overlaps(start, size) || _mi_mapped_overlaps(start, size);
}

size_t _mi_arena_manage(void* start, size_t size, const mi_arena_spec_t* spec) {
  void*  given = start;
  size_t index = 0;
  if (spec->numa_node >= 0) _mi_numa_node_count(); // allocations will need it (numa.h)
  if (!arena_fit(&start, &size)) {
    _mi_message_warning(
        "memory at %p cannot be managed: it must have %zu bytes from a multiple of %zu on, below 2^48\n", given,
        MI_ARENA_SIZE_MIN, MI_ARENA_ALIGN);
    return 0;
  }
  _mi_lock_acquire(&_mi_region_lock);
  bool         is_ours = arena_is_ours(start, size);
  mi_region_t* region = is_ours ? NULL : _mi_space_add_given(start, size, spec->commit != NULL);
  if (region != NULL) {
    arena_describe(region, spec);
    _mi_space_start(region, region->n_chunks);
    index = _mi_region_index(region);
  }
  _mi_lock_release(&_mi_region_lock);
  if (index != 0) _mi_message_print(2, "arena %zu: %zu KiB at %p\n", index, size / MI_KiB, start);
  else if (is_ours) _mi_message_warning("memory at %p cannot be managed: it is managed already\n", given);
  else
    _mi_message_warning("memory at %p cannot be managed: out of memory, or too many arenas (%d)\n", given,
                        MI_REGION_COUNT);
  return index;
}

// ---- memory that we reserve -----------------------------------------------------------------------------------------

// What comes to be known of an arena between adding and starting it.
typedef struct arena_new_s {
  mi_region_t* region;
  size_t       n_chunks; // that have memory
  int          numa_node;
  bool         is_exclusive;
  bool         is_large; // in large OS pages, which stay
  bool         is_lost;  // a part of its address space is
} arena_new_t;

// A warning and false if there is none to be had.
static bool arena_add(arena_new_t* made, size_t size, size_t align, bool is_exclusive) {
  _mi_lock_acquire(&_mi_region_lock);
  mi_region_t* region = _mi_space_add_reserved(size, align);
  _mi_lock_release(&_mi_region_lock);
  made->region = region;
  made->n_chunks = 0;
  made->numa_node = -1;
  made->is_exclusive = is_exclusive;
  made->is_large = made->is_lost = false;
  if (region != NULL) return true;
  _mi_message_warning("unable to reserve %zu KiB: out of address space, or too many arenas (%d)\n", size / MI_KiB,
                      MI_REGION_COUNT);
  return false;
}

static size_t arena_start(const arena_new_t* made) {
  mi_region_t* region = made->region;
  _mi_lock_acquire(&_mi_region_lock);
  region->numa_node = made->numa_node;
  region->is_exclusive = made->is_exclusive;
  region->is_damaged = made->is_lost;
  region->is_fixed = region->is_pinned = region->is_committed = made->is_large;
  _mi_space_start(region, made->n_chunks);
  _mi_lock_release(&_mi_region_lock);
  _mi_message_print(1, "reserved %zu KiB memory%s\n", made->n_chunks * (MI_CHUNK_SIZE / MI_KiB),
                    made->is_large ? " in large OS pages" : "");
  return _mi_region_index(region);
}

static int arena_drop(const arena_new_t* made) {
  _mi_lock_acquire(&_mi_region_lock);
  made->region->is_damaged = made->is_lost;
  _mi_space_remove(made->region);
  _mi_lock_release(&_mi_region_lock);
  return ENOMEM;
}

static bool arena_map_large(arena_new_t* made, size_t offset, size_t size, size_t os_page_size) {
  int err = _mi_prim_map_large((char*)made->region->base + offset, size, os_page_size, &made->is_lost);
  if (err == 0) made->is_large = true;
  return err == 0;
}

// Ordinary memory, all of it at once if it is to be committed.
static bool arena_open(arena_new_t* made, size_t n_chunks, bool commit, bool wants_huge) {
  mi_region_t* region = made->region;
  made->n_chunks = n_chunks;
  _mi_lock_acquire(&_mi_region_lock);
  region->wants_huge = wants_huge;
  region->n_usable = n_chunks;
  bool ok = !commit || _mi_space_open(region, n_chunks);
  region->n_usable = 0;
  _mi_lock_release(&_mi_region_lock);
  return ok;
}

// Where large OS pages are a mapping of their own.
static bool arena_reserve_large(size_t size, bool is_exclusive, size_t* arena) {
  mi_arena_spec_t spec;
  void*           start = NULL;
  if (_mi_prim_map_large_apart(size, MI_CHUNK_SIZE, &start) != 0) return false;
  memset(&spec, 0, sizeof(spec));
  spec.is_committed = spec.is_pinned = spec.is_zero = true;
  spec.is_exclusive = is_exclusive;
  spec.numa_node = -1;
  *arena = _mi_arena_manage(start, size, &spec);
  if (*arena == 0) _mi_prim_release(start, size);
  return *arena != 0;
}

int _mi_arena_reserve(size_t size, bool commit, bool allow_large, bool is_exclusive, size_t* arena) {
  arena_new_t made;
  *arena = 0;
  if (size == 0 || size > PTRDIFF_MAX - MI_CHUNK_SIZE) return ENOMEM;
  size = mi_align_up(size, MI_CHUNK_SIZE);
  if (allow_large && arena_reserve_large(size, is_exclusive, arena)) return 0;
  if (!arena_add(&made, size, MI_CHUNK_SIZE, is_exclusive)) return ENOMEM;
  made.n_chunks = size / MI_CHUNK_SIZE;
  if (!allow_large || !arena_map_large(&made, 0, size, MI_CHUNK_SIZE)) {
    if (made.is_lost) made.n_chunks = 0;
    if (made.is_lost || !arena_open(&made, made.n_chunks, commit, allow_large)) return arena_drop(&made);
  }
  *arena = arena_start(&made);
  return 0;
}

// ---- huge OS pages --------------------------------------------------------------------------------------------------

// Backs the next one now: later there might be none any more, and that would be fatal.
static bool arena_map_huge(arena_new_t* made, size_t i) {
  char* start = (char*)made->region->base + i * ARENA_HUGE_SIZE;
  if (!arena_map_large(made, i * ARENA_HUGE_SIZE, ARENA_HUGE_SIZE, ARENA_HUGE_SIZE)) return false;
  // A system that does not let us choose the node still has the memory.
  size_t node = (made->numa_node < 0 ? 0 : (size_t)made->numa_node);
  bool   is_bound = (made->numa_node >= 0 && _mi_prim_numa_bind(start, ARENA_HUGE_SIZE, node, true) == 0);
  int    err = _mi_prim_populate(start, ARENA_HUGE_SIZE);
  if (err == EINVAL) { // it cannot; then pages of other nodes have to do
    if (is_bound) _mi_prim_numa_bind(start, ARENA_HUGE_SIZE, node, false);
    return true;
  }
  if (err == 0) return true;
  if (_mi_prim_decommit(start, ARENA_HUGE_SIZE) != 0) made->is_lost = true;
  return false;
}

int _mi_arena_reserve_huge(size_t n, int node, size_t timeout_ms, bool is_exclusive, size_t* arena, size_t* n_got) {
  arena_new_t made;
  size_t      got = 0;
  *arena = *n_got = 0;
  if (n == 0) return 0;
  if (n > PTRDIFF_MAX / ARENA_HUGE_SIZE) return ENOMEM;
  if (!arena_add(&made, n * ARENA_HUGE_SIZE, ARENA_HUGE_SIZE, is_exclusive)) return ENOMEM;
  if (node >= 0) made.numa_node = (int)((size_t)node % _mi_numa_node_count());
  int64_t started = _mi_prim_clock_ms();
  while (got < n && arena_map_huge(&made, got)) {
    got++;
    if (timeout_ms > 0 && (size_t)(_mi_prim_clock_ms() - started) >= timeout_ms) break;
  }
  if (got < n) _mi_message_warning("%zu of %zu huge OS pages could be reserved\n", got, n);
  if (got == 0) return arena_drop(&made);
  made.n_chunks = got * (ARENA_HUGE_SIZE / MI_CHUNK_SIZE);
  *arena = arena_start(&made);
  *n_got = got;
  return 0;
}

int _mi_arena_reserve_huge_interleave(size_t n, size_t n_nodes, size_t timeout_ms, size_t* n_got) {
  *n_got = 0;
  if (n == 0) return 0;
  size_t n_all = _mi_numa_node_count();
  if (n_nodes == 0 || n_nodes > n_all) n_nodes = n_all; // each once, however many are asked for
  for (size_t node = 0; node < n_nodes && node < n; node++) {
    size_t share = n / n_nodes + (node < n % n_nodes ? 1 : 0);
    size_t wait_ms = (timeout_ms == 0 ? 0 : mi_max(1, timeout_ms / n * share));
    size_t arena, got;
    _mi_arena_reserve_huge(share, (int)node, wait_ms, false, &arena, &got);
    *n_got += got;
  }
  return *n_got > 0 ? 0 : ENOMEM;
}

// ---- nodes, options -------------------------------------------------------------------------------------------------

bool _mi_arena_exists(size_t arena) {
  _mi_lock_acquire(&_mi_region_lock);
  bool is_index = (arena > MI_REGION_HUGE && arena < _mi_region_count());
  bool exists = (is_index && _mi_region_is_arena(&_mi_region_all[arena]) && _mi_region_all[arena].n_usable > 0);
  _mi_lock_release(&_mi_region_lock);
  return exists;
}

size_t _mi_arena_near(int node) {
  return node < 0 ? MI_ARENA_ANY : MI_ARENA_NEAR((size_t)node % _mi_numa_node_count());
}

static void arena_init_huge(long n) {
  long   node = _mi_option_get_fast(mi_option_reserve_huge_os_pages_at);
  size_t arena, got;
  size_t wait_ms = (size_t)n * ARENA_HUGE_WAIT_MS;
  if (node >= 0) _mi_arena_reserve_huge((size_t)n, (int)node, wait_ms, false, &arena, &got);
  else _mi_arena_reserve_huge_interleave((size_t)n, 0, wait_ms, &got);
}

void _mi_arena_init_options(void) {
  long   n_huge = _mi_option_get_fast(mi_option_reserve_huge_os_pages);
  size_t size = mi_option_get_size(mi_option_reserve_os_memory);
  size_t arena;
  if (n_huge > 0) arena_init_huge(n_huge);
  if (size == 0) return;
  long commit = _mi_option_get_fast(mi_option_arena_eager_commit);
  _mi_arena_reserve(size, commit == 1 || (commit != 0 && _mi_prim_overcommits()),
                    _mi_option_get_fast(mi_option_allow_large_os_pages) != 0, false, &arena);
}

bool _mi_arena_init_once(void) {
  static mi_atomic(bool) is_done;
  if (mi_load_relaxed(&is_done) || mi_exchange_acq_rel(&is_done, true)) return false;
  _mi_arena_init_options();
  return true;
}

void _mi_arena_warn_forbidden(void) {
  static mi_atomic(bool) is_said;
  if (_mi_option_get_fast(mi_option_disallow_os_alloc) == 0) return;
  bool is_both = (_mi_option_get_fast(mi_option_disallow_arena_alloc) != 0);
  _mi_lock_acquire(&_mi_region_lock);
  bool has_shared = (_mi_space_n_shared > 0);
  _mi_lock_release(&_mi_region_lock);
  if ((has_shared && !is_both) || mi_exchange_acq_rel(&is_said, true)) return;
  _mi_message_warning("no memory may be used: option 'disallow_os_alloc' is set, and %s.",
                      is_both ? "'disallow_arena_alloc' too" : "none is reserved");
}

// ---- looking at regions ---------------------------------------------------------------------------------------------

bool _mi_arena_get_info(size_t index, mi_arena_info_t* info) {
  _mi_lock_acquire(&_mi_region_lock);
  const mi_region_t* region = (index < _mi_region_count() ? &_mi_region_all[index] : NULL);
  bool               is_there = (region != NULL && region->base != 0 && region->origin != MI_REGION_LOST);
  if (is_there) {
    info->start = region->base;
    info->size = region->n_usable * MI_CHUNK_SIZE;
    info->n_chunks = region->n_used;
    info->committed = region->committed;
    info->numa_node = region->numa_node;
    info->is_arena = _mi_region_is_arena(region);
    info->is_given = (region->origin == MI_REGION_GIVEN);
    info->is_exclusive = region->is_exclusive;
    info->is_pinned = region->is_pinned;
    info->is_large = region->is_pinned && !info->is_given;
  }
  _mi_lock_release(&_mi_region_lock);
  return is_there;
}

size_t _mi_arena_get_chunks(size_t index, size_t first, mi_arena_chunk_t* chunks, size_t n) {
  const mi_region_t* region = &_mi_region_all[index];
  size_t             i = 0;
  _mi_lock_acquire(&_mi_region_lock);
  for (; i < n && first + i < region->n_used; i++) {
    const mi_chunk_t* chunk = &region->chunks[first + i];
    chunks[i].kind = chunk->kind;
    size_t n_missing = (first + i + 1 == region->n_open ? region->n_missing : 0); // as free as what is not open
    chunks[i].n_free = (uint8_t)(mi_popcount32(chunk->free_bits) + n_missing);
    chunks[i].n_backed = (uint8_t)mi_popcount32(chunk->free_bits & chunk->dirty_bits);
  }
  _mi_lock_release(&_mi_region_lock);
  return i;
}
