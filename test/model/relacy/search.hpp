// How the models look for interleavings in which a scenario fails.
#pragma once

#include <relacy/relacy.hpp>

typedef bool simulate_t(rl::test_params& params);

// All interleavings if it is small, else those in which threads are interrupted up to 4 times; then many at random, in which loads see
// values that are older still.
static bool search_holds(simulate_t* simulate, bool is_small) {
  rl::test_params search;
  search.search_type = is_small ? rl::sched_full : rl::sched_bound;
  search.context_bound = 4;
  if (!simulate(search)) return false;
  rl::test_params random;
  random.search_type = rl::sched_random;
  random.iteration_count = 300000;
  return simulate(random);
}
