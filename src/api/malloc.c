// malloc, calloc, free: the fast paths, then the slow ones they fall into.  Layer: api.
//
//   mi_malloc(n)   class of n -> bin of the class -> its first block                            | _mi_malloc_slow
//   mi_free(p)     slice of p -> descriptor -> home is my theap? -> bin of its class has room?  | free_slow
//
// There is no test whether the thread, or the process, was initialised: before that all bins are empty and no page has
// the thread's theap as its home.  test/golden holds the number of instructions of each.
#include <errno.h>
#include <string.h>

#include "../base/probe.h"
#include "../heap/event.h"
#include "../heap/free.h"
#include "../heap/late.h"
#include "../heap/refill.h"
#include "../heap/fork.h"
#include "../heap/guard.h"
#include "../heap/large.h"
#include "../heap/quarantine.h"
#include "../heap/sampler.h"
#include "../heap/thread.h"
#include "../support/message.h"
#include "../support/options.h"
#include "../support/stat.h"
#include "api.h"
#include "hooks.h"

// ---- fast paths -----------------------------------------------------------------------------------------------------

// Sizes that a class serves, with the padding.
#define MALLOC_SMALL_MAX  (MI_SMALL_MAX - MI_PADDING_SIZE)
#define MALLOC_MEDIUM_MAX (MI_MEDIUM_MAX - MI_PADDING_SIZE)

static mi_always_inline void* malloc_pop(size_t offset, size_t size) {
  void* p = _mi_theap_pop_fast(_mi_theap_default, offset);
  if (mi_unlikely(p == NULL)) return _mi_malloc_slow(size, false);
  _mi_block_reuse(p, _mi_size_class_block(offset >> MI_BIN_SHIFT));
  return _mi_block_issue(p, size, _mi_size_class_block(offset >> MI_BIN_SHIFT), false);
}

static mi_noinline void* malloc_big(size_t size) mi_attr_noexcept {
  if (mi_unlikely(size > MI_CLASS_ASKED_MAX)) return _mi_malloc_slow(size, false);
  return malloc_pop(_mi_size_class_of_big(size + MI_PADDING_SIZE) << MI_BIN_SHIFT, size);
}

void* mi_malloc(size_t size) mi_attr_noexcept {
  if (MI_HARDENED && mi_unlikely(size == 0)) return _mi_malloc_slow(size, false);
  if (mi_likely(size <= MALLOC_SMALL_MAX)) return malloc_pop(_mi_size_class_small[size + MI_PADDING_SIZE], size);
  if (mi_likely(size <= MALLOC_MEDIUM_MAX))
    return malloc_pop(_mi_size_class_medium[(size + MI_PADDING_SIZE - 1) / 128], size);
  return malloc_big(size);
}

static mi_noinline void free_slow(void* p) mi_attr_noexcept;

static mi_cold void free_corrupt(mi_theap_t* theap, mi_page_t* slice, void* p) {
  if (!_mi_verify_block(slice - slice->to_first, p, "free")) return;
  _mi_block_retire(p, _mi_page_block_size(slice));
  if (MI_HARDENED) _mi_quarantine_free(slice, p);
  else _mi_free_local(theap, slice, p);
}

void mi_free(void* p) mi_attr_noexcept {
  if (MI_TRACK && p != NULL) mi_track_unblock(p);
  const mi_region_t* region = &_mi_region_all[0];
  size_t             slice = ((uintptr_t)p - mi_load_growing(&region->base)) >> MI_SLICE_SHIFT;
  if (mi_likely(slice < mi_load_growing(&region->n_slices))) {
    mi_page_t*  page = (mi_page_t*)_mi_region_descriptor(region, slice);
    mi_theap_t* theap = mi_load_relaxed(&page->home);
    if (mi_likely(theap == _mi_theap_default)) {
      if (MI_CHECKED &&
          mi_unlikely(!_mi_verify_is_readable(page, p) || !_mi_padding_is_whole(p, _mi_page_block_size(page)))) {
        free_corrupt(theap, page, p);
        return;
      }
      if (MI_CHECKED) _mi_block_retire(p, _mi_page_block_size(page));
      if (MI_HARDENED) _mi_quarantine_free(page, p);
      else _mi_free_local(theap, page, p);
      return;
    }
  }
  free_slow(p);
}

// Without padding all of the block is cleared, not only `size` bytes: mi_rezalloc counts on it when a block grows in place.
static mi_always_inline void* zalloc_small(size_t size) {
  size_t offset = _mi_size_class_small[size + MI_PADDING_SIZE];
  void*  p = _mi_theap_pop_fast(_mi_theap_default, offset);
  if (mi_unlikely(p == NULL)) return _mi_malloc_slow(size, true);
  if (MI_FILL || MI_TRACK) _mi_block_reuse(p, _mi_size_class_block(offset >> MI_BIN_SHIFT)); // hardened: it is zero now
  if (MI_HARDENED || (!MI_MIN_ALIGN_8 && size <= 128)) {
    if (!MI_HARDENED) _mi_clear_small(p, size);
  }
  else {
    memset(p, 0, MI_PADDING ? size : _mi_size_class_block(offset >> MI_BIN_SHIFT));
  }
  return MI_PADDING ? _mi_block_issue(p, size, _mi_size_class_block(offset >> MI_BIN_SHIFT), true) : p;
}

void* mi_zalloc(size_t size) mi_attr_noexcept {
  bool is_small = (size <= MALLOC_SMALL_MAX && !(MI_HARDENED && size == 0));
  return mi_likely(is_small) ? zalloc_small(size) : _mi_malloc_slow(size, true);
}

mi_cold void _mi_count_report(size_t count, size_t size) {
  if (MI_DEBUG == 0 && MI_XMALLOC == 0) return;
  _mi_message_error(EOVERFLOW, "allocation request is too large (%zu times %zu bytes)\n", count, size);
}

static mi_cold void* malloc_overflow(size_t count, size_t size) {
  _mi_count_report(count, size);
  errno = ENOMEM;
  return NULL;
}

void* mi_calloc(size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  if (mi_unlikely(mi_mul_overflows(count, size, &total))) return malloc_overflow(count, size);
  return mi_zalloc(total);
}

// ---- allocation, the slow path --------------------------------------------------------------------------------------

mi_cold void* _mi_malloc_failed(size_t size) {
  bool absurd = (size > PTRDIFF_MAX);
  MI_PROBE1(out_of_memory, size);
  _mi_message_error(
      absurd ? EOVERFLOW : ENOMEM,
      absurd ? "allocation request is too large (%zu bytes)\n" : "unable to allocate memory (%zu bytes)\n", size);
  errno = ENOMEM;
  return NULL;
}

// Where to allocate from: the heap, or that of the thread's default theap if it is NULL.  *theap is NULL after the end of
// the thread.  NULL: out of memory, or no such heap.
static mi_always_inline mi_heap_t* malloc_from(mi_heap_t* heap, mi_theap_t** theap) {
  *theap = (heap == NULL ? _mi_thread_theap() : _mi_thread_theap_of(heap));
  if (mi_likely(*theap != NULL)) return _mi_theap_heap(*theap);
  if (_mi_theap_default != &_mi_theap_dead) return NULL;
  return heap == NULL ? &_mi_heap_main : heap;
}

static void* malloc_class_hooked(mi_theap_t* theap, size_t cls, size_t size, bool zero);

static void* malloc_class(mi_heap_t* heap, mi_theap_t* theap, size_t cls, size_t size, bool zero) {
  mi_block_t* block = NULL;
  bool        is_zero = false;
  if (mi_unlikely(theap == NULL)) {
    block = (mi_block_t*)_mi_late_malloc(heap, cls, &is_zero);
  }
  else {
    if (mi_hooks_is_due(theap)) return malloc_class_hooked(theap, cls, size, zero);
    block = _mi_theap_pop(theap, cls);
    if (block == NULL) block = _mi_refill(theap, cls, &is_zero);
  }
  if (block == NULL) return NULL;
  _mi_block_reuse(block, _mi_size_class_block(cls));
  if (zero && is_zero) block->next = NULL;
  else if (zero && !MI_HARDENED) memset(block, 0, _mi_size_class_block(cls));
  return _mi_block_issue(block, size, _mi_size_class_block(cls), zero);
}

// Debug builds fill new blocks, but of one over 16 MiB only both ends: to fill all of it would back all of it, and take
// longer than anything else that is done to it.  (Ten times malloc and free of 1 GiB: 1.6 s, with ends of 1 MiB 3 ms.)
#define MALLOC_FILL_MAX  (16 * MI_MiB)
#define MALLOC_FILL_ENDS (1 * MI_MiB)

static void malloc_fill_large(char* p, size_t size) {
  if (size > MALLOC_FILL_MAX) {
    memset(p + size - MALLOC_FILL_ENDS, MI_FILL_UNINIT, MALLOC_FILL_ENDS);
    size = MALLOC_FILL_ENDS;
  }
  memset(p, MI_FILL_UNINIT, size);
}

// After the hook, with the next count: the thread may have let go of the theap.
static mi_noinline void* malloc_class_hooked(mi_theap_t* theap, size_t cls, size_t size, bool zero) {
  theap = _mi_hooks_slow_malloc(theap);
  return malloc_class(theap == NULL ? &_mi_heap_main : _mi_theap_heap(theap), theap, cls, size, zero);
}

static void* malloc_issue_large(void* p, size_t size, bool zero) {
  if (p == NULL) return NULL;
  MI_PROBE2(large_malloc, p, size);
  if (MI_FILL_NEW && !zero) malloc_fill_large((char*)p, size);
  if (MI_PADDING) _mi_padding_write_large(_mi_page_of(p), size);
  if (MI_TRACK) {
    mi_track_closed(_mi_page_large_start(_mi_page_of(p)), (size_t)((char*)p - _mi_page_large_start(_mi_page_of(p))));
    mi_track_closed((char*)p + size, _mi_page_large_size(_mi_page_of(p)) - size);
    mi_track_block(p, size, zero);
  }
  _mi_trace_allocated(p);
  return p;
}

// Hardened builds: large blocks and those of no bytes are guarded, as far as there can be so many (heap/guard.h).
static void* malloc_guarded(mi_heap_t* heap, size_t size, size_t align, size_t offset, size_t room) {
  mi_guard_request_t request = {size, align, offset, false, false, room};
  return MI_HARDENED ? _mi_guard_malloc(heap, &request) : NULL;
}

void* _mi_malloc_growing(mi_heap_t* heap, size_t size) {
  mi_theap_t* theap;
  mi_heap_t*  from = (MI_HARDENED && size <= PTRDIFF_MAX ? malloc_from(heap, &theap) : NULL);
  void*       p = (from != NULL ? malloc_guarded(from, size, 1, 0, size / 4) : NULL);
  return p != NULL ? p : _mi_malloc_in(heap, size, false);
}

static void* malloc_large(mi_heap_t* heap, mi_theap_t* theap, size_t size, bool zero) {
  if (size > PTRDIFF_MAX) return NULL;
  void* p = malloc_guarded(heap, size, 1, 0, 0);
  if (p != NULL) return p;
  if (theap != NULL && heap == &_mi_heap_main)
    p = _mi_large_malloc_kept(mi_load_relaxed(&theap->thread), size + MI_PADDING_SIZE, zero);
  if (p == NULL) p = _mi_large_malloc(heap, size + MI_PADDING_SIZE, 1, 0, zero);
  return malloc_issue_large(p, size, zero);
}

// Is there something that each slow path has to look at (heap/theap.h)?
static mi_always_inline bool malloc_has_notices(void) {
  return mi_unlikely(mi_load_relaxed(&_mi_event_pending) != 0);
}

// Looks at it: a guarded block, if there is to be one.
static mi_noinline void* malloc_noticed(mi_theap_t* theap, size_t size, size_t align, size_t offset) {
  _mi_fork_adopt_orphans();
  return _mi_sampler_malloc(theap, size, align, offset);
}

static mi_noinline void* malloc_class_noticed(mi_heap_t* heap, mi_theap_t* theap, size_t cls, size_t size, bool zero) {
  mi_theap_t*       thread = (theap == NULL ? NULL : mi_load_relaxed(&theap->thread));
  mi_sampler_turn_t turn = _mi_sampler_open(theap, cls);
  void*             p = malloc_class(heap, theap, cls, size, zero);
  bool              is_still = (theap != NULL && mi_load_relaxed(&theap->thread) == thread); // see malloc_class_hooked
  if (is_still) _mi_sampler_close(theap, cls, turn);
  return p;
}

void* _mi_malloc_class(mi_heap_t* heap, size_t cls, size_t size, size_t align, bool zero) {
  mi_theap_t* theap;
  heap = malloc_from(heap, &theap);
  if (heap == NULL) return NULL;
  if (!malloc_has_notices()) return malloc_class(heap, theap, cls, size, zero);
  void* p = malloc_noticed(theap, size, align, 0);
  return p != NULL ? p : malloc_class_noticed(heap, theap, cls, size, zero);
}

void* _mi_malloc_large(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero) {
  mi_theap_t* theap;
  heap = malloc_from(heap, &theap);
  if (heap == NULL) return NULL;
  void* p = (malloc_has_notices() ? malloc_noticed(theap, size, align, offset) : NULL);
  if (p == NULL) p = malloc_guarded(heap, size, align, offset, 0);
  if (p != NULL) return p;
  return malloc_issue_large(_mi_large_malloc(heap, size + MI_PADDING_SIZE, align, offset, zero), size, zero);
}

static mi_noinline void* malloc_any_noticed(mi_heap_t* heap, mi_theap_t* theap, size_t size, bool zero) {
  void* p = malloc_noticed(theap, size, 1, 0);
  if (p != NULL) return p;
  if (size > MI_CLASS_ASKED_MAX) return malloc_large(heap, theap, size, zero);
  return malloc_class_noticed(heap, theap, _mi_size_class_of(size + MI_PADDING_SIZE), size, zero);
}

static void* malloc_any(mi_heap_t* heap, size_t size, bool zero) {
  mi_theap_t* theap;
  heap = malloc_from(heap, &theap);
  if (mi_unlikely(heap == NULL)) return NULL;
  if (malloc_has_notices()) return malloc_any_noticed(heap, theap, size, zero);
  if (MI_HARDENED && mi_unlikely(size == 0)) {
    void* p = malloc_guarded(heap, size, 1, 0, 0);
    if (p != NULL) return p;
  }
  if (size > MI_CLASS_ASKED_MAX) return malloc_large(heap, theap, size, zero);
  return malloc_class(heap, theap, _mi_size_class_of(size + MI_PADDING_SIZE), size, zero);
}

mi_noinline void* _mi_malloc_slow_in(mi_heap_t* heap, size_t size, bool zero) mi_attr_noexcept {
  void* p = malloc_any(heap, size, zero);
  if (mi_likely(p != NULL)) return p;
  if (size <= PTRDIFF_MAX) {
    mi_collect(true); // what we hold may be what is missing
    p = malloc_any(heap, size, zero);
    if (p != NULL) return p;
  }
  return _mi_malloc_failed(size);
}

mi_noinline void* _mi_malloc_slow(size_t size, bool zero) mi_attr_noexcept {
  return _mi_malloc_slow_in(NULL, size, zero);
}

// ---- freeing, the slow path -----------------------------------------------------------------------------------------

// Most slices of a large block say nothing of it: only the one in which it begins is looked up by those who free it.
static const mi_page_t* free_find_large(const void* p) {
  const mi_page_t* slice = _mi_page_at(p);
  if (slice == NULL) return NULL;
  size_t n = ((uintptr_t)p - _mi_region_all[0].base) >> MI_SLICE_SHIFT;
  if (n >= mi_load_growing(&_mi_region_all[0].n_slices)) return NULL;
  for (size_t i = 1; i <= n; i++) {
    const mi_page_t* page = slice - i;
    if (_mi_page_kind(page) == MI_PAGE_NONE || _mi_page_kind(page) == MI_PAGE_INTERIOR) continue;
    return _mi_page_kind(page) == MI_PAGE_LARGE && page->n_slices > i ? page : NULL;
  }
  return NULL;
}

static mi_cold void free_invalid(const void* p) {
  const mi_page_t* page = free_find_large(p);
  if (page == NULL) {
    _mi_message_error(EINVAL, "free of an invalid pointer: %p is no block of this allocator\n", p);
  }
  else {
    _mi_message_error(EINVAL, "free of an invalid pointer: %p lies within the block %p of %zu bytes\n", p,
                      (const void*)_mi_page_large_block(page), _mi_page_large_size(page));
  }
}

static mi_cold void free_large_invalid(const mi_page_t* page, void* p) {
  void*  block = _mi_page_large_block(page);
  size_t size = _mi_page_large_size(page);
  if (_mi_page_has(page, MI_PAGE_GUARDED)) _mi_guard_explain(page);
  if (p == block) _mi_message_error(EAGAIN, "double free of the block %p of %zu bytes\n", p, size);
  else
    _mi_message_error(EINVAL, "free of an invalid pointer: %p lies within the block %p of %zu bytes\n", p, block, size);
}

static void free_large(mi_page_t* page, void* p) {
  if (MI_CHECKED && !_mi_page_has(page, MI_PAGE_GUARDED)) {
    if (!_mi_verify_block(page, p, "free")) return;
    _mi_trace_freed(p);
  }
  if (p != _mi_page_large_block(page) || !_mi_large_free(_mi_theap_backing(), page)) free_large_invalid(page, p);
}

static mi_noinline void free_slow(void* p) mi_attr_noexcept {
  if (p == NULL) return;
  mi_page_t* page = _mi_page_of(p);
  if (mi_unlikely(page == NULL)) {
    free_invalid(p);
    return;
  }
  if (_mi_page_kind(page) == MI_PAGE_LARGE) {
    free_large(page, p);
    return;
  }
  if (MI_CHECKED) {
    if (!_mi_verify_block(page, p, "free")) return;
    _mi_block_retire(p, _mi_page_block_size(page));
  }
  if (MI_HARDENED) _mi_quarantine_free(page, p);
  else _mi_free_any(_mi_thread_for_frees(), page, p); // in a region above 0, not our default theap's, or another's
}

// ---- the same under other names -------------------------------------------------------------------------------------

void* mi_malloc_small(size_t size) mi_attr_noexcept {
  mi_assert(size <= MI_SMALL_SIZE_MAX);
  return mi_malloc(size);
}

void* mi_zalloc_small(size_t size) mi_attr_noexcept {
  mi_assert(size <= MI_SMALL_SIZE_MAX);
  return mi_zalloc(size);
}

void mi_free_small(void* p) mi_attr_noexcept {
  mi_free(p);
}

mi_noinline bool _mi_count_size(size_t count, size_t size, size_t* total) {
  if (mi_likely(!mi_mul_overflows(count, size, total))) return true;
  malloc_overflow(count, size);
  return false;
}

void* mi_mallocn(size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_malloc(total) : NULL;
}

// ---- sizes ----------------------------------------------------------------------------------------------------------

static mi_noinline size_t usable_size_slow(const void* p) {
  mi_page_t* page = _mi_page_of(p);
  if (page == NULL) return 0;
  if (!MI_PADDING) return p == _mi_page_large_block(page) ? _mi_page_large_size(page) : 0;
  if (MI_CHECKED && !_mi_verify_block(page, p, "usable_size")) return 0;
  size_t size = _mi_padding_read_any(page, p);
  return size == SIZE_MAX ? 0 : size;
}

size_t mi_usable_size(const void* p) mi_attr_noexcept {
  const mi_page_t* page = _mi_page_at(p);
  if (!MI_PADDING && mi_likely(page != NULL)) {
    size_t size = _mi_page_block_size(page);
    if (mi_likely(size != 0)) return size;
  }
  return usable_size_slow(p);
}

size_t mi_good_size(size_t size) mi_attr_noexcept {
  if (size <= MI_CLASS_ASKED_MAX) return _mi_size_class_block(_mi_size_class_of(size + MI_PADDING_SIZE));
  if (size > (size_t)PTRDIFF_MAX - MI_SLICE_SIZE) return size;
  return mi_align_up(size + MI_PADDING_SIZE, MI_SLICE_SIZE);
}

// ---- block sizes on the side ----------------------------------------------------------------------------------------

// The size of the block, padding included; 0 for what is none.
static size_t block_size_of(const void* p) {
  mi_page_t* page = _mi_page_of(p);
  if (page == NULL) return 0;
  return _mi_page_kind(page) == MI_PAGE_LARGE ? _mi_page_large_size(page) : _mi_page_block_size(page);
}

static void* with_block_size(void* p, size_t* block_size) {
  if (p != NULL && block_size != NULL) *block_size = block_size_of(p);
  return p;
}

void* mi_umalloc(size_t size, size_t* block_size) mi_attr_noexcept {
  return with_block_size(mi_malloc(size), block_size);
}

void* mi_ucalloc(size_t count, size_t size, size_t* block_size) mi_attr_noexcept {
  return with_block_size(mi_calloc(count, size), block_size);
}

void* mi_umalloc_small(size_t size, size_t* block_size) mi_attr_noexcept {
  return with_block_size(mi_malloc_small(size), block_size);
}

void* mi_uzalloc_small(size_t size, size_t* block_size) mi_attr_noexcept {
  return with_block_size(mi_zalloc_small(size), block_size);
}

void* mi_umalloc_aligned(size_t size, size_t alignment, size_t* block_size) mi_attr_noexcept {
  return with_block_size(mi_malloc_aligned(size, alignment), block_size);
}

void* mi_uzalloc_aligned(size_t size, size_t alignment, size_t* block_size) mi_attr_noexcept {
  return with_block_size(mi_zalloc_aligned(size, alignment), block_size);
}

void mi_ufree(void* p, size_t* block_size) mi_attr_noexcept {
  (void)with_block_size(p, block_size);
  mi_free(p);
}

void* mi_urealloc(void* p, size_t newsize, size_t* block_size_pre, size_t* block_size_post) mi_attr_noexcept {
  size_t before = block_size_of(p);
  void*  q = mi_realloc(p, newsize);
  if (q != NULL && block_size_pre != NULL) *block_size_pre = before;
  return with_block_size(q, block_size_post);
}
