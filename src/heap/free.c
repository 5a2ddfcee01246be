// Frees that do not end in a bin.  Layer: heap.
#include "free.h"

#include "gaps.h"

static mi_noinline void free_leave_and_attend(mi_theap_t* theap) {
  bool        has_deleted = theap->has_deleted, has_trimmed = theap->has_trimmed;
  const void* wrong_free = _mi_gaps_wrong_free(theap);
  theap->has_deleted = theap->has_trimmed = false;
  _mi_presence_leave(theap);
  if (has_deleted) _mi_event_freed();
  if (has_trimmed) _mi_event_poll();
  if (mi_unlikely(wrong_free != NULL)) _mi_gaps_report(wrong_free);
}

// Leaves, and then does the work that must not be done between enter and leave.
static mi_always_inline void free_leave(mi_theap_t* theap) {
  if (mi_unlikely(theap->has_deleted || theap->has_trimmed)) free_leave_and_attend(theap);
  else _mi_presence_leave(theap);
}

// A block of an owned page is on the page's list now, because its bin had no slots.
static void free_overflowed(mi_theap_t* theap, mi_page_t* page) {
  theap->classes[page->cls].has_overflowed = true;
  _mi_drain_freed_one(theap, page);
}

// Counts n more frees past the bins.
static mi_always_inline void free_look(mi_theap_t* theap, size_t n) {
  theap->trim.n_slow_frees += (uint32_t)n;
  if (mi_likely(theap->trim.n_slow_frees < MI_FREES_PER_LOOK)) return;
  theap->trim.n_slow_frees = 0;
  _mi_trim_some(theap);
}

// After one block of a gap page found its bin full, this many blocks do not try theirs: looking up the class takes more than half of
// the time of such a free, and a program that has filled a bin is likely to free more.
#define FREE_UNTRIED 64

// Puts a block of a gap page into the bin of its class, if gaps.h, GP7 allows that.
static bool free_keep_of_gaps(mi_theap_t* theap, const mi_page_t* page, mi_block_t* block) {
  mi_gaps_t* gaps = theap->gaps;
  if (gaps->n_quiet < MI_GAP_QUIET * gaps->n_pages) {
    gaps->n_quiet++;
    return false;
  }
  size_t size = _mi_gaps_size(page, block);
  if (size != 0 && _mi_theap_push(&theap->bins[_mi_size_class_of(size)], block)) return true;
  gaps->n_quiet -= mi_min(gaps->n_quiet, FREE_UNTRIED);
  return false;
}

mi_noinline void _mi_free_slow(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept {
  if (!_mi_queue_owns(theap, page)) {
    _mi_outbox_add(theap, page, block);
  }
  else if (_mi_gaps_is(page)) {
    if (!free_keep_of_gaps(theap, page, block)) _mi_gaps_free(theap, page, block);
  }
  else {
    _mi_page_push_free(page, block, page->free);
    free_overflowed(theap, page);
  }
  free_look(theap, 1);
  free_leave(theap);
}

mi_noinline void _mi_free_trim(mi_theap_t* theap, mi_page_t* page) mi_attr_noexcept {
  size_t n = page->capacity; // if that is less than MI_FREES_PER_LOOK, only a free that empties the page comes by
  free_overflowed(theap, page);
  free_look(theap, mi_min(n, MI_FREES_PER_LOOK));
  free_leave(theap);
}

mi_cold void _mi_free_revoked(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) mi_attr_noexcept {
  _mi_presence_wait(theap);
  _mi_trim_by_round(theap);
  _mi_free_slow(theap, page, block);
}

// Most blocks of others join the batch of their page.
static mi_always_inline void free_remote(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  if (mi_unlikely(!_mi_presence_try_enter(theap))) {
    _mi_free_revoked(theap, page, block);
    return;
  }
  mi_batch_t* batch = _mi_outbox_batch(theap, page);
  if (mi_likely(batch->page == page && batch->count + 1 < batch->limit)) {
    _mi_outbox_link(batch, block);
    _mi_presence_leave(theap);
  }
  else {
    _mi_free_slow(theap, page, block);
  }
}

void _mi_free_any(mi_theap_t* thread, mi_page_t* page, void* p) mi_attr_noexcept {
  size_t      bin_offset = _mi_page_bin_offset(page); // first: P6
  mi_theap_t* home = mi_load_relaxed(&page->home);
  if (mi_unlikely(thread == NULL)) _mi_outbox_push(page, (mi_block_t*)p);
  else if (home != NULL && mi_load_relaxed(&home->thread) == thread) _mi_free_local(home, bin_offset, page, p);
  else free_remote(thread, page, (mi_block_t*)p);
}
