// Allocation that did not find a block in a bin: any size, any state of thread and process.  Layer: api.
#pragma once

#include "../heap/thread.h"
#include "../heap/heap.h"

// What is asked for.
typedef struct mi_alloc_s {
  mi_heap_t* heap;  // NULL: the default heap of the thread
  size_t     size;  // bytes for the program
  size_t     cls;   // whose blocks have the alignment; MI_CLASS_NONE: a page of its own
  size_t     align; // a power of two: (p + offset) is a multiple of it
  size_t     offset;
  size_t     growth; // bytes by which it shall be able to grow where it is (api/life.h)
  bool       zero;   // it is to read as zero
} mi_alloc_t;

// Each of these returns NULL, with errno and a report, when it fails.
void* _mi_alloc_request(const mi_alloc_t* request);
void* _mi_alloc(size_t size, bool zero) mi_attr_noexcept;
void* _mi_alloc_in(mi_heap_t* heap, size_t size, bool zero) mi_attr_noexcept; // `heap` as in a request

// A block that has grown and may again (`growth` as in a request).
void* _mi_alloc_growing(mi_heap_t* heap, size_t size, size_t growth);

// The same for whoever can do without: if it fails that is not reported, errno is as before, nothing is given back for it, and the
// program is not asked to free anything.  At most PTRDIFF_MAX bytes.
void* _mi_alloc_quietly(mi_heap_t* heap, size_t size, size_t growth) mi_attr_noexcept;

// A large block has another size from now on, where it is or elsewhere: for the profile that is a new block.
void _mi_alloc_resized(void* p, size_t size);

// ---- failures -------------------------------------------------------------------------------------------------------

// Sets errno, reports, and returns NULL.
mi_cold void* _mi_alloc_failed(size_t size);
mi_cold void* _mi_alloc_failed_align(size_t alignment); // it is no power of two

// errno as it was before the last _mi_alloc_failed of the thread: for who tries again, and may succeed.
mi_cold int _mi_alloc_errno_before(void);

// count * size into *total; false (errno, and a report as below) when that is too much.
bool _mi_alloc_count(size_t count, size_t size, size_t* total);

// Reports it, in builds for which that is an error of the program (debug), or the end of it (MI_XMALLOC).
mi_cold void _mi_alloc_report_count(size_t count, size_t size);

// ---- which heap -----------------------------------------------------------------------------------------------------

// That of the public functions with a heap: NULL is the main heap.
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

// That of those with a theap: NULL is the default theap.
static inline mi_heap_t* _mi_alloc_heap_of(const mi_theap_t* theap) {
  return theap == NULL ? NULL : _mi_theap_heap(theap);
}
