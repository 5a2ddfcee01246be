// Process and thread start and end.  Layer: api.
//
// The library works before its constructor and after its destructor ran (malloc.c): whatever the constructor does is also done
// by the first allocation that needs it, and the destructor only reports.
#include "process.h"

#include "../arena/arena.h"
#include "../arena/numa.h"
#include "../heap/sampler.h"
#include "../heap/thread.h"
#include "../prim/tag.h"
#include "../support/message.h"
#include "../support/options.h"
#include "../support/stat.h"
#include "../support/trace.h"
#include "limits.h"
#include "profile.h"
#include "publish.h"
#include "stats_print.h"

int mi_version(void) mi_attr_noexcept {
  return MI_MALLOC_VERSION;
}

mi_atomic(bool) _mi_process_is_redirected;

bool mi_is_redirected(void) mi_attr_noexcept {
  return mi_load_acquire(&_mi_process_is_redirected);
}

// ---- process --------------------------------------------------------------------------------------------------------

static mi_atomic(bool) process_is_initialised;
static mi_atomic(bool) process_is_done;

static bool process_prints_stats(void) {
  return mi_option_is_enabled(mi_option_show_stats) || mi_option_is_enabled(mi_option_verbose);
}

void mi_process_init(void) mi_attr_noexcept {
  bool expected = false;
  if (!mi_cas_strong(&process_is_initialised, &expected, true, acq_rel, relaxed)) return;
  _mi_thread_theap();
  _mi_message_init();
  _mi_sampler_init();
  _mi_publish_init();
  if (_mi_options_all_default() && !MI_ARENA_HAS_DEFAULTS) return;
  _mi_stat_start_clock(); // known if options are set
  // It is printed at the end, when it is too late to ask (numa.h).
  if (process_prints_stats()) _mi_numa_node_count();
  if (mi_option_get(mi_option_verbose) > 0) {
    mi_options_print();
    _mi_message_print(1, "process init\n");
  }
  _mi_limits_read_options();
  _mi_arena_init_once();
  _mi_trace_init();
  _mi_profile_begin();
  if (_mi_option_get_fast(mi_option_memory_tagging) != 0 && !_mi_prim_has_tags) {
    _mi_message_warning("no memory tags: %s.\n", MI_TAGS ? "the processor or the system has none"
                                                         : "the library is built without MI_MEMORY_TAGGING");
  }
}

void mi_cdecl mi_process_done(void) mi_attr_noexcept {
  bool expected = false;
  if (!mi_load_relaxed(&process_is_initialised) || _mi_options_all_default()) return;
  if (!mi_cas_strong(&process_is_done, &expected, true, acq_rel, relaxed)) return;
  _mi_lock_hurry(true); // it may be a handler of a signal that ends the process, and has interrupted us under a lock
  if (process_prints_stats()) _mi_stats_print_last(_mi_stat_elapsed_ms());
  _mi_profile_end();
  if (_mi_option_get_fast(mi_option_show_leaks) != 0) mi_leaks_print_out(NULL, NULL);
  _mi_publish_done();
  _mi_message_print(1, "process done\n");
  _mi_lock_hurry(false);
}

// ---- threads --------------------------------------------------------------------------------------------------------

void mi_thread_init(void) mi_attr_noexcept {
  _mi_thread_theap();
}

void mi_thread_done(void) mi_attr_noexcept {
  _mi_thread_release(false);
}

void mi_thread_set_in_threadpool(void) mi_attr_noexcept {
  // A hint that we do not need: what a sleeping thread holds is taken back anyway (heap/idle.h).
}
