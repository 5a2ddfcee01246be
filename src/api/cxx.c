// operator new: what it does when memory is short.  Layer: api.
//
// The C++ runtime need not be there; where it is, its new-handler is called and std::bad_alloc thrown, although this is
// C: both are ordinary functions of the runtime, referred to weakly.
#include <errno.h>

#include "../support/message.h"
#include "catch.h"
#include "malloc.h"

#if defined(__cplusplus)

  #include <new>

typedef std::new_handler new_handler_t;

static new_handler_t new_handler(void) {
  return std::get_new_handler();
}

static void new_throw(void) {
  #if MI_HAS_EXCEPTIONS
  throw std::bad_alloc();
  #endif
}

#elif MI_HAS_WEAK_REFERENCES

typedef void (*new_handler_t)(void);
mi_weak new_handler_t _ZSt15get_new_handlerv(void);   // std::get_new_handler()
mi_weak void          _ZSt17__throw_bad_allocv(void); // std::__throw_bad_alloc() of libstdc++

// As data: where code and data may lie anywhere, an instruction cannot refer to what is not there.
static new_handler_t (*const volatile new_get_handler)(void) = &_ZSt15get_new_handlerv;
static void (*const volatile new_throw_bad_alloc)(void) = &_ZSt17__throw_bad_allocv;

static new_handler_t new_handler(void) {
  new_handler_t (*get)(void) = new_get_handler;
  return get == NULL ? NULL : get();
}

static void new_throw(void) {
  void (*throw_bad_alloc)(void) = new_throw_bad_alloc;
  if (throw_bad_alloc != NULL) throw_bad_alloc();
}

#else // as if there were no runtime: compiled as C++ the library has it

typedef void (*new_handler_t)(void);

static new_handler_t new_handler(void) {
  return NULL;
}

static void new_throw(void) {}

#endif

// After a failure.  Only if memory is missing: no handler helps with an invalid alignment or pointer.
static bool new_call_handler(void) {
  new_handler_t handler = (errno == ENOMEM ? new_handler() : NULL);
  if (handler != NULL) handler();
  return handler != NULL;
}

static mi_cold void* new_failed(size_t size) {
  new_throw();
  _mi_message_error(ENOMEM, "out of memory in 'new' (%zu bytes)\n", size);
  _mi_prim_abort();
  return NULL;
}

typedef struct new_s {
  mi_heap_t* heap; // NULL: the default heap
  size_t     size;
  size_t     align; // 0: any
  void*      old;   // the block that is to get that size; NULL: a new one
} new_t;

static void* new_try(const new_t* n) {
  if (n->old != NULL) return mi_realloc(n->old, n->size);
  return n->align == 0 ? _mi_malloc_in(n->heap, n->size, false) : mi_malloc_aligned(n->size, n->align);
}

// A handler is to free memory, throw, or end the program; with none, new fails.  It may change errno.
static void* new_retry(size_t request, size_t unused) {
  const new_t* n = (const new_t*)request;
  void*        p = NULL;
  int          before = _mi_alloc_errno_before();
  (void)unused;
  while (p == NULL && new_call_handler()) p = new_try(n);
  if (p != NULL) errno = before;
  return p;
}

static mi_cold void* new_slow(mi_heap_t* heap, size_t size, size_t align, bool nothrow) {
  new_t n = {heap, size, align, NULL};
  if (nothrow) return _mi_catch(&new_retry, (size_t)&n, 0); // what a handler throws must not leave
  void* p = new_retry((size_t)&n, 0);
  return p != NULL ? p : new_failed(size);
}

void* mi_new(size_t size) {
  void* p = mi_malloc(size);
  return mi_likely(p != NULL) ? p : new_slow(NULL, size, 0, false);
}

void* mi_new_nothrow(size_t size) mi_attr_noexcept {
  void* p = mi_malloc(size);
  return mi_likely(p != NULL) ? p : new_slow(NULL, size, 0, true);
}

void* mi_new_aligned(size_t size, size_t alignment) {
  void* p = mi_malloc_aligned(size, alignment);
  return mi_likely(p != NULL) ? p : new_slow(NULL, size, alignment, false);
}

void* mi_new_aligned_nothrow(size_t size, size_t alignment) mi_attr_noexcept {
  void* p = mi_malloc_aligned(size, alignment);
  return mi_likely(p != NULL) ? p : new_slow(NULL, size, alignment, true);
}

void* mi_heap_try_new(mi_heap_t* heap, size_t size, bool nothrow) {
  void* p = mi_heap_malloc(heap, size);
  return mi_likely(p != NULL) ? p : new_slow(_mi_alloc_heap(heap), size, 0, nothrow);
}

void* mi_heap_alloc_new(mi_heap_t* heap, size_t size) {
  return mi_heap_try_new(heap, size, false);
}

static mi_cold void* new_realloc_slow(void* p, size_t newsize) {
  new_t n = {NULL, newsize, 0, p};
  void* q = new_retry((size_t)&n, 0);
  return q != NULL ? q : new_failed(newsize);
}

void* mi_new_realloc(void* p, size_t newsize) {
  void* q = mi_realloc(p, newsize);
  return mi_likely(q != NULL) ? q : new_realloc_slow(p, newsize);
}

void* mi_new_n(size_t count, size_t size) {
  size_t total;
  return mi_likely(_mi_alloc_count(count, size, &total)) ? mi_new(total) : new_failed(SIZE_MAX);
}

void* mi_heap_alloc_new_n(mi_heap_t* heap, size_t count, size_t size) {
  size_t total;
  return mi_likely(_mi_alloc_count(count, size, &total)) ? mi_heap_alloc_new(heap, total) : new_failed(SIZE_MAX);
}

void* mi_new_reallocn(void* p, size_t newcount, size_t size) {
  size_t total;
  return mi_likely(_mi_alloc_count(newcount, size, &total)) ? mi_new_realloc(p, total) : new_failed(SIZE_MAX);
}
