// Taking from a thread what it holds and does not use.  Layer: heap.  idle.h has the invariants.
#include "idle.h"

#include "../support/stat.h"
#include "background.h"
#include "heap.h"
#include "large.h"
#include "quarantine.h"
#include "sampler.h"
#include "thread.h"

// So many pages a thread lets go of at one slow path, 64 MiB of small blocks: 0.2 ms.  One whose bins have all that it needs comes by
// no more often than its bins are closed.
#define IDLE_PAGES_PER_TRIM 1024

mi_lock_t _mi_idle_lock;

// ---- bins of others ---------------------------------------------------------------------------------------------------

static mi_atomic(int32_t)* idle_slots(mi_bin_t* bin) {
  return (mi_atomic(int32_t)*)(void*)&bin->slots;
}

static mi_atomic(mi_block_t*)* idle_head(mi_bin_t* bin) {
  return (mi_atomic(mi_block_t*)*)(void*)&bin->head;
}

static bool idle_is_closed(const mi_theap_t* theap) {
  return mi_load_relaxed(&theap->is_closed);
}

// ThreadSanitizer knows no way to share what the fast path touches.
static bool idle_may_close(void) {
  return !MI_TSAN && !_mi_theap_is_sampled(mi_load_relaxed(&_mi_theap_notices));
}

// V3, first step.  A bin that has no room already was closed by the sampler (sampler.h, S3): its `slots` does not count its list, so
// that nothing can be taken.
static void idle_close_bins(mi_theap_t* theap) {
  mi_store_relaxed(&theap->is_closed, true);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_class_state_t* state = &theap->classes[cls];
    if (mi_load_relaxed(idle_slots(&theap->bins[cls])) < MI_BIN_NO_SLOTS / 2) {
      state->slots_taken = state->total;
      state->taken = NULL;
      continue;
    }
    state->slots_taken = mi_exchange_acq_rel(idle_slots(&theap->bins[cls]), MI_BIN_NO_SLOTS);
    state->taken = mi_exchange_acq_rel(idle_head(&theap->bins[cls]), (mi_block_t*)NULL);
  }
}

// Can there be a block of the class at p?  If the thread is at work the list may lead anywhere.
static bool idle_is_block(const void* p, size_t cls) {
  mi_page_t* page = _mi_page_of(p);
  if (page == NULL || _mi_page_kind(page) != MI_PAGE_BLOCKS || page->cls != cls) return false;
  size_t offset = (size_t)((const char*)p - _mi_page_start(page));
  return offset % _mi_class_block_size(cls) == 0 && offset / _mi_class_block_size(cls) < page->capacity;
}

// Has the list n blocks?
static bool idle_list_has(const mi_block_t* block, size_t cls, int32_t n) {
  for (; block != NULL && n > 0; n--) {
    if (!idle_is_block(block, cls)) return false;
    block = _mi_block_peek(block);
  }
  return block == NULL && n == 0;
}

static bool idle_bin_is_untouched(mi_bin_t* bin) {
  return mi_load_acquire(idle_slots(bin)) == MI_BIN_NO_SLOTS && mi_load_acquire(idle_head(bin)) == NULL;
}

bool _mi_idle_can_tell(const mi_theap_t* theap, size_t cls) {
  return !idle_is_closed(theap) || idle_bin_is_untouched((mi_bin_t*)&theap->bins[cls]);
}

const mi_block_t* _mi_idle_taken(const mi_theap_t* theap, size_t cls) {
  const mi_class_state_t* state = &theap->classes[cls];
  bool                    is_all = (state->total != state->slots_taken);
  return idle_is_closed(theap) && is_all && _mi_idle_can_tell(theap, cls) ? state->taken : NULL;
}

// V3, second step.
static void idle_take_bin(mi_theap_t* theap, size_t cls) {
  mi_bin_t*         bin = &theap->bins[cls];
  mi_class_state_t* state = &theap->classes[cls];
  mi_block_t*       list = state->taken;
  if (list == NULL || !idle_bin_is_untouched(bin)) return;
  if (!idle_list_has(list, cls, state->total - state->slots_taken)) return;
  mi_fence_seq_cst(); // what was read of the list is older than what is read now
  if (!idle_bin_is_untouched(bin)) return;
  state->taken = NULL;
  state->slots_taken = state->total;
  _mi_theap_give_back_list(theap, list);
}

// ---- bins of one's own ------------------------------------------------------------------------------------------------

static int32_t idle_length(mi_block_t* block, mi_block_t** last) {
  int32_t n = 0;
  for (; block != NULL; block = _mi_block_next(block), n++) *last = block;
  return n;
}

// The thread was in the middle of taking or freeing a block when the bin was closed, and has gone on with the list that it had
// read.  If that is all there should be, what was taken is in it, or was handed out.
static void idle_settle_touched(mi_bin_t* bin, mi_class_state_t* state, int32_t slots) {
  mi_block_t* last = NULL;
  int32_t     n = idle_length(bin->head, &last);
  if (n != state->total - slots && state->taken != NULL) {
    if (last != NULL) mi_block_set_next(last, state->taken);
    else bin->head = state->taken;
    n += idle_length(state->taken, &last);
  }
  bin->slots = (n < bin->limit ? bin->limit - n : 0);
  state->total = bin->slots + n;
}

static void idle_settle_bin(mi_bin_t* bin, mi_class_state_t* state) {
  bool has_rest = (state->total != state->slots_taken); // else what was taken has been given back, or handed out
  if (mi_likely(bin->head == NULL && bin->slots == MI_BIN_NO_SLOTS)) {
    bin->head = (has_rest ? state->taken : NULL);
    bin->slots = (has_rest ? state->slots_taken : bin->limit);
    if (!has_rest) state->total = bin->limit;
  }
  else {
    bool is_closed = (bin->slots < MI_BIN_NO_SLOTS / 2);
    idle_settle_touched(bin, state, is_closed ? state->slots_taken + (bin->slots - MI_BIN_NO_SLOTS) : bin->slots);
  }
  state->taken = NULL;
}

void _mi_idle_settle(mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) idle_settle_bin(&theap->bins[cls], &theap->classes[cls]);
  mi_store_release(&theap->is_closed, false); // release: a sampler's tick that sees it comes after all of that
}

// A round is at the theap.
static void idle_await(mi_theap_t* theap, uint32_t revoked) {
  _mi_theap_leave(theap);
  bool is_held = (revoked == MI_THEAP_AWAITED);
  if (!is_held) is_held = mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_AWAITED, relaxed, relaxed);
  if (is_held) _mi_prim_wait(&theap->revoked, MI_THEAP_AWAITED, 10);
}

mi_cold void _mi_theap_wait_revoked(mi_theap_t* theap) {
  for (;;) {
    // Before the theap is made FREE: a round that asks for it from then on finds INSIDE.
    mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);
    mi_fence_seq_cst();
    uint32_t revoked = mi_load_acquire(&theap->revoked);
    if (revoked == MI_THEAP_FREE) break;
    if (revoked == MI_THEAP_HELD || revoked == MI_THEAP_AWAITED) idle_await(theap, revoked);
    else if (mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_FREE, acq_rel, relaxed)) break;
  }
  if (idle_is_closed(theap)) _mi_idle_settle(theap);
  if (theap->epoch != mi_load_relaxed(&_mi_background_epoch)) _mi_idle_trim(theap);
}

// ---- what a thread does not use any more ------------------------------------------------------------------------------

// Neither was the bin filled nor anything taken from it or put into it since the round before the last.
static bool idle_class_is(const mi_theap_t* theap, size_t cls, uint32_t epoch) {
  const mi_class_state_t* state = &theap->classes[cls];
  return epoch - state->epoch >= 2 && theap->bins[cls].slots == state->slots_then;
}

static void idle_let_go(mi_theap_t* theap, size_t cls, size_t* n) {
  _mi_theap_flush_bin(theap, cls);
  if (mi_load_relaxed(&_mi_thread_has_others)) _mi_theap_release_class(theap, cls, n);
  else _mi_theap_delete_empty(theap, cls);
}

mi_cold void _mi_idle_trim(mi_theap_t* theap) {
  uint32_t epoch = mi_load_relaxed(&_mi_background_epoch);
  size_t   n = IDLE_PAGES_PER_TRIM;
  bool     has_others = mi_load_relaxed(&_mi_thread_has_others);
  for (size_t cls = 0; cls < MI_CLASS_COUNT && n > 0; cls++) {
    if (idle_class_is(theap, cls, epoch)) idle_let_go(theap, cls, &n);
  }
  if (n == 0) return; // the next slow path goes on
  for (size_t cls = 0; cls < MI_CLASS_COUNT && has_others; cls++) {
    size_t n_looks = IDLE_PAGES_PER_TRIM;
    if (!idle_class_is(theap, cls, epoch)) _mi_theap_collect_class(theap, cls, &n_looks);
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) theap->classes[cls].slots_then = theap->bins[cls].slots;
  theap->epoch = epoch;
}

// ---- rounds -----------------------------------------------------------------------------------------------------------

static void idle_take(mi_theap_t* theap) {
  if (MI_HARDENED) _mi_quarantine_take_back(theap);
  if (idle_is_closed(theap)) {
    for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) idle_take_bin(theap, cls);
  }
  _mi_outbox_flush(theap);
  _mi_theap_release_pages(theap);
  _mi_large_drop_kept(theap);
  theap->has_deleted = false;
}

// One step of V1 for a theap that is `revoked` already.
static void idle_step(mi_theap_t* theap, uint32_t revoked) {
  uint32_t next = MI_THEAP_EMPTIED;
  if (!mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_HELD, acq_rel, relaxed)) return;
  // Inside: it entered as it was asked, or is just going to find out.  It may open its bins at any time then, so that CLOSED
  // does not say that they are closed still.
  if (mi_load_acquire(&theap->presence) == MI_THEAP_INSIDE)
    next = (idle_is_closed(theap) ? MI_THEAP_CLOSED : MI_THEAP_FREE);
  else if (!idle_is_closed(theap) && idle_may_close()) next = MI_THEAP_CLOSED;
  if (next == MI_THEAP_CLOSED && !idle_is_closed(theap)) idle_close_bins(theap);
  else if (next == MI_THEAP_EMPTIED) idle_take(theap);
  if (mi_exchange_acq_rel(&theap->revoked, next) == MI_THEAP_AWAITED) _mi_prim_wake(&theap->revoked, true);
}

static bool idle_has_nothing(mi_theap_t* theap) {
  return !_mi_theap_is_live(theap) || mi_load_relaxed(&theap->revoked) == MI_THEAP_EMPTIED;
}

static bool idle_has_something(mi_theap_t* theap) {
  return !idle_has_nothing(theap) || _mi_large_keeps(theap);
}

// True if there will be more to do.
static bool idle_look_at(mi_theap_t* theap, bool* is_idle) {
  uint32_t revoked = mi_load_relaxed(&theap->revoked);
  if (idle_has_nothing(theap)) return false;
  if (revoked == MI_THEAP_FREE) {
    *is_idle = false;
    mi_cas_strong(&theap->revoked, &revoked, (uint32_t)MI_THEAP_ASKED, acq_rel, relaxed);
  }
  else {
    idle_step(theap, revoked);
  }
  return true;
}

static void idle_drop_large(mi_theap_t* theap) {
  const mi_page_t* page = mi_load_relaxed(&theap->kept_large);
  uint64_t         n = mi_load_relaxed(&theap->counts[MI_COUNT_LARGE_REUSED]);
  if (page == theap->kept_seen && n == theap->n_reused_seen) _mi_large_drop_kept(theap);
  theap->kept_seen = page;
  theap->n_reused_seen = n;
}

bool _mi_idle_has_work(void) {
  for (mi_theap_t* theap = _mi_thread_first_theap(); theap != NULL; theap = theap->next) {
    if (idle_has_something(theap)) return true;
  }
  return false;
}

bool _mi_idle_round(bool* is_idle) {
  bool is_sampled = _mi_theap_is_sampled(mi_load_relaxed(&_mi_theap_notices));
  bool more = is_sampled;
  *is_idle = true;
  for (mi_theap_t* theap = _mi_thread_first_theap(); theap != NULL; theap = theap->next) {
    if (!idle_has_something(theap) && !is_sampled) continue;
    _mi_lock_acquire(&_mi_idle_lock);
    idle_drop_large(theap);
    if (is_sampled && _mi_theap_is_live(theap) && !theap->is_late) _mi_sampler_tick(theap);
    if (idle_look_at(theap, is_idle)) more = true;
    _mi_lock_release(&_mi_idle_lock);
  }
  return more;
}
