// Threads of systems that have POSIX threads.  Layer: prim.
//
// K1  The exit of a thread is seen by a destructor of thread-specific data.  Destructors of the program's own data run in the
//     same passes, in any order, and free; so ours lets all passes but the last go by.  (In that one ThreadSanitizer takes the
//     thread down, and must not be called any more; so under it the pass before counts as the last.)
// K2  Where there is no key left for that, a robust mutex of each thread tells that it has ended: the kernel says so.
// K3  The shared library stands in for pthread_create.  That is the one place where the library may start a thread of its own:
//     the program does so itself there, so it holds no lock that starting a thread takes.  What starts one then is libc's
//     function itself, not what else stands in for it.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "prim.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(PTHREAD_DESTRUCTOR_ITERATIONS)
  #define PTHREAD_DESTRUCTOR_ITERATIONS 4 // what POSIX demands at least
#endif

// ---- exit -----------------------------------------------------------------------------------------------------------

// What the key holds: how often the destructor was called, and whether the thread is one that is watched, or the main thread.
#define PRIM_EXIT_ARMED   ((uintptr_t)1)
#define PRIM_EXIT_WATCHED ((uintptr_t)1 << 8)
#define PRIM_EXIT_MAIN    ((uintptr_t)1 << 9)
#define PRIM_EXIT_PASSES  ((uintptr_t)PTHREAD_DESTRUCTOR_ITERATIONS - MI_TSAN)

static pthread_key_t prim_exit_key;
static bool          prim_has_exit_key;
static void (*prim_exit_done)(void);
static pthread_t prim_main; // the thread with which the process began
static bool      prim_knows_main;

static void prim_watched_ends(void);
static void prim_main_ends(void);

static void prim_thread_exit(void* state) {
  uintptr_t passes = (uintptr_t)state % PRIM_EXIT_WATCHED;
  if (passes < PRIM_EXIT_PASSES && pthread_setspecific(prim_exit_key, (void*)((uintptr_t)state + 1)) == 0) return;
  prim_exit_done();
  if (((uintptr_t)state & PRIM_EXIT_WATCHED) != 0) prim_watched_ends();
  if (((uintptr_t)state & PRIM_EXIT_MAIN) != 0) prim_main_ends();
}

// What the key holds for the calling thread; 0: it is not armed.
static uintptr_t prim_exit_state(void) {
  return prim_has_exit_key ? (uintptr_t)pthread_getspecific(prim_exit_key) : 0;
}

static int prim_exit_arm(uintptr_t flags) {
  if (!prim_has_exit_key) return ENOTSUP;
  uintptr_t state = prim_exit_state();
  if (prim_knows_main && pthread_equal(pthread_self(), prim_main)) flags |= PRIM_EXIT_MAIN;
  return pthread_setspecific(prim_exit_key, (void*)((state == 0 ? PRIM_EXIT_ARMED : state) | flags));
}

void _mi_prim_thread_exit_init(void (*done)(void)) {
  prim_exit_done = done;
  prim_has_exit_key = (pthread_key_create(&prim_exit_key, &prim_thread_exit) == 0);
  prim_knows_main = _mi_prim_thread_is_main();
  prim_main = pthread_self();
}

int _mi_prim_thread_exit_arm(void) {
  return prim_exit_arm(0);
}

bool _mi_prim_thread_exit_is_sure(void) {
  return (prim_exit_state() & (PRIM_EXIT_WATCHED | PRIM_EXIT_MAIN)) != 0;
}

bool _mi_prim_thread_exit_is_armed(void) {
  return prim_exit_state() != 0;
}

mi_static_assert(sizeof(pthread_mutex_t) <= sizeof(mi_prim_life_t), "a life is a robust mutex");

int _mi_prim_thread_life_begin(mi_prim_life_t* life) {
  pthread_mutexattr_t attr;
  pthread_mutex_t*    mutex = (pthread_mutex_t*)(void*)life;
  int                 err = pthread_mutexattr_init(&attr);
  if (err != 0) return err;
  err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
  if (err == 0) err = pthread_mutex_init(mutex, &attr);
  if (err == 0) err = pthread_mutex_lock(mutex);
  pthread_mutexattr_destroy(&attr);
  return err;
}

bool _mi_prim_thread_has_ended(mi_prim_life_t* life) {
  pthread_mutex_t* mutex = (pthread_mutex_t*)(void*)life;
  if (pthread_mutex_trylock(mutex) != EOWNERDEAD) return false;
  pthread_mutex_consistent(mutex);
  pthread_mutex_unlock(mutex);
  pthread_mutex_destroy(mutex);
  return true;
}

void _mi_prim_thread_life_end(mi_prim_life_t* life) {
  pthread_mutex_unlock((pthread_mutex_t*)(void*)life);
  pthread_mutex_destroy((pthread_mutex_t*)(void*)life);
}

void _mi_prim_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  pthread_atfork(prepare, parent, child);
}

// ---- threads of the program -------------------------------------------------------------------------------------------

typedef int (*prim_create_t)(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg);

static void (*prim_on_started)(void);
static void (*prim_on_ended)(bool is_last);
static mi_atomic(size_t) prim_n_watched;
static mi_atomic(bool)   prim_main_has_ended;

size_t _mi_prim_thread_watched(void) {
  return mi_load_acquire(&prim_n_watched);
}

// Of the main thread and the last one that is watched at least one sees that the other has ended.
static void prim_tell_ended(void) {
  mi_fence_seq_cst();
  bool is_last = (mi_load_relaxed(&prim_main_has_ended) && _mi_prim_thread_watched() == 0);
  if (prim_on_ended != NULL) prim_on_ended(is_last);
}

static void prim_watched_ends(void) {
  mi_fetch_sub_acq_rel(&prim_n_watched, (size_t)1);
  prim_tell_ended();
}

static void prim_main_ends(void) {
  mi_store_relaxed(&prim_main_has_ended, true);
  prim_tell_ended();
}

#if (defined(MI_SHARED_LIB) && defined(MI_MALLOC_OVERRIDE)) || defined(MI_INTERPOSE_THREADS)

  #define PRIM_INTERPOSES 1

// A thread on its way: what it is to run.  In a table, since whatever were allocated for it would have to be freed by the
// new thread; one that finds the table full is not watched.
typedef struct prim_start_s {
  mi_atomic(bool) is_taken;
  void* (*run)(void*);
  void* arg;
} prim_start_t;

  #define PRIM_STARTS_MAX 64

static prim_start_t prim_starts[PRIM_STARTS_MAX];

static void prim_forget_starts(void) {
  for (size_t i = 0; i < PRIM_STARTS_MAX; i++) mi_store_relaxed(&prim_starts[i].is_taken, false);
}

static prim_start_t* prim_start_take(void) {
  for (size_t i = 0; i < PRIM_STARTS_MAX; i++) {
    bool expected = false;
    if (mi_load_relaxed(&prim_starts[i].is_taken)) continue;
    if (mi_cas_strong(&prim_starts[i].is_taken, &expected, true, acquire, relaxed)) return &prim_starts[i];
  }
  return NULL;
}

static void* prim_thread_begin(void* arg) {
  prim_start_t* start = (prim_start_t*)arg;
  void* (*run)(void*) = start->run;
  void* run_arg = start->arg;
  mi_store_release(&start->is_taken, false);
  if (prim_exit_arm(PRIM_EXIT_WATCHED) != 0) prim_watched_ends();
  return run(run_arg);
}

static prim_create_t prim_create_of_libc(void) {
  static mi_atomic(prim_create_t) found;
  prim_create_t                   create = mi_load_relaxed(&found);
  if (mi_unlikely(create == NULL)) {
    void* symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&create, &symbol, sizeof(create));
    mi_store_relaxed(&found, create);
  }
  return create;
}

  #if defined(__cplusplus)
extern "C"
  #endif
    __attribute__((visibility("default"), used)) int
    pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg) {
  prim_create_t create = prim_create_of_libc();
  if (mi_unlikely(create == NULL)) return ENOSYS;
  prim_start_t* start = (mi_likely(prim_has_exit_key && prim_on_started != NULL) ? prim_start_take() : NULL);
  if (start == NULL) return create(thread, attr, run, arg);
  start->run = run;
  start->arg = arg;
  mi_fetch_add_acq_rel(&prim_n_watched, 1);
  int err = create(thread, attr, &prim_thread_begin, start);
  if (err == 0) {
    prim_on_started();
    return 0;
  }
  mi_store_release(&start->is_taken, false);
  prim_watched_ends();
  return err;
}

#else

  #define PRIM_INTERPOSES 0

static void prim_forget_starts(void) {}

static prim_create_t prim_create_of_libc(void) {
  return &pthread_create;
}

#endif

// ---- the library's thread ---------------------------------------------------------------------------------------------

static mi_atomic(uintptr_t) prim_own; // the pthread_t of one that nobody joins or detaches yet; 0: there is none

// The thread that forked is the main thread from then on, and threads on their way will not arrive.
void _mi_prim_thread_after_fork(void) {
  uintptr_t state = prim_exit_state();
  prim_knows_main = true;
  prim_main = pthread_self();
  if (state != 0) pthread_setspecific(prim_exit_key, (void*)((state & ~PRIM_EXIT_WATCHED) | PRIM_EXIT_MAIN));
  mi_store_relaxed(&prim_main_has_ended, false);
  mi_store_relaxed(&prim_n_watched, (size_t)0);
  mi_store_relaxed(&prim_own, (uintptr_t)0);
  prim_forget_starts();
}

static cpu_set_t prim_cpus; // those that the process may use, as it was started
static bool      prim_knows_cpus;
static bool      prim_sets_cpus; // the library's thread, for itself

int _mi_prim_thread_watch(void (*started)(void), void (*ended)(bool is_last)) {
  if (!PRIM_INTERPOSES) return ENOTSUP;
  int saved = errno;
  prim_knows_cpus = (sched_getaffinity(0, sizeof(prim_cpus), &prim_cpus) == 0);
  errno = saved;
  prim_on_ended = ended;
  prim_on_started = started;
  return 0;
}

mi_static_assert(sizeof(pthread_t) == sizeof(uintptr_t), "a word, or a pointer");

// It is detached at its end by itself, or when the next one starts, unless somebody joins it.
static void* prim_thread_run(void* run) {
  uintptr_t self = (uintptr_t)pthread_self();
  prctl(PR_SET_NAME, "mimalloc", 0, 0, 0);
  // Those that there were at first may not be allowed any more: then it stays where its maker was.
  if (prim_sets_cpus) sched_setaffinity(0, sizeof(prim_cpus), &prim_cpus);
  (*(void (**)(void))run)();
  if (mi_cas_strong(&prim_own, &self, (uintptr_t)0, acq_rel, relaxed)) pthread_detach(pthread_self());
  return NULL;
}

// By the thread that starts it, which so cannot end before anybody could join it.
static void prim_thread_note(pthread_t thread) {
  uintptr_t before = mi_exchange_acq_rel(&prim_own, (uintptr_t)thread);
  if (before != 0) pthread_detach((pthread_t)before);
}

void _mi_prim_thread_join(void) {
  uintptr_t thread = mi_exchange_acq_rel(&prim_own, (uintptr_t)0);
  if (thread != 0) pthread_join((pthread_t)thread, NULL);
}

// The scheduling is set only where it is not what it should be: filters that let a program start threads need not let
// it do that.
typedef struct prim_scheduling_s {
  bool has_policy; // to be set
  bool has_cpus;
} prim_scheduling_t;

static prim_scheduling_t prim_scheduling(void) {
  prim_scheduling_t s;
  cpu_set_t         cpus;
  long              policy = syscall(SYS_sched_getscheduler, 0); // musl has no function that does it
  s.has_policy = (policy >= 0 && policy != SCHED_OTHER);
  s.has_cpus = (prim_knows_cpus && sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && !CPU_EQUAL(&cpus, &prim_cpus));
  return s;
}

// stack 0: what threads have by default.
static int prim_thread_try(void (**entry)(void), size_t stack, prim_scheduling_t s) {
  const struct sched_param ordinary = {0};
  pthread_attr_t           attr;
  pthread_t                thread;
  int                      err = pthread_attr_init(&attr);
  if (err != 0) return err;
  if (s.has_policy) {
    pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
    pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
    pthread_attr_setschedparam(&attr, &ordinary);
  }
  prim_sets_cpus = s.has_cpus;
  if (stack != 0) err = pthread_attr_setstacksize(&attr, stack);
  if (err == 0) err = prim_create_of_libc()(&thread, &attr, &prim_thread_run, (void*)entry);
  if (err == 0) prim_thread_note(thread);
  pthread_attr_destroy(&attr);
  return err;
}

// glibc takes the thread-local variables of all libraries from the stack.
static int prim_thread_try_all(void (**entry)(void)) {
  prim_scheduling_t s = prim_scheduling();
  int               err = prim_thread_try(entry, 128 * 1024, s);
  return err == EINVAL ? prim_thread_try(entry, 0, s) : err;
}

int _mi_prim_thread_start(void (*run)(void)) {
  static void (*entry)(void);
  sigset_t all, before;
  int      saved = errno;
  entry = run;
  prim_exit_arm(0); // the main thread may not have allocated yet
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int err = prim_thread_try_all(&entry);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = saved;
  return err;
}
