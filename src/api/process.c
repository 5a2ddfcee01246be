// Process and thread start and end, mi_collect, the deferred-free hook.  Layer: api.
//
// The library works before its constructor and after its destructor ran: whatever the constructor does is also done by
// the first allocation that needs it, and the destructor only reports.
#include "../arena/arena.h"
#include "../arena/numa.h"
#include "../arena/purge.h"
#include "../heap/attach.h"
#include "../heap/event.h"
#include "../heap/background.h"
#include "../heap/sampler.h"
#include "../heap/thread.h"
#include "../support/message.h"
#include "../support/options.h"
#include "../support/stat.h"
#include "../support/trace.h"
#include "api.h"
#include "hooks.h"
#include "stats.h"

int mi_version(void) mi_attr_noexcept {
  return MI_MALLOC_VERSION;
}

bool mi_is_redirected(void) mi_attr_noexcept {
  return false;
}

// ---- process --------------------------------------------------------------------------------------------------------

static mi_atomic(bool) process_is_initialised;
static mi_atomic(bool) process_is_done;
static int64_t         process_started_ms = -1; // known if options are set

static bool process_prints_stats(void) {
  return mi_option_is_enabled(mi_option_show_stats) || mi_option_is_enabled(mi_option_verbose);
}

void mi_process_init(void) mi_attr_noexcept {
  bool expected = false;
  if (!mi_cas_strong(&process_is_initialised, &expected, true, acq_rel, relaxed)) return;
  _mi_thread_theap();
  _mi_message_init();
  _mi_sampler_init();
  if (_mi_options_all_default() && !MI_ARENA_HAS_DEFAULTS) return;
  process_started_ms = _mi_prim_clock_ms();
  // It is printed at the end, when it is too late to ask (numa.h).
  if (process_prints_stats()) _mi_numa_node_count();
  if (mi_option_get(mi_option_verbose) > 0) {
    mi_options_print();
    _mi_message_print(1, "process init\n");
  }
  _mi_arena_init_options();
  _mi_trace_init();
}

void mi_cdecl mi_process_done(void) mi_attr_noexcept {
  bool expected = false;
  if (!mi_load_relaxed(&process_is_initialised) || _mi_options_all_default()) return;
  if (!mi_cas_strong(&process_is_done, &expected, true, acq_rel, relaxed)) return;
  if (process_prints_stats()) {
    _mi_stats_print_last(process_started_ms < 0 ? -1 : _mi_prim_clock_ms() - process_started_ms);
  }
  if (_mi_option_get_fast(mi_option_show_leaks) != 0) mi_leaks_print_out(NULL, NULL);
  _mi_message_print(1, "process done\n");
}

#if defined(__GNUC__) || defined(__clang__)

__attribute__((constructor(101))) static void process_attach(void) {
  _mi_options_settle();
  mi_process_init();
}

__attribute__((destructor(101))) static void process_detach(void) {
  mi_process_done();
}

#endif

// ---- threads --------------------------------------------------------------------------------------------------------

void mi_thread_init(void) mi_attr_noexcept {
  _mi_thread_theap();
}

void mi_thread_done(void) mi_attr_noexcept {
  _mi_thread_release(false);
}

void mi_thread_set_in_threadpool(void) mi_attr_noexcept {
  // A hint that we do not need: what a sleeping thread holds is taken back anyway (heap/thread.c).
}

// ---- collecting -----------------------------------------------------------------------------------------------------

void mi_collect(bool force) mi_attr_noexcept {
  _mi_hooks_deferred_free(force);
  _mi_attach_collect();
  if (force) _mi_purge_to(0);
}

// Bytes of pages and large blocks, and what other threads keep: what cannot go back here.
static size_t collect_held(void) {
  int64_t pages = mi_load_relaxed(&_mi_stat_live.page_committed.current);
  int64_t large = mi_load_relaxed(&_mi_stat_live.malloc_huge.current);
  size_t  backed = _mi_purge_n_backed(), purgeable = _mi_chunk_purgeable();
  size_t  n_kept = backed - mi_min(backed, purgeable);
  return (pages > 0 ? (size_t)pages : 0) + (large > 0 ? (size_t)large : 0) + n_kept * MI_SLICE_SIZE;
}

void mi_collect_reduce(size_t target) mi_attr_noexcept {
  if (target > 0 && collect_held() + _mi_chunk_purgeable() * MI_SLICE_SIZE <= target) return;
  mi_collect(false);
  size_t held = collect_held(); // less, if pages became empty
  _mi_purge_to((target - mi_min(target, held)) / MI_SLICE_SIZE);
}

// ---- deferred free --------------------------------------------------------------------------------------------------

static mi_atomic(mi_deferred_free_fun*) hooks_deferred_free;
static mi_atomic(void*)                 hooks_deferred_arg;
static mi_atomic(uint64_t)              hooks_heartbeat;
static mi_thread_local bool             hooks_in_deferred_free;

void mi_register_deferred_free(mi_deferred_free_fun* deferred_free, void* arg) mi_attr_noexcept {
  mi_store_release(&hooks_deferred_arg, arg);
  mi_store_release(&hooks_deferred_free, deferred_free);
}

void _mi_hooks_deferred_free(bool force) {
  mi_deferred_free_fun* fun = mi_load_acquire(&hooks_deferred_free);
  uint64_t              beat = mi_fetch_add_relaxed(&hooks_heartbeat, 1) + 1;
  _mi_attach_drop_retired();
  _mi_event_poll();
  if (mi_likely(fun == NULL) || hooks_in_deferred_free) return;
  hooks_in_deferred_free = true; // the hook may allocate
  fun(force, (unsigned long long)beat, mi_load_acquire(&hooks_deferred_arg));
  hooks_in_deferred_free = false;
}

mi_theap_t* _mi_hooks_slow_malloc(mi_theap_t* theap) {
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  uint64_t    heap_id = theap->heap_id;
  _mi_hooks_deferred_free(false);
  bool is_still = (mi_load_relaxed(&theap->thread) == thread && theap->heap_id == heap_id);
  return is_still ? theap : _mi_thread_theap();
}
