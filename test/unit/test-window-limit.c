// Proves, where memory only grows: limits count what has come, exactly; no step makes it more than the hard limit, a refused request
// adds nothing, and free memory is used under any limit; nothing comes ahead beyond a soft limit; the hook for the hard limit is called.
#include "../check.h"
#include "../modes/support.h"
#include "arena/limit.h"
#include "heap/check.h"
#include "mimalloc-limit.h"
#include "mimalloc.h"
#include "slots.h"
#include "support/stat.h"

// All that the program has, its own data too.
static size_t memory_size(void) {
  return __builtin_wasm_memory_size(0) * 64 * KiB;
}

// What the allocator has got as slices.
static size_t n_got(void) {
  return (size_t)mi_load_relaxed(&_mi_stat_live.reserved.current);
}

static void set_limits(size_t hard, size_t soft) {
  size_t base = mi_limit_used();
  CHECK_EQ(mi_limit_set(hard == 0 ? 0 : base + hard, soft == 0 ? 0 : base + soft), 0);
}

static void step(rng_t* rng) {
  size_t i = rng_below(rng, n_slots);
  switch (rng_below(rng, 6)) {
    case 0:
    case 1:
    case 2: slot_malloc(i, rng_size(rng, 4 * MiB)); break;
    case 3: slot_realloc(i, rng_size(rng, 8 * MiB)); break;
    case 4: slot_malloc_aligned(i, rng_size(rng, MiB), (size_t)1 << rng_below(rng, 20)); break;
    default: slot_free(i);
  }
}

// ---- checks ---------------------------------------------------------------------------------------------------------

static void check_counts(rng_t* rng) {
  size_t hard, n_refused = mi_load_relaxed(&_mi_limit_process.n_refused);
  set_limits(32 * MiB, 0);
  mi_limit_get(&hard, NULL);
  for (size_t i = 0; i < 20000; i++) {
    step(rng);
    CHECK_FOR(mi_limit_used() <= hard, "step %zu: %zu KiB", i, mi_limit_used() / KiB);
    CHECK_FOR(mi_limit_used() == n_got(), "step %zu: %zu KiB, and there are %zu", i, mi_limit_used() / KiB,
              n_got() / KiB);
  }
  CHECK(mi_load_relaxed(&_mi_limit_process.n_refused) > n_refused);
  CHECK(mi_heap_check(NULL));
  free_all();
  mi_collect(true);
  CHECK_EQ(mi_limit_used(), n_got());
  mi_limit_set(0, 0);
}

// What is refused adds no memory, which would be there for ever; what is free serves any request.
static void check_refused(void) {
  static const size_t sizes[] = {40 * MiB, 100 * MiB, 700 * MiB};
  void*               p = mi_malloc(16 * MiB);
  CHECK(p != NULL);
  set_limits(MiB, 0);
  size_t got = n_got(), size = memory_size();
  for (size_t i = 0; i < 30; i++) {
    CHECK(mi_malloc(sizes[i % 3]) == NULL);
    CHECK(mi_malloc_aligned(sizes[i % 3], 4 * MiB) == NULL);
    CHECK(mi_realloc(p, sizes[i % 3]) == NULL);
  }
  CHECK_EQ(n_got(), got);
  CHECK_EQ(memory_size(), size);
  mi_free(p);
  CHECK_EQ(mi_limit_set(64 * KiB, 0), 0);
  CHECK_EQ(mi_limit_used(), got);
  p = mi_malloc(16 * MiB);
  CHECK(p != NULL);
  mi_free(p);
  CHECK_EQ(n_got(), got);
  mi_limit_set(0, 0);
}

static int n_called[2];

static void on_limit(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  CHECK(heap == NULL && used == n_got());
  n_called[event]++;
  if (event == mi_limit_hard && arg != NULL) free_all();
}

// Small blocks get an eighth ahead, but not beyond a limit.
static void check_soft(void) {
  size_t soft, n = 0;
  mi_limit_hook(&on_limit, NULL);
  void* p = mi_malloc(64 * MiB); // an eighth of that is 8 MiB,
  set_limits(0, 10 * MiB);       // so that it would come twice
  mi_limit_get(NULL, &soft);
  while (mi_limit_used() <= soft && n < n_slots) {
    size_t before = n_got();
    blocks[n] = mi_malloc(300 * KiB);
    CHECK(blocks[n++] != NULL);
    if (n_got() > soft) CHECK_FOR(n_got() - before <= MiB, "%zu KiB beyond the limit", (n_got() - soft) / KiB);
  }
  CHECK(n < n_slots && n_called[mi_limit_soft] == 0);
  mi_free(mi_malloc(300 * KiB)); // the next slow path
  CHECK_EQ(n_called[mi_limit_soft], 1);
  free_all();
  mi_free(p);
  mi_limit_set(0, 0);
  mi_limit_hook(NULL, NULL);
}

static void check_hook(void) {
  n_called[mi_limit_hard] = 0;
  CHECK_EQ(mi_limit_set(64 * KiB, 0), 0);
  size_t n = 0;
  while (n < n_slots && (blocks[n] = mi_malloc(MiB)) != NULL) n++;
  CHECK(n > 16 && n < n_slots);
  CHECK_EQ(n_called[mi_limit_hard], 0); // there was no hook
  mi_limit_set(0, 0);                   // so that it is called at once
  CHECK_EQ(mi_limit_set(64 * KiB, 0), 0);
  mi_limit_hook(&on_limit, blocks);
  void* p = mi_malloc(MiB); // the hook makes room for it
  CHECK(p != NULL);
  CHECK_EQ(n_called[mi_limit_hard], 1);
  mi_free(p);
  mi_limit_set(0, 0);
  mi_limit_hook(NULL, NULL);
}

int main(int argc, char** argv) {
  rng_t rng = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_show_errors, 0);
  check_counts(&rng);
  check_refused();
  check_soft();
  check_hook();
  return check_result();
}
