/* The fast path of allocation, inlined into the program: for language runtimes and others that allocate small blocks all
   the time.  This header is ours, mimalloc has none like it; what is in it is a part of the ABI from level 2.4 on.

   The program keeps a handle for each thread and heap.  Allocation through it is a few instructions without a call, as
   long as the thread has a free block of that size at hand:

     mi_inline_t h = mi_inline_of(heap);            once in each thread; NULL is the default heap of the thread
     void* p = mi_inline_malloc(h, 24);
     mi_free(p);                                     as any other block, on any thread

   A handle is for the thread that asked for it, until that thread or the heap ends (mi_heap_delete, mi_heap_destroy).  It
   is a value, to be kept wherever the program finds it fastest; nothing has to be given back.

   It works with every build of the library.  In those that check blocks (debug, secure, for tools) the handle leads to
   nothing but the ordinary functions, so no check is lost.  Guard pages are sampled on the way through the ordinary
   functions only. */
#pragma once
#ifndef MIMALLOC_INLINE_H
#define MIMALLOC_INLINE_H

#include "mimalloc.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Blocks of one size that are ready to be handed out.  Each begins with a pointer to the next. */
typedef struct mi_inline_bin_s {
  void*   first;   /* NULL: none */
  int32_t left;    /* how many more the list may take: one more for each block that is taken */
  int32_t room;    /* not for programs */
} mi_inline_bin_t;

typedef struct mi_inline_s {
  char*           bins;    /* where the bins of this thread and heap are */
  const uint16_t* offset;  /* offset[size] is that of the bin in `bins`, in bytes; for sizes up to MI_SMALL_SIZE_MAX */
  void*           theap;   /* for the ordinary functions */
} mi_inline_t;

/* The handle of the calling thread for a heap; NULL is the default heap of the thread.  Never fails: without memory, and
   for a heap that is not in use, allocation through the handle does. */
mi_decl_nodiscard mi_decl_export mi_inline_t mi_inline_of(mi_heap_t* heap) mi_attr_noexcept;

/* What the functions below do if there is no block at hand. */
mi_decl_nodiscard mi_decl_export mi_decl_restrict void* mi_inline_malloc_slow(mi_inline_t handle, size_t size)
  mi_attr_noexcept mi_attr_malloc mi_attr_alloc_size(2);

/* mi_heap_malloc; inlined for sizes up to MI_SMALL_SIZE_MAX.  NULL with errno ENOMEM if there is no memory. */
mi_decl_nodiscard static inline void* mi_inline_malloc(mi_inline_t handle, size_t size) mi_attr_noexcept {
  if (size <= MI_SMALL_SIZE_MAX) {
    mi_inline_bin_t* bin = (mi_inline_bin_t*)(void*)(handle.bins + handle.offset[size]);
    void*            block = bin->first;
    if (block != NULL) {
      bin->first = *(void**)block;
      bin->left++;
      return block;
    }
  }
  return mi_inline_malloc_slow(handle, size);
}

#if defined(__cplusplus)
}
#endif

#endif
