// Bins with a higher limit than that of their class, for programs that take and free more blocks in turn.  Layer: heap.
//
// GB1  A bin is too small if it runs empty after a free has found it full since it last ran empty.  Its limit doubles, up to
//      MI_GROW_BLOCKS blocks, and up to MI_GROW_SLICES slices in all bins of a theap.  Bins of blocks that have a page each do not count
//      for that: they may have MI_GROW_ALONE_SLICES together, as kept blocks may (kept.h).
// GB2  What grown bins may hold above the limit of their class counts as free memory that is backed (arena/purge.h, PG2), so all
//      threads together have no more of this than the purge policy lets them keep.
// GB3  A bin from which nothing is taken has the limit of its class again, as does one that a round finds unused (trim.h).  A
//      thread that makes pages for other classes looks more often: what its bins hold might serve instead.
//
// All functions are called between enter and leave, or by whoever holds the theap.
#pragma once

#include "theap.h"

#define MI_GROW_BLOCKS       256
#define MI_GROW_SLICES       64 // 4 MiB
#define MI_GROW_ALONE_SLICES MI_KEPT_SLICES

// Has each block of the class a page to itself?
static inline bool _mi_grow_is_alone(size_t cls) {
  return _mi_size_class_info[cls].capacity == 1;
}

// The most that a bin of the class may have as its limit.
static inline size_t _mi_grow_limit_max(size_t cls) {
  return mi_max(_mi_size_class_info[cls].bin_limit, MI_GROW_BLOCKS);
}

// The limit of a bin that is in use.
static inline size_t _mi_grow_limit(const mi_theap_t* theap, size_t cls) {
  return _mi_size_class_info[cls].bin_limit + theap->classes[cls].n_grown;
}

// The bin, which is empty, was full before: it gets a higher limit, if it may.
void _mi_grow_bin(mi_theap_t* theap, size_t cls);

// It has the limit of its class again.  What is in it stays.
void _mi_grow_undo(mi_theap_t* theap, size_t cls);
void _mi_grow_undo_all(mi_theap_t* theap);
