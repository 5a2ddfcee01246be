// The exit of threads, and fork, on systems with POSIX threads.  Layer: prim.
#include "thread_exit.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>

#if !defined(PTHREAD_DESTRUCTOR_ITERATIONS)
  #define PTHREAD_DESTRUCTOR_ITERATIONS 4 // what POSIX demands at least
#endif

// What the key holds: how often the destructor was called, and whether the thread is one that is watched, or the main thread.
#define EXIT_ARMED   ((uintptr_t)1)
#define EXIT_WATCHED ((uintptr_t)1 << 8)
#define EXIT_MAIN    ((uintptr_t)1 << 9)
#define EXIT_PASSES  ((uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS - MI_TSAN)

#define EXIT_WAIT_MS 2000 // for threads that are just ending, when the code goes

static pthread_key_t   thread_exit_key;
static mi_atomic(bool) thread_exit_has_key; // a library that goes sets it back while other threads run
static void (*thread_exit_done)(void);
static pthread_t thread_exit_main; // the thread with which the process began
static bool      thread_exit_knows_main;

// ---- watched threads ------------------------------------------------------------------------------------------------

typedef void (*thread_exit_ended_t)(bool is_last);
static mi_atomic(thread_exit_ended_t) thread_exit_ended;
static mi_atomic(size_t)              thread_exit_n_watched;
static mi_atomic(bool)                thread_exit_main_ended;

size_t _mi_prim_thread_watched(void) {
  return mi_load_acquire(&thread_exit_n_watched);
}

void _mi_thread_exit_on_ended(void (*ended)(bool is_last)) {
  mi_store_release(&thread_exit_ended, ended);
}

void _mi_thread_exit_count(void) {
  mi_fetch_add_acq_rel(&thread_exit_n_watched, (size_t)1);
}

// Of the main thread and the last one that is watched at least one sees that the other has ended.
static void thread_exit_tell(void) {
  mi_fence_seq_cst();
  bool                is_last = (mi_load_relaxed(&thread_exit_main_ended) && _mi_prim_thread_watched() == 0);
  thread_exit_ended_t ended = mi_load_acquire(&thread_exit_ended);
  if (ended != NULL) ended(is_last);
}

void _mi_thread_exit_uncount(void) {
  mi_fetch_sub_acq_rel(&thread_exit_n_watched, (size_t)1);
  thread_exit_tell();
}

// ---- the key --------------------------------------------------------------------------------------------------------

static mi_atomic(uint32_t) thread_exit_n_inside; // threads that are in the destructor

static void thread_exit_pass(uintptr_t state) {
  if (state % EXIT_WATCHED < EXIT_PASSES && pthread_setspecific(thread_exit_key, (void*)(state + 1)) == 0) return;
  thread_exit_done();
  _mi_local_end();
  if ((state & EXIT_WATCHED) != 0) _mi_thread_exit_uncount();
  if ((state & EXIT_MAIN) != 0) {
    mi_store_relaxed(&thread_exit_main_ended, true);
    thread_exit_tell();
  }
}

static void thread_exit_destructor(void* value) {
  mi_fetch_add_acq_rel(&thread_exit_n_inside, 1u);
  thread_exit_pass((uintptr_t)value);
  mi_fetch_sub_acq_rel(&thread_exit_n_inside, 1u);
}

bool _mi_thread_exit_has_key(void) {
  return mi_load_acquire(&thread_exit_has_key); // acquire: the key was made before
}

// What the key holds for the calling thread; 0: it is not armed.
static uintptr_t thread_exit_state(void) {
  return _mi_thread_exit_has_key() ? (uintptr_t)pthread_getspecific(thread_exit_key) : 0;
}

bool _mi_thread_exit_is_main(void) {
  return thread_exit_knows_main && pthread_equal(pthread_self(), thread_exit_main);
}

int _mi_thread_exit_arm(bool is_watched) {
  if (!_mi_thread_exit_has_key()) return ENOTSUP;
  uintptr_t state = thread_exit_state();
  if (state == 0) state = EXIT_ARMED;
  if (is_watched) state |= EXIT_WATCHED;
  if (_mi_thread_exit_is_main()) state |= EXIT_MAIN;
  return pthread_setspecific(thread_exit_key, (void*)state);
}

void _mi_thread_exit_make_key(void) {
  mi_store_release(&thread_exit_has_key, pthread_key_create(&thread_exit_key, &thread_exit_destructor) == 0);
}

void _mi_prim_thread_exit_init(void (*done)(void)) {
  thread_exit_done = done;
  thread_exit_knows_main = _mi_prim_thread_is_main();
  thread_exit_main = pthread_self();
  if (!MI_PRIM_KEYS_LATE) _mi_thread_exit_make_key(); // last: who finds the key reads the rest
}

// Threads that are in the destructor leave it before its code goes.  One that never does is waited for no longer: it may be what
// the caller has interrupted, as a handler of a signal that ends the process.
void _mi_prim_thread_exit_stop(void) {
  if (!mi_exchange_acq_rel(&thread_exit_has_key, false)) return;
  pthread_key_delete(thread_exit_key);
  for (int ms = 0; ms < EXIT_WAIT_MS; ms++) {
    uint32_t n = mi_load_acquire(&thread_exit_n_inside);
    if (n == 0) break;
    _mi_prim_wait(&thread_exit_n_inside, n, 1);
  }
}

int _mi_prim_thread_exit_arm(void) {
  return _mi_thread_exit_arm(false);
}

bool _mi_prim_thread_exit_is_sure(void) {
  return (thread_exit_state() & (EXIT_WATCHED | EXIT_MAIN)) != 0;
}

bool _mi_prim_thread_exit_is_armed(void) {
  return thread_exit_state() != 0;
}

// ---- fork -----------------------------------------------------------------------------------------------------------

int _mi_prim_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  int saved = errno; // libc may allocate, in vain
  int err = pthread_atfork(prepare, parent, child);
  errno = saved;
  return err;
}

void _mi_thread_exit_after_fork(void) {
  uintptr_t state = thread_exit_state();
  thread_exit_knows_main = true;
  thread_exit_main = pthread_self();
  if (state != 0) pthread_setspecific(thread_exit_key, (void*)((state & ~EXIT_WATCHED) | EXIT_MAIN));
  mi_store_relaxed(&thread_exit_main_ended, false);
  mi_store_relaxed(&thread_exit_n_watched, (size_t)0);
  mi_store_relaxed(&thread_exit_n_inside, 0u);
  _mi_local_after_fork();
}
