// Words by which threads tell each other something, under the C11 memory model: the functions of the sources that run.py extracts, with
// Relacy's atomics, in small scenarios.  As page_word.cpp, but for the orders, which run.py changes.
//
//   words --list, words SCENARIO none      as there
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "search.hpp"

#undef assert

// ---- what the functions are made of -----------------------------------------------------------------------------------

#define mi_load_relaxed(p)         (p)->load(rl::mo_relaxed, $)
#define mi_load_acquire(p)         (p)->load(rl::mo_acquire, $)
#define mi_store_relaxed(p, x)     (p)->store(x, rl::mo_relaxed, $)
#define mi_store_release(p, x)     (p)->store(x, rl::mo_release, $)
#define mi_fetch_or_acq_rel(p, x)  (p)->fetch_or(x, rl::mo_acq_rel, $)
#define mi_fetch_and_acq_rel(p, x) (p)->fetch_and(x, rl::mo_acq_rel, $)
#define mi_fetch_sub_acq_rel(p, x) (p)->fetch_sub(x, rl::mo_acq_rel, $)
#define mi_fence_seq_cst()         rl::atomic_thread_fence(rl::mo_seq_cst, $)
#define mi_cas_strong(p, old, x, success, failure) \
  (p)->compare_exchange_strong(*(old), x, rl::mo_##success, $, rl::mo_##failure, $)

enum { BACKGROUND_NONE, BACKGROUND_RUNS };
enum { MI_BACKGROUND_ROUND };
typedef int mi_background_event_t;
typedef void (*observer_t)(mi_background_event_t event);

static const uint32_t MI_EVENT_SLEEPS = 1, MI_EVENT_NOTES = 2;

// Relacy has no atomic pointers to functions.
struct observer_word_t {
  rl::atomic<void*> word;
  void*             load(rl::memory_order order, rl::debug_info_param at) { return word.load(order, at); }
  void store(observer_t f, rl::memory_order order, rl::debug_info_param at) { word.store((void*)f, order, at); }
};

struct world_t {
  rl::atomic<uint32_t> state, wanted;
  observer_word_t      observer;
  rl::atomic<bool>     must_end, main_ended;
  rl::atomic<size_t>   n_watched;

  void make() {
    state.store(BACKGROUND_RUNS, rl::mo_relaxed, $);
    wanted.store(0, rl::mo_relaxed, $);
    observer.store(nullptr, rl::mo_relaxed, $);
    must_end.store(false, rl::mo_relaxed, $);
    main_ended.store(false, rl::mo_relaxed, $);
    n_watched.store(0, rl::mo_relaxed, $);
  }
};

static world_t* world;

#define background_state       world->state
#define background_observer    world->observer
#define background_must_end    world->must_end
#define _mi_event_wanted       world->wanted
#define thread_exit_main_ended world->main_ended

static size_t _mi_prim_thread_watched(void) {
  return mi_load_acquire(&world->n_watched);
}

static void _mi_purge_set_has_thread(bool) {}
static void _mi_warm_end_all(void) {}
static void _mi_spare_drop_all(void) {}
static void _mi_hold_end(void) {}
static void _mi_purge_by_amount(void) {}
static void background_call(void) {}
static void _mi_prim_thread_join(void) {}
static void observe_round(mi_background_event_t) {}

static void background_on_ended(bool is_last);
typedef void (*thread_exit_ended_t)(bool is_last);

// Set long before.
struct ended_word_t {
  thread_exit_ended_t load(rl::memory_order, rl::debug_info_param) { return &background_on_ended; }
};
static ended_word_t thread_exit_ended;

#include "extracted.hpp"

// ---- scenarios ------------------------------------------------------------------------------------------------------

template <typename scenario_t>
struct scenario : rl::test_suite<scenario_t, 2> {
  world_t the_world;
  void    before() {
    world = &the_world;
    the_world.make();
  }
};

// The library's thread ends while somebody begins to observe rounds: who works is to note it then.
struct observe : scenario<observe> {
  void thread(unsigned i) {
    if (i == 0) background_end();
    else _mi_background_observe(&observe_round);
  }
  void after() { RL_ASSERT(mi_load_relaxed(&world->wanted) == MI_EVENT_NOTES); }
};

// It is late in ending, and the next one sleeps already.
struct late_end : scenario<late_end> {
  void thread(unsigned i) {
    uint32_t state = BACKGROUND_NONE;
    if (i == 0) background_end();
    else if (mi_cas_strong(&background_state, &state, (uint32_t)BACKGROUND_RUNS, acq_rel, relaxed))
      mi_fetch_or_acq_rel(&_mi_event_wanted, MI_EVENT_SLEEPS);
  }
  void after() { RL_ASSERT(background_sleeps() == (mi_load_relaxed(&background_state) == BACKGROUND_RUNS)); }
};

// The main thread and the only other one end: our own is told that there is none left.
struct last : scenario<last> {
  void before() {
    scenario<last>::before();
    mi_store_relaxed(&world->n_watched, (size_t)1);
  }
  void thread(unsigned i) {
    if (i == 0) mi_store_relaxed(&world->main_ended, true);
    else mi_fetch_sub_acq_rel(&world->n_watched, (size_t)1);
    thread_exit_tell();
  }
  void after() { RL_ASSERT(mi_load_relaxed(&world->must_end)); }
};

// ---- what is run ----------------------------------------------------------------------------------------------------

struct scenario_row_t {
  const char* name;
  simulate_t* simulate;
};

static const scenario_row_t scenarios[] = {
    {"observe", &rl::simulate<observe>},
    {"late_end", &rl::simulate<late_end>},
    {"last", &rl::simulate<last>},
};

int main(int argc, char** argv) {
  for (const scenario_row_t& scenario : scenarios) {
    if (argc == 2) std::printf("%s none holds\n", scenario.name);
    else if (argc == 3 && std::strcmp(scenario.name, argv[1]) == 0)
      return search_holds(scenario.simulate, false) ? 0 : 1;
  }
  return argc == 2 ? 0 : 2;
}
