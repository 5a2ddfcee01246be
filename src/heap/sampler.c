// Counting allocations, and choosing among them.  Layer: heap.  sampler.h has the invariants.
#include "sampler.h"

#include <string.h>

#include "../base/track.h"
#include "../support/chance.h"
#include "../support/options.h"
#include "counted.h"
#include "guard.h"
#include "guard_fault.h"
#include "meta.h"
#include "presence.h"
#include "profile.h"
#include "registry.h"

// So many bytes are allocated between looks at the settings (SA5).
#define SAMPLER_CREDIT ((int64_t)(32 * MI_KiB))

// With rates of 1000 and more, no more than this part of a thread's time goes into making guarded blocks, and about as much into
// freeing them; a block takes some microseconds.
#define SAMPLER_TIME_SHARE 400
#define SAMPLER_COST_MAX   1000000 // ns; what took longer was waiting for a processor

// Guarded blocks that are in use take no more than this part of a limit on memory, the process's or a heap's (arena/limit.h): each counts as
// a slice or more.
#define SAMPLER_LIMIT_SHARE 16

// Of blocks that are not precise, if not all blocks are guarded.
#define SAMPLER_BEFORE_PERCENT 25

// What every block of more than eight bytes is aligned to.
#define SAMPLER_PLAIN_ALIGN ((size_t)(MI_MIN_ALIGN_8 ? 8 : 16))

mi_atomic(size_t) _mi_sampler_plain_align = mi_atomic_init(SAMPLER_PLAIN_ALIGN);

static mi_atomic(uint32_t) sampler_version;  // of the options
static mi_atomic(bool)     sampler_has_rate; // the option: a reason for notices (SA4)
static mi_atomic(size_t)   sampler_mean;     // of the profile: another one
static mi_slab_t           sampler_slab;     // under the guard lock, as what follows
static size_t              sampler_n_made;

// ---- chance ---------------------------------------------------------------------------------------------------------

static uint64_t sampler_random(mi_sampler_t* s) {
  return mi_mix64(s->random += MI_MIX);
}

static void sampler_seed(mi_sampler_t* s, uint64_t seed) {
  // Theaps with the same seed must not all choose at the same time.
  s->random = (seed == 0 ? _mi_chance_seed() : seed) + s->number * 0xD1342543DE82EF95u;
}

// Any number from 1 to twice the rate is equally likely: a fixed one could keep step with the program.
static void sampler_start_interval(mi_sampler_t* s) {
  size_t rate = mi_min(s->rate, (size_t)INT32_MAX);
  s->to_guard = (int64_t)(1 + _mi_chance_below(sampler_random(s), 2 * rate - 1));
}

static void sampler_start_distance(mi_sampler_t* s) {
  s->to_profile = _mi_chance_distance(sampler_random(s), s->mean);
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

static void sampler_unarm(mi_theap_t* theap, mi_sampler_t* s) {
  if (!s->is_armed) return;
  _mi_presence_enter(theap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    if (sampler_bin_is_closed(theap, cls)) sampler_open_bin(theap, s, cls);
  }
  s->is_armed = false;
  mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  _mi_presence_leave(theap);
}

void _mi_sampler_disarm(mi_theap_t* theap) {
  if (mi_likely(theap->sampler == NULL)) return;
  sampler_unarm(theap, theap->sampler);
  _mi_counted_end(theap);
}

// Armed or counted, as its settings say; it may have had to give up its bins.
static void sampler_settle(mi_theap_t* theap, mi_sampler_t* s) {
  bool is_armed = _mi_sampler_counts_all(s), is_counted = (!is_armed && !_mi_sampler_is_off(s));
  if (s->is_armed == is_armed && _mi_counted_is(theap) == is_counted) return;
  _mi_sampler_disarm(theap);
  if (is_armed) sampler_arm(theap, s);
  else if (is_counted) _mi_counted_begin(theap);
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
  s->credit = 0;
  s->to_guard = 1; // not reached if nothing costs any
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    s->costs[cls].bytes = (uint32_t)_mi_size_class_block(cls);
    s->costs[cls].guards = (s->rate > 0 && _mi_sampler_wants_class(s, cls));
  }
  if (s->rate > 0) sampler_start_interval(s);
  if (s->mean > 0) sampler_start_distance(s);
  sampler_settle(theap, s);
}

static void sampler_read_options(mi_theap_t* theap, mi_sampler_t* s, uint32_t version) {
  s->version = version;
  s->mean = mi_load_relaxed(&sampler_mean);
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
  if (sampler_of(theap) != NULL) _mi_sampler_tick(theap);
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

void _mi_sampler_set_mean(size_t mean) {
  size_t before = mi_exchange_acq_rel(&sampler_mean, mean);
  mi_fetch_add_acq_rel(&sampler_version, 1);
  if (mean > 0 && before == 0) sampler_add_notice();
  if (_mi_event_is_sampling()) _mi_registry_visit_own(&sampler_look);
  if (mean == 0 && before > 0) mi_fetch_sub_relaxed(&_mi_event_pending, 1);
}

// A thread that has found out that there are too many samples.  Not if it was late: the profile may be over.
static void sampler_change_mean(size_t from, size_t to) {
  if (!mi_cas_strong(&sampler_mean, &from, to, acq_rel, relaxed)) return;
  mi_fetch_add_acq_rel(&sampler_version, 1);
  _mi_registry_visit_own(&sampler_look);
}

void _mi_sampler_init(void) {
  if (MI_HARDENED) _mi_guard_fault_watch();
  _mi_options_on_guarded(&sampler_options_changed);
  if (MI_GUARDED || !_mi_options_all_default()) sampler_options_changed();
}

static bool sampler_has_own_reason(const mi_sampler_t* s) {
  return s->has_own_rate && s->rate > 0;
}

uint32_t _mi_sampler_reasons(void) {
  uint32_t n = (uint32_t)mi_load_relaxed(&sampler_has_rate) + (uint32_t)(mi_load_relaxed(&sampler_mean) > 0);
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    const mi_sampler_t* s = theap->sampler;
    if (s != NULL) n += (uint32_t)s->is_armed + (uint32_t)_mi_counted_is(theap) + (uint32_t)sampler_has_own_reason(s);
  }
  return n;
}

// Its own rate is a reason for notices (SA4).
static void sampler_note_own_rate(mi_sampler_t* s, bool has, size_t rate) {
  bool was_reason = sampler_has_own_reason(s);
  s->has_own_rate = has;
  s->rate = rate;
  bool is_reason = sampler_has_own_reason(s);
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
  memset(s->bins, 0, sizeof(s->bins)); // whoever counts or checks looks there, armed or not
  _mi_counted_forget(theap);
  _mi_sampler_reset(theap);
}

// ---- counting -------------------------------------------------------------------------------------------------------

static unsigned sampler_charge_profile(mi_sampler_t* s, size_t bytes) {
  unsigned due = 0;
  s->to_profile += s->credit - (int64_t)bytes;
  if (s->to_profile <= 0) {
    due = MI_SAMPLER_PROFILE;
    sampler_start_distance(s);
  }
  s->credit = mi_min_signed(s->to_profile, SAMPLER_CREDIT);
  s->to_profile -= s->credit;
  return due;
}

// Charges an allocation, and says what it is sampled for.
static unsigned sampler_charge(mi_sampler_t* s, size_t bytes, bool may_guard) {
  unsigned due = 0;
  if (s->mean > 0) due = sampler_charge_profile(s, bytes);
  else s->credit = SAMPLER_CREDIT;
  if (s->rate > 0 && may_guard && --s->to_guard <= 0) {
    due |= MI_SAMPLER_GUARD;
    sampler_start_interval(s);
  }
  return due;
}

mi_sampler_turn_t _mi_sampler_open(mi_theap_t* theap, size_t cls) {
  if (theap == NULL || theap->sampler == NULL) return MI_SAMPLER_NOTHING;
  if (theap->sampler->is_armed) {
    if (!sampler_bin_is_closed(theap, cls)) return MI_SAMPLER_NOTHING; // a deferred free allocates
    sampler_open_bin(theap, theap->sampler, cls);
    return MI_SAMPLER_OPENED;
  }
  return _mi_counted_is(theap) ? MI_SAMPLER_FILLS : MI_SAMPLER_NOTHING;
}

void _mi_sampler_close(mi_theap_t* theap, size_t cls, mi_sampler_turn_t turn) {
  if (turn == MI_SAMPLER_NOTHING) return;
  mi_sampler_t* s = theap->sampler;
  if (turn == MI_SAMPLER_FILLS) {
    if (_mi_counted_is(theap)) _mi_counted_fill(theap, cls);
  }
  else if (s->is_armed && !sampler_bin_is_closed(theap, cls)) {
    sampler_close_bin(theap, s, cls);
  }
}

// Without asking the thread, which uses `slots` as its own and without atomic operations (H1): whichever of the two stores
// comes last holds, and either is right, for `slots` only says where a free block goes.  In a closed bin it also says what the
// thread has done (bin.h, BN1); that has no room anyway.  ThreadSanitizer is right not to like it.
void _mi_sampler_tick(mi_theap_t* theap) {
  bool is_counted = (mi_load_plain_relaxed(&theap->return_offset) != 0); // as the thread says it, sooner or later
  if (MI_TSAN || mi_load_acquire(&theap->is_closed) || is_counted) return;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_store_plain_relaxed(&theap->bins[cls].slots, MI_BIN_NO_SLOTS);
  }
}

// ---- the allocation that it is --------------------------------------------------------------------------------------

// How often there are guarded blocks is bounded in time, too, if not each allocation is looked at.
static bool sampler_is_time(const mi_sampler_t* s) {
  if (_mi_sampler_counts_all(s)) return true;
  _mi_event_wake(); // in the child of a fork there is no background thread yet
  return _mi_prim_clock_ns() >= s->not_before_ns;
}

static bool sampler_fits(mi_limit_t* limit, size_t n) {
  return n < mi_load_relaxed(&limit->least) / SAMPLER_LIMIT_SHARE / MI_SLICE_SIZE;
}

static bool sampler_has_room(mi_heap_t* heap) {
  if (!sampler_fits(&heap->limit, mi_load_relaxed(&heap->n_guarded))) return false;
  return !_mi_limit_is_set(&_mi_limit_process) || sampler_fits(&_mi_limit_process, _mi_guard_count(MI_GUARD_LIVE));
}

// Other events are no reason to make a sampler, which asks the system for a random number: a process may have shut that out.
unsigned _mi_sampler_pick(mi_theap_t* theap, size_t size, size_t cls) {
  if (MI_TRACK || theap == NULL) return 0; // the tool watches every block
  if (theap->sampler == NULL && !_mi_event_is_sampling()) return 0;
  mi_sampler_t* s = sampler_of(theap);
  if (s == NULL || _mi_sampler_is_off(s) || s->is_busy) return 0;
  sampler_settle(theap, s);
  unsigned due = sampler_charge(s, _mi_sampler_bytes(size, cls), _mi_sampler_wants_size(s, size));
  if ((due & MI_SAMPLER_GUARD) != 0 && !(sampler_has_room(_mi_theap_heap(theap)) && sampler_is_time(s)))
    due &= ~(unsigned)MI_SAMPLER_GUARD;
  return due;
}

void* _mi_sampler_guard(mi_theap_t* theap, size_t size, size_t align, size_t offset) {
  mi_sampler_t*      s = theap->sampler;
  mi_guard_request_t request = {size, align, offset, s->is_precise, false, 0};
  bool               is_timed = !_mi_sampler_counts_all(s);
  int64_t            start_ns = is_timed ? _mi_prim_clock_ns() : 0;
  request.is_before = (s->before_percent > 0 && _mi_chance_below(sampler_random(s), 100) < s->before_percent);
  s->is_busy = true;
  void* p = _mi_guard_malloc(_mi_theap_heap(theap), &request);
  s->is_busy = false;
  if (is_timed) {
    int64_t end_ns = _mi_prim_clock_ns();
    s->not_before_ns = end_ns + mi_min_signed(end_ns - start_ns, SAMPLER_COST_MAX) * SAMPLER_TIME_SHARE;
  }
  return p;
}

void _mi_sampler_profile(mi_theap_t* theap, void* p, size_t size, size_t bytes) {
  mi_sampler_t* s = theap->sampler;
  if (s == NULL || s->mean == 0) return; // it was switched off meanwhile
  s->is_busy = true;
  size_t mean = _mi_profile_add(p, size, bytes, s->mean);
  s->is_busy = false;
  if (mi_unlikely(mean != s->mean)) sampler_change_mean(s->mean, mean); // profile.h, PF4
}
