// The page word made of Relacy's atomics, and its users, for the scenarios in page_word.cpp.
//
// The header src/page/page_word.h is the real one.  What pool.c, outbox.c and theap.c do with it is repeated here, for
// one page whose blocks are all made: they do not compile without the rest of the allocator.  All that they do is in
// test/model/page_word_model.py, but there memory is the same for all threads at any time.
#pragma once
#include <relacy/relacy.hpp>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

// Relacy's names for them would replace ours.
#undef new
#undef delete
#undef malloc
#undef calloc
#undef realloc
#undef free
#undef assert

// ---- what the header is made of -------------------------------------------------------------------------------------

static const rl::memory_order unchanged = (rl::memory_order)7; // the one in the header

// The orders that operations of the header get instead of their own, and what is done differently outside it.
struct change_t {
  const char*      name;
  rl::memory_order push, take, park, share, adopt;
  rl::memory_order owns;          // of the load of the word
  bool             is_home_late;  // the adopter writes home after the word
  bool             is_home_first; // owns reads home before the word
};

static change_t changed;

static rl::memory_order changed_order(const char* function) {
  if (std::strcmp(function, "_mi_page_word_push") == 0) return changed.push;
  if (std::strcmp(function, "_mi_page_word_take") == 0) return changed.take;
  if (std::strcmp(function, "_mi_page_word_park") == 0) return changed.park;
  if (std::strcmp(function, "_mi_page_word_share") == 0) return changed.share;
  if (std::strcmp(function, "_mi_page_word_adopt") == 0) return changed.adopt;
  std::printf("the header has an operation that this model does not know: %s\n", function);
  std::exit(2);
}

static rl::memory_order order_in(const char* function, rl::memory_order order) {
  rl::memory_order other = changed_order(function);
  return other == unchanged ? order : other;
}

struct mi_block_s {
  rl::var<mi_block_s*> next;
  rl::var<int>         content; // written by the program that has the block
};
typedef mi_block_s mi_block_t;

struct mi_page_word_t {
  rl::atomic<uint64_t> word;
  bool                 is_gone; // the page was given back

  // After the operation, not before: threads are switched within it.
  template <typename T>
  T there(T result) {
    RL_ASSERT(!is_gone);
    return result;
  }
};

#define MI_PAGE_WORD_MODEL
#define _mi_block_set_next(b, n)  ((b)->next($) = (n))
#define mi_load_relaxed(p)        (p)->there((p)->word.load(rl::mo_relaxed, $))
#define mi_load_acquire(p)        (p)->there((p)->word.load(rl::mo_acquire, $))
#define mi_exchange_acq_rel(p, x) (p)->there((p)->word.exchange(x, order_in(__func__, rl::mo_acq_rel), $))
#define mi_exchange_acquire(p, x) (p)->there((p)->word.exchange(x, order_in(__func__, rl::mo_acquire), $))
#define mi_cas_weak(p, old, x, success, failure) \
  (p)->there((p)->word.compare_exchange_weak(*(old), x, order_in(__func__, rl::mo_##success), $, rl::mo_##failure, $))
#define mi_cas_strong(p, old, x, success, failure) \
  (p)->there((p)->word.compare_exchange_strong(*(old), x, order_in(__func__, rl::mo_##success), $, rl::mo_##failure, $))

#include "../../../src/page/page_word.h"

// ---- the users of the header, for one page --------------------------------------------------------------------------

enum { CAPACITY = 3, NOBODY = -1 };

struct page_t {
  rl::atomic<int>      home;
  mi_page_word_t       word;
  rl::var<mi_block_t*> first_free;
  rl::var<int>         used;
  mi_block_t           blocks[CAPACITY];
  rl::mutex            lock; // of the pool
  rl::var<int>         is_in_pool;
  size_t               claim_at;

  // All blocks but the first n_free are in use.
  void make(mi_page_state_t state, int home_theap, int n_free, size_t claim_at_count) {
    claim_at = claim_at_count;
    word.is_gone = false;
    home.store(home_theap, rl::mo_relaxed, $);
    for (int i = 0; i < CAPACITY; i++) {
      blocks[i].content($) = 0;
      _mi_block_set_next(&blocks[i], i + 1 < n_free ? &blocks[i + 1] : nullptr);
    }
    first_free($) = (n_free > 0 ? &blocks[0] : nullptr);
    used($) = CAPACITY - n_free;
    is_in_pool($) = 0;
    word.word.store(_mi_page_word_make(state, 0, nullptr), rl::mo_relaxed, $);
  }

  bool is_gone() { return word.is_gone; }

  // The program's part: the block's contents are its own.
  mi_block_t* use(int i) {
    blocks[i].content($) = 1;
    return &blocks[i];
  }

  void put_free(mi_chain_t chain) {
    if (chain.count == 0) return;
    if (mi_block_t* head = first_free($)) {
      mi_block_t* last = chain.first;
      while (mi_block_t* next = last->next($)) last = next;
      _mi_block_set_next(last, head);
    }
    first_free($) = chain.first;
    used($) = used($) - (int)chain.count;
    check();
  }

  // Looks at everything that the holder may look at, and writes where it may write.
  void check() {
    int n_free = 0;
    for (mi_block_t* b = first_free($); b != nullptr; b = b->next($)) {
      b->content($) = 0;
      n_free++;
      RL_ASSERT(n_free <= CAPACITY);
    }
    RL_ASSERT(n_free == CAPACITY - used($));
    used($) = CAPACITY - n_free;
  }

  void regain(mi_chain_t chain) {
    RL_ASSERT(first_free($) == nullptr);
    first_free($) = chain.first;
    used($) = CAPACITY - (int)chain.count;
    check();
  }

  void give_back() {
    RL_ASSERT(used($) == 0 && !is_in_pool($));
    word.is_gone = true;
  }

  bool pool_share(mi_page_state_t held) {
    mi_chain_t chain;
    lock.lock($);
    chain.first = first_free($);
    chain.count = (size_t)(CAPACITY - used($));
    first_free($) = nullptr;
    is_in_pool($) = 1;
    bool is_shared = _mi_page_word_share(&word, held, chain);
    if (!is_shared) {
      first_free($) = chain.first;
      is_in_pool($) = 0;
    }
    lock.unlock($);
    return is_shared;
  }

  bool pool_adopt(int theap) {
    mi_chain_t chain;
    lock.lock($);
    bool is_adopted = false;
    if (is_in_pool($)) {
      if (!changed.is_home_late) home.store(theap, rl::mo_relaxed, $);
      is_adopted = _mi_page_word_adopt(&word, &chain);
      if (is_adopted) is_in_pool($) = 0;
      if (changed.is_home_late && is_adopted) home.store(theap, rl::mo_relaxed, $);
    }
    lock.unlock($);
    if (is_adopted) regain(chain);
    return is_adopted;
  }

  void pool_remove() {
    lock.lock($);
    RL_ASSERT(is_in_pool($));
    is_in_pool($) = 0;
    lock.unlock($);
  }

  // True if the page is the theap's now.
  bool claimed(int theap, mi_page_state_t was) {
    if (was == MI_PAGE_SHARED) pool_remove();
    regain(_mi_page_word_take(&word, MI_PAGE_CLAIMED));
    for (;;) {
      if (used($) == 0) {
        give_back();
        return false;
      }
      if (theap != NOBODY && home.load(rl::mo_relaxed, $) == theap) {
        put_free(_mi_page_word_own(&word));
        return true;
      }
      if (pool_share(MI_PAGE_CLAIMED)) return false;
      put_free(_mi_page_word_take(&word, MI_PAGE_CLAIMED));
    }
  }

  bool push(int theap, mi_block_t* first, mi_block_t* last, size_t n) {
    mi_page_state_t was;
    if (_mi_page_word_push(&word, first, last, n, claim_at, CAPACITY, &was) != MI_PAGE_CLAIMED) return false;
    return claimed(theap, was);
  }

  bool push(int theap, mi_block_t* block) { return push(theap, block, block, 1); }

  bool owns(int theap) {
    if (changed.is_home_first && home.load(rl::mo_relaxed, $) != theap) return false;
    if (_mi_page_word_state(word.there(word.word.load(changed.owns, $))) != MI_PAGE_OWNED) return false;
    return changed.is_home_first || home.load(rl::mo_relaxed, $) == theap;
  }

  void release() {
    for (;;) {
      put_free(_mi_page_word_take(&word, MI_PAGE_OWNED));
      if (used($) == 0) {
        give_back();
        return;
      }
      if (first_free($) != nullptr ? pool_share(MI_PAGE_OWNED) : _mi_page_word_park(&word)) return;
    }
  }

  // Everything has come to rest: who has the page, if it is there, finds all its free blocks.
  void check_at_end(int n_used) {
    if (is_gone()) {
      RL_ASSERT(n_used == 0);
      return;
    }
    uint64_t        now = word.word.load(rl::mo_relaxed, $);
    mi_page_state_t state = _mi_page_word_state(now);
    mi_chain_t      chain = _mi_page_word_chain(now);
    RL_ASSERT(state != MI_PAGE_CLAIMED);
    RL_ASSERT(is_in_pool($) == (state == MI_PAGE_SHARED));
    if (state == MI_PAGE_PARKED) RL_ASSERT(chain.count < claim_at);
    if (state == MI_PAGE_SHARED) regain(chain);
    else put_free(chain);
    RL_ASSERT(used($) == n_used);
    RL_ASSERT(n_used > 0 || state == MI_PAGE_OWNED); // else it would never be given back
  }
};
