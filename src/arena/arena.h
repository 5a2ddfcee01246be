// Arenas: address space that the program reserves, or memory that it brings.  Layer: arena.
//
// An arena is a region, and its index in _mi_region_all is what stands for it here; 0 is none.  All calls need region 0.
//
// N1  An arena is handed out only when it is started, with all that is said about it in place.
// N2  What takes long (huge OS pages) is done between adding and starting, without the arena lock.
#pragma once

#include "slices.h"

typedef struct mi_arena_spec_s {
  bool             is_committed, is_pinned, is_zero, is_exclusive;
  int              numa_node; // -1: none
  mi_commit_fun_t* commit;    // NULL: the system does it
  void*            commit_arg;
} mi_arena_spec_t;

// What memory for an arena must have at least.
#define MI_ARENA_ALIGN    MI_SLICE_SIZE
#define MI_ARENA_SIZE_MIN MI_CHUNK_SIZE

// Makes an arena of the program's memory.  0 with a warning: it is too small, not all ours to have, or there are too many.
mi_cold size_t _mi_arena_manage(void* start, size_t size, const mi_arena_spec_t* spec);

// Reserves an arena of at least `size` bytes.  0 or ENOMEM.
mi_cold int _mi_arena_reserve(size_t size, bool commit, bool allow_large, bool is_exclusive, size_t* arena);

// Reserves an arena of OS pages of 1 GiB, as many of n as there are within the time; *n_got is 0 if this fails.
// node < 0: of any node; timeout_ms 0: without a limit.  0 or ENOMEM.
mi_cold int _mi_arena_reserve_huge(size_t n, int node, size_t timeout_ms, bool is_exclusive, size_t* arena,
                                   size_t* n_got);

// The same on each of so many nodes (0: all).
mi_cold int _mi_arena_reserve_huge_interleave(size_t n, size_t n_nodes, size_t timeout_ms, size_t* n_got);

mi_cold bool _mi_arena_exists(size_t arena);

// What to ask _mi_slices_alloc for in order to get memory of a node first; node < 0: MI_ARENA_ANY.
mi_cold size_t _mi_arena_near(int node);

// Does what the options about reserving say.  Nothing if none is set, unless the build has chosen a default.
mi_cold void _mi_arena_init_options(void);

// The same, once: when the process starts, or for the first request that is refused before.  False: not now.
mi_cold bool _mi_arena_init_once(void);

// After a request was refused: names the options that leave no memory to the program, once.
mi_cold void _mi_arena_warn_forbidden(void);

#if defined(MI_DEFAULT_RESERVE_OS_MEMORY) || defined(MI_DEFAULT_RESERVE_HUGE_OS_PAGES)
  #define MI_ARENA_HAS_DEFAULTS 1
#else
  #define MI_ARENA_HAS_DEFAULTS 0
#endif

// ---- looking at regions ---------------------------------------------------------------------------------------------

// What was true of a region, arena or not, at some moment.
typedef struct mi_arena_info_s {
  uintptr_t start;
  size_t    size;
  size_t    n_chunks; // that were ever handed out
  size_t    committed;
  int       numa_node;
  bool      is_arena, is_given, is_exclusive, is_pinned, is_large;
} mi_arena_info_t;

// A chunk in few words: its kind (mi_chunk_kind_t), and how many of its slices are free and how many of those backed.
typedef struct mi_arena_chunk_s {
  uint8_t kind, n_free, n_backed;
} mi_arena_chunk_t;

// False if there is no region of that index.
mi_cold bool _mi_arena_get_info(size_t index, mi_arena_info_t* info);

// Chunks of a region from `first` on, at most n; returns how many.
mi_cold size_t _mi_arena_get_chunks(size_t index, size_t first, mi_arena_chunk_t* chunks, size_t n);
