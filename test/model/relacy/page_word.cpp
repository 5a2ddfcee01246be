// The page word under the C11 memory model: src/page/page_word.h itself, and what the pool does with it, with Relacy's atomics,
// in small scenarios.
//
//   page_word --list                 all pairs of scenario and change, and what is expected: "holds" or "fails"
//   page_word SCENARIO CHANGE        exit status 0: it holds; 1: a fault was found (Relacy prints how); else: no result
//
// Relacy runs the threads of a scenario in many interleavings, lets loads see old values where the memory model allows
// it, and reports accesses to plain fields and to links of blocks that nothing orders.  A change makes an order weaker; that
// it is found shows that the order is needed, and that the scenario can tell.  run.py makes changes of the pool's functions.
#include "page.hpp"
#include "search.hpp"

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
      _mi_block_set_next(first, last);
      page.push(1, first, last, 2);
    }
    else {
      page.push(2, page.use(2));
    }
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
    else {
      page.push((int)i, page.use((int)i));
    }
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
    else if (i == 1) {
      page.pool_adopt(1);
    }
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
    else {
      page.pool_adopt(1);
    }
  }
  void after() { page.check_at_end(1); }
};

// The same, and the other one drains the page, as the first does another one (P6).
struct drained : scenario<drained, 2> {
  void before() { page.make(MI_PAGE_OWNED, 0, 1, 2); }
  void thread(unsigned i) {
    if (i == 0) {
      mi_block_t* block = page.use(1);
      page.release();
      _mi_free_any(&page.theaps[0], &page, block);
    }
    else if (page.pool_adopt(1)) {
      _mi_page_set_bin(&page, BIN_OF_DRAIN);
    }
  }
};

// A page is made while another thread walks over all pages.
struct walk : scenario<walk, 2> {
  void before() {
    page.make(MI_PAGE_OWNED, NOBODY, 0, 2);
    mi_store_relaxed(&page.home, (mi_theap_t*)nullptr);
    mi_store_relaxed(&page.kind, (uint8_t)MI_PAGE_NONE);
    page.made = 0;
  }
  void thread(unsigned i) {
    if (i == 0) {
      mi_store_relaxed(&page.kind, (uint8_t)MI_PAGE_BLOCKS);
      page.made = 1;
      _mi_page_set_home(&page, &page.theaps[0]);
    }
    else {
      mi_walk_t all = {nullptr, nullptr};
      if (walk_wants(&all, &page)) RL_ASSERT(page.made == 1);
    }
  }
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
                              own = unchanged; // the header's own

static const change_t changes[] = {
//                       push take park share adopt owns bin  names home
    {"none",             own, own, own, own, own, own, own, own, own},
    // The weakest that hold, together.  A claimer reads in which pool the page is, and so acquires what who shared it released;
    // then the lock of the pool orders who shares and who adopts or claims.  Whoever took a chain lets go with a release later.
    {"least",            a_r, acq, rel, rel, a_r, own, own, own, own},
    {"push=relaxed",     rlx, own, own, own, own, own, own, own, own},
    {"push=acquire",     acq, own, own, own, own, own, own, own, own},
    {"push=release",     rel, own, own, own, own, own, own, own, own},
    {"take=relaxed",     own, rlx, own, own, own, own, own, own, own},
    {"take=release",     own, rel, own, own, own, own, own, own, own},
    {"park=relaxed",     own, own, rlx, own, own, own, own, own, own},
    {"park=acquire",     own, own, acq, own, own, own, own, own, own},
    {"share=relaxed",    own, own, own, rlx, own, own, own, own, own},
    {"share=acquire",    own, own, own, acq, own, own, own, own, own},
    {"adopt=relaxed",    own, own, own, own, rlx, own, own, own, own},
    {"adopt=acquire",    own, own, own, own, acq, own, own, own, own},
    {"adopt=release",    own, own, own, own, rel, own, own, own, own},
    {"owns=relaxed",     own, own, own, own, own, rlx, own, own, own},
    {"bin=relaxed",      own, own, own, own, own, own, rlx, own, own},
    {"names=relaxed",    own, own, own, own, own, own, own, rlx, own},
    {"home=relaxed",     own, own, own, own, own, own, own, own, rlx},
};
// clang-format on

struct scenario_row_t {
  const char* name;
  simulate_t* simulate;
  bool        is_small;  // few enough interleavings to try all of them
  const char* must_fail; // the changes that this scenario finds
};

static const scenario_row_t scenarios[] = {
    {"push_take", &rl::simulate<push_take>, true, "push=relaxed push=acquire take=relaxed take=release"},
    {"park_push", &rl::simulate<park_push>, true, "push=relaxed take=release park=relaxed park=acquire"},
    {"claim", &rl::simulate<claim>, false, "push=relaxed push=acquire take=relaxed take=release"},
    {"claim_own", &rl::simulate<claim_own>, false, "push=relaxed push=acquire take=relaxed take=release"},
    {"share_adopt", &rl::simulate<share_adopt>, false,
     "push=relaxed take=release share=relaxed share=acquire adopt=relaxed adopt=release"},
    {"owns", &rl::simulate<owns>, true, "adopt=relaxed adopt=acquire adopt=release owns=relaxed"},
    {"drained", &rl::simulate<drained>, true, "bin=relaxed names=relaxed"},
    {"walk", &rl::simulate<walk>, true, "home=relaxed"},
    {"life", &rl::simulate<life>, false,
     "push=relaxed push=release take=relaxed share=relaxed adopt=relaxed adopt=acquire owns=relaxed"},
};

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
    if (changed.name != nullptr && std::strcmp(scenario.name, argv[1]) == 0)
      return search_holds(scenario.simulate, scenario.is_small) ? 0 : 1;
  }
  return 2;
}
