// Threads and processes come and go.  Layer: heap.  thread.h has the invariants.
#include "thread.h"

#include <errno.h>

#include "../base/probe.h"
#include "../arena/purge.h"
#include "../arena/recur.h"
#include "../arena/space.h"
#include "../prim/tag.h"
#include "../support/option.h"
#include "../support/stat.h"
#include "attach.h"
#include "background.h"
#include "ended.h"
#include "event.h"
#include "fork.h"
#include "warm.h"

// T3: libc frees a block for each library with thread-local variables, and one more.
#define THREAD_FREES_MIN 256

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

mi_bare thread_early_t _mi_thread_early_resolver(void) {
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

mi_no_icall_check static void thread_resolve_early(void) {
  _mi_thread_early_pointer();
}
  #else
static volatile thread_early_t thread_early_pointer = &_mi_thread_early;

mi_no_icall_check static void thread_resolve_early(void) {
  thread_early_pointer();
}
  #endif

#else

static void thread_resolve_early(void) {}

#endif

// ---- the process ----------------------------------------------------------------------------------------------------

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
      if (MI_TAGS && _mi_option_get_fast(mi_option_memory_tagging) != 0) _mi_prim_tag_init();
      bool ok = _mi_space_init();
      if (ok) {
        _mi_purge_init();
        _mi_recur_init();
        _mi_block_init();
        _mi_heap_init();
        _mi_prim_thread_exit_init(&thread_exit);
        _mi_background_init();
      }
      mi_store_release(&state, ok ? (uint32_t)DONE : (uint32_t)NOT_YET);
      if (!ok) return false;
    }
    else if (_mi_prim_is_ending()) {
      return false; // that thread is no more
    }
    else {
      _mi_lock_pause(&state, (uint32_t)BUSY, &n_spins); // another thread is at it
    }
  }
  return true;
}

// For fork: before there is a second thread, which could have a lock while the first one forks.  That first thread has
// allocated: to create another one does.  If there is no memory for them, the next thread tries again.
static void thread_install_hooks(void) {
  static mi_atomic(bool) installed;
  if (mi_load_relaxed(&installed) || mi_exchange_acq_rel(&installed, true)) return;
  if (_mi_fork_init() != 0) mi_store_release(&installed, false);
}

// ---- start ----------------------------------------------------------------------------------------------------------

// The backing theap of a new thread, which is counted under the lock that a fork takes: from its first touch of a page on the child
// knows of it (fork.c, F4).
static mi_theap_t* thread_attach(void) {
  _mi_lock_acquire(&_mi_registry_lock);
  mi_theap_t* theap = _mi_warm_take();
  if (theap == NULL) theap = _mi_attach_new(&_mi_heap_main, NULL);
  if (theap != NULL) {
    theap->subproc = &_mi_heap_subproc_main;
    _mi_attach_remember(theap, MI_HEAP_MAIN_ID, theap);
    if (mi_fetch_add_relaxed(&_mi_registry_n_threads, 1) > 0) mi_store_relaxed(&_mi_registry_has_others, true);
  }
  _mi_lock_release(&_mi_registry_lock);
  return theap;
}

static mi_theap_t* thread_start(void) {
  mi_theap_t* theap = thread_attach();
  if (theap == NULL) return NULL;
  _mi_theap_default = theap;
  MI_PROBE1(thread_start, theap);
  _mi_stat_increase(&_mi_stat_live.threads, 1);
  // From here on this thread can allocate, as what follows may.
  if (MI_TAGS) _mi_prim_tag_thread();
  thread_install_hooks();
  if (_mi_prim_thread_exit_arm() != 0 || !_mi_prim_thread_exit_is_sure()) _mi_ended_watch(theap);
  return theap;
}

mi_theap_t* _mi_thread_theap(void) {
  mi_theap_t* theap = _mi_theap_default;
  if (mi_likely(mi_load_relaxed(&theap->thread) != NULL)) return theap;
  if (theap == &_mi_theap_dead || !thread_process_init()) return NULL;
  return thread_start();
}

mi_theap_t* _mi_thread_backing(void) {
  mi_theap_t* theap = _mi_thread_theap();
  return theap == NULL ? NULL : mi_load_relaxed(&theap->thread);
}

mi_theap_t* _mi_thread_for_first_frees(void) {
  static MI_LOCAL(uint16_t, n_frees);
  bool gets_none = (_mi_theap_default == &_mi_theap_dead);
  if (!gets_none) gets_none = (++mi_local(n_frees) < THREAD_FREES_MIN && !_mi_prim_thread_exit_is_armed());
  if (!gets_none) return _mi_thread_backing();
  mi_store_relaxed(&_mi_registry_has_others, true); // for a fork at this moment
  return NULL;
}

mi_theap_t* _mi_thread_theap_of(mi_heap_t* heap) {
  mi_theap_t* backing = _mi_thread_backing();
  if (backing == NULL) return NULL;
  _mi_attach_drop_retired();
  mi_theap_t* theap = _mi_attach_find(backing, heap);
  if (theap != NULL) return theap;
  _mi_lock_acquire(&_mi_registry_lock);
  theap = _mi_attach(backing, heap);
  _mi_lock_release(&_mi_registry_lock);
  return theap;
}

mi_subproc_t* _mi_thread_subproc(void) {
  mi_theap_t* backing = _mi_thread_backing();
  return backing == NULL ? &_mi_heap_subproc_main : backing->subproc;
}

int _mi_thread_join(mi_subproc_t* subproc) {
  mi_theap_t* backing = _mi_thread_backing();
  if (backing == NULL) return _mi_theap_default == &_mi_theap_dead ? EBUSY : ENOMEM;
  if (backing->subproc != &_mi_heap_subproc_main) return EBUSY;
  _mi_lock_acquire(&_mi_registry_lock);
  bool        is_there = subproc->is_listed;
  mi_theap_t* theap = (is_there ? _mi_attach(backing, subproc->main) : NULL);
  if (theap != NULL) {
    backing->subproc = subproc;
    mi_fetch_add_relaxed(&subproc->n_threads, 1);
    _mi_theap_default = theap;
  }
  _mi_lock_release(&_mi_registry_lock);
  if (theap != NULL) return 0;
  return is_there ? ENOMEM : ENOENT;
}

// ---- exit -----------------------------------------------------------------------------------------------------------

void _mi_thread_release(bool is_exit) {
  mi_theap_t* backing = _mi_theap_backing();
  if (is_exit) _mi_theap_default = &_mi_theap_dead;
  else if (backing != NULL) _mi_theap_default = &_mi_theap_none;
  if (backing == NULL) return;
  _mi_ended_unwatch(backing);
  if (!is_exit || !_mi_warm_leave(backing)) _mi_attach_end_thread(backing);
  _mi_event_freed();
}
