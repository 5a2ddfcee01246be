// What the files of the api layer share.  Layer: api.
#pragma once

#include "../base/public.h"
#include "../heap/heap.h"
#include "../page/verify.h"
#include "../support/trace.h"

// Allocation that did not find a block in a bin: any size, any state of thread and process.  NULL with errno and a
// report when out of memory.
void* _mi_malloc_slow(size_t size, bool zero) mi_attr_noexcept;

// Here and below `heap` is NULL for the default heap of the thread.
void* _mi_malloc_slow_in(mi_heap_t* heap, size_t size, bool zero) mi_attr_noexcept;

// A block of a class, for those who have chosen it for that size and alignment; NULL without a report.
void* _mi_malloc_class(mi_heap_t* heap, size_t cls, size_t size, size_t align, bool zero);

// One with a page of its own, aligned as _mi_large_malloc says; NULL without a report.
void* _mi_malloc_large(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero);

// Any block, from the bin if it has one.
void* _mi_malloc_in(mi_heap_t* heap, size_t size, bool zero);

// The same for a large block that has grown before, and may again.
void* _mi_malloc_growing(mi_heap_t* heap, size_t size);

// As mi_malloc_aligned_at.
void* _mi_malloc_aligned_at(mi_heap_t* heap, size_t size, size_t alignment, size_t offset, bool zero);

mi_subproc_t* _mi_subproc_of(mi_subproc_id_t id);

// Sets errno, reports, and returns NULL.
mi_cold void* _mi_malloc_failed(size_t size);

// The resize of mi_realloc, where new bytes of the result read as zero if `zero`.  What has to move goes to the heap; what
// belongs to another heap has to, unless `heap` is NULL and the interface that of level 2.
void* _mi_realloc(mi_heap_t* heap, void* p, size_t new_size, bool zero);
void* _mi_realloc_aligned_at(mi_heap_t* heap, void* p, size_t newsize, size_t alignment, size_t offset, bool zero);

// The page of a block that is to be resized, and up to where it has contents; NULL, errno EINVAL and a report, if it is no
// block.
mi_page_t* _mi_realloc_page(const void* p, size_t* old_size);

// May a block of this page stay in its heap when it is resized?
bool _mi_realloc_is_in(mi_heap_t* heap, const mi_page_t* page);

// The block, where it is, if it has room for new_size and at least half of it is used; NULL if it has to move.
void* _mi_realloc_stay(mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero);

// ---- what is done to a block on its way to the program, and back ------------------------------------------------------

// The free block p is going to be used again: has somebody written to it?  In hardened builds it is all zero afterwards.
static mi_always_inline void _mi_block_reuse(void* p, size_t block_size) {
  if (MI_TRACK) mi_track_writable(p, block_size);
  if (MI_FILL && mi_unlikely(!_mi_verify_freed(p, block_size))) _mi_fill_freed(p, block_size);
  if (MI_HARDENED) memset(p, 0, sizeof(mi_block_t));
}

// The block p of a class for `size` bytes; `is_zero`: these were asked to be zero, and are.
static mi_always_inline void* _mi_block_issue(void* p, size_t size, size_t block_size, bool is_zero) {
  if (MI_FILL_NEW && !is_zero) memset(p, MI_FILL_UNINIT, size);
  if (MI_PADDING) _mi_padding_write(p, size, block_size);
  if (MI_TRACK) {
    mi_track_closed((char*)p + size, block_size - size);
    mi_track_block(p, size, is_zero);
  }
  _mi_trace_allocated(p);
  return p;
}

// The block p of a class, which is sound, is going to be free.
static mi_always_inline void _mi_block_retire(void* p, size_t block_size) {
  _mi_trace_freed(p);
  if (MI_TRACK) mi_track_closed(p, block_size);
  if (MI_CHECKED) _mi_padding_retire(p, block_size);
  if (MI_FILL) _mi_fill_freed(p, block_size);
}

// Clears a block of `size` <= 128 bytes, up to the next multiple of 16 (its class has that many).
static mi_always_inline void _mi_clear_small(void* p, size_t size) {
  if (size > 8) _mi_fill_small(p, mi_align_up(size, 16), 0);
  else memset(p, 0, 8);
}

// count * size into *total; false (errno, and a report as below) when that is too much.
bool _mi_count_size(size_t count, size_t size, size_t* total);

// Reports it, in builds for which that is an error of the program (debug), or the end of it (MI_XMALLOC).
mi_cold void _mi_count_report(size_t count, size_t size);
