// Guarded mode: counting allocations, and arming theaps.  Layer: heap.  sampler.h has the invariants.
#include "sampler.h"

#include <string.h>

#include "../base/track.h"
#include "../support/options.h"
#include "bin.h"
#include "event.h"
#include "guard.h"
#include "guard_fault.h"
#include "meta.h"
#include "presence.h"
#include "registry.h"

// While it counts, a theap is armed for at most so many allocations of sizes that may be guarded: which of them it will
// be must not depend on which of them filled a bin.
#define SAMPLER_ARMED_MAX 16
// ... and for so many of other sizes.
#define SAMPLER_UNFIT_MAX 64

// While it counts, no more than this part of a thread's time goes into making guarded blocks, and about as much into
// freeing them; a block takes some microseconds.
#define SAMPLER_TIME_SHARE 400
#define SAMPLER_COST_MAX   1000000 // ns; what took longer was waiting for a processor

// Of blocks that are not precise, if not all blocks are guarded.
#define SAMPLER_BEFORE_PERCENT 25

// What every block of more than eight bytes is aligned to.
#define SAMPLER_PLAIN_ALIGN ((size_t)(MI_MIN_ALIGN_8 ? 8 : 16))

mi_atomic(size_t) _mi_sampler_plain_align = SAMPLER_PLAIN_ALIGN;

static mi_atomic(uint32_t) sampler_version;  // of the options
static mi_atomic(bool)     sampler_has_rate; // the option: a reason for notices (SA4)

static mi_slab_t sampler_slab; // under the guard lock, as what follows
static size_t    sampler_n_made;

// ---- chance ---------------------------------------------------------------------------------------------------------

static uint64_t sampler_random(mi_sampler_t* s) {
  return mi_mix64(s->random += MI_MIX);
}

static size_t sampler_random_below(mi_sampler_t* s, size_t n) {
  return (size_t)((sampler_random(s) >> 32) * n >> 32);
}

// The system is asked once: a process may not be able to later.
static uint64_t sampler_chance(void) {
  static mi_atomic(uint64_t) chance;
  uint64_t                   before = mi_load_relaxed(&chance);
  if (before == 0) mi_cas_strong(&chance, &before, _mi_prim_random() | 1, relaxed, relaxed);
  return mi_load_relaxed(&chance) ^ (uint64_t)_mi_prim_clock_ns(); // in the child of a fork, another one
}

static void sampler_seed(mi_sampler_t* s, uint64_t seed) {
  // Theaps with the same seed must not all choose at the same time.
  s->random = (seed == 0 ? sampler_chance() : seed) + s->number * 0xD1342543DE82EF95u;
}

// Any number from 1 to twice the rate is equally likely: a fixed one could keep step with the program.
static void sampler_start_interval(mi_sampler_t* s) {
  size_t rate = mi_min(s->rate, (size_t)INT32_MAX);
  s->countdown = (int64_t)(1 + sampler_random_below(s, 2 * rate - 1));
  s->n_unfit = 0;
}

// ---- arming ---------------------------------------------------------------------------------------------------------

static void sampler_close_bin(mi_theap_t* theap, mi_sampler_t* s, size_t cls) {
  s->bins[cls] = theap->bins[cls];
  theap->bins[cls].head = NULL;
  theap->bins[cls].slots = theap->bins[cls].limit = MI_SAMPLER_CLOSED;
}

static void sampler_open_bin(mi_theap_t* theap, mi_sampler_t* s, size_t cls) {
  theap->bins[cls] = s->bins[cls];
  s->bins[cls].head = NULL;
}

static bool sampler_bin_is_closed(const mi_theap_t* theap, size_t cls) {
  return theap->bins[cls].limit == MI_SAMPLER_CLOSED;
}

static void sampler_arm(mi_theap_t* theap, mi_sampler_t* s) {
  if (s->is_armed) return;
  _mi_presence_enter(theap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) sampler_close_bin(theap, s, cls);
  s->is_armed = true;
  mi_fetch_add_relaxed(&_mi_event_pending, 1); // while entered: from here on no round closes bins
  _mi_presence_leave(theap);
}

void _mi_sampler_disarm(mi_theap_t* theap) {
  mi_sampler_t* s = theap->sampler;
  if (mi_likely(s == NULL) || !s->is_armed) return;
  _mi_presence_enter(theap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    if (sampler_bin_is_closed(theap, cls)) sampler_open_bin(theap, s, cls);
  }
  s->is_armed = false;
  mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  _mi_presence_leave(theap);
}

static bool sampler_counts_all(const mi_sampler_t* s) {
  return s->rate > 0 && s->rate < MI_SAMPLER_ALL_BELOW;
}

// ---- settings -------------------------------------------------------------------------------------------------------

static size_t sampler_option(mi_option_t option) {
  long value = _mi_option_get_fast(option);
  return value < 0 ? 0 : (size_t)value;
}

static size_t sampler_before_percent(const mi_sampler_t* s) {
  long percent = _mi_option_get_fast(mi_option_guarded_before);
  if (percent >= 0) return (size_t)percent;
  return s->rate == 1 || s->is_precise ? 0 : SAMPLER_BEFORE_PERCENT;
}

// Begins anew with the settings that it has.
static void sampler_restart(mi_theap_t* theap, mi_sampler_t* s) {
  s->before_percent = sampler_before_percent(s);
  s->not_before_ns = 0;
  if (s->rate > 0) sampler_start_interval(s);
  if (sampler_counts_all(s)) sampler_arm(theap, s);
  else _mi_sampler_disarm(theap);
}

static void sampler_read_options(mi_theap_t* theap, mi_sampler_t* s, uint32_t version) {
  s->version = version;
  s->is_precise = (_mi_option_get_fast(mi_option_guarded_precise) != 0);
  if (!s->has_own_rate) {
    s->rate = sampler_option(mi_option_guarded_sample_rate);
    sampler_seed(s, (uint64_t)_mi_option_get_fast(mi_option_guarded_sample_seed));
  }
  if (!s->has_own_bounds) {
    s->min = sampler_option(mi_option_guarded_min);
    s->max = sampler_option(mi_option_guarded_max);
  }
  sampler_restart(theap, s);
}

static mi_sampler_t* sampler_make(void) {
  _mi_lock_acquire(&_mi_guard_lock);
  mi_sampler_t* s = (mi_sampler_t*)_mi_meta_carve(&sampler_slab, sizeof(mi_sampler_t));
  if (s != NULL) s->number = sampler_n_made++;
  _mi_lock_release(&_mi_guard_lock);
  return s;
}

// The sampler of a theap with the options as they are now, NULL when out of memory.
static mi_sampler_t* sampler_of(mi_theap_t* theap) {
  mi_sampler_t* s = theap->sampler;
  uint32_t      version = mi_load_acquire(&sampler_version);
  if (mi_unlikely(s == NULL)) {
    s = theap->sampler = sampler_make();
    if (s == NULL) return NULL;
    s->version = version - 1;
  }
  if (mi_unlikely(s->version != version)) sampler_read_options(theap, s, version);
  return s;
}

static void sampler_look(mi_theap_t* theap) {
  (void)sampler_of(theap);
  _mi_sampler_tick(theap);
}

// The first one starts the background thread (SA3).
static void sampler_add_notice(void) {
  if (mi_fetch_add_relaxed(&_mi_event_pending, 1) % MI_EVENT_ORPHANS == 0) _mi_event_wake();
}

// The program's other threads see the new version at their next slow path.
static void sampler_options_changed(void) {
  bool has_rate;
  do { // until what was noted is what holds: several threads may set options
    has_rate = (_mi_option_get_fast(mi_option_guarded_sample_rate) > 0);
    bool is_precise = (has_rate && _mi_option_get_fast(mi_option_guarded_precise) != 0);
    mi_store_relaxed(&_mi_sampler_plain_align, is_precise ? (size_t)1 : SAMPLER_PLAIN_ALIGN);
    if (has_rate) _mi_guard_fault_start();
    mi_fetch_add_acq_rel(&sampler_version, 1); // release: whoever sees it sees the options
    if (mi_exchange_acq_rel(&sampler_has_rate, has_rate) == has_rate) continue;
    if (has_rate) sampler_add_notice();
    else mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  } while (has_rate != (_mi_option_get_fast(mi_option_guarded_sample_rate) > 0));
  if (_mi_event_is_sampling()) _mi_registry_visit_own(&sampler_look);
}

void _mi_sampler_init(void) {
  if (MI_HARDENED) _mi_guard_fault_watch();
  _mi_options_on_guarded(&sampler_options_changed);
  if (MI_GUARDED || !_mi_options_all_default()) sampler_options_changed();
}

// Its own rate is a reason for notices (SA4).
static void sampler_note_own_rate(mi_sampler_t* s, bool has, size_t rate) {
  bool was_reason = (s->has_own_rate && s->rate > 0);
  bool is_reason = (has && rate > 0);
  s->has_own_rate = has;
  s->rate = rate;
  if (is_reason && !was_reason) sampler_add_notice();
  if (was_reason && !is_reason) mi_fetch_sub_relaxed(&_mi_event_pending, 1);
}

void _mi_sampler_set_rate(mi_theap_t* theap, size_t rate, size_t seed) {
  if (rate > 0) _mi_guard_fault_start();
  mi_sampler_t* s = sampler_of(theap);
  if (s == NULL) return;
  sampler_note_own_rate(s, true, rate);
  sampler_seed(s, seed);
  sampler_restart(theap, s);
}

void _mi_sampler_set_bounds(mi_theap_t* theap, size_t min, size_t max) {
  mi_sampler_t* s = sampler_of(theap);
  if (s == NULL) return;
  s->has_own_bounds = true;
  s->min = min;
  s->max = mi_max(min, max);
  sampler_restart(theap, s);
}

void _mi_sampler_reset(mi_theap_t* theap) {
  mi_sampler_t* s = theap->sampler;
  if (mi_likely(s == NULL)) return;
  sampler_note_own_rate(s, false, 0);
  s->has_own_bounds = s->is_busy = false;
  s->version = mi_load_relaxed(&sampler_version) - 1;
}

void _mi_sampler_forget(mi_theap_t* theap) {
  mi_sampler_t* s = theap->sampler;
  if (mi_likely(s == NULL)) return;
  if (s->is_armed) mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  s->is_armed = false;
  _mi_sampler_reset(theap);
}

// ---- counting -------------------------------------------------------------------------------------------------------

// n blocks more will be handed out.  Is it time?
static void sampler_count(mi_theap_t* theap, mi_sampler_t* s, size_t n) {
  s->countdown -= (int64_t)n;
  if (mi_likely(s->countdown > 0)) return;
  sampler_start_interval(s);
  _mi_event_wake(); // in the child of a fork there is no background thread yet
  if (_mi_prim_clock_ns() < s->not_before_ns) return;
  s->countdown = (int64_t)(1 + sampler_random_below(s, mi_min(n, SAMPLER_ARMED_MAX)));
  sampler_arm(theap, s);
}

// With how many blocks a bin was just filled (theap.h, H7): those that it has, and the one that was handed out.
static size_t sampler_n_filled(mi_theap_t* theap, size_t cls) {
  _mi_presence_enter(theap);
  int32_t slots = theap->bins[cls].slots;
  int32_t n = (_mi_bin_has_no_slots(slots) ? 0 : theap->classes[cls].total - slots); // a round was faster (SA3)
  _mi_presence_leave(theap);
  return (size_t)n + 1;
}

static bool sampler_wants_class(const mi_sampler_t* s, size_t cls) {
  return _mi_size_class_block(cls) >= s->min && (cls == 0 || _mi_size_class_block(cls - 1) < s->max);
}

mi_sampler_turn_t _mi_sampler_open(mi_theap_t* theap, size_t cls) {
  if (theap == NULL || theap->sampler == NULL) return MI_SAMPLER_NOTHING;
  if (!theap->sampler->is_armed) return theap->bins[cls].head == NULL ? MI_SAMPLER_FILLS : MI_SAMPLER_NOTHING;
  if (!sampler_bin_is_closed(theap, cls)) return MI_SAMPLER_NOTHING; // a deferred free allocates
  sampler_open_bin(theap, theap->sampler, cls);
  return MI_SAMPLER_OPENED;
}

void _mi_sampler_close(mi_theap_t* theap, size_t cls, mi_sampler_turn_t turn) {
  if (turn == MI_SAMPLER_NOTHING) return;
  mi_sampler_t* s = theap->sampler;
  if (turn == MI_SAMPLER_OPENED) {
    if (s->is_armed && !sampler_bin_is_closed(theap, cls)) sampler_close_bin(theap, s, cls);
  }
  else if (s->rate > 0 && !s->is_armed && sampler_wants_class(s, cls)) {
    sampler_count(theap, s, sampler_n_filled(theap, cls));
    if (!s->is_armed) theap->bins[cls].slots = MI_BIN_NO_SLOTS; // SA3
  }
}

// Without asking the thread, which uses `slots` as its own and without atomic operations (H1): whichever of the two stores
// comes last holds, and either is right, for `slots` only says where a free block goes.  In a closed bin it also says what the
// thread has done (bin.h, BN1); that has no room anyway.  ThreadSanitizer is right not to like it.
void _mi_sampler_tick(mi_theap_t* theap) {
  if (MI_TSAN || mi_load_acquire(&theap->is_closed)) return;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_store_relaxed((mi_atomic(int32_t)*)(void*)&theap->bins[cls].slots, MI_BIN_NO_SLOTS);
  }
}

// ---- the block that it is -------------------------------------------------------------------------------------------

static void* sampler_guard(mi_theap_t* theap, mi_sampler_t* s, mi_guard_request_t* request) {
  bool    counts_all = sampler_counts_all(s);
  int64_t start_ns = counts_all ? 0 : _mi_prim_clock_ns();
  request->is_precise = s->is_precise;
  request->is_before = (s->before_percent > 0 && sampler_random_below(s, 100) < s->before_percent);
  s->is_busy = true;
  void* p = _mi_guard_malloc(_mi_theap_heap(theap), request);
  s->is_busy = false;
  if (!counts_all) {
    int64_t end_ns = _mi_prim_clock_ns();
    int64_t cost_ns = end_ns - start_ns;
    s->not_before_ns = end_ns + (cost_ns < SAMPLER_COST_MAX ? cost_ns : SAMPLER_COST_MAX) * SAMPLER_TIME_SHARE;
    _mi_sampler_disarm(theap);
  }
  sampler_start_interval(s);
  return p;
}

void* _mi_sampler_malloc(mi_theap_t* theap, size_t size, size_t align, size_t offset) {
  if (MI_TRACK) return NULL; // the tool watches every block
  mi_sampler_t* s = (theap == NULL ? NULL : sampler_of(theap));
  if (s == NULL || s->rate == 0 || s->is_busy) return NULL;
  bool is_fit = (size >= s->min && size <= s->max);
  if (!s->is_armed) {
    if (sampler_counts_all(s)) sampler_arm(theap, s); // it had to give up its bins meanwhile
    else if (size > MI_CLASS_SIZE_MAX && is_fit) sampler_count(theap, s, 1);
    if (!s->is_armed) return NULL;
  }
  if (!is_fit) {
    if (!sampler_counts_all(s) && ++s->n_unfit >= SAMPLER_UNFIT_MAX) {
      _mi_sampler_disarm(theap);
      sampler_start_interval(s);
    }
    return NULL;
  }
  if (--s->countdown > 0) return NULL;
  mi_guard_request_t request = {size, align, offset, false, false, 0};
  return sampler_guard(theap, s, &request);
}
