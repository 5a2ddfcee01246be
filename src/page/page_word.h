// The page word, through which threads meet over a page.  Layer: page; includes base/ and block.h only (the model checker includes it too).
//
//   63    62 61          48 47                            0
//   +--------+-------------+------------------------------+
//   | state  |    count    |  first block of the chain    |
//   +--------+-------------+------------------------------+
//
//   OWNED    a thread allocates from it             count = blocks on the chain
//   PARKED   full, nobody owns it                   count = blocks on the chain
//   SHARED   has room, in the pool of its class     count = all its free blocks, on the chain or not yet made
//   CLAIMED  a thread that freed into it, or a     count = blocks pushed since
//            round (heap/hollow.h), holds it
//
//             park                    push that reaches claim_at
//   OWNED ------------> PARKED ------------------------------> CLAIMED ---> freed, if nothing is in use
//     |  ^                                                     |  |  ^
//     |  +------------------------- own -----------------------+  |  |  push that makes all blocks free
//     |  +--------------------------------- adopt ------------+   |  |
//     +--------------------------- share ------------------> SHARED <+ share; and a round, which takes it from there
//
// I1  One party at a time may touch a page's plain fields: its owner (OWNED), the thread whose push claimed it
//     (CLAIMED), or the one that moves SHARED to OWNED or CLAIMED under the lock of the pool.  Nobody while PARKED or SHARED.
// I2  A block is on the chain at most once; the thread that pushed it does not touch it again.
// I3  A thread that pushes has a block of the page, so the page cannot go away before the push.  After the push the thread may look at the
//     page only if it was told CLAIMED.
// I4  A page leaves the pool under the pool's lock only, taken by its adopter or its claimer.
//
// Memory orders: a push releases, so that the links and contents of its blocks are visible to whoever takes the chain.  Taking the chain,
// claiming and adopting acquire: they see those links, and the plain fields that the last holder wrote before it let go with a release.
// With less than release in a push the taker might follow a link that is not written yet.  Pushes are read-modify-writes, so they
// continue the release sequence of the park or share before them.
#pragma once

#if !defined(MI_PAGE_WORD_MODEL) // the model brings its own atomics and blocks
  #include "../base/atomic.h"
  #include "block.h"
typedef mi_atomic(uint64_t) mi_page_word_t;
typedef mi_atomic(uint16_t) mi_page_capacity_t;
#endif

typedef enum mi_page_state_e { MI_PAGE_OWNED, MI_PAGE_PARKED, MI_PAGE_SHARED, MI_PAGE_CLAIMED } mi_page_state_t;

#define MI_WORD_COUNT_SHIFT 48
#define MI_WORD_STATE_SHIFT 62
#define MI_WORD_COUNT_MAX   ((1u << (MI_WORD_STATE_SHIFT - MI_WORD_COUNT_SHIFT)) - 1)

typedef struct mi_chain_s {
  mi_block_t* first;
  size_t      count; // see the table of states above
} mi_chain_t;

static inline uint64_t _mi_page_word_make(mi_page_state_t state, size_t count, const mi_block_t* first) {
  return ((uint64_t)state << MI_WORD_STATE_SHIFT) | ((uint64_t)count << MI_WORD_COUNT_SHIFT) |
         (uint64_t)(uintptr_t)first;
}

static inline mi_page_state_t _mi_page_word_state(uint64_t word) {
  return (mi_page_state_t)(word >> MI_WORD_STATE_SHIFT);
}

static inline mi_chain_t _mi_page_word_chain(uint64_t word) {
  mi_chain_t chain;
  chain.first = (mi_block_t*)(uintptr_t)(word & (((uint64_t)1 << MI_WORD_COUNT_SHIFT) - 1));
  chain.count = (size_t)(word >> MI_WORD_COUNT_SHIFT) & MI_WORD_COUNT_MAX;
  return chain;
}

// Pushes n blocks, linked from `first` to `last`, in one step.  Returns the state of the page after the push, and in *was the state before.
// CLAIMED is returned only if this push claimed the page: from PARKED when claim_at blocks are free, or from SHARED when all `capacity`
// blocks are free (the page is still in the pool then).  `capacity` is read after the page was seen SHARED, as its last owner left it:
// before that, an owner may change it while the caller has a block of the page (heap/gaps.h, GP4).
static inline mi_page_state_t _mi_page_word_push(mi_page_word_t* word, mi_block_t* first, mi_block_t* last, size_t n,
                                                 size_t claim_at, mi_page_capacity_t* capacity, mi_page_state_t* was) {
  uint64_t        old = mi_load_relaxed(word);
  uint64_t        made;
  mi_page_state_t before, after;
  do {
    mi_chain_t chain = _mi_page_word_chain(old);
    before = after = _mi_page_word_state(old);
    if (before == MI_PAGE_PARKED && chain.count + n >= claim_at) after = MI_PAGE_CLAIMED;
    if (before == MI_PAGE_SHARED) {
      mi_fence_acquire();
      if (chain.count + n == mi_load_relaxed(capacity)) after = MI_PAGE_CLAIMED;
    }
    made = _mi_page_word_make(after, chain.count + n, first);
    _mi_block_set_next(last, chain.first);
  } while (!mi_cas_weak(word, &old, made, acq_rel, relaxed));
  *was = before;
  return (before == MI_PAGE_CLAIMED ? MI_PAGE_OWNED : after); // claimed by another thread: as good as owned
}

// Takes the chain of a page that the caller holds (OWNED or CLAIMED, and it stays so).
static inline mi_chain_t _mi_page_word_take(mi_page_word_t* word, mi_page_state_t state) {
  return _mi_page_word_chain(mi_exchange_acq_rel(word, _mi_page_word_make(state, 0, NULL)));
}

// OWNED to PARKED; false if the chain is not empty, because the page is not full then.
static inline bool _mi_page_word_park(mi_page_word_t* word) {
  uint64_t old = _mi_page_word_make(MI_PAGE_OWNED, 0, NULL);
  return mi_cas_strong(word, &old, _mi_page_word_make(MI_PAGE_PARKED, 0, NULL), acq_rel, relaxed);
}

// From `held` (OWNED or CLAIMED) to SHARED with these free blocks; false if the chain is not empty: the caller takes it first.
// The caller holds the pool's lock.
static inline bool _mi_page_word_share(mi_page_word_t* word, mi_page_state_t held, mi_chain_t free) {
  uint64_t old = _mi_page_word_make(held, 0, NULL);
  return mi_cas_strong(word, &old, _mi_page_word_make(MI_PAGE_SHARED, free.count, free.first), acq_rel, relaxed);
}

// SHARED to `to` (OWNED or CLAIMED), with its free blocks in *free; false if a push has claimed the page meanwhile.  The caller holds the
// pool's lock.
static inline bool _mi_page_word_adopt(mi_page_word_t* word, mi_page_state_t to, mi_chain_t* free) {
  uint64_t old = mi_load_relaxed(word);
  do {
    if (_mi_page_word_state(old) != MI_PAGE_SHARED) return false;
  } while (!mi_cas_weak(word, &old, _mi_page_word_make(to, 0, NULL), acq_rel, relaxed));
  *free = _mi_page_word_chain(old);
  return true;
}

// CLAIMED to OWNED, by the claimer; returns the blocks that were pushed since it took the chain.
static inline mi_chain_t _mi_page_word_own(mi_page_word_t* word) {
  return _mi_page_word_take(word, MI_PAGE_OWNED);
}
