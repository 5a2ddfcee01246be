// Proves of arena/recall.c: whatever happened before, a round gives back no more than is free, and holds for four seconds at most.
#include "proof.h"

#include "arena/recall.c"

static size_t any_slices(void) {
  size_t n = nondet_size();
  REQUIRE(n <= (size_t)1 << 48);
  return n;
}

static int64_t any_time(void) {
  int64_t ms = (int64_t)nondet_u64();
  REQUIRE(ms >= INT64_MIN / 2 && ms <= INT64_MAX / 4);
  return ms;
}

void proof_recall(void) {
  int64_t     now = (int64_t)(nondet_u64() >> 3);
  size_t      low = any_slices(), n_fresh = any_slices();
  mi_recall_t recall = {any_time(),
                        any_time(),
                        any_time(),
                        any_slices(),
                        any_slices(),
                        any_slices(),
                        any_slices(),
                        {nondet_size(), nondet_size()},
                        {any_slices(), any_slices()}};
  REQUIRE(n_fresh >= recall.n_fresh && recall.half_since <= now && recall.last_give <= now);
  ENSURE(_mi_recall_round(&recall, now, low, any_slices(), n_fresh) <= low);
  ENSURE(recall.until <= now + MI_RECALL_MS_MOST);
  size_t n = any_slices();
  _mi_recall_note(&recall, now, n, n_fresh);
  ENSURE(recall.last_give == now && recall.n_given >= n);
}
