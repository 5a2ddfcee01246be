// Allocation: the slow path of all functions that allocate.  Layer: api.
//
//   the thread's theap -> deferred frees -> is the block sampled, or to be guarded? -> a block of its class, or a page of its own
//
// If that fails, all free memory is given back to the system and the request is tried again (alloc_again).  A block whose class has pages
// of several slices may get a page of its own then: that takes fewer slices.
//
// "Growing" has two meanings here: a block that has grown and may grow again has `growth` in its request; where the memory of the process
// only grows, a *window* is open while it may (arena/window.h).
#include "alloc.h"

#include <errno.h>

#include "../arena/arena.h"
#include "../arena/purge.h"
#include "../arena/window.h"
#include "../base/probe.h"
#include "../heap/warm.h"
#include "../heap/event.h"
#include "../heap/late.h"
#include "../heap/refill.h"
#include "../heap/fork.h"
#include "../heap/guard.h"
#include "../heap/large.h"
#include "../heap/sampler.h"
#include "../support/message.h"
#include "../support/options.h"
#include "hooks.h"
#include "life.h"
#include "limits.h"

// ---- events ---------------------------------------------------------------------------------------------------------

// The hook may end the theap's heap, so that the thread lets go of the theap: then the thread's default theap serves the request.
static mi_noinline mi_theap_t* alloc_call_hook(mi_theap_t* theap) {
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  uint64_t    heap_id = theap->heap_id;
  _mi_hooks_deferred_free(false);
  bool is_still = (mi_load_relaxed(&theap->thread) == thread && theap->heap_id == heap_id);
  return is_still ? theap : _mi_thread_theap();
}

// A guarded block, of a build that guards such blocks.
static void* alloc_guarded(const mi_alloc_t* a, mi_heap_t* heap) {
  mi_guard_request_t request = {a->size, a->align, a->offset, false, false, a->growth};
  void*              p = _mi_guard_malloc(heap, &request);
  if (p != NULL || a->growth == 0) return p;
  request.room = 0;
  return _mi_guard_malloc(heap, &request);
}

// ---- blocks; `theap` is NULL after the end of the thread ------------------------------------------------------------

static mi_block_t* alloc_pop(mi_heap_t* heap, mi_theap_t* theap, size_t cls, bool* is_zero) {
  if (mi_unlikely(theap == NULL)) return _mi_late_malloc(heap, cls, is_zero);
  mi_block_t* block = _mi_theap_pop(theap, cls);
  if (mi_likely(block != NULL)) return block;
  block = _mi_refill(theap, cls, is_zero);
  _mi_event_note();
  return block;
}

// The same while events are pending: the theap may be armed or counted (sampler.h, counted.h).
static mi_noinline mi_block_t* alloc_pop_sampled(mi_heap_t* heap, mi_theap_t* theap, size_t cls, bool* is_zero) {
  mi_block_t* block = (theap == NULL ? NULL : _mi_counted_pop(theap, cls));
  if (block != NULL) {
    _mi_counted_attend(theap);
    return block;
  }
  mi_sampler_turn_t turn = _mi_sampler_open(theap, cls);
  block = alloc_pop(heap, theap, cls, is_zero);
  _mi_sampler_close(theap, cls, turn);
  return block;
}

static mi_always_inline void* alloc_issue(const mi_alloc_t* a, mi_block_t* block, bool is_zero) {
  if (a->zero) return _mi_life_issue_zero_any(block, a->size, a->cls, is_zero);
  return _mi_life_issue(block, a->size, a->cls, _mi_life_is_marked(_mi_size_class_block(a->cls)));
}

static mi_always_inline void* alloc_class(const mi_alloc_t* a, mi_heap_t* heap, mi_theap_t* theap) {
  bool        is_zero = false;
  bool*       asked = a->zero ? &is_zero : NULL;
  mi_block_t* block =
      (_mi_event_is_pending() ? alloc_pop_sampled(heap, theap, a->cls, asked) : alloc_pop(heap, theap, a->cls, asked));
  return mi_unlikely(block == NULL) ? NULL : alloc_issue(a, block, is_zero);
}

static mi_always_inline void* alloc_large(const mi_alloc_t* a, mi_heap_t* heap, mi_theap_t* theap) {
  size_t      need = _mi_life_need(a->size);
  mi_theap_t* thread = (theap != NULL && heap == &_mi_heap_main ? mi_load_relaxed(&theap->thread) : NULL);
  bool        zero = _mi_life_is_cleared(a->zero);
  void*       p = NULL;
  if (thread != NULL && a->align <= MI_SLICE_SIZE && a->offset == 0) {
    p = _mi_large_malloc_kept(thread, need, zero);
    if (p == NULL) p = _mi_large_malloc_missed(thread, need, zero);
  }
  if (p == NULL) p = _mi_large_malloc(heap, need, a->align, a->offset, zero);
  return p == NULL ? NULL : _mi_life_issue_large(p, a->size, a->zero);
}

static bool alloc_is_guarded(const mi_alloc_t* a) {
  return _mi_life_is_guarded(a->cls == MI_CLASS_NONE ? SIZE_MAX : a->size);
}

// A block for the profile, in a page of its own.  NULL: there is no memory for that, and the profile lacks this block.
static void* alloc_profiled(const mi_alloc_t* a, mi_heap_t* heap, mi_theap_t* theap) {
  if (a->cls == MI_CLASS_NONE) return alloc_large(a, heap, theap);
  bool  zero = _mi_life_is_cleared(a->zero);
  void* p = _mi_large_malloc_alone(heap, _mi_size_class_block(a->cls), a->align, a->offset, zero);
  return p == NULL ? NULL : _mi_life_issue_large(p, a->size, a->zero);
}

// A block that is sampled, or that the build guards.  NULL: neither, or there is no memory for it; then an ordinary block serves.
static mi_noinline void* alloc_sampled_or_guarded(mi_alloc_t a, mi_heap_t* heap, mi_theap_t* theap) {
  unsigned due = 0;
  void*    p = NULL;
  bool     is_of_bin = (a.cls != MI_CLASS_NONE && !alloc_is_guarded(&a));
  if (theap != NULL && is_of_bin && mi_load_relaxed(&_mi_event_pending) < MI_EVENT_ORPHANS) {
    mi_block_t* block = _mi_sampler_next(theap, a.cls);
    if (mi_likely(block != NULL)) return alloc_issue(&a, block, false);
  }
  if (_mi_event_is_pending()) {
    _mi_event_answer();
    _mi_fork_adopt_orphans();
    due = _mi_sampler_pick(theap, a.size, a.cls);
  }
  if ((due & MI_SAMPLER_GUARD) != 0) p = _mi_sampler_guard(theap, a.size, a.align, a.offset);
  if (p == NULL && alloc_is_guarded(&a)) p = alloc_guarded(&a, heap);
  if ((due & MI_SAMPLER_PROFILE) == 0) return p;
  if (p == NULL) p = alloc_profiled(&a, heap, theap);
  if (p != NULL) _mi_sampler_profile(theap, p, a.size, _mi_sampler_bytes(a.size, a.cls));
  return p;
}

static void* alloc_after_limit(mi_alloc_t a, mi_heap_t* heap);

static mi_always_inline void* alloc_place(const mi_alloc_t* a, mi_heap_t* heap, mi_theap_t* theap) {
  if (_mi_event_is_pending() || alloc_is_guarded(a)) {
    if (_mi_event_is_limit()) return alloc_after_limit(*a, heap);
    void* p = alloc_sampled_or_guarded(*a, heap, theap);
    if (p != NULL) return p;
  }
  return a->cls == MI_CLASS_NONE ? alloc_large(a, heap, theap) : alloc_class(a, heap, theap);
}

void _mi_alloc_resized(void* p, size_t size) {
  mi_theap_t* theap = (_mi_event_is_pending() ? _mi_thread_theap() : NULL);
  unsigned    due = (theap == NULL ? 0 : _mi_sampler_pick(theap, size, MI_CLASS_NONE));
  if ((due & MI_SAMPLER_PROFILE) != 0) _mi_sampler_profile(theap, p, size, _mi_sampler_bytes(size, MI_CLASS_NONE));
}

// For a thread without a theap: it is past its exit, or there is no memory for a theap, or the heap has ended.  Only the first of these
// can be served.
static mi_cold void* alloc_late(mi_alloc_t a) {
  if (_mi_theap_default != &_mi_theap_dead) return NULL;
  bool has_heap = (a.heap != NULL && _mi_heap_is_live(a.heap));
  return alloc_place(&a, has_heap ? a.heap : &_mi_heap_main, NULL);
}

// A soft limit was crossed: the hook is called first.  It may do whatever the program may, so the thread's theap is looked up again.
static mi_cold mi_noinline void* alloc_after_limit(mi_alloc_t a, mi_heap_t* heap) {
  _mi_limits_attend();
  mi_theap_t* theap = (a.heap == NULL ? _mi_thread_theap() : _mi_thread_theap_of(a.heap));
  if (theap != NULL) heap = _mi_theap_heap(theap);
  void* p = alloc_sampled_or_guarded(a, heap, theap);
  if (p != NULL) return p;
  return a.cls == MI_CLASS_NONE ? alloc_large(&a, heap, theap) : alloc_class(&a, heap, theap);
}

static mi_always_inline void* alloc_try(const mi_alloc_t* a) {
  mi_theap_t* theap = (a->heap == NULL ? _mi_thread_theap() : _mi_thread_theap_of(a->heap));
  if (mi_likely(theap != NULL) && _mi_hooks_is_due(theap)) theap = alloc_call_hook(theap);
  return mi_likely(theap != NULL) ? alloc_place(a, _mi_theap_heap(theap), theap) : alloc_late(*a);
}

// ---- requests -------------------------------------------------------------------------------------------------------

// A try during which memory may grow, where it only grows (arena/window.h, WI5).
static mi_cold mi_noinline void* alloc_try_in_window(const mi_alloc_t* a) {
  if (MI_PRIM_VIRTUAL) return alloc_try(a);
  _mi_window_open();
  void* p = alloc_try(a);
  _mi_window_close();
  return p;
}

// A page for a single block has fewer slices than a page of its class: where memory is short there may be room for it.
static mi_cold void* alloc_alone(const mi_alloc_t* a) {
  if (a->cls == MI_CLASS_NONE || a->cls < MI_CLASS_SEVERAL) return NULL;
  mi_theap_t* theap = (a->heap == NULL ? _mi_thread_theap() : _mi_thread_theap_of(a->heap));
  if (theap == NULL) return NULL;             // alloc_late
  size_t size = _mi_size_class_block(a->cls); // mi_good_size
  void*  p = _mi_large_malloc(_mi_theap_heap(theap), size, a->align, a->offset, _mi_life_is_cleared(a->zero));
  return p == NULL ? NULL : _mi_life_issue_large(p, a->size, a->zero);
}

// Tries again, for as long as a limit on memory refuses and there is something left to be done about it: other threads give back what
// they keep, then the hook asks the program to free something.
static mi_cold void* alloc_limited(const mi_alloc_t* a) {
  mi_theap_t* theap = _mi_thread_theap();
  mi_heap_t*  heap = (a->heap != NULL || theap == NULL ? a->heap : _mi_theap_heap(theap));
  void*       p = NULL;
  size_t      n_before;
  int         stage = 0;
  if (heap == NULL) heap = &_mi_heap_main;
  do {
    n_before = _mi_limits_refusals(heap);
    p = alloc_try_in_window(a);
    if (p == NULL) p = alloc_alone(a);
  } while (p == NULL && _mi_limits_refusals(heap) != n_before && _mi_limits_relieve(heap, stage++));
  return p;
}

// Where memory only grows, what threads hold without need is used before there is more memory.
static void* alloc_after_warm(const mi_alloc_t* a) {
  _mi_warm_collect();
  return alloc_try_in_window(a);
}

// Constructors of other libraries may allocate before ours has reserved the memory that is all they may have.
static void* alloc_after_reserving(const mi_alloc_t* a) {
  bool has_options = (!_mi_option_is_absent() && _mi_prim_environment_entry(0) != NULL);
  return has_options && _mi_arena_init_once() ? alloc_try_in_window(a) : NULL;
}

// After a failure: what the library holds itself may be what is missing.
static mi_cold void* alloc_again(mi_alloc_t a) {
  if (a.size > PTRDIFF_MAX) return _mi_alloc_failed(a.size);
  void* p = alloc_after_reserving(&a);
  if (p == NULL && !MI_PRIM_VIRTUAL) p = alloc_after_warm(&a);
  if (p != NULL) return p;
  _mi_hooks_deferred_free(true);
  _mi_warm_collect();
  _mi_purge_for_request();
  p = alloc_limited(&a);
  return p != NULL ? p : _mi_alloc_failed(a.size);
}

// Inlined, so that the constants of a request are never stored.
static mi_always_inline void* alloc_request(const mi_alloc_t* a) {
  void* p = (mi_likely(a->size <= PTRDIFF_MAX) ? alloc_try(a) : NULL);
  return mi_likely(p != NULL) ? p : alloc_again(*a);
}

void* _mi_alloc_request(const mi_alloc_t* request) {
  return alloc_request(request);
}

// A large block that the thread keeps.  NULL: none fits, the default heap is not the main heap, or there is more to be done.
static mi_always_inline void* alloc_kept(size_t size, bool zero) {
  mi_theap_t* theap = _mi_theap_default;
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  if (mi_unlikely(thread == NULL || _mi_event_is_pending()) || size > MI_LARGE_KEPT_MAX) return NULL;
  if (mi_unlikely(_mi_theap_heap(theap) != &_mi_heap_main) || _mi_life_is_guarded(SIZE_MAX)) return NULL;
  void* p = _mi_large_malloc_kept(thread, _mi_life_need(size), zero);
  return p == NULL ? NULL : _mi_life_issue_large(p, size, zero);
}

static mi_noinline void* alloc_any_large(mi_heap_t* heap, size_t size, bool zero) {
  mi_alloc_t request = {heap, size, MI_CLASS_NONE, 1, 0, 0, zero};
  return alloc_request(&request);
}

static mi_alloc_t alloc_request_to_grow(mi_heap_t* heap, size_t size, size_t growth) {
  size_t     cls = (size > MI_CLASS_ASKED_MAX ? MI_CLASS_NONE : _mi_size_class_of(_mi_life_need(size)));
  mi_alloc_t request = {heap, size, cls, 1, 0, growth, false};
  return request;
}

void* _mi_alloc_growing(mi_heap_t* heap, size_t size, size_t growth) {
  mi_alloc_t request = alloc_request_to_grow(heap, size, growth);
  return alloc_request(&request);
}

mi_noinline void* _mi_alloc_quietly(mi_heap_t* heap, size_t size, size_t growth) mi_attr_noexcept {
  mi_alloc_t request = alloc_request_to_grow(heap, size, growth);
  return alloc_try(&request);
}

mi_noinline void* _mi_alloc_in(mi_heap_t* heap, size_t size, bool zero) mi_attr_noexcept {
  if (size > MI_CLASS_ASKED_MAX) return alloc_any_large(heap, size, zero);
  mi_alloc_t request = {heap, size, _mi_size_class_of(_mi_life_need(size)), 1, 0, 0, zero};
  return alloc_request(&request);
}

static mi_noinline void* alloc_default(size_t size, bool zero) mi_attr_noexcept {
  return _mi_alloc_in(NULL, size, zero);
}

static mi_noinline void* alloc_default_large(size_t size, bool zero) mi_attr_noexcept {
  void* p = alloc_kept(size, zero);
  return mi_likely(p != NULL) ? p : alloc_any_large(NULL, size, zero);
}

// While the thread's allocations are counted, most of them end here.
mi_noinline void* _mi_alloc(size_t size, bool zero) mi_attr_noexcept {
  if (mi_unlikely(size > MI_CLASS_ASKED_MAX)) return alloc_default_large(size, zero);
  mi_theap_t* theap = _mi_theap_default;
  if (mi_likely(!_mi_counted_is(theap)) || _mi_life_is_guarded(size)) return alloc_default(size, zero);
  size_t      cls = _mi_size_class_of(_mi_life_need(size));
  mi_block_t* block = _mi_sampler_next(theap, cls);
  if (mi_unlikely(block == NULL)) return alloc_default(size, zero);
  if (zero) return _mi_life_issue_zero_any(block, size, cls, false);
  return _mi_life_issue(block, size, cls, _mi_life_is_marked(_mi_life_need(size)));
}

// ---- failures -------------------------------------------------------------------------------------------------------

static MI_LOCAL(int, alloc_errno_before);

mi_cold int _mi_alloc_errno_before(void) {
  return mi_local(alloc_errno_before);
}

mi_cold void* _mi_alloc_failed(size_t size) {
  bool absurd = (size > PTRDIFF_MAX);
  mi_local(alloc_errno_before) = errno;
  MI_PROBE1(out_of_memory, size);
  _mi_message_error(
      absurd ? EOVERFLOW : ENOMEM,
      absurd ? "allocation request is too large (%zu bytes)\n" : "unable to allocate memory (%zu bytes)\n", size);
  if (!absurd) _mi_arena_warn_forbidden();
  errno = ENOMEM;
  return NULL;
}

mi_cold void* _mi_alloc_failed_align(size_t alignment) {
  if (MI_DEBUG > 0) _mi_message_error(EOVERFLOW, "alignment is not a power of two (%zu)\n", alignment);
  errno = EINVAL;
  return NULL;
}

mi_cold void _mi_alloc_report_count(size_t count, size_t size) {
  if (MI_DEBUG == 0 && MI_XMALLOC == 0) return;
  _mi_message_error(EOVERFLOW, "allocation request is too large (%zu times %zu bytes)\n", count, size);
}

mi_noinline bool _mi_alloc_count(size_t count, size_t size, size_t* total) {
  if (mi_likely(!mi_mul_overflows(count, size, total))) return true;
  _mi_alloc_report_count(count, size);
  errno = ENOMEM;
  return false;
}
