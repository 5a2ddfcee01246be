// The page word under the C11 memory model: src/page/page_word.h itself, with Relacy's atomics, in small scenarios.
//
//   page_word --list                 all pairs of scenario and change, and what is expected: "holds" or "fails"
//   page_word SCENARIO CHANGE        exit status 0: it holds; 1: a fault was found (Relacy prints how); else: no result
//
// Relacy runs the threads of a scenario in many interleavings, lets loads see old values where the memory model allows
// it, and reports accesses to plain fields and to links of blocks that nothing orders.  A change makes one order weaker,
// or swaps two steps; that it is found shows that the order is needed, and that the scenario can tell.
//
// The header does not know its users; what pool.c, outbox.c and theap.c do with it is repeated here for one page, one
// pool, and blocks that are all made.  test/model/page_word_model.py looks at all of what they do, but one step at a time.
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

static const rl::memory_order unchanged = (rl::memory_order)-1; // the header's own

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
#define mi_block_set_next(b, n)   ((b)->next($) = (n))
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
      mi_block_set_next(&blocks[i], i + 1 < n_free ? &blocks[i + 1] : nullptr);
    }
    first_free($) = (n_free > 0 ? &blocks[0] : nullptr);
    used($) = CAPACITY - n_free;
    is_in_pool($) = 0;
    word.word.store(page_word_make(state, 0, nullptr), rl::mo_relaxed, $);
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
      mi_block_set_next(last, head);
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

// ---- scenarios ------------------------------------------------------------------------------------------------------

template <typename scenario_t, int n_threads>
struct scenario : rl::test_suite<scenario_t, n_threads> {
  page_t page;
};

// Two threads push, one of them a batch, while the owner takes.
struct push_take : scenario<push_take, 3> {
  void before() { page.make(MI_PAGE_OWNED, 0, 0, 2); }
  void thread(unsigned i) {
    if (i == 0) {
      page.put_free(_mi_page_word_take(&page.word, MI_PAGE_OWNED));
      page.put_free(_mi_page_word_take(&page.word, MI_PAGE_OWNED));
    }
    else if (i == 1) {
      mi_block_t* first = page.use(0);
      mi_block_t* last = page.use(1);
      mi_block_set_next(first, last);
      page.push(1, first, last, 2);
    }
    else { page.push(2, page.use(2)); }
  }
  void after() { page.check_at_end(0); }
};

// The owner parks a full page, the others free into it.
struct park_push : scenario<park_push, 3> {
  void before() { page.make(MI_PAGE_OWNED, 0, 0, 2); }
  void thread(unsigned i) {
    if (i == 0) {
      page.check();
      if (!_mi_page_word_park(&page.word)) page.put_free(_mi_page_word_take(&page.word, MI_PAGE_OWNED));
    }
    else { page.push((int)i, page.use((int)i)); }
  }
  void after() { page.check_at_end(1); }
};

// All blocks of a parked page are freed, each by another thread: one claims the page, one gives it back.
struct claim : scenario<claim, 3> {
  void before() { page.make(MI_PAGE_PARKED, NOBODY, 0, 2); }
  void thread(unsigned i) { page.push((int)i, page.use((int)i)); }
  void after() { RL_ASSERT(page.is_gone()); }
};

// The same, and the first to claim it is its home.
struct claim_own : scenario<claim_own, 3> {
  void before() { page.make(MI_PAGE_PARKED, 0, 0, 1); }
  void thread(unsigned i) {
    if (page.push((int)i, page.use((int)i))) {
      page.check();
      page.release();
    }
  }
  void after() { RL_ASSERT(page.is_gone()); }
};

// The owner shares, another adopts, and a third frees all that was in use.
struct share_adopt : scenario<share_adopt, 3> {
  void before() { page.make(MI_PAGE_OWNED, 0, 1, 2); }
  void thread(unsigned i) {
    if (i == 0) {
      page.check();
      page.release();
    }
    else if (i == 1) { page.pool_adopt(1); }
    else {
      page.push(2, page.use(1));
      page.push(2, page.use(2));
    }
  }
  void after() { page.check_at_end(0); }
};

// A thread lets go of its page and then gives back a block from its bin, while another adopts the page (P4).
struct owns : scenario<owns, 2> {
  void before() { page.make(MI_PAGE_OWNED, 0, 1, 2); }
  void thread(unsigned i) {
    if (i == 0) {
      mi_block_t* block = page.use(1);
      page.release();
      if (page.owns(0)) page.put_free({block, 1});
      else page.push(0, block);
    }
    else { page.pool_adopt(1); }
  }
  void after() { page.check_at_end(1); }
};

// All of it: whatever happens, the page is given back in the end.
struct life : scenario<life, 3> {
  void before() { page.make(MI_PAGE_OWNED, 0, 1, 2); }
  void thread(unsigned i) {
    if (i == 0) {
      mi_block_t* block = page.use(1);
      page.release();
      if (page.owns(0)) RL_ASSERT(false);
      else if (page.push(0, block)) page.release();
    }
    else if (i == 1) {
      if (page.push(1, page.use(2))) page.release();
    }
    else {
      if (page.pool_adopt(2)) page.release();
    }
  }
  void after() { RL_ASSERT(page.is_gone()); }
};

// ---- what is run ----------------------------------------------------------------------------------------------------

// clang-format off
static const rl::memory_order rlx = rl::mo_relaxed, acq = rl::mo_acquire, rel = rl::mo_release, a_r = rl::mo_acq_rel,
                              ___ = unchanged;

static const change_t changes[] = {
//                    push take park share adopt owns  late   first
    {"none",          ___, ___, ___, ___,  ___,  acq,  false, false},
    // The weakest that hold, together.  A claimer takes the chain, with acquire, before it looks at the page; the pool's lock
    // orders who shares and who adopts; all others only need to see what was let go of.
    {"least",         rel, acq, rel, rlx,  a_r,  acq,  false, false},
    {"push=relaxed",  rlx, ___, ___, ___,  ___,  acq,  false, false},
    {"push=acquire",  acq, ___, ___, ___,  ___,  acq,  false, false},
    {"take=relaxed",  ___, rlx, ___, ___,  ___,  acq,  false, false},
    {"take=release",  ___, rel, ___, ___,  ___,  acq,  false, false},
    {"park=relaxed",  ___, ___, rlx, ___,  ___,  acq,  false, false},
    {"park=acquire",  ___, ___, acq, ___,  ___,  acq,  false, false},
    {"adopt=relaxed", ___, ___, ___, ___,  rlx,  acq,  false, false},
    {"adopt=acquire", ___, ___, ___, ___,  acq,  acq,  false, false},
    {"adopt=release", ___, ___, ___, ___,  rel,  acq,  false, false},
    {"owns=relaxed",  ___, ___, ___, ___,  ___,  rlx,  false, false},
    {"home-late",     ___, ___, ___, ___,  ___,  acq,  true,  false},
    {"home-first",    ___, ___, ___, ___,  ___,  acq,  false, true},
};
// clang-format on

struct scenario_row_t {
  const char* name;
  bool (*simulate)(rl::test_params& params);
  bool        is_small;  // few enough interleavings to try all of them
  const char* must_fail; // the changes that this scenario finds
};

static const scenario_row_t scenarios[] = {
    {"push_take", &rl::simulate<push_take>, true, "push=relaxed push=acquire take=relaxed take=release"},
    {"park_push", &rl::simulate<park_push>, true, "push=relaxed take=release park=relaxed park=acquire"},
    {"claim", &rl::simulate<claim>, false, "push=relaxed push=acquire take=relaxed take=release"},
    {"claim_own", &rl::simulate<claim_own>, false, "push=relaxed push=acquire take=relaxed take=release"},
    {"share_adopt", &rl::simulate<share_adopt>, false, "push=relaxed take=release adopt=relaxed adopt=release"},
    {"owns", &rl::simulate<owns>, true, "adopt=relaxed adopt=acquire adopt=release owns=relaxed home-late home-first"},
    {"life", &rl::simulate<life>, false,
     "push=relaxed take=relaxed adopt=relaxed adopt=acquire owns=relaxed home-late home-first"},
};

// All interleavings, or those in which threads are interrupted up to 4 times; then many at random, in which loads see
// values that are older still.
static bool holds(const scenario_row_t& scenario) {
  rl::test_params search;
  search.search_type = scenario.is_small ? rl::sched_full : rl::sched_bound;
  search.context_bound = 4;
  if (!scenario.simulate(search)) return false;
  rl::test_params random;
  random.search_type = rl::sched_random;
  random.iteration_count = 300000;
  return scenario.simulate(random);
}

static void list() {
  for (const scenario_row_t& scenario : scenarios) {
    for (const change_t& change : changes) {
      if (std::strstr(scenario.must_fail, change.name) != nullptr)
        std::printf("%s %s fails\n", scenario.name, change.name);
      else if (&change <= &changes[1]) std::printf("%s %s holds\n", scenario.name, change.name);
    }
  }
}

int main(int argc, char** argv) {
  if (argc == 2) {
    list();
    return 0;
  }
  if (argc != 3) return 2;
  for (const change_t& change : changes) {
    if (std::strcmp(change.name, argv[2]) == 0) changed = change;
  }
  for (const scenario_row_t& scenario : scenarios) {
    if (changed.name != nullptr && std::strcmp(scenario.name, argv[1]) == 0) return holds(scenario) ? 0 : 1;
  }
  return 2;
}
