// Proves: a set of kept blocks gives what fits best and is at most a quarter too large, a round takes what was there at the one before
// and no other, and its thread waits for whoever is at the set, while nobody else does, nor a thread that forks.
#include <pthread.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "heap/kept.h"
#include "mimalloc.h"

enum { n_pages = 8 };

static mi_kept_t kept;
static mi_page_t pages[n_pages]; // of which the set knows the size and its own fields only

static mi_page_t* page_of(size_t i, size_t n_slices) {
  memset((void*)&pages[i], 0, sizeof(pages[i]));
  pages[i].n_slices = (uint32_t)n_slices;
  pages[i].was_seen_kept = 1; // as the last use left it
  return &pages[i];
}

static size_t length(const mi_page_t* list) {
  size_t n = 0;
  for (; list != NULL; list = list->next) n++;
  return n;
}

static void start_anew(void) {
  _mi_kept_take_all(&kept, true);
  CHECK_EQ(mi_load_relaxed(&kept.nonempty), 0);
  CHECK(!_mi_kept_any(&kept));
  mi_store_relaxed(&kept.n_credit, (size_t)MI_KEPT_SLICES);
}

// KE2
static void check_fit(void) {
  start_anew();
  mi_page_t *of_20 = page_of(0, 20), *of_24 = page_of(1, 24), *of_64 = page_of(2, 64);
  CHECK(_mi_kept_push(&kept, of_64) == NULL && _mi_kept_push(&kept, of_20) == NULL &&
        _mi_kept_push(&kept, of_24) == NULL);
  CHECK(_mi_kept_has(&kept, of_20) && _mi_kept_has(&kept, of_24));
  CHECK(_mi_kept_pop(&kept, 15) == NULL); // it may be 18
  CHECK(_mi_kept_pop(&kept, 16) == of_20);
  CHECK(_mi_kept_pop(&kept, 18) == NULL && _mi_kept_pop(&kept, 25) == NULL && _mi_kept_pop(&kept, 65) == NULL);
  CHECK(_mi_kept_pop(&kept, 24) == of_24 && !_mi_kept_has(&kept, of_24));
  CHECK(_mi_kept_pop(&kept, 50) == NULL && _mi_kept_pop(&kept, 52) == of_64);
  CHECK(_mi_kept_pop(&kept, 64) == NULL && _mi_kept_pop(&kept, MI_KEPT_SLICES_MIN) == NULL);
}

// KE5
static void check_rounds(void) {
  start_anew();
  CHECK(_mi_kept_push(&kept, page_of(0, 8)) == NULL);
  CHECK(_mi_kept_take_unused(&kept, 1) == NULL);
  CHECK(_mi_kept_push(&kept, page_of(1, 8)) == NULL);
  CHECK(_mi_kept_take_unused(&kept, 2) == &pages[0]);
  CHECK(_mi_kept_pop(&kept, 8) == &pages[1]); // and is used again
  CHECK(_mi_kept_push(&kept, &pages[1]) == NULL);
  CHECK(_mi_kept_take_unused(&kept, 3) == NULL);
  CHECK(_mi_kept_take_unused(&kept, 3) == &pages[1]);
  CHECK(!_mi_kept_any(&kept));
}

static void* let_go(void* arg) {
  sleep_ms(30);
  mi_store_release(&kept.is_taken, 0u);
  return arg;
}

// KE1
static void check_taken(void) {
  pthread_t thread;
  start_anew();
  for (size_t i = 0; i < 3; i++) CHECK(_mi_kept_push(&kept, page_of(i, 8 + i)) == NULL);
  mi_store_relaxed(&kept.is_taken, 1u);
  CHECK(_mi_kept_pop(&kept, 8) == NULL && _mi_kept_missed(&kept, 8) == NULL);
  CHECK(_mi_kept_push(&kept, page_of(3, 8)) == &pages[3]);
  CHECK(_mi_kept_take_all(&kept, false) == NULL && _mi_kept_take_unused(&kept, 0) == NULL);
  CHECK_EQ(pthread_create(&thread, NULL, &let_go, NULL), 0);
  CHECK_EQ(length(_mi_kept_take_all(&kept, true)), 3);
  pthread_join(thread, NULL);
  CHECK_EQ(mi_load_relaxed(&kept.is_taken), 0);
}

// Who has it may be lost in the child of a fork, or wait for a lock of the thread that forks: that one goes on without.
static void check_forker(void) {
  start_anew();
  CHECK(_mi_kept_push(&kept, page_of(0, 8)) == NULL);
  mi_store_relaxed(&kept.is_taken, 1u);
  mi_store_relaxed(&_mi_lock_forker, _mi_lock_self());
  CHECK(_mi_kept_take_all(&kept, true) == NULL);
  mi_store_relaxed(&_mi_lock_forker, (uintptr_t)0);
  mi_store_relaxed(&kept.is_taken, 0u);
  CHECK_EQ(length(_mi_kept_take_all(&kept, true)), 1);
}

int main(void) {
  watchdog(60);
  mi_free(mi_malloc(1));
  _mi_purge_set_has_thread(true); // what may be kept is known: 32 MiB
  check_fit();
  check_rounds();
  check_taken();
  check_forker();
  start_anew();
  return check_result();
}
