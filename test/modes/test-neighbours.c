// Proves: in hardened builds, which look at the end of the block before one that is freed, a block that another thread hands out,
// resizes or frees at that moment is never taken for damaged, nor is anything in the child of a fork; and what was written behind
// a block is found while other threads run.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "base/mode.h"
#include "forks.h"
#include "support.h"

enum { n_workers = 4, n_handed = 2048, n_beside = 200, n_same = 6000 };

static atomic_bool    must_stop;
static atomic_size_t  n_errors;
static _Atomic(void*) handed[n_handed];

static void note_error(int code, void* arg) {
  (void)code, (void)arg;
  atomic_fetch_add(&n_errors, 1);
}

// Of messages only the number counts.
static void say_nothing(const char* message, void* arg) {
  (void)message, (void)arg;
}

static size_t take_errors(void) {
  return atomic_exchange(&n_errors, 0);
}

// So that there are few bytes, or none, between what is asked for and the last word of the block.  Each thread has one class for a
// while, so that pages that others had are used again.
static size_t pick_size(rng_t* rng, size_t n) {
  static const size_t steps[] = {32, 48, 80, 112, 256, 640};
  size_t              which = (n / n_same % 2 == 0 ? n / n_same : rng_below(rng, COUNT_OF(steps)));
  return steps[which % COUNT_OF(steps)] - 8 - rng_below(rng, 16);
}

// A block is handed out, resized where it is, and freed by another thread, beside blocks of all others.
static void exchange_one(rng_t* rng, size_t n) {
  char* p = (char*)mi_malloc(pick_size(rng, n));
  if (rng_below(rng, 4) == 0)
    memset(p, (int)rng_below(rng, 256), mi_usable_size(p)); // pages that are used again are not zero
  for (size_t n = rng_below(rng, 4); n > 0; n--) {
    size_t size = mi_usable_size(p);
    p = (char*)mi_realloc(p, size - (size > 1 && n % 2 == 0) + (n % 2 != 0));
  }
  mi_free(atomic_exchange(&handed[rng_below(rng, n_handed)], p));
}

static void* work(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t n = 0; !atomic_load_explicit(&must_stop, memory_order_relaxed); n++) {
    rest_if_due();
    exchange_one(&rng, n);
    if (n % n_same == 0) mi_collect(true); // pages go, and come again with other blocks
  }
  return NULL;
}

static void free_handed(void) {
  for (size_t i = 0; i < n_handed; i++) mi_free(atomic_exchange(&handed[i], NULL));
}

// The child takes over the pages of threads that it does not have.
static int run_child(size_t number) {
  rng_t rng = rng_make(number);
  for (size_t i = 0; i < 500; i++) exchange_one(&rng, n_same + i);
  if (number % 2 == 0) mi_collect(true);
  free_handed();
  return atomic_load(&n_errors) == 0 ? 0 : 1;
}

// ---- damage ---------------------------------------------------------------------------------------------------------

// Frees a block, one of them, before which something was written over the last word of another: that is as it was afterwards.
static bool free_behind_damage(char** blocks, size_t distance) {
  for (size_t i = 0; i < n_beside; i++) {
    for (size_t k = 0; k < n_beside; k++) {
      char* behind = blocks[k];
      if (behind != blocks[i] + distance || (uintptr_t)behind % (64 * KiB) == 0) continue;
      uint64_t was, damage = 0x7878787878787878u;
      memcpy(&was, (char*)hidden_pointer(behind) - sizeof(was), sizeof(was));
      memcpy((char*)hidden_pointer(behind) - sizeof(was), &damage, sizeof(was));
      mi_free(behind);
      blocks[k] = NULL;
      memcpy(blocks[i] + distance - sizeof(was), &was, sizeof(was));
      return true;
    }
  }
  return false;
}

static void check_damage(size_t n_expected) {
  char* blocks[n_beside];
  for (size_t i = 0; i < n_beside; i++) blocks[i] = (char*)mi_malloc(200);
  CHECK(free_behind_damage(blocks, mi_good_size(200)));
  CHECK_EQ(take_errors(), n_expected);
  for (size_t i = 0; i < n_beside; i++) mi_free(blocks[i]);
  CHECK_EQ(take_errors(), 0);
}

// Where pages of other threads were left behind nothing is looked at.
static int run_child_with_damage(size_t number) {
  (void)number;
  check_damage(0);
  return check_n_failed == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  if (!MI_HARDENED || UINTPTR_MAX == UINT32_MAX) {
    test_skip("neighbours", "this build does not look at them");
    return skip_code;
  }
  uint64_t  seed = test_seed(argc, argv);
  pthread_t workers[n_workers];
  watchdog(250);
  mi_register_error(&note_error, NULL);
  mi_register_output(&say_nothing, NULL);
  check_damage(1);
  for (size_t i = 0; i < n_workers; i++) {
    CHECK_EQ(pthread_create(&workers[i], NULL, &work, (void*)(uintptr_t)(seed + i)), 0);
  }
  for (int i = 0; i < 20; i++) check_damage(1);
  fork_often(250, &run_child);
  fork_often(3, &run_child_with_damage);
  for (int i = 0; i < 20; i++) check_damage(1);
  sleep_ms(300);
  atomic_store(&must_stop, true);
  for (size_t i = 0; i < n_workers; i++) pthread_join(workers[i], NULL);
  free_handed();
  CHECK_EQ(take_errors(), 0);
  CHECK(mi_heap_check(NULL));
  check_damage(1);
  return check_result();
}
