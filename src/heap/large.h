// Large blocks, which have a page of their own: larger than 512 KiB, or aligned in a way that no class is.  Layer: heap.
//
// L1  Any thread may free a large block.  It goes straight back to the arena, where it stays backed for a while (arena/purge.h), or, if it
//     has a mapping of its own (arena/mapped.h), to the system.  L3 is the exception.
// L2  A block may start at an offset within its page (aligned-at allocation).
// L3  A thread keeps blocks of up to 4 MiB of the main heap for its next requests of about that size: blocks that it has allocated and that
//     any thread has freed (kept.h).  They are CLAIMED, so that a second free of one is noticed.  If the thread has ended, the thread that
//     frees the block keeps it.  All threads together may keep only so much (arena/purge_keep.h, KP1), and a round takes away blocks that were
//     not used since the round before (background.h).
#pragma once

#include "heap.h"

// Above this size, or an alignment of a chunk, a block has a mapping of its own (arena/mapped.h), if it may lie anywhere and does not come
// again soon (arena/recur.h).
#define MI_LARGE_MAPPED_MIN (32 * MI_MiB)

// Larger requests are not served with kept blocks.
#define MI_LARGE_KEPT_MAX (MI_KEPT_SLICES_MAX * MI_SLICE_SIZE)

// A block of the heap.  NULL when out of memory.  (p + offset) is a multiple of `align`, a power of two.
void* _mi_large_malloc(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero);

// A block of the size of a class in a page of its own, which has no more usable bytes than that: for the profile.
void* _mi_large_malloc_alone(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero);

// A block that the thread of `theap`, a backing theap, keeps; NULL if none fits.
void* _mi_large_malloc_kept(mi_theap_t* theap, size_t size, bool zero);

// After that gave NULL: a part of a larger kept block, or NULL; then the request goes to the arena (kept.h, KE6).
void* _mi_large_malloc_missed(mi_theap_t* theap, size_t size, bool zero);

// False if the block is not in use (any more): then nothing happened.  The set of `theap`, a backing theap or NULL, or that of the thread
// that has allocated the block, may keep it.
bool _mi_large_free(mi_theap_t* theap, mi_page_t* page);

// Frees a block whose contents have moved: nobody keeps it, since for a limit it is gone already (arena/limit.h, LI1).
void _mi_large_free_moved(mi_page_t* page);

// Frees the block of a heap that is destroyed; it is out of the heap's list already.
void _mi_large_discard(mi_page_t* page);

// In the child of a fork: gives back a CLAIMED page, on which a thread was at work that the child does not have.
void _mi_large_forget(mi_page_t* page);

// Gives back the blocks that a theap keeps.  False if there were none, and none were allowed.  The caller calls _mi_event_freed when it
// holds no lock.
bool _mi_large_drop_kept(mi_theap_t* theap);

// The same for blocks that were not used since the last call.
void _mi_large_drop_unused(mi_theap_t* theap);

// ---- parts, for resizing --------------------------------------------------------------------------------------------

extern mi_atomic(size_t) _mi_large_n_remapped; // pages that are REMAPPED

// Is a block of n slices to have a mapping of its own?
bool _mi_large_wants_mapping(size_t n, size_t align, size_t arena);

// The descriptor of a new mapping of n slices, which reads as zero; NULL if there is none to be had.
void* _mi_large_map(size_t n, size_t align);

// Clears those slices of a run that may hold something.
void _mi_large_clear(const mi_run_t* run);

// The page becomes one of the heap, or (NULL) of another block's heap.  NULL when out of memory: then it is given back.
mi_page_t* _mi_large_add(mi_heap_t* heap, const mi_page_t* other, mi_page_t* page);

// The contents of `from` could not be moved to the page, which was added beside that.  It is not in use any more, but its slices may be
// (lost.h).
void _mi_large_lose(mi_page_t* page, const mi_page_t* from, mi_remap_t remap);
