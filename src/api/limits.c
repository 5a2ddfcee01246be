// Limits on memory: the public functions, options, the hook.  Layer: api.  limits.h has the invariants.
#include "limits.h"

#include <errno.h>

#include "../arena/purge.h"
#include "../heap/warm.h"
#include "../heap/event.h"
#include "../heap/guard.h"
#include "../heap/large.h"
#include "../heap/spare.h"
#include "../heap/thread.h"
#include "../support/hook.h"
#include "../support/message.h"
#include "../support/options.h"

// The hook is called again so much later, while requests are refused.
#define LIMITS_REFUSED_MS 100

// What a process retains at most that knows what its container allows it: a share of that, as long as it is not less than this.
#define LIMITS_RETAIN_SHARE 16
#define LIMITS_RETAIN_MIN   MI_MiB

static mi_atomic(mi_heap_t*) limits_crossed_heap; // the one that was the last to cross its soft limit
static MI_LOCAL(bool, limits_in_hook);            // LM1

// ---- the hook ---------------------------------------------------------------------------------------------------------

void mi_limit_hook(mi_limit_fun* hook, void* arg) mi_attr_noexcept {
  _mi_hook_set(MI_HOOK_LIMIT, (mi_hook_fun_t)hook, arg);
}

static bool limits_call(mi_limit_event_t event, mi_limit_t* limit, mi_heap_t* heap) {
  void*         arg;
  mi_limit_fun* hook = (mi_limit_fun*)_mi_hook_get(MI_HOOK_LIMIT, &arg);
  if (hook == NULL || mi_local(limits_in_hook)) return false;
  int saved = errno;
  mi_local(limits_in_hook) = true;
  hook(event, heap, _mi_limit_used(limit), arg);
  mi_local(limits_in_hook) = false;
  errno = saved;
  return true;
}

// Called with locks held, maybe.
static void limits_note_crossed(mi_limit_t* limit) {
  if (limit != &_mi_limit_process) {
    mi_heap_t* heap = (mi_heap_t*)(void*)((char*)limit - offsetof(mi_heap_t, limit));
    mi_store_release(&limits_crossed_heap, heap);
  }
  _mi_event_set_limit(true);
}

static bool limits_give_down_to(mi_limit_t* limit, size_t wanted) {
  size_t used = _mi_limit_used(limit);
  if (used > wanted) _mi_purge_slices((used - wanted) / MI_SLICE_SIZE + 1);
  return _mi_limit_used(limit) <= wanted;
}

// What the process retains goes back until it is such a share below the soft limit; empty pages that wait, too, if need be.
static void limits_give_excess(mi_limit_t* limit, mi_heap_t* heap, size_t share) {
  size_t soft = mi_load_relaxed(&limit->soft), wanted = soft - soft / share;
  if (heap != NULL || limits_give_down_to(limit, wanted)) return;
  _mi_spare_drop_all();
  limits_give_down_to(limit, wanted);
}

static void limits_attend_one(mi_limit_t* limit, mi_heap_t* heap) {
  if (_mi_limit_excess(limit) == 0 || mi_local(limits_in_hook)) return;
  _mi_warm_collect();
  limits_give_excess(limit, heap, MI_LIMIT_AHEAD_SHARE);
  if (_mi_limit_excess(limit) == 0) return; // LM2
  if (!_mi_limit_tells(&limit->told_ms, MI_LIMIT_AGAIN_MS) || !limits_call(mi_limit_soft, limit, heap)) return;
  // What the hook has freed: it is told of the next crossing then.
  limits_give_excess(limit, heap, MI_LIMIT_BELOW_SHARE);
}

void _mi_limits_attend(void) {
  _mi_event_set_limit(false);
  limits_attend_one(&_mi_limit_process, NULL);
  mi_heap_t* heap = mi_exchange_acq_rel(&limits_crossed_heap, (mi_heap_t*)NULL);
  if (heap != NULL && _mi_heap_is_live(heap)) limits_attend_one(&heap->limit, heap);
}

// ---- before a request is refused --------------------------------------------------------------------------------------

size_t _mi_limits_refusals(mi_heap_t* heap) {
  return mi_load_relaxed(&_mi_limit_process.n_refused) + mi_load_relaxed(&heap->limit.n_refused);
}

// What other threads keep, and what waits to be used again.
static void limits_drop_all(void) {
  for (mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) _mi_large_drop_kept(theap);
  _mi_spare_drop_all();
  _mi_guard_drop_freed();
  _mi_purge_to(0);
  _mi_event_wake(); // other threads are asked for what they do not use: that takes some rounds
}

bool _mi_limits_relieve(mi_heap_t* heap, int stage) {
  if (stage > 1) return false;
  if (stage == 0) {
    limits_drop_all();
    return true;
  }
  bool        is_heaps = _mi_limit_is_refused(&heap->limit);
  mi_limit_t* limit = (is_heaps ? &heap->limit : &_mi_limit_process);
  bool        tells = _mi_limit_tells(&limit->refused_ms, LIMITS_REFUSED_MS);
  return tells && limits_call(mi_limit_hard, limit, is_heaps ? heap : NULL);
}

// ---- setting limits ---------------------------------------------------------------------------------------------------

static size_t limits_or_none(size_t size) {
  return size == 0 ? MI_LIMIT_NONE : size;
}

// The registry lock keeps both together: those of another thread hold as a whole, or not at all.
static int limits_set(mi_limit_t* limit, size_t hard, size_t soft) {
  if (soft > limits_or_none(hard)) return EINVAL;
  _mi_limit_on_crossed(&limits_note_crossed);
  _mi_lock_acquire(&_mi_registry_lock);
  _mi_limit_set(limit, limits_or_none(hard), limits_or_none(soft));
  _mi_lock_release(&_mi_registry_lock);
  return 0;
}

static void limits_get(mi_limit_t* limit, size_t* hard, size_t* soft) {
  _mi_lock_acquire(&_mi_registry_lock);
  size_t is_hard = mi_load_relaxed(&limit->hard), is_soft = mi_load_relaxed(&limit->soft);
  _mi_lock_release(&_mi_registry_lock);
  if (hard != NULL) *hard = (is_hard == MI_LIMIT_NONE ? 0 : is_hard);
  if (soft != NULL) *soft = (is_soft == MI_LIMIT_NONE ? 0 : is_soft);
}

static bool limits_is_heap(mi_heap_t* heap) {
  return heap != NULL && heap != &_mi_heap_main && _mi_heap_is_live(heap);
}

int mi_limit_set(size_t hard, size_t soft) mi_attr_noexcept {
  _mi_thread_theap(); // there is something that gives back what is retained
  return limits_set(&_mi_limit_process, hard, soft);
}

void mi_limit_get(size_t* hard, size_t* soft) mi_attr_noexcept {
  limits_get(&_mi_limit_process, hard, soft);
}

size_t mi_limit_used(void) mi_attr_noexcept {
  return _mi_limit_used(&_mi_limit_process);
}

int mi_heap_limit_set(mi_heap_t* heap, size_t hard, size_t soft) mi_attr_noexcept {
  return limits_is_heap(heap) ? limits_set(&heap->limit, hard, soft) : EINVAL;
}

void mi_heap_limit_get(mi_heap_t* heap, size_t* hard, size_t* soft) mi_attr_noexcept {
  limits_get(limits_is_heap(heap) ? &heap->limit : &_mi_heap_main.limit, hard, soft);
}

size_t mi_heap_limit_used(mi_heap_t* heap) mi_attr_noexcept {
  return limits_is_heap(heap) ? _mi_limit_used(&heap->limit) : 0;
}

size_t mi_limit_container(void) mi_attr_noexcept {
  return _mi_prim_container_limit();
}

// ---- options ----------------------------------------------------------------------------------------------------------

// What the options take shares of: read once, if there is one.
typedef struct limits_whole_s {
  size_t size; // 0: unknown
  bool   is_container;
  bool   is_read;
} limits_whole_t;

static void limits_read_whole(limits_whole_t* whole) {
  if (whole->is_read) return;
  whole->size = _mi_prim_container_limit();
  whole->is_container = (whole->size > 0);
  whole->is_read = true;
  if (!whole->is_container) whole->size = _mi_prim_machine_memory();
}

// Bytes; 0: none.
static size_t limits_of_option(mi_option_t option, const char* name, limits_whole_t* whole) {
  long value = _mi_option_get_fast(option);
  if (value >= 0) return (size_t)value > SIZE_MAX / MI_KiB ? SIZE_MAX - 1 : (size_t)value * MI_KiB;
  limits_read_whole(whole);
  if (whole->size == 0) {
    _mi_message_warning("option '%s' has no effect: how much memory there is is not known.\n", name);
    return 0;
  }
  return whole->size / 100 * (size_t)-value;
}

void _mi_limits_read_options(void) {
  limits_whole_t whole = {0, false, false};
  size_t         hard = limits_of_option(mi_option_limit, "limit", &whole);
  size_t         soft = limits_of_option(mi_option_limit_soft, "limit_soft", &whole);
  size_t         retain = limits_of_option(mi_option_retain, "retain", &whole);
  if (soft > limits_or_none(hard)) {
    _mi_message_warning("option 'limit_soft' has no effect: %zu KiB are more than the %zu KiB of option 'limit'.\n",
                        soft / MI_KiB, hard / MI_KiB);
    soft = 0;
  }
  if (retain == 0 && whole.is_container) retain = mi_max(whole.size / LIMITS_RETAIN_SHARE, LIMITS_RETAIN_MIN);
  if (retain > 0) _mi_purge_set_retained(retain / MI_SLICE_SIZE);
  if (hard > 0 || soft > 0) mi_limit_set(hard, soft);
  if (whole.is_read) {
    _mi_message_print(1, "memory: %zu KiB (%s)\n", whole.size / MI_KiB, whole.is_container ? "container" : "machine");
  }
}
