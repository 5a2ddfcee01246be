/* The fast path of allocation, inlined into the program, for language runtimes and other programs that allocate many small
   blocks.  This header is an extension of this library.  Its contents are a part of the ABI from level 2.4 on.

   The program keeps a handle for each thread and heap.  Allocation through a handle takes a few instructions without a call,
   as long as the thread has a free block of that size:

     mi_inline_t h = mi_inline_of(heap);            once in each thread; NULL is the default heap of the thread
     void* p = mi_inline_malloc(h, 24);
     mi_free(p);                                     as any other block, on any thread

   A handle is for the thread that requested it, until that thread or the heap ends (mi_heap_delete, mi_heap_destroy).  It is a
   plain value, and need not be released.

   It works with every build of the library.  In builds that check blocks (debug, secure, for tools) the handle always leads to
   the ordinary functions, so no check is lost.  Only the ordinary functions sample guarded blocks. */
#pragma once
#ifndef MIMALLOC_INLINE_H
#define MIMALLOC_INLINE_H

#include "mimalloc.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* A list of free blocks of one size.  Each block begins with a pointer to the next. */
typedef struct mi_inline_bin_s {
  void*   first;   /* NULL: none */
  int32_t slots;   /* how many more blocks the list may take; each block that is removed adds one */
  int32_t limit;   /* programs do not use it */
} mi_inline_bin_t;

typedef struct mi_inline_s {
  char*           bins;    /* where the bins of this thread and heap are */
  const uint16_t* offset;  /* offset[size] is the offset of the bin in `bins`, in bytes; for sizes up to MI_SMALL_SIZE_MAX */
  void*           theap;   /* for the ordinary functions */
} mi_inline_t;

/* Returns the handle of the calling thread for a heap; NULL is the default heap of the thread.  Never fails.  If there is no
   memory, or the heap is not in use, allocation through the handle fails. */
mi_decl_nodiscard mi_decl_export mi_inline_t mi_inline_of(mi_heap_t* heap) mi_attr_noexcept;

/* The slow path of the function below. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_inline_malloc_slow(mi_inline_t handle, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

/* The compiler moves no memory access across it. */
#if defined(__GNUC__) || defined(__clang__)
#define _mi_inline_fence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#elif defined(_MSC_VER)
#include <intrin.h>
#define _mi_inline_fence() _ReadWriteBarrier()
#else
#define _mi_inline_fence() ((void)0)
#endif

/* A void* as a pointer of another type. */
#if defined(__cplusplus)
#define _mi_inline_as(type, p) static_cast<type>(p)
#else
#define _mi_inline_as(type, p) ((type)(p))
#endif

/* In C++ of external linkage: an inline function that a module exports may call no other.  The function must then be the same wherever it
   is included, whatever MI_API_LEVEL. */
#if defined(__cplusplus)
#define _mi_inline_linkage inline
#else
#define _mi_inline_linkage mi_decl_inline
#endif

/* mi_heap_malloc; inlined for sizes up to MI_SMALL_SIZE_MAX.  NULL with errno ENOMEM if there is no memory. */
mi_decl_nodiscard _mi_inline_linkage void* mi_inline_malloc(mi_inline_t handle, size_t size) mi_attr_noexcept {
  if (size <= MI_SMALL_SIZE_MAX) {
    void*            at = handle.bins + handle.offset[size];
    mi_inline_bin_t* bin = _mi_inline_as(mi_inline_bin_t*, at);
    void*            block;
    bin->slots++; /* first, and before the list is looked at: see src/heap/theap.h, H1 */
    _mi_inline_fence();
    block = bin->first;
    if (block) {
      bin->first = *_mi_inline_as(void**, block);
      return block;
    }
    bin->slots--;
  }
  return mi_inline_malloc_slow(handle, size);
}

#if defined(__cplusplus)
}
#endif

#endif
