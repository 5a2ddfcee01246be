// Thread start and exit.  Layer: heap.
//
// Nothing here is on a fast path: a thread without a theap has one of two empty ones, whose bins send it to
// _mi_thread_theap by way of the ordinary slow path.
//
// T1  A theap is made by its thread's first allocation, in constant time, and released at its exit in O(own theaps and
//     pages).
// T2  After its exit a thread has _mi_theap_dead, for good: what it frees goes to the pages directly, what it allocates
//     comes from the late theap of the heap.  (Destructors of thread-specific data run in any order, and libc frees after them.)
// T3  A thread that has not allocated frees to the pages directly, too: libc frees what belongs to a thread, on that thread, when it
//     is past all destructors, and then nobody would release a theap.  It gets one if its exit will be seen, or if it frees
//     more often than that.
// T4  The theap of a thread that cannot be seen to end is watched (heap/ended.h).
#include "thread.h"

#include <string.h>

#include "../arena/space.h"
#include "../base/probe.h"
#include "../support/stat.h"
#include "background.h"
#include "ended.h"
#include "fork.h"
#include "heap.h"
#include "large.h"
#include "quarantine.h"
#include "sampler.h"
#include "vacant.h"

// How many theaps of a heap that ends are looked at while the registry lock is held.
#define THREAD_BATCH 64

// T3: libc frees a block for each library with thread-local variables, and one more.
#define THREAD_FREES_MIN 256

mi_thread_local mi_theap_t* _mi_theap_default = &_mi_theap_none;

mi_theap_t        _mi_theap_none;
mi_theap_t        _mi_theap_dead;
mi_atomic(size_t) _mi_thread_count;
mi_atomic(bool)   _mi_thread_has_others;
mi_lock_t         _mi_registry_lock;

mi_atomic(uint32_t) _mi_theap_notices;

static mi_theap_t             theap_first; // of the first thread: no memory is needed for the first allocation
static mi_lock_t              theap_late_lock;
static mi_atomic(mi_theap_t*) registry;     // all theaps that were ever made; they are used again, not given back (H5)
static size_t                 theaps_count; // in the registry

static char*  theap_memory; // where the next theap is made, and how many fit there
static size_t theap_memory_left;

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

static void thread_exit(void) {
  _mi_thread_release(true);
}

static bool thread_process_init(void) {
  enum { NOT_YET, BUSY, DONE };
  static mi_atomic(uint32_t) state;
  int                        n_spins = 0;
  while (mi_likely(mi_load_acquire(&state) != DONE)) {
    uint32_t expected = NOT_YET;
    if (mi_cas_strong(&state, &expected, (uint32_t)BUSY, acquire, relaxed)) {
      thread_resolve_early();
      bool ok = _mi_space_init();
      if (ok) {
        _mi_block_init();
        _mi_heap_init();
        _mi_prim_thread_exit_init(&thread_exit);
        _mi_background_init();
      }
      mi_store_release(&state, ok ? (uint32_t)DONE : (uint32_t)NOT_YET);
      if (!ok) return false;
    }
    else {
      _mi_lock_pause(&state, (uint32_t)BUSY, &n_spins); // another thread is at it
    }
  }
  return true;
}

// ---- the registry ---------------------------------------------------------------------------------------------------

static mi_theap_t* theap_make(void) {
  if (mi_load_relaxed(&registry) == NULL && !MI_TRACK_VALGRIND) return &theap_first; // which could not be hidden
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

static mi_theap_t* theap_make_for(mi_heap_t* heap) {
  mi_theap_t* theap = theap_make();
  if (theap == NULL) return NULL;
  theap->next = mi_load_relaxed(&registry);
  mi_store_release(&registry, theap); // release: rounds go through it without the lock
  theaps_count++;
  mi_store_relaxed(&theap->heap, heap);
  _mi_vacant_link(&heap->theaps, theap);
  return theap;
}

// One for the heap, live, of that thread (NULL: its own); caller holds the registry lock.
static mi_theap_t* theap_get(mi_heap_t* heap, mi_theap_t* thread) {
  mi_theap_t* theap = _mi_vacant_get(heap, theaps_count, false);
  if (theap == NULL) theap = theap_make_for(heap);
  if (theap == NULL) theap = _mi_vacant_get(heap, theaps_count, true);
  if (theap == NULL) return NULL;
  _mi_theap_init(theap);
  theap->heap_id = mi_load_relaxed(&heap->id);
  theap->has_deleted = false;
  mi_store_relaxed(&theap->thread, thread != NULL ? thread : theap);
  mi_store_release(&theap->is_live,
                   true); // release: a round may look at it from here on, before its thread has entered it
  _mi_stat_increase(&_mi_stat_live.theaps, 1);
  return theap;
}

// Adds a theap to those of its thread, or to the retired ones, and takes it out.
static void thread_link(mi_theap_t** list, mi_theap_t* theap) {
  theap->thread_next = *list;
  theap->thread_at = list;
  if (*list != NULL) (*list)->thread_at = &theap->thread_next;
  *list = theap;
}

static void thread_unlink(mi_theap_t* theap) {
  *theap->thread_at = theap->thread_next;
  if (theap->thread_next != NULL) theap->thread_next->thread_at = theap->thread_at;
}

static void thread_cache(mi_theap_t* backing, uint64_t id, mi_theap_t* theap) {
  mi_theap_cached_t* cached = &backing->cache[id % MI_THEAP_CACHE_SIZE];
  cached->id = id;
  cached->theap = theap;
}

mi_theap_t* _mi_thread_find(mi_theap_t* backing, mi_heap_t* heap) {
  uint64_t    id = mi_load_relaxed(&heap->id);
  mi_theap_t* theap = (id == MI_HEAP_MAIN_ID ? backing : _mi_directory_find(&backing->directory, id));
  if (theap != NULL) thread_cache(backing, id, theap);
  return theap;
}

mi_theap_t* _mi_thread_first_theap(void) {
  return mi_load_acquire(&registry);
}

mi_theap_t* _mi_thread_last_theap(void) {
  return &theap_first;
}

void _mi_thread_visit_theaps(void (*visit)(mi_theap_t* theap, void* arg), void* arg) {
  _mi_lock_acquire(&_mi_registry_lock);
  for (mi_theap_t* theap = mi_load_relaxed(&registry); theap != NULL; theap = theap->next) visit(theap, arg);
  _mi_lock_release(&_mi_registry_lock);
}

void _mi_thread_visit_own(void (*visit)(mi_theap_t* theap)) {
  _mi_lock_acquire(&_mi_registry_lock);
  mi_theap_t* backing = _mi_theap_backing();
  for (mi_theap_t* theap = backing; theap != NULL; theap = theap->thread_next) visit(theap);
  for (mi_theap_t* theap = (backing == NULL ? NULL : backing->retired); theap != NULL; theap = theap->thread_next) {
    visit(theap);
  }
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
    thread_cache(theap, MI_HEAP_MAIN_ID, theap);
  }
  _mi_lock_release(&_mi_registry_lock);
  if (theap == NULL) return NULL;
  _mi_theap_default = theap;
  MI_PROBE1(thread_start, theap);
  _mi_stat_increase(&_mi_stat_live.threads, 1);
  // From here on this thread can allocate, as what follows may.
  if (_mi_prim_thread_exit_arm() != 0 || !_mi_prim_thread_exit_is_sure()) _mi_ended_watch(theap);
  if (mi_fetch_add_relaxed(&_mi_thread_count, 1) == 0) thread_install_hooks();
  else mi_store_relaxed(&_mi_thread_has_others, true);
  return theap;
}

mi_theap_t* _mi_thread_backing(void) {
  mi_theap_t* theap = _mi_thread_theap();
  return theap == NULL ? NULL : mi_load_relaxed(&theap->thread);
}

void _mi_thread_set_vacant(mi_theap_t* theap) {
  mi_store_relaxed(&theap->thread, (mi_theap_t*)NULL);
  theap->thread_next = NULL;
  theap->thread_at = NULL;
  mi_store_relaxed(&theap->is_live, false);
  theap->is_late = theap->is_orphan = false;
  _mi_vacant_put(theap);
  if (theap->ended != NULL) _mi_heap_drop_user(theap->ended);
  theap->ended = NULL;
}

// Its thread, if it has one, does not have the theap any more; caller holds the registry lock.
static void theap_detach(mi_theap_t* theap) {
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  if (thread != NULL && thread != theap) {
    thread_unlink(theap);
    _mi_directory_remove(&thread->directory, theap->heap_id);
    if (_mi_theap_default == theap) _mi_theap_default = thread;
  }
  _mi_stat_decrease(&_mi_stat_live.theaps, 1);
  _mi_sampler_reset(theap);
  _mi_thread_set_vacant(theap);
}

// Lets go of a theap of the calling thread: of a retired one, or (`any`) of any but the backing theap.  False: there is none.
static bool thread_let_go_one(mi_theap_t* backing, bool any) {
  _mi_lock_acquire(&_mi_registry_lock);
  mi_theap_t* theap = backing->retired;
  if (theap == NULL && any) theap = backing->thread_next;
  if (theap != NULL) {
    _mi_theap_release(theap);
    theap_detach(theap);
  }
  _mi_lock_release(&_mi_registry_lock);
  return theap != NULL;
}

// All theaps of the thread with this backing theap.
static void thread_let_go(mi_theap_t* theap) {
  MI_PROBE1(thread_exit, theap);
  _mi_theap_release(theap);
  while (thread_let_go_one(theap, true)) {
  }
  _mi_lock_acquire(&_mi_registry_lock);
  if (theap->subproc != &_mi_subproc_main) theap->subproc->n_threads--;
  _mi_directory_clear(&theap->directory);
  memset(theap->cache, 0, sizeof(theap->cache));
  mi_store_relaxed(&theap->has_retired, false);
  theap_detach(theap);
  _mi_lock_release(&_mi_registry_lock);
  _mi_stat_decrease(&_mi_stat_live.threads, 1);
  mi_fetch_sub_relaxed(&_mi_thread_count, 1);
}

void _mi_thread_release(bool is_exit) {
  mi_theap_t* theap = _mi_theap_backing();
  if (is_exit) _mi_theap_default = &_mi_theap_dead;
  else if (theap != NULL) _mi_theap_default = &_mi_theap_none;
  if (theap == NULL) return;
  _mi_ended_unwatch(theap);
  thread_let_go(theap);
  _mi_background_freed();
}

void _mi_thread_release_ended(mi_theap_t* theap) {
  thread_let_go(theap);
}

// T3
static mi_theap_t* thread_for_frees(void) {
  static mi_thread_local uint32_t n_frees;
  bool                            is_late = (_mi_theap_default == &_mi_theap_dead);
  if (is_late || (++n_frees < THREAD_FREES_MIN && !_mi_prim_thread_exit_is_armed())) return NULL;
  return _mi_thread_backing();
}

void _mi_thread_free_block(mi_theap_t* thread, mi_page_t* page, void* p) {
  mi_theap_t* home = mi_load_relaxed(&page->home);
  if (home != NULL && thread != NULL && mi_load_relaxed(&home->thread) == thread) {
    _mi_theap_free_local(home, page, p);
    return;
  }
  if (mi_unlikely(thread == NULL)) thread = thread_for_frees();
  if (mi_likely(thread != NULL)) _mi_theap_free_remote(thread, page, p);
  else _mi_page_free_remote(page, p);
}

// Under the registry lock, so that none of them is being cleared (see below); but one at a time.
static void thread_collect_others(mi_theap_t* backing) {
  const mi_directory_t* directory = &backing->directory;
  for (size_t i = 0; directory->n > 0 && i < (size_t)1 << directory->shift; i++) {
    if (directory->entries[i].id == 0) continue;
    _mi_lock_acquire(&_mi_registry_lock);
    _mi_theap_release(directory->entries[i].theap);
    _mi_lock_release(&_mi_registry_lock);
  }
}

void _mi_thread_collect(void) {
  mi_theap_t* theap = _mi_theap_backing();
  if (theap == NULL) return;
  _mi_thread_drop_retired();
  _mi_theap_release(theap);
  thread_collect_others(theap);
}

// ---- the theaps of heaps --------------------------------------------------------------------------------------------

// Caller holds the registry lock, and has reserved an entry in the directory.
static mi_theap_t* theap_attach(mi_heap_t* heap, mi_theap_t* backing) {
  uint64_t    id = mi_load_relaxed(&heap->id);
  mi_theap_t* theap = _mi_directory_find(&backing->directory, id);
  if (theap != NULL || id == 0) return theap;
  theap = theap_get(heap, backing);
  if (theap == NULL) return NULL;
  thread_link(&backing->thread_next, theap);
  _mi_directory_add(&backing->directory, id, theap);
  return theap;
}

static mi_theap_t* thread_attach(mi_heap_t* heap, mi_theap_t* backing) {
  if (!_mi_directory_reserve(&backing->directory)) return NULL;
  _mi_lock_acquire(&_mi_registry_lock);
  mi_theap_t* theap = theap_attach(heap, backing);
  _mi_lock_release(&_mi_registry_lock);
  if (theap != NULL) thread_cache(backing, theap->heap_id, theap);
  return theap;
}

mi_theap_t* _mi_thread_theap_of(mi_heap_t* heap) {
  mi_theap_t* backing = _mi_thread_backing();
  if (backing == NULL) return NULL;
  _mi_thread_drop_retired();
  mi_theap_t* theap = _mi_thread_find(backing, heap);
  return theap != NULL ? theap : thread_attach(heap, backing);
}

bool _mi_thread_join(mi_subproc_t* subproc) {
  mi_theap_t* backing = _mi_thread_backing();
  mi_theap_t* theap = NULL;
  if (backing == NULL || backing->subproc != &_mi_subproc_main) return false;
  if (!_mi_directory_reserve(&backing->directory)) return false;
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
  mi_store_relaxed(&backing->has_retired, false); // first: another may be retired meanwhile
  while (thread_let_go_one(backing, false)) {
  }
}

// It serves the main heap from now on.
static void theap_retire(mi_theap_t* theap) {
  mi_heap_t* heap = _mi_theap_heap(theap);
  _mi_vacant_unlink(theap);
  _mi_vacant_link(_mi_theap_is_live(theap) || theap->is_orphan ? &_mi_heap_main.theaps : &_mi_heap_main.vacant, theap);
  mi_store_release(&theap->heap, &_mi_heap_main);
  if (!_mi_theap_is_live(theap)) return;
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  theap->ended = heap;
  heap->n_users++;
  thread_unlink(theap);
  thread_link(&thread->retired, theap);
  mi_store_relaxed(&thread->has_retired, true);
}

bool _mi_thread_retire_theaps(mi_heap_t* heap) {
  heap->late = NULL;
  for (size_t i = 0; i < THREAD_BATCH; i++) {
    mi_theap_t* theap = (heap->theaps != NULL ? heap->theaps : heap->vacant);
    if (theap == NULL) return false;
    if (theap->is_late) {
      _mi_theap_release(theap);
      theap_detach(theap);
    }
    else {
      theap_retire(theap);
    }
  }
  return true;
}

// That of another thread may be its default, and then only that thread can let it go.
static void theap_clear(mi_theap_t* theap) {
  if (theap->is_orphan) {
    _mi_theap_forget(theap);
    return;
  }
  _mi_sampler_forget(theap); // it may have the bins
  mi_store_relaxed(&theap->is_closed, false);
  memset(theap->bins, 0, sizeof(theap->bins));
  memset(theap->classes, 0, sizeof(theap->classes));
  _mi_theap_init(theap);
  if (theap->is_late || mi_load_relaxed(&theap->thread) == _mi_theap_backing()) theap_detach(theap);
  else theap_retire(theap);
}

bool _mi_thread_clear_theaps(mi_heap_t* heap) {
  heap->late = NULL;
  for (size_t i = 0; i < THREAD_BATCH && heap->theaps != NULL; i++) theap_clear(heap->theaps);
  return heap->theaps != NULL;
}

bool _mi_thread_free_theaps(mi_heap_t* heap) {
  for (size_t i = 0; i < THREAD_BATCH && heap->vacant != NULL; i++) _mi_vacant_set_unused(heap->vacant);
  return heap->vacant != NULL;
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
