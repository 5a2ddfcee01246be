// The slow path of allocation: any size, in any state of the thread and of the process.  Layer: api.
#pragma once

#include "../heap/thread.h"
#include "../heap/heap.h"

// A request.
typedef struct mi_alloc_s {
  mi_heap_t* heap;  // NULL: the default heap of the thread
  size_t     size;  // bytes for the program
  size_t     cls;   // a class whose blocks have the alignment; MI_CLASS_NONE: a page of its own
  size_t     align; // a power of two: (p + offset) is a multiple of it
  size_t     offset;
  size_t     growth; // bytes by which the block should be able to grow in place (api/life.h)
  bool       zero;   // the block is to read as zero
} mi_alloc_t;

// Each of these returns NULL, with errno and a report, when it fails.
void* _mi_alloc_request(const mi_alloc_t* request);
void* _mi_alloc(size_t size, bool zero) mi_attr_noexcept;
void* _mi_alloc_in(mi_heap_t* heap, size_t size, bool zero) mi_attr_noexcept; // `heap` as in a request

// The new place of a block that has grown and may grow again (`growth` as in a request).
void* _mi_alloc_growing(mi_heap_t* heap, size_t size, size_t growth);

// The same for a caller that can do without the block: a failure is not reported and leaves errno alone, no memory is given back to
// make room, and the program is not asked to free anything.  `size` is at most PTRDIFF_MAX.
void* _mi_alloc_quietly(mi_heap_t* heap, size_t size, size_t growth) mi_attr_noexcept;

// A large block has another size from now on, where it is or elsewhere: for the profile that is a new block.
void _mi_alloc_resized(void* p, size_t size);

// ---- failures -------------------------------------------------------------------------------------------------------

// Sets errno, reports, and returns NULL.
mi_cold void* _mi_alloc_failed(size_t size);
mi_cold void* _mi_alloc_failed_align(size_t alignment); // it is no power of two

// errno as it was before the last _mi_alloc_failed of the thread: for a caller that tries again and succeeds.
mi_cold int _mi_alloc_errno_before(void);

// count * size into *total; false (errno, and a report as below) when that is too much.
bool _mi_alloc_count(size_t count, size_t size, size_t* total);

// Reports such an overflow, in builds in which it is an error of the program (debug) or ends it (MI_XMALLOC).
mi_cold void _mi_alloc_report_count(size_t count, size_t size);

// ---- which heap -----------------------------------------------------------------------------------------------------

// The heap that a public function was given: NULL means the main heap.
static inline mi_heap_t* _mi_alloc_heap(mi_heap_t* heap) {
  return mi_likely(heap != NULL) ? heap : _mi_thread_subproc()->main;
}

// Defines mi_<name>, of the default heap, and mi_heap_<name>.  `call` is the result, of `heap`; MI_ALLOC_P holds a list.
#define MI_ALLOC_P(...) __VA_ARGS__
#define MI_ALLOC_BOTH(type, name, parameters, locals, call) \
  type mi_##name(parameters) mi_attr_noexcept { \
    mi_heap_t* heap = NULL; \
    locals return call; \
  } \
  type mi_heap_##name(mi_heap_t* heap, parameters) mi_attr_noexcept { \
    heap = _mi_alloc_heap(heap); \
    locals return call; \
  }

// The heap of the theap that a public function was given: NULL means the default theap, and stays NULL.
static inline mi_heap_t* _mi_alloc_heap_of(const mi_theap_t* theap) {
  return theap == NULL ? NULL : _mi_theap_heap(theap);
}
