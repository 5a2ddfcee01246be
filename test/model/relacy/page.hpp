// The page word made of Relacy's atomics, and its users, for the scenarios in page_word.cpp.
//
// The header src/page/page_word.h is the real one, and so are the functions in "extracted.hpp", which run.py takes from
// page.h, queue.h and pool.c.  What outbox.c and theap.c do with a page is repeated here, for one page whose blocks are all
// made: they do not compile without the rest of the allocator.  All that they do is in test/model/page_word_model.py, but
// there memory is the same for all threads at any time.
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

// The orders that operations of the header get instead of their own.
struct change_t {
  const char*      name;
  rl::memory_order push, take, park, share, adopt;
  rl::memory_order owns;           // of the load of the word
  rl::memory_order bin, names_bin; // of the load of bin_offset, and of its store
  rl::memory_order home;           // of the store of the home
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

static rl::memory_order order_or(rl::memory_order other, rl::memory_order order) {
  return other == unchanged ? order : other;
}

static rl::memory_order order_in(const char* function, rl::memory_order order) {
  return order_or(changed_order(function), order);
}

static rl::memory_order load_order_in(const char* function) {
  if (std::strcmp(function, "_mi_page_bin_offset") == 0) return order_or(changed.bin, rl::mo_acquire);
  if (std::strcmp(function, "_mi_queue_owns") == 0) return order_or(changed.owns, rl::mo_acquire);
  return rl::mo_acquire;
}

static rl::memory_order store_order_in(const char* function, rl::memory_order order) {
  if (std::strcmp(function, "_mi_page_set_bin") == 0) return order_or(changed.names_bin, order);
  if (std::strcmp(function, "_mi_page_set_home") == 0) return order_or(changed.home, order);
  return order;
}

// A field that no two threads may access at the same time.
template <typename T>
struct plain {
  mutable rl::var<T> value;
  operator T() const { return value($); }
  plain& operator=(T x) {
    value($) = x;
    return *this;
  }
  plain& operator=(plain& other) { return *this = (T)other; }
  T      operator->() { return value($); }
};

struct mi_block_s {
  rl::var<mi_block_s*> next;
  rl::var<int>         content; // written by the program that has the block
};
typedef mi_block_s mi_block_t;

template <typename T>
struct atomic_t {
  rl::atomic<T> word;
  bool          is_gone; // the page was given back

  // After the operation, not before: threads are switched within it.
  template <typename U>
  U there(U result) {
    RL_ASSERT(!is_gone);
    return result;
  }
};

typedef atomic_t<uint64_t> mi_page_word_t;
typedef atomic_t<uint16_t> mi_page_capacity_t;

#define MI_PAGE_WORD_MODEL
#define _mi_block_set_next(b, n)  ((b)->next($) = (n))
#define mi_load_relaxed(p)        (p)->there((p)->word.load(rl::mo_relaxed, $))
#define mi_load_acquire(p)        (p)->there((p)->word.load(load_order_in(__func__), $))
#define mi_store_relaxed(p, x)    (p)->word.store(x, store_order_in(__func__, rl::mo_relaxed), $)
#define mi_store_release(p, x)    (p)->word.store(x, store_order_in(__func__, rl::mo_release), $)
#define mi_fence_acquire()        rl::atomic_thread_fence(rl::mo_acquire, $)
#define mi_exchange_acq_rel(p, x) (p)->there((p)->word.exchange(x, order_in(__func__, rl::mo_acq_rel), $))
#define mi_exchange_acquire(p, x) (p)->there((p)->word.exchange(x, order_in(__func__, rl::mo_acquire), $))
#define mi_cas_weak(p, old, x, success, failure) \
  (p)->there((p)->word.compare_exchange_weak(*(old), x, order_in(__func__, rl::mo_##success), $, rl::mo_##failure, $))
#define mi_cas_strong(p, old, x, success, failure) \
  (p)->there((p)->word.compare_exchange_strong(*(old), x, order_in(__func__, rl::mo_##success), $, rl::mo_##failure, $))

#include "../../../src/page/page_word.h"

// ---- what pool.c is made of -------------------------------------------------------------------------------------------

enum { CAPACITY = 3, N_THEAPS = 3, NOBODY = -1 };

struct mi_page_t;

enum { MI_POOLS = 2, MI_POOL_GAPS = 1 };

struct mi_pool_t {
  atomic_t<mi_page_t*> first[1];
  rl::mutex            lock;
};

struct mi_heap_t {
  mi_pool_t pool; // not of the main heap, and the model has no other
};

static mi_heap_t* the_main;
static mi_pool_t* pool_main;

typedef mi_pool_t* pool_choice_t(mi_heap_t* heap, const mi_page_t* page);

struct mi_theap_t {
  size_t                number;
  atomic_t<mi_theap_t*> thread;
};

typedef enum mi_page_kind_e {
  MI_PAGE_NONE,
  MI_PAGE_BLOCKS,
  MI_PAGE_INTERIOR,
  MI_PAGE_LARGE,
  MI_PAGE_GAPS
} mi_page_kind_t;

struct mi_page_t {
  atomic_t<mi_theap_t*> home;
  mi_page_word_t        word;
  atomic_t<uint16_t>    bin_offset;
  atomic_t<uint8_t>     kind;
  plain<int>            made; // all that does not change any more when the page has a home
  plain<mi_block_t*>    free;
  plain<int>            used;
  plain<mi_pool_t*>     pool; // in the place of `free`
  plain<mi_page_t*>     next, prev;
  mi_heap_t*            heap;
  uint32_t              n_slices, cls;

  static constexpr size_t capacity = CAPACITY;

  void check(void);
};

// Takes back what was in the word: the plain fields are the caller's from now on.
static void _mi_page_unpack(mi_page_t* page, mi_chain_t chain) {
  RL_ASSERT(page->free == nullptr);
  page->free = chain.first;
  page->used = CAPACITY - (int)chain.count;
  page->check();
}

#define mi_likely(x)   (x)
#define mi_unlikely(x) (x)
#define mi_attr_noexcept
#define _mi_heap_main             (*the_main)
#define _mi_heap_of(page)         ((page)->heap)
#define _mi_theap_count(a, b, n)  ((void)0)
#define pool_lock(heap, pool)     ((void)(heap), (&(pool)->lock))
#define pool_count(heap, pool, n) ((void)0)
#define _mi_theap_undrain(page)   ((void)0)
#define _mi_page_used(page)       ((size_t)(int)(page)->used)
#define _mi_lock_acquire(l)       (l)->lock($)
#define _mi_lock_release(l)       (l)->unlock($)
#define MI_PROBE3(name, a, b, c)  ((void)0)

// All pages of the model are of one class, and none has gaps.
static void       pool_append_gaps(mi_pool_t*, mi_page_t*) {}
static mi_page_t* pool_last_gaps;

static size_t _mi_pool_list_of(const mi_page_t* page) {
  return page->cls;
}

// Frees of a page's blocks (free.c), of which the model has only what they say of bin_offset: the drains of each theap have the same
// offset, and here a theap that frees a block has a drain in use that is another page's.
enum { BIN_OF_CLASS = 16, BIN_OF_DRAIN = 32 };

static void _mi_free_local(mi_theap_t*, size_t bin_offset, mi_page_t*, void*) {
  RL_ASSERT(bin_offset != BIN_OF_DRAIN);
}
static void free_remote(mi_theap_t*, mi_page_t*, mi_block_t*) {}
static void _mi_outbox_push(mi_page_t*, mi_block_t*) {}

// How many pages a theap has (pool.c).
static void pool_count_home(const mi_page_t*, size_t, mi_theap_t*, mi_theap_t*) {}

// Walking over all of them (walk.c).
struct mi_walk_t {
  const void *heap, *subproc;
};

static bool _mi_walk_wants(const mi_walk_t*, const mi_heap_t*) {
  return true;
}

#include "extracted.hpp"

// ---- the other users of the header, for one page ----------------------------------------------------------------------

struct page_t : mi_page_t {
  mi_heap_t  the_heap;
  mi_pool_t  pools[MI_POOLS];
  mi_theap_t theaps[N_THEAPS + 1]; // the last one is nobody's
  mi_block_t blocks[CAPACITY];
  size_t     claim_at;

  mi_page_capacity_t the_capacity;

  mi_theap_t* theap_of(int i) { return &theaps[i == NOBODY ? N_THEAPS : i]; }

  // All blocks but the first n_free are in use.
  void make(mi_page_state_t state, int home_theap, int n_free, size_t claim_at_count) {
    claim_at = claim_at_count;
    word.is_gone = home.is_gone = the_capacity.is_gone = bin_offset.is_gone = kind.is_gone = false;
    mi_store_relaxed(&bin_offset, (uint16_t)BIN_OF_CLASS);
    mi_store_relaxed(&kind, (uint8_t)MI_PAGE_BLOCKS);
    the_main = &the_heap;
    pool_main = pools;
    mi_store_relaxed(&the_capacity, (uint16_t)CAPACITY);
    heap = &the_heap;
    n_slices = 1;
    cls = 0;
    next = prev = nullptr;
    for (int i = 0; i <= N_THEAPS; i++) {
      theaps[i].number = (size_t)i;
      theaps[i].thread.is_gone = false;
      mi_store_relaxed(&theaps[i].thread, &theaps[i]);
    }
    for (mi_pool_t& pool : pools) {
      pool.first[0].is_gone = false;
      mi_store_relaxed(&pool.first[0], (mi_page_t*)nullptr);
    }
    pool = nullptr;
    mi_store_relaxed(&home, theap_of(home_theap));
    for (int i = 0; i < CAPACITY; i++) {
      blocks[i].content($) = 0;
      _mi_block_set_next(&blocks[i], i + 1 < n_free ? &blocks[i + 1] : nullptr);
    }
    free = (n_free > 0 ? &blocks[0] : nullptr);
    used = CAPACITY - n_free;
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
    if (mi_block_t* head = free) {
      mi_block_t* last = chain.first;
      while (mi_block_t* next = last->next($)) last = next;
      _mi_block_set_next(last, head);
    }
    free = chain.first;
    used = used - (int)chain.count;
    check();
  }

  // With the lock of the pool, or when nobody else is there.
  bool is_in(mi_pool_t& one) { return one.first[0].word.load(rl::mo_relaxed, $) == this; }
  bool is_in_pool() { return is_in(pools[0]) || is_in(pools[1]); }

  void give_back() {
    RL_ASSERT(used == 0 && !is_in_pool());
    word.is_gone = true;
  }

  // From its own pool, or else from the other one.
  bool pool_adopt(int theap) {
    for (int i = 0; i < MI_POOLS; i++) {
      mi_pool_t* from = &pools[(theap + i) % MI_POOLS];
      if (mi_load_relaxed(&from->first[0]) == nullptr) continue;
      if (pool_adopt_from(&the_heap, from, 0, &theaps[theap]) != nullptr) return true;
    }
    return false;
  }

  // True if the page is the theap's now.
  bool claimed(int theap, mi_page_state_t was) {
    if (was == MI_PAGE_SHARED) _mi_pool_remove(this);
    _mi_page_unpack(this, _mi_page_word_take(&word, MI_PAGE_CLAIMED));
    for (;;) {
      if (used == 0) {
        give_back();
        return false;
      }
      if (theap != NOBODY && mi_load_relaxed(&home) == &theaps[theap]) {
        put_free(_mi_page_word_own(&word));
        return true;
      }
      if (_mi_pool_share(this, MI_PAGE_CLAIMED)) return false;
      put_free(_mi_page_word_take(&word, MI_PAGE_CLAIMED));
    }
  }

  bool push(int theap, mi_block_t* first, mi_block_t* last, size_t n) {
    mi_page_state_t was;
    if (_mi_page_word_push(&word, first, last, n, claim_at, &the_capacity, &was) != MI_PAGE_CLAIMED) return false;
    return claimed(theap, was);
  }

  bool push(int theap, mi_block_t* block) { return push(theap, block, block, 1); }

  bool owns(int theap) { return _mi_queue_owns(&theaps[theap], this); }

  void release() {
    for (;;) {
      put_free(_mi_page_word_take(&word, MI_PAGE_OWNED));
      if (used == 0) {
        give_back();
        return;
      }
      if (free != nullptr ? _mi_pool_share(this, MI_PAGE_OWNED) : _mi_page_word_park(&word)) return;
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
    RL_ASSERT(is_in_pool() == (state == MI_PAGE_SHARED));
    if (state == MI_PAGE_PARKED) RL_ASSERT(chain.count < claim_at);
    if (state == MI_PAGE_SHARED) _mi_page_unpack(this, chain);
    else put_free(chain);
    RL_ASSERT(used == n_used);
    RL_ASSERT(n_used > 0 || state == MI_PAGE_OWNED); // else it would never be given back
  }
};

// Looks at everything that the holder may look at, and writes where it may write.
inline void mi_page_t::check(void) {
  int n_free = 0;
  for (mi_block_t* b = free; b != nullptr; b = b->next($)) {
    b->content($) = 0;
    n_free++;
    RL_ASSERT(n_free <= CAPACITY);
  }
  RL_ASSERT(n_free == CAPACITY - used);
  used = CAPACITY - n_free;
}
