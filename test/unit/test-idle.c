// Proves: a round takes nothing from a theap whose thread is inside it (PR1), whatever the round before has done; it takes it back
// when the thread has left; what it took is in no bin again; and a thread that comes by while a round holds its theap waits until it
// lets go.  Two rounds are never less than a millisecond apart (PR2).
#include "../check.h"
#include "../modes/support.h"
#include "heap/bin.h"
#include "heap/event.h"
#include "heap/idle.h"
#include "heap/presence.h"
#include "mimalloc.h"

#include <pthread.h>

enum { n_blocks = 5000, n_rounds = 8, size = 64 };

static mi_theap_t* theap;

static size_t cls_of(void) {
  return _mi_size_class_of(size);
}

static size_t in_bin(void) {
  size_t n = 0;
  for (const mi_block_t* b = theap->bins[cls_of()].head; b != NULL; b = _mi_page_next_block(b)) n++;
  return n;
}

static size_t with_room(void) {
  size_t n = 0;
  for (const mi_page_t* page = theap->classes[cls_of()].queue.first; page != NULL; page = page->next) n++;
  return n;
}

static void make_round(void) {
  bool is_idle;
  _mi_idle_round(&is_idle);
}

static void free_some(void** blocks) {
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_malloc(size - MI_PADDING_SIZE);
  for (size_t i = 0; i < n_blocks; i += 2) mi_free(blocks[i]);
}

// Its thread is in the middle of a slow path, for as long as several rounds.
static void check_inside(void) {
  static void* blocks[n_blocks];
  free_some(blocks);
  size_t n_in_bin = in_bin(), n_pages = with_room();
  CHECK_FOR(n_in_bin > 0 && n_pages > 0, "%zu, %zu", n_in_bin, n_pages);
  _mi_presence_enter(theap);
  for (int i = 0; i < n_rounds; i++) {
    make_round();
    CHECK(!_mi_bin_are_closed(theap));
    CHECK(mi_load_relaxed(&theap->revoked) == MI_THEAP_FREE || mi_load_relaxed(&theap->revoked) == MI_THEAP_ASKED);
    CHECK(in_bin() == n_in_bin && with_room() == n_pages);
  }
  _mi_presence_leave(theap);
  // It is outside now, and its bins are closed first.
  for (int i = 0; i < 3 && !_mi_bin_are_closed(theap); i++) make_round();
  CHECK(_mi_bin_are_closed(theap));
  CHECK_EQ(mi_load_relaxed(&theap->revoked), MI_THEAP_CLOSED);
  CHECK(in_bin() == 0 && with_room() == n_pages);
  // It enters, and has not got any further: what is closed stays so, and nothing else is taken.
  mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);
  for (int i = 0; i < n_rounds; i++) {
    make_round();
    CHECK_EQ(mi_load_relaxed(&theap->revoked), MI_THEAP_CLOSED);
    CHECK(with_room() == n_pages);
  }
  _mi_presence_wait(theap); // the rest of the way
  CHECK_EQ(mi_load_relaxed(&theap->revoked), MI_THEAP_FREE);
  CHECK(!_mi_bin_are_closed(theap));
  CHECK(in_bin() == n_in_bin && with_room() == n_pages);
  _mi_presence_leave(theap);
  for (int i = 0; i < n_rounds; i++) make_round();
  CHECK_EQ(mi_load_relaxed(&theap->revoked), MI_THEAP_EMPTIED);
  CHECK_EQ(with_room(), 0);
  for (size_t i = 1; i < n_blocks; i += 2) mi_free(blocks[i]);
  mi_collect(true);
}

// Its thread was stopped in a free, when it had read how much room its bin has.  Rounds give back what is in the bin, and then it goes
// on: what they took is not in the bin again (BN1).
static void check_stopped(void) {
  enum { n = 8 };
  void*     some[n];
  mi_bin_t* bin = &theap->bins[cls_of()];
  for (size_t i = 0; i < n; i++) some[i] = mi_malloc(size - MI_PADDING_SIZE);
  for (size_t i = 1; i < n; i++) mi_free(some[i]);
  int32_t     slots = bin->slots - 1;
  mi_block_t* block = (mi_block_t*)some[0];
  CHECK(slots > 0 && in_bin() >= n - 1);
  for (int i = 0; i < n_rounds; i++) make_round();
  CHECK_EQ(mi_load_relaxed(&theap->revoked), MI_THEAP_EMPTIED);
  CHECK_EQ(in_bin(), 0);
  bin->slots = slots;
  _mi_block_set_next(block, bin->head);
  bin->head = block;
  _mi_presence_enter(theap);
  CHECK_EQ(in_bin(), 1);
  CHECK_EQ(bin->slots, bin->limit - 1);
  _mi_presence_leave(theap);
  CHECK(mi_heap_check(NULL));
  mi_collect(true);
}

static mi_atomic(uint32_t) n_entered, presence_then;

static void* enter(void* arg) {
  _mi_presence_enter((mi_theap_t*)arg);
  mi_store_relaxed(&presence_then, mi_load_relaxed(&((mi_theap_t*)arg)->presence));
  mi_store_release(&n_entered, 1u);
  _mi_presence_leave((mi_theap_t*)arg);
  return NULL;
}

// `next`: what the round leaves it as.
static void check_held(mi_revoked_t next) {
  pthread_t thread;
  mi_store_relaxed(&n_entered, 0u);
  mi_store_relaxed(&theap->revoked, (uint32_t)MI_THEAP_ASKED);
  CHECK(_mi_presence_take(theap, MI_THEAP_ASKED));
  CHECK(!_mi_presence_take(theap, MI_THEAP_ASKED)); // one at a time
  pthread_create(&thread, NULL, &enter, theap);
  sleep_ms(100);
  CHECK_EQ(mi_load_acquire(&n_entered), 0);
  CHECK_EQ(mi_load_relaxed(&theap->presence), MI_THEAP_OUTSIDE); // while it waits
  _mi_presence_let_go(theap, next);
  pthread_join(thread, NULL);
  CHECK_EQ(mi_load_acquire(&n_entered), 1);
  CHECK_EQ(mi_load_relaxed(&presence_then), MI_THEAP_INSIDE); // the next round is to find it there
  CHECK_EQ(mi_load_relaxed(&theap->revoked), MI_THEAP_FREE);
}

// However soon memory is to go back, a thread that was asked has a millisecond until the next round for its stores to be seen
// (presence.h, PR2).
static void check_apart(void) {
  enum { n_short = 50 };
  int64_t before = 0, least = INT64_MAX;
  mi_option_set(mi_option_purge_delay, 1);
  mi_option_set(mi_option_arena_purge_mult, 1);
  for (int n = 0; n < n_short;) {
    uint32_t round = mi_load_relaxed(&_mi_event_round);
    int64_t  start = _mi_prim_clock_ns();
    _mi_event_wake();
    _mi_event_poll();
    if (mi_load_relaxed(&_mi_event_round) == round) continue;
    if (n++ > 0) least = mi_min_signed(least, _mi_prim_clock_ns() - before);
    before = start;
  }
  mi_option_set(mi_option_purge_delay, -1);
  CHECK_FOR(least >= 1000000, "two rounds within %lld ns", (long long)least);
}

int main(void) {
  watchdog(60);
  if (MI_HARDENED || MI_TAGS || MI_TSAN) {
    test_skip("rounds", "blocks that are freed wait elsewhere, or bins are not closed");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours makes rounds, and none is made by a free
  mi_free(mi_malloc(size));
  theap = _mi_theap_default;
  check_inside();
  check_stopped();
  check_held(MI_THEAP_FREE);
  check_held(MI_THEAP_ASKED);
  check_held(MI_THEAP_EMPTIED);
  check_apart();
  return check_result();
}
