// Stacks of those who allocate and free.  Layer: support.
#include "trace.h"

#include <string.h>

#include "../base/bits.h"
#include "../prim/prim.h"
#include "format.h"
#include "message.h"
#include "option.h"

static mi_atomic(bool) trace_has_stacks;
static MI_LOCAL(uintptr_t, trace_thread); // 0: not asked for yet

// The system's number of the calling thread, which does not change.  Once: a sandbox may forbid to ask later.
static uintptr_t trace_thread_id(void) {
  if (mi_local(trace_thread) == 0) mi_local(trace_thread) = _mi_prim_thread_id();
  return mi_local(trace_thread);
}

void _mi_trace_know_thread(void) {
  trace_thread_id();
}

void _mi_trace_after_fork(void) {
  if (mi_local(trace_thread) != 0) mi_local(trace_thread) = _mi_prim_thread_id();
}

void _mi_trace_start(void) {
  _mi_trace_know_thread();
  if (!mi_load_acquire(&trace_has_stacks) && _mi_prim_stack_init()) mi_store_release(&trace_has_stacks, true);
}

void _mi_trace_take(mi_trace_t* trace) {
  trace->thread = trace_thread_id();
  trace->n_frames = (mi_load_acquire(&trace_has_stacks) ? _mi_prim_stack(trace->frames, MI_TRACE_FRAMES) : 0);
}

// " file+0x125b", or " 0x5631F515F25B" of what is in no file.
static size_t trace_format_frame(char* to, size_t size, const void* frame) {
  char      name[128];
  uintptr_t offset;
  if (!_mi_prim_find_module((uintptr_t)frame, name, sizeof(name), &offset)) return _mi_format(to, size, " %p", frame);
  const char* slash = strrchr(name, '/');
  return _mi_format(to, size, " %s+0x%zx", slash == NULL ? name : slash + 1, (size_t)offset);
}

#define TRACE_LINE_MAX 360 // of the 500 characters that a message may have

// Frames from *i on, as many as a line has room for.
static void trace_format(char* line, const mi_trace_t* trace, size_t* i) {
  size_t n = 0;
  line[0] = 0;
  for (; *i < trace->n_frames && n + 160 < TRACE_LINE_MAX; (*i)++) {
    n += trace_format_frame(line + n, TRACE_LINE_MAX - n, trace->frames[*i]);
  }
}

void _mi_trace_warn(const char* what, const void* block, const mi_trace_t* trace) {
  char   line[TRACE_LINE_MAX];
  size_t i = 0;
  trace_format(line, trace, &i);
  _mi_message_warning("the block %p was %s by thread %zu%s%s\n", block, what, (size_t)trace->thread,
                      i == 0 ? "" : " from", line);
  while (i < trace->n_frames) {
    trace_format(line, trace, &i);
    _mi_message_warning("  called from%s\n", line);
  }
}

// ---- of all blocks --------------------------------------------------------------------------------------------------

// 131072 places, 40 MB: what a debug build may cost, and more blocks than most programs have at a time.
#define TRACE_TABLE_SHIFT 17

struct mi_trace_place_s {
  mi_atomic(bool) is_locked; // TR2
  const void*     block;
  mi_trace_t      allocated, freed; // thread 0: not known, or not done
};

#define TRACE_TRIES 1000 // the lock is held for a few instructions

mi_atomic(mi_trace_place_t*) _mi_trace_table;
static MI_LOCAL(bool, trace_is_busy); // the unwinder may allocate

void _mi_trace_init(void) {
  void*  table;
  size_t size = sizeof(mi_trace_place_t) << TRACE_TABLE_SHIFT;
  if (_mi_option_get_fast(mi_option_debug_stacks) == 0) return;
  if (!MI_TRACE_BLOCKS) {
    _mi_message_warning("environment option mimalloc_debug_stacks has an effect in debug builds only.\n");
    return;
  }
  if (mi_load_relaxed(&_mi_trace_table) != NULL) return;
  int err = _mi_prim_reserve(size, MI_MiB, &table);
  if (err == 0 && (err = _mi_prim_commit(table, size)) != 0) _mi_prim_release(table, size);
  if (err != 0) {
    _mi_message_warning("no memory for option debug_stacks: %zu bytes\n", size);
    return;
  }
  _mi_trace_start();
  mi_store_release(&_mi_trace_table, (mi_trace_place_t*)table);
}

// The place of a block, locked; NULL: somebody else has it.
static mi_trace_place_t* trace_lock(const void* block) {
  uint64_t          hash = mi_mix64((uint64_t)(uintptr_t)block);
  mi_trace_place_t* place = mi_load_acquire(&_mi_trace_table) + (hash >> (64 - TRACE_TABLE_SHIFT));
  for (int i = 0; i < TRACE_TRIES; i++) {
    if (!mi_exchange_acq_rel(&place->is_locked, true)) return place;
    mi_cpu_pause();
  }
  return NULL;
}

static void trace_unlock(mi_trace_place_t* place) {
  mi_store_release(&place->is_locked, false);
}

void _mi_trace_remember(const void* block, bool is_free) {
  mi_trace_t trace;
  if (!MI_TRACE_BLOCKS || mi_local(trace_is_busy)) return;
  mi_local(trace_is_busy) = true;
  _mi_trace_take(&trace);
  mi_trace_place_t* place = trace_lock(block);
  if (place != NULL) {
    if (place->block != block) place->allocated.thread = 0;
    place->block = block;
    place->freed.thread = 0;
    *(is_free ? &place->freed : &place->allocated) = trace;
    trace_unlock(place);
  }
  mi_local(trace_is_busy) = false;
}

// Once: how to know more.
static void trace_hint(void) {
  static mi_atomic(bool) is_said;
  if (mi_exchange_acq_rel(&is_said, true)) return;
  _mi_message_warning("with MIMALLOC_DEBUG_STACKS=1 it is said who allocated a block\n");
}

void _mi_trace_explain(const void* block) {
  if (!MI_TRACE_BLOCKS) return;
  if (mi_load_relaxed(&_mi_trace_table) == NULL) {
    trace_hint();
    return;
  }
  mi_trace_place_t* place = trace_lock(block);
  if (place == NULL) return;
  bool       is_known = (place->block == block);
  mi_trace_t allocated = place->allocated, freed = place->freed;
  trace_unlock(place); // before anything is said, which takes time
  if (is_known && allocated.thread != 0) _mi_trace_warn("allocated", block, &allocated);
  if (is_known && freed.thread != 0) _mi_trace_warn("freed", block, &freed);
}
