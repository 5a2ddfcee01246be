// Thread start and exit, and taking back what idle threads hold.  Layer: heap.
//
// Nothing here is on a fast path: a thread without a theap has one of two empty ones, whose bins send it to
// _mi_thread_theap by way of the ordinary slow path.
//
// T1  A theap is made by its thread's first allocation or free, and released at its exit in O(own pages).
// T2  After its exit a thread has _mi_theap_dead, for good: what it frees goes to the pages directly, what it allocates
//     comes from the late theap of the heap.  (Destructors of thread-specific data run in any order, and libc frees after them.)
// T3  While `revoked` is set, and after `presence` was seen not to be INSIDE after the barrier, the revoker has the rights
//     of the thread on all but the bins.
#include "thread.h"

#include <string.h>

#include "../arena/purge.h"
#include "../base/probe.h"
#include "../support/stat.h"
#include "fork.h"
#include "heap.h"
#include "large.h"
#include "quarantine.h"
#include "sampler.h"
#include "walk.h"

// Theaps that nobody has are looked for when there are so many (1 MiB), and twice as many as were found to be in use the
// last time: so a theap costs a small part of a walk over all pages.
#define THEAP_RECLAIM_MIN 128

mi_thread_local mi_theap_t* _mi_theap_default = &_mi_theap_none;

mi_theap_t        _mi_theap_none;
mi_theap_t        _mi_theap_dead;
mi_atomic(size_t) _mi_thread_count;
mi_lock_t         _mi_registry_lock;

mi_atomic(uint32_t) _mi_theap_notices;

static mi_theap_t  theap_first; // of the first thread: no memory is needed for the first allocation
static mi_lock_t   theap_late_lock;
static mi_theap_t* registry;      // all theaps that were ever made; they are used again, not given back (H5)
static mi_theap_t* theaps_unused; // those that serve no heap
static size_t      theaps_count;  // in the registry
static size_t      theaps_wanted = THEAP_RECLAIM_MIN; // so many before unused ones are looked for

static char*  theap_memory; // where the next theap is made, and how many fit there
static size_t theap_memory_left;

static bool thread_can_revoke;

// ---- before everything ----------------------------------------------------------------------------------------------
// While the loader relocates the program, thread-local variables are zero, not yet what they are initialised with; a
// resolver of the program's may allocate then.  A resolver of our own runs before those.
#if MI_HAS_IFUNC

static void thread_nothing(void) {}

typedef void (*thread_early_t)(void);

  #if defined(__cplusplus)
extern "C" { // the attribute has the name as the assembler knows it
  #endif
mi_hidden thread_early_t _mi_thread_early_resolver(void);
mi_hidden void           _mi_thread_early(void) __attribute__((ifunc("_mi_thread_early_resolver")));
  #if defined(__cplusplus)
}
  #endif

thread_early_t _mi_thread_early_resolver(void) {
  // In a static program it runs before there is thread-local storage at all; then nobody can allocate yet.
  if (_mi_prim_has_thread_storage() && _mi_theap_default == NULL) _mi_theap_default = &_mi_theap_none;
  return &thread_nothing;
}

  // Referred to by address: such functions are resolved before those that are only called.
  #if defined(__clang__) && defined(__LP64__)
// In assembly, because link-time optimisation by LLVM 19 crashes over an address of such a function in C.
__asm__(".pushsection .data.rel,\"aw\"\n.balign 8\n"
        ".globl _mi_thread_early_pointer\n.hidden _mi_thread_early_pointer\n"
        "_mi_thread_early_pointer: .quad _mi_thread_early\n.popsection");
extern mi_hidden volatile thread_early_t _mi_thread_early_pointer;

static void thread_resolve_early(void) {
  _mi_thread_early_pointer();
}
  #else
static volatile thread_early_t thread_early_pointer = &_mi_thread_early;

static void thread_resolve_early(void) {
  thread_early_pointer();
}
  #endif

#else

static void thread_resolve_early(void) {}

#endif

// ---- initialisation -------------------------------------------------------------------------------------------------

static bool thread_tick(void);
static int  thread_start(void (*run)(void));
static void thread_note_wanted(bool is_wanted);

static void thread_exit(void) {
  _mi_thread_release(true);
}

static bool thread_process_init(void) {
  enum { NOT_YET, BUSY, DONE };
  static mi_atomic(uint32_t) state;
  while (mi_likely(mi_load_acquire(&state) != DONE)) {
    uint32_t expected = NOT_YET;
    if (mi_cas_strong(&state, &expected, (uint32_t)BUSY, acquire, relaxed)) {
      thread_resolve_early();
      bool ok = _mi_region_init();
      if (ok) {
        _mi_block_init();
        _mi_heap_init();
        _mi_prim_thread_exit_init(&thread_exit);
        thread_can_revoke = (_mi_prim_barrier_all_init() == 0) || MI_TSAN;
        _mi_purge_init(&thread_tick, &thread_start, &thread_note_wanted);
      }
      mi_store_release(&state, ok ? (uint32_t)DONE : (uint32_t)NOT_YET);
      if (!ok) return false;
    }
    else {
      _mi_prim_yield(); // another thread is at it
    }
  }
  return true;
}

// ---- the registry ---------------------------------------------------------------------------------------------------

static mi_theap_t* theap_make(void) {
  if (registry == NULL && !MI_TRACK_VALGRIND) return &theap_first; // which could not be hidden
  if (theap_memory_left == 0) {
    mi_run_t run = _mi_slices_alloc(1, 1, MI_CHUNK_META, MI_ARENA_ANY);
    if (run.region == NULL) return NULL;
    theap_memory = _mi_region_slice_start(run.region, run.slice);
    theap_memory_left = MI_SLICE_SIZE / sizeof(mi_theap_t);
    if (MI_TRACK) mi_track_readable(theap_memory, MI_SLICE_SIZE);
    if (!run.is_zero) memset(theap_memory, 0, MI_SLICE_SIZE);
    if (MI_TRACK) _mi_prim_hide(theap_memory, MI_SLICE_SIZE);
  }
  mi_theap_t* theap = (mi_theap_t*)(void*)theap_memory;
  theap_memory += sizeof(mi_theap_t);
  theap_memory_left--;
  return theap;
}

void _mi_thread_set_unused(mi_theap_t* theap) {
  theap->heap = NULL;
  theap->heap_next = theaps_unused;
  theaps_unused = theap;
}

// Takes those theaps away from a heap that no thread has, and no page as its home.
static size_t theap_reclaim_from(mi_heap_t* heap) {
  size_t n = 0;
  for (mi_theap_t **at = &heap->theaps, *theap; (theap = *at) != NULL;) {
    if (theap->is_live || theap->is_orphan || theap->is_home) {
      at = &theap->heap_next;
      continue;
    }
    *at = theap->heap_next;
    _mi_thread_set_unused(theap);
    n++;
  }
  return n;
}

// A heap that is deleted leaves its theaps to the main heap, although there may be no thread for them; and heaps keep as
// many as they had threads at a time.  A page gets only a theap that a thread has as its home, so what is found to be no
// home stays so.
static void theap_reclaim(void) {
  mi_walk_t walk = {NULL, NULL, 0, 0};
  size_t    n;
  for (mi_theap_t* theap = registry; theap != NULL; theap = theap->next) theap->is_home = false;
  _mi_lock_acquire(&_mi_arena_lock);
  for (mi_page_t* page; (page = _mi_walk_next(&walk)) != NULL;) {
    mi_theap_t* home = mi_load_relaxed(&page->home);
    if (home != NULL) home->is_home = true; // NULL: a large block
  }
  _mi_lock_release(&_mi_arena_lock);
  n = theap_reclaim_from(&_mi_heap_main);
  for (mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) n += theap_reclaim_from(heap);
  theaps_wanted = mi_max(THEAP_RECLAIM_MIN, 2 * (theaps_count - n));
}

static mi_theap_t* theap_make_for(mi_heap_t* heap) {
  if (theaps_unused == NULL && theaps_count >= theaps_wanted) theap_reclaim();
  mi_theap_t* theap = theaps_unused;
  if (theap != NULL) {
    theaps_unused = theap->heap_next;
  }
  else {
    theap = theap_make();
    if (theap == NULL) return NULL;
    theap->next = registry;
    registry = theap;
    theaps_count++;
  }
  theap->heap = heap;
  theap->heap_next = heap->theaps;
  heap->theaps = theap;
  return theap;
}

// One for the heap, live, of that thread (NULL: its own); caller holds the registry lock.
static mi_theap_t* theap_get(mi_heap_t* heap, mi_theap_t* thread) {
  mi_theap_t* theap = heap->theaps;
  while (theap != NULL && (theap->is_live || theap->is_orphan)) theap = theap->heap_next;
  if (theap == NULL) theap = theap_make_for(heap);
  if (theap == NULL) return NULL;
  _mi_theap_init(theap);
  theap->is_live = true;
  theap->is_released = false;
  theap->has_deleted = false;
  theap->n_owned_pushes = 0;
  mi_store_relaxed(&theap->thread, thread != NULL ? thread : theap);
  _mi_stat_increase(&_mi_stats.theaps, 1);
  return theap;
}

static void thread_cache(mi_theap_t* backing, mi_heap_t* heap, mi_theap_t* theap) {
  mi_theap_cached_t* cached = _mi_theap_cached(backing, heap);
  cached->id = mi_load_relaxed(&heap->id);
  cached->theap = theap;
}

mi_theap_t* _mi_thread_first_theap(void) {
  return registry;
}

mi_theap_t* _mi_thread_last_theap(void) {
  return &theap_first;
}

void _mi_thread_visit_theaps(void (*visit)(mi_theap_t* theap, void* arg), void* arg) {
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_theap_t* theap = registry; theap != NULL; theap = theap->next) visit(theap, arg);
  _mi_lock_release(&_mi_registry_lock);
}

void _mi_thread_visit_own(void (*visit)(mi_theap_t* theap)) {
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_theap_t* theap = _mi_theap_backing(); theap != NULL; theap = theap->thread_next) visit(theap);
  _mi_lock_release(&_mi_registry_lock);
}

// ---- start and exit -------------------------------------------------------------------------------------------------

// For fork: before there is a second thread, which could have our locks while the first one forks.  That first thread has
// allocated: to create another one does.
static void thread_install_hooks(void) {
  static mi_atomic(bool) installed;
  if (!mi_exchange_acq_rel(&installed, true)) _mi_fork_init();
}

mi_theap_t* _mi_thread_theap(void) {
  mi_theap_t* theap = _mi_theap_default;
  if (mi_likely(mi_load_relaxed(&theap->thread) != NULL)) return theap;
  if (theap == &_mi_theap_dead || !thread_process_init()) return NULL;
  _mi_lock_acquire(&_mi_registry_lock);
  theap = theap_get(&_mi_heap_main, NULL);
  if (theap != NULL) {
    theap->subproc = &_mi_subproc_main;
    thread_cache(theap, &_mi_heap_main, theap);
  }
  _mi_lock_release(&_mi_registry_lock);
  if (theap == NULL) return NULL;
  _mi_theap_default = theap;
  MI_PROBE1(thread_start, theap);
  _mi_stat_increase(&_mi_stats.threads, 1);
  // From here on this thread can allocate, as what follows may.
  _mi_prim_thread_exit_arm();
  if (mi_fetch_add_relaxed(&_mi_thread_count, 1) == 0) thread_install_hooks();
  else _mi_purge_has_threads();
  return theap;
}

mi_theap_t* _mi_thread_backing(void) {
  mi_theap_t* theap = _mi_thread_theap();
  return theap == NULL ? NULL : mi_load_relaxed(&theap->thread);
}

// Nobody has the theap any more; caller holds the registry lock.
static void theap_detach(mi_theap_t* theap) {
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  if (thread != NULL && thread != theap) {
    mi_theap_t** at = &thread->thread_next;
    while (*at != theap) at = &(*at)->thread_next;
    *at = theap->thread_next;
    if (_mi_theap_default == theap) _mi_theap_default = thread; // if it is ours, it is the calling thread's
  }
  _mi_stat_decrease(&_mi_stats.theaps, 1);
  theap->thread_next = NULL;
  _mi_sampler_reset(theap);
  theap->is_live = theap->is_late = false;
  mi_store_relaxed(&theap->thread, (mi_theap_t*)NULL);
}

void _mi_thread_release(bool is_exit) {
  mi_theap_t* theap = _mi_theap_backing();
  if (is_exit) _mi_theap_default = &_mi_theap_dead;
  else if (theap != NULL) _mi_theap_default = &_mi_theap_none;
  if (theap == NULL) return;
  MI_PROBE1(thread_exit, theap);
  _mi_theap_release(theap);
  _mi_lock_acquire(&_mi_registry_lock);
  while (theap->thread_next != NULL) {
    _mi_theap_release(theap->thread_next);
    theap_detach(theap->thread_next);
  }
  if (theap->subproc != &_mi_subproc_main) theap->subproc->n_threads--;
  memset(theap->cache, 0, sizeof(theap->cache));
  mi_store_relaxed(&theap->has_retired, false);
  theap_detach(theap);
  _mi_lock_release(&_mi_registry_lock);
  _mi_stat_decrease(&_mi_stats.threads, 1);
  bool is_last = (mi_fetch_sub_relaxed(&_mi_thread_count, 1) == 1);
  if (is_exit && is_last) _mi_purge_stop();
  else _mi_purge_schedule(false);
}

void _mi_thread_free_block(mi_theap_t* thread, mi_page_t* page, void* p) {
  mi_theap_t* home = mi_load_relaxed(&page->home);
  if (home != NULL && thread != NULL && mi_load_relaxed(&home->thread) == thread) {
    _mi_theap_free_local(home, page, p);
    return;
  }
  if (mi_unlikely(thread == NULL)) thread = _mi_thread_backing();
  if (mi_likely(thread != NULL)) _mi_theap_free_remote(thread, page, p);
  else _mi_page_free_remote(page, p);
}

void _mi_thread_collect(void) {
  mi_theap_t* theap = _mi_theap_backing();
  if (theap == NULL) return;
  _mi_thread_drop_retired();
  _mi_theap_release(theap);
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_theap_t* t = theap->thread_next; t != NULL; t = t->thread_next) _mi_theap_release(t);
  _mi_lock_release(&_mi_registry_lock);
}

// ---- the theaps of heaps --------------------------------------------------------------------------------------------

// Caller holds the registry lock.
static mi_theap_t* theap_attach(mi_heap_t* heap, mi_theap_t* backing) {
  mi_theap_t* theap = heap->theaps;
  while (theap != NULL && mi_load_relaxed(&theap->thread) != backing) theap = theap->heap_next;
  if (theap == NULL) {
    theap = theap_get(heap, backing);
    if (theap == NULL) return NULL;
    theap->thread_next = backing->thread_next;
    backing->thread_next = theap;
  }
  thread_cache(backing, heap, theap);
  return theap;
}

mi_theap_t* _mi_thread_theap_of(mi_heap_t* heap) {
  mi_theap_t* backing = _mi_thread_backing();
  if (backing == NULL) return NULL;
  if (heap == &_mi_heap_main) {
    thread_cache(backing, heap, backing);
    return backing;
  }
  _mi_thread_drop_retired();
  _mi_lock_acquire(&_mi_registry_lock);
  mi_theap_t* theap = (_mi_heap_is_live(heap) ? theap_attach(heap, backing) : NULL);
  _mi_lock_release(&_mi_registry_lock);
  return theap;
}

bool _mi_thread_join(mi_subproc_t* subproc) {
  mi_theap_t* backing = _mi_thread_backing();
  mi_theap_t* theap = NULL;
  if (backing == NULL || backing->subproc != &_mi_subproc_main) return false;
  _mi_lock_acquire(&_mi_registry_lock);
  if (subproc->main != NULL) theap = theap_attach(subproc->main, backing);
  if (theap != NULL) {
    backing->subproc = subproc;
    subproc->n_threads++;
    _mi_theap_default = theap;
  }
  _mi_lock_release(&_mi_registry_lock);
  return theap != NULL;
}

void _mi_thread_drop_retired(void) {
  mi_theap_t* backing = _mi_theap_backing();
  if (backing == NULL || !mi_load_relaxed(&backing->has_retired)) return;
  _mi_lock_acquire(&_mi_registry_lock);
  mi_store_relaxed(&backing->has_retired, false);
  for (mi_theap_t *theap = backing->thread_next, *next; theap != NULL; theap = next) {
    next = theap->thread_next;
    if (theap->heap != &_mi_heap_main) continue;
    _mi_theap_release(theap);
    theap_detach(theap);
  }
  _mi_lock_release(&_mi_registry_lock);
}

// It serves the main heap from now on.
static void theap_retire(mi_theap_t* theap) {
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  theap->heap = &_mi_heap_main;
  theap->heap_next = _mi_heap_main.theaps;
  _mi_heap_main.theaps = theap;
  if (theap->is_live && !theap->is_late) mi_store_relaxed(&thread->has_retired, true);
}

void _mi_thread_retire_theaps(mi_heap_t* heap) {
  for (mi_theap_t *theap = heap->theaps, *next; theap != NULL; theap = next) {
    next = theap->heap_next;
    theap_retire(theap);
    if (!theap->is_late) continue;
    _mi_theap_release(theap);
    theap_detach(theap);
  }
  heap->theaps = heap->late = NULL;
}

// That of another thread may be its default, and then only that thread can let it go.
void _mi_thread_clear_theaps(mi_heap_t* heap) {
  mi_theap_t* mine = _mi_theap_backing();
  mi_theap_t* rest = NULL;
  for (mi_theap_t *theap = heap->theaps, *next; theap != NULL; theap = next) {
    next = theap->heap_next;
    memset(theap->bins, 0, sizeof(theap->bins));
    memset(theap->classes, 0, sizeof(theap->classes));
    _mi_theap_init(theap);
    if (theap->is_live && !theap->is_late && mi_load_relaxed(&theap->thread) != mine) {
      theap_retire(theap);
      continue;
    }
    if (theap->is_live) theap_detach(theap);
    theap->heap_next = rest;
    rest = theap;
  }
  heap->theaps = rest;
  heap->late = NULL;
}

void _mi_thread_free_theaps(mi_heap_t* heap) {
  for (mi_theap_t *theap = heap->theaps, *next; theap != NULL; theap = next) {
    next = theap->heap_next;
    _mi_theap_forget(theap);
    _mi_thread_set_unused(theap);
  }
  heap->theaps = NULL;
}

// ---- past the exit --------------------------------------------------------------------------------------------------

static mi_theap_t* thread_late_theap(mi_heap_t* heap) {
  if (heap->late == NULL) {
    _mi_lock_acquire(&_mi_registry_lock);
    mi_theap_t* theap = (_mi_heap_is_live(heap) ? theap_get(heap, NULL) : NULL);
    if (theap != NULL) {
      mi_store_relaxed(&theap->thread, (mi_theap_t*)NULL);
      theap->is_late = true;
    }
    heap->late = theap;
    _mi_lock_release(&_mi_registry_lock);
  }
  return heap->late;
}

void* _mi_thread_late_malloc(mi_heap_t* heap, size_t cls, bool* is_zero) {
  mi_block_t* block = NULL;
  *is_zero = false;
  _mi_lock_acquire(&theap_late_lock);
  mi_theap_t* theap = thread_late_theap(heap);
  if (theap != NULL) {
    block = (mi_block_t*)_mi_bin_pop(&theap->bins[cls]);
    if (block == NULL) block = (mi_block_t*)_mi_theap_refill(theap, cls, is_zero);
  }
  _mi_lock_release(&theap_late_lock);
  return block;
}

void _mi_thread_lock_late(void) {
  _mi_lock_acquire(&theap_late_lock);
}

void _mi_thread_unlock_late(void) {
  _mi_lock_release(&theap_late_lock);
}

// ---- idle threads ---------------------------------------------------------------------------------------------------

mi_cold void _mi_theap_wait_revoked(mi_theap_t* theap) {
  do {
    _mi_theap_leave(theap);
    while (mi_load_acquire(&theap->revoked) != 0) _mi_prim_wait(&theap->revoked, 1, 10);
    mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);
    mi_fence_seq_cst();
  } while (mi_load_acquire(&theap->revoked) != 0);
}

// What libc allocates for the thread must not go with a heap that happens to be the default of the thread which starts it.
static int thread_start(void (*run)(void)) {
  mi_theap_t* theap = _mi_theap_default;
  mi_theap_t* backing = _mi_theap_backing();
  if (backing == NULL) return _mi_prim_thread_start(run);
  _mi_theap_default = backing;
  int err = _mi_prim_thread_start(run);
  if (mi_load_relaxed(&theap->thread) == backing) _mi_theap_default = theap; // unless it was retired meanwhile
  return err;
}

// A reason for slow mallocs to look closer.
static void thread_note_wanted(bool is_wanted) {
  if (is_wanted) mi_fetch_add_relaxed(&_mi_theap_notices, MI_NOTICE_OTHER);
  else mi_fetch_sub_relaxed(&_mi_theap_notices, MI_NOTICE_OTHER);
}

// A theap is idle when its thread has taken no slow path since the last look.
static bool theap_is_idle(mi_theap_t* theap) {
  uint32_t presence = mi_load_relaxed(&theap->presence);
  if (presence == MI_THEAP_QUIET) return theap->is_live && !theap->is_released;
  theap->is_released = false;
  // This fails if the thread enters meanwhile.
  if (presence == MI_THEAP_OUTSIDE)
    mi_cas_strong(&theap->presence, &presence, (uint32_t)MI_THEAP_QUIET, relaxed, relaxed);
  return false;
}

static void theap_take_back(mi_theap_t* theap) {
  while (mi_load_acquire(&theap->presence) == MI_THEAP_INSIDE) _mi_prim_yield(); // it woke up just now
  if (MI_HARDENED) _mi_quarantine_take_back(theap);
  _mi_outbox_flush(theap);
  _mi_theap_release_pages(theap);
  _mi_large_drop_kept(theap);
  theap->has_deleted = false;
  theap->is_released = true;
  mi_store_release(&theap->revoked, 0);
  _mi_prim_wake(&theap->revoked, true);
}

// One round of the background thread: what idle threads have but do not use goes back.  True if there was something.
static bool thread_tick(void) {
  bool any = false;
  bool is_sampled = _mi_theap_is_sampled(mi_load_relaxed(&_mi_theap_notices));
  if (!thread_can_revoke && !is_sampled) return false;
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_theap_t* theap = registry; theap != NULL; theap = theap->next) {
    if (is_sampled && theap->is_live && !theap->is_late) _mi_sampler_tick(theap);
    if (!thread_can_revoke || !theap_is_idle(theap)) continue;
    mi_store_relaxed(&theap->revoked, 1);
    any = true;
  }
  if (any) {
    // Now each of them either is INSIDE for us to see, or will see `revoked` when it enters.
    mi_fence_seq_cst();
    bool passed = (MI_TSAN || _mi_prim_barrier_all() == 0);
    for (mi_theap_t* theap = registry; theap != NULL; theap = theap->next) {
      if (mi_load_relaxed(&theap->revoked) == 0) continue;
      if (passed) theap_take_back(theap);
      else mi_store_release(&theap->revoked, 0);
    }
  }
  _mi_lock_release(&_mi_registry_lock);
  return any || is_sampled;
}
