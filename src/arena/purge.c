// What the policies of giving memory back have in common.  Layer: arena.  See purge.h.
#include "purge.h"

#include "../support/option.h"
#include "chunk.h"
#include "give.h"
#include "hole.h"
#include "limit.h"
#include "mapped.h"
#include "shrink.h"

// If the system takes no memory back, the next attempt by the amount is made so much later, twice as long after each failure.
#define PURGE_REFUSED_MS_MIN 100
#define PURGE_REFUSED_MS_MAX 5000

// Threads write it whenever they keep a large block or use it again, so it shares no cache line.  Nor does it lie in the first line of an OS
// page: large blocks begin there, and if a program writes the heads of many, they fill all sets of the cache that such lines go to
// (`large-batches` took 1.6 times as long).
typedef struct mi_aligned(128) purge_keeping_s {
  char              first_line[64];
  mi_atomic(size_t) n_kept; // PG2
  mi_atomic(size_t) n_lent; // of these, slices that may be kept, but are in use
} purge_keeping_t;

static purge_keeping_t    purge_keeping;
static mi_atomic(bool)    purge_has_thread;
static mi_atomic(size_t)  purge_retained = mi_atomic_init(SIZE_MAX); // PG3
static mi_atomic(size_t)  purge_refused_ms;    // PG1: how long to wait; 0: the system takes what it is given
static mi_atomic(int64_t) purge_refused_until; // ... and until when

mi_recall_t _mi_purge_recall = MI_RECALL_INITIAL;

// ---- options ----------------------------------------------------------------------------------------------------------

void _mi_purge_set_has_thread(bool has_thread) {
  mi_store_relaxed(&purge_has_thread, has_thread);
}

bool _mi_purge_has_thread(void) {
  return mi_load_relaxed(&purge_has_thread);
}

void _mi_purge_set_retained(size_t n) {
  mi_store_relaxed(&purge_retained, mi_max(n, MI_PURGE_MIN_SLICES));
}

size_t _mi_purge_retained(void) {
  return mi_load_relaxed(&purge_retained);
}

int64_t _mi_purge_interval(void) {
  int64_t delay = _mi_option_get_fast(mi_option_purge_delay);
  int64_t mult = _mi_option_get_fast(mi_option_arena_purge_mult);
  return delay <= 0 ? delay : delay * (mult <= 0 ? 1 : mult);
}

// ---- what is free and backed, or kept ---------------------------------------------------------------------------------

size_t _mi_purge_n_kept(void) {
  return mi_load_relaxed(&purge_keeping.n_kept);
}

size_t _mi_purge_n_resting(void) {
  size_t n_kept = mi_load_relaxed(&purge_keeping.n_kept);
  return n_kept - mi_min(n_kept, mi_load_relaxed(&purge_keeping.n_lent));
}

size_t _mi_purge_n_backed(void) {
  return _mi_chunk_purgeable() + _mi_purge_n_resting();
}

bool _mi_purge_has_more(void) {
  return _mi_purge_n_backed() > 0 && mi_load_relaxed(&purge_refused_ms) == 0;
}

void _mi_purge_count_kept(size_t n) {
  mi_fetch_add_relaxed(&purge_keeping.n_kept, n);
}

void _mi_purge_unkeep(size_t n) {
  mi_fetch_sub_relaxed(&purge_keeping.n_kept, n);
}

void _mi_purge_lend(size_t n) {
  mi_fetch_add_relaxed(&purge_keeping.n_lent, n);
}

void _mi_purge_unlend(size_t n) {
  mi_fetch_sub_relaxed(&purge_keeping.n_lent, n);
}

void _mi_purge_set_kept(size_t n, size_t n_lent) {
  mi_store_relaxed(&purge_keeping.n_kept, n);
  mi_store_relaxed(&purge_keeping.n_lent, n_lent);
}

// ---- giving back ------------------------------------------------------------------------------------------------------

void _mi_purge_note(size_t n_given) {
  size_t wait = mi_load_relaxed(&purge_refused_ms);
  if (mi_likely(n_given > 0)) {
    if (wait != 0) mi_store_relaxed(&purge_refused_ms, (size_t)0);
    return;
  }
  int64_t now = _mi_prim_clock_ms();
  if (wait != 0 && now < mi_load_relaxed(&purge_refused_until)) return;
  wait = mi_clamp(2 * wait, PURGE_REFUSED_MS_MIN, PURGE_REFUSED_MS_MAX);
  mi_store_relaxed(&purge_refused_until, now + (int64_t)wait);
  mi_store_relaxed(&purge_refused_ms, wait);
}

bool _mi_purge_is_refused(void) {
  return mi_unlikely(mi_load_relaxed(&purge_refused_ms) != 0) &&
         _mi_prim_clock_ms() < mi_load_relaxed(&purge_refused_until);
}

size_t _mi_purge_slices(size_t n) {
  bool is_refused = false;
  return _mi_give_slices(&_mi_purge_recall, n, 0, true, &is_refused);
}

// What else the library can do without.
static void purge_rest(void) {
  _mi_shrink_clean();
  _mi_mapped_retry(SIZE_MAX);
  _mi_hole_close_filled(SIZE_MAX);
}

size_t _mi_purge_to(size_t stay) {
  bool   is_refused = false;
  size_t n_given = _mi_give_slices(&_mi_purge_recall, SIZE_MAX, stay, true, &is_refused);
  if (n_given > 0 || is_refused) _mi_purge_note(n_given);
  purge_rest();
  return n_given;
}

void _mi_purge_for_request(void) {
  if (_mi_purge_is_refused()) purge_rest();
  else _mi_purge_to(0);
}

void _mi_purge_init(void) {
  _mi_limit_register(&_mi_purge_slices);
}
