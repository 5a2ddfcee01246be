// Proves: what many threads have in bins of wide classes is bounded for all of them together, although each uses all of these classes
// in turn and never makes another page (TI5); few threads may keep a block of each.
#include <pthread.h>
#include "../check.h"
#include "../modes/support.h"
#include "heap/registry.h"
#include "heap/trim.h"
#include "mimalloc.h"
#include "page/padding.h"

enum { n_many = 32, n_few = 4, n_rounds = 4 };

static size_t n_begun, n_done;
static size_t n_threads;
static int    is_over;

static void wait_for(const size_t* n) {
  while (__atomic_load_n(n, __ATOMIC_ACQUIRE) < n_threads) sleep_ms(1);
}

static void* use_all(void* arg) {
  mi_free(mi_malloc(1));
  __atomic_fetch_add(&n_begun, 1, __ATOMIC_ACQ_REL);
  wait_for(&n_begun); // what each may keep depends on how many there are
  for (int i = 0; i < n_rounds; i++) {
    for (size_t cls = MI_CLASS_WIDE; cls < MI_CLASS_COUNT; cls++)
      mi_free(mi_malloc(_mi_size_class_block(cls) - MI_PADDING_SIZE));
  }
  __atomic_fetch_add(&n_done, 1, __ATOMIC_ACQ_REL);
  while (__atomic_load_n(&is_over, __ATOMIC_ACQUIRE) == 0) sleep_ms(1);
  return arg;
}

static size_t bytes_in_bins(void) {
  size_t n = 0;
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    for (size_t cls = MI_CLASS_WIDE; cls < MI_CLASS_COUNT; cls++) {
      for (const mi_block_t* b = theap->bins[cls].head; b != NULL; b = _mi_page_next_block(b))
        n += _mi_size_class_block(cls);
    }
  }
  return n;
}

// What is in bins when all have done the same.
static size_t bytes_of(size_t n) {
  pthread_t threads[n_many];
  n_begun = n_done = 0;
  n_threads = n;
  is_over = 0;
  for (size_t i = 0; i < n; i++) pthread_create(&threads[i], NULL, &use_all, NULL);
  wait_for(&n_done);
  size_t bytes = bytes_in_bins();
  __atomic_store_n(&is_over, 1, __ATOMIC_RELEASE);
  for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
  mi_collect(true);
  return bytes;
}

int main(void) {
  watchdog(120);
  if (MI_HARDENED || MI_TAGS) {
    test_skip("bins of wide classes", "blocks that are freed wait before they go to a bin or past it");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours
  mi_free(mi_malloc(1));
  size_t many = bytes_of(n_many), few = bytes_of(n_few);
  CHECK_FOR(many <= 8 * MiB, "%zu KiB", many / KiB);
  CHECK_FOR(many >= 4 * MiB, "%zu KiB", many / KiB);
  CHECK_FOR(few >= n_few * MiB / 4 * 3, "%zu KiB", few / KiB); // what is over a MiB goes when a page is made (TI3)
  return check_result();
}
