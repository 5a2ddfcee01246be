// The numbers behind all statistics.  Layer: api.
#pragma once

#include "../base/public.h"
#include "../heap/heap_stats.h"

// `blocks` is what the walk over the pages has found.
typedef struct mi_snapshot_s {
  mi_stats_t      stats;
  mi_stat_count_t heaps; // level 2 has no field for these
  mi_stat_count_t theaps;
  mi_heap_stats_t blocks;
  bool            has_history; // of blocks and pages more than what is current is known
} mi_snapshot_t;

// Of a heap; of a subprocess, without its heaps if `exclusive`; of the process if both are NULL.
// False: the blocks are not known, at the end of the process (heap/idle.h).
bool _mi_stats_take(mi_snapshot_t* s, mi_heap_t* heap, const mi_subproc_t* subproc, bool exclusive);

// The process, or the main subprocess for it: what no heap has is theirs.
static inline bool _mi_stats_is_main(const mi_heap_t* heap, const mi_subproc_t* subproc) {
  return heap == NULL && (subproc == NULL || subproc == &_mi_heap_subproc_main);
}

// Has the caller the structure that this library writes?
static inline bool _mi_stats_is_known(const mi_stats_t* stats) {
  return stats != NULL && stats->size == sizeof(*stats) && stats->version == MI_STAT_VERSION;
}
