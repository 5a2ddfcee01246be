// realloc and its relatives.  Layer: api.
//
// A block stays where it is while at least half of it is used; a large one also grows into free memory behind it, and is
// moved by the system's page tables before it is copied (heap/large.c).
//
// At level 3 of the interface a block that is resized is afterwards in the heap that it would be allocated from: who is
// going to destroy the other one may count on that.
#include <errno.h>
#include <string.h>

#include "../base/probe.h"
#include "../heap/guard.h"
#include "../heap/large.h"
#include "../heap/thread.h"
#include "../support/message.h"
#include "api.h"

// A new block with the contents of the old one; what is new is zero if asked for.
static mi_noinline void* realloc_copy(mi_heap_t* heap, void* p, size_t old_size, size_t new_size, bool zero) {
  bool  is_growing = (MI_HARDENED && old_size > MI_CLASS_ASKED_MAX && new_size > old_size);
  void* q = (is_growing ? _mi_malloc_growing(heap, new_size) : _mi_malloc_in(heap, new_size, false));
  if (mi_unlikely(q == NULL)) return NULL;
  size_t n = mi_min(old_size, new_size);
  // To the end of the block, for when it grows in place.
  if (zero) memset((char*)q + n, 0, mi_usable_size(q) - n);
  if (new_size == 0 && !MI_PADDING) *(char*)q = 0; // some programs read it
  if (MI_HARDENED && n > MI_CLASS_ASKED_MAX) _mi_guard_populate(q, n);
  memcpy(q, p, n);
  mi_free(p);
  return q;
}

// The block stays where it is, and has `limit` for what is asked; up to `old_size` it has contents.
static void* realloc_keep(mi_page_t* page, void* p, size_t old_size, size_t new_size, size_t room, bool zero) {
  if (!MI_PADDING) return p;
  if (MI_TRACK) {
    // Only what changes: growing a block byte by byte would cost quadratic time.  Behind old_size it is closed already.
    mi_track_resize(p, old_size, new_size);
    if (new_size < old_size) mi_track_closed((char*)p + new_size, old_size - new_size);
  }
  if (zero && new_size > old_size) memset((char*)p + old_size, 0, mi_min(new_size, room) - old_size);
  _mi_padding_write_any(page, p, new_size);
  return p;
}

static size_t realloc_room(const mi_page_t* page) {
  return page->cls == MI_CLASS_NONE ? _mi_page_large_size(page) : _mi_page_block_size(page);
}

void* _mi_realloc_stay(mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero) {
  if (_mi_page_has(page, MI_PAGE_GUARDED)) {
    bool may_stay = (MI_HARDENED && old_size > MI_CLASS_ASKED_MAX && new_size > MI_CLASS_ASKED_MAX);
    if (!may_stay || !_mi_guard_resize(page, new_size)) return NULL;
    return realloc_keep(page, p, old_size, new_size, new_size, zero);
  }
  size_t room = realloc_room(page);
  size_t needed = new_size + MI_PADDING_SIZE;
  if (needed > room || needed < room / 2 || new_size == 0) return NULL;
  return realloc_keep(page, p, old_size, new_size, room, zero);
}

// A block that fits, or can be made to, without copying; NULL if not.
static void* realloc_in_place(mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero) {
  size_t room = realloc_room(page);
  void*  q = _mi_realloc_stay(page, p, old_size, new_size, zero);
  if (q != NULL || _mi_page_has(page, MI_PAGE_GUARDED)) return q;
  // What tools know of the contents does not move with page tables, so for them large blocks are copied.
  if (page->cls != MI_CLASS_NONE || new_size <= MI_CLASS_ASKED_MAX || new_size > PTRDIFF_MAX || MI_TRACK) return NULL;
  q = _mi_large_realloc(page, new_size + MI_PADDING_SIZE, zero); // what it adds is zero
  MI_PROBE3(large_realloc, p, q, new_size);
  if (q != NULL && q != p) {
    _mi_trace_freed(p);
    _mi_trace_allocated(q);
  }
  return q == NULL ? NULL : realloc_keep(_mi_page_of(q), q, old_size, new_size, room, zero);
}

static mi_page_t* realloc_find_page(const void* p, size_t* old_size) {
  mi_page_t* page = _mi_page_of(p);
  if (mi_unlikely(page == NULL)) {
    if (MI_TRACK) mi_track_unblock(p); // tools report it too
    _mi_message_error(EINVAL, "realloc of an invalid pointer: %p is no block of this allocator\n", p);
    return NULL;
  }
  if (MI_CHECKED && !_mi_verify_block(page, p, "realloc")) {
    if (MI_TRACK) mi_track_unblock(p); // tools report it too
    return NULL;
  }
  if (mi_unlikely(page->cls == MI_CLASS_NONE && p != _mi_page_large_block(page))) {
    _mi_message_error(EINVAL, "realloc of an invalid pointer: %p lies within the block %p of %zu bytes\n", p,
                      (void*)_mi_page_large_block(page), _mi_page_large_size(page));
    return NULL;
  }
  *old_size = MI_PADDING ? _mi_padding_read_any(page, p) : realloc_room(page);
  if (*old_size == SIZE_MAX) *old_size = realloc_room(page) - MI_PADDING_SIZE; // it was reported
  return page;
}

mi_page_t* _mi_realloc_page(const void* p, size_t* old_size) {
  mi_page_t* page = realloc_find_page(p, old_size);
  if (mi_unlikely(page == NULL)) errno = EINVAL;
  return page;
}

bool _mi_realloc_is_in(mi_heap_t* heap, const mi_page_t* page) {
  if (heap == NULL && MI_API_LEVEL < 3) return true;
  return _mi_heap_of(page) == (heap != NULL ? heap : mi_heap_get_default());
}

static mi_noinline void* realloc_slow(void* p, size_t new_size, bool zero, mi_heap_t* heap) mi_attr_noexcept {
  size_t old_size;
  if (p == NULL) return _mi_malloc_in(heap, new_size, zero);
  mi_page_t* page = _mi_realloc_page(p, &old_size);
  if (mi_unlikely(page == NULL)) return NULL;
  if (_mi_realloc_is_in(heap, page)) {
    void* q = realloc_in_place(page, p, old_size, new_size, zero);
    if (q != NULL) return q;
  }
  return realloc_copy(heap, p, old_size, new_size, zero);
}

static mi_always_inline void* realloc_any(void* p, size_t new_size, bool zero) {
  const mi_page_t* page = _mi_page_at(p);
  if (!MI_PADDING && mi_likely(page != NULL)) {
    size_t size = _mi_page_block_size(page);
    bool   is_in_heap = (MI_API_LEVEL < 3 || mi_load_relaxed(&page->home) == _mi_theap_default);
    if (mi_likely(new_size <= size && new_size >= size / 2 && new_size > 0 && is_in_heap)) return p;
  }
  return realloc_slow(p, new_size, zero, NULL);
}

void* _mi_realloc(mi_heap_t* heap, void* p, size_t new_size, bool zero) {
  return heap == NULL ? realloc_any(p, new_size, zero) : realloc_slow(p, new_size, zero, heap);
}

void* mi_realloc(void* p, size_t newsize) mi_attr_noexcept {
  return realloc_any(p, newsize, false);
}

void* mi_rezalloc(void* p, size_t newsize) mi_attr_noexcept {
  return realloc_any(p, newsize, true);
}

void* mi_recalloc(void* p, size_t newcount, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(newcount, size, &total) ? mi_rezalloc(p, total) : NULL;
}

void* mi_reallocn(void* p, size_t count, size_t size) mi_attr_noexcept {
  size_t total;
  return _mi_count_size(count, size, &total) ? mi_realloc(p, total) : NULL;
}

void* mi_reallocf(void* p, size_t newsize) mi_attr_noexcept {
  void* q = mi_realloc(p, newsize);
  if (q == NULL && p != NULL) mi_free(p);
  return q;
}

void* mi_expand(void* p, size_t newsize) mi_attr_noexcept {
  return (!MI_PADDING && p != NULL && newsize <= mi_usable_size(p)) ? p : NULL;
}
