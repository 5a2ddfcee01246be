// Threads on Linux, beyond what all systems with POSIX threads share (thread_exit.c).  Layer: prim.
//
// LT1  Where there is no key left to see the exit of a thread, a robust mutex of each thread tells that it has ended: the
//      kernel says so.
// LT2  The shared library stands in for pthread_create.  That is the one place where the library may start a thread of its own:
//      the program does so itself there, so it holds no lock that starting a thread takes.  What starts one then is libc's
//      function itself, not what else stands in for it.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "prim.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "posix_process.h"
#include "thread_exit.h"

// ---- threads whose exit no key tells of ------------------------------------------------------------------------------

mi_static_assert(sizeof(pthread_mutex_t) <= sizeof(mi_prim_pulse_t), "a pulse is a robust mutex");

int _mi_prim_thread_pulse_begin(mi_prim_pulse_t* pulse) {
  pthread_mutexattr_t attr;
  pthread_mutex_t*    mutex = (pthread_mutex_t*)(void*)pulse;
  int                 err = pthread_mutexattr_init(&attr);
  if (err != 0) return err;
  err = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
  if (err == 0) err = pthread_mutex_init(mutex, &attr);
  if (err == 0) err = pthread_mutex_trylock(mutex); // nobody has it; and so it is in no order of locks that a tool sees
  pthread_mutexattr_destroy(&attr);
  return err;
}

bool _mi_prim_thread_has_ended(mi_prim_pulse_t* pulse) {
  pthread_mutex_t* mutex = (pthread_mutex_t*)(void*)pulse;
  if (pthread_mutex_trylock(mutex) != EOWNERDEAD) return false;
  pthread_mutex_consistent(mutex);
  pthread_mutex_unlock(mutex);
  pthread_mutex_destroy(mutex);
  return true;
}

void _mi_prim_thread_pulse_end(mi_prim_pulse_t* pulse) {
  pthread_mutex_unlock((pthread_mutex_t*)(void*)pulse);
  pthread_mutex_destroy((pthread_mutex_t*)(void*)pulse);
}

// ---- threads of the program -------------------------------------------------------------------------------------------

typedef int (*prim_create_t)(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg);

typedef void (*prim_started_t)(void);
static mi_atomic(prim_started_t)
    prim_on_started; // set while the process is initialised; other threads may be there already

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

static mi_mostly_unused prim_start_t prim_starts[PRIM_STARTS_MAX];

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

mi_no_icall_check static void* prim_thread_begin(void* arg) {
  prim_start_t* start = (prim_start_t*)arg;
  void* (*run)(void*) = start->run;
  void* run_arg = start->arg;
  mi_store_release(&start->is_taken, false);
  if (_mi_thread_exit_arm(true) != 0) _mi_thread_exit_uncount();
  return run(run_arg);
}

static prim_create_t prim_create_of_libc(void) {
  static mi_atomic(prim_create_t) found;
  prim_create_t                   create = mi_load_relaxed(&found);
  if (mi_unlikely(create == NULL)) {
    // Not through the PLT: where an auditor watches that, dlsym does not see who asks for what comes next.
    void* (*volatile find)(void*, const char*) = &dlsym;
    void* symbol = find(RTLD_NEXT, "pthread_create");
    memcpy(&create, &symbol, sizeof(create));
    mi_store_relaxed(&found, create);
  }
  return create;
}

  #if defined(__cplusplus)
extern "C"
  #endif
    mi_no_icall_check __attribute__((visibility("default"), used)) int
    pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg) {
  prim_create_t create = prim_create_of_libc();
  if (mi_unlikely(create == NULL)) return ENOSYS;
  prim_started_t on_started = mi_load_acquire(&prim_on_started);
  prim_start_t*  start = (mi_likely(_mi_thread_exit_has_key() && on_started != NULL) ? prim_start_take() : NULL);
  if (start == NULL) return create(thread, attr, run, arg);
  start->run = run;
  start->arg = arg;
  _mi_thread_exit_count();
  int err = create(thread, attr, &prim_thread_begin, start);
  if (err == 0) {
    on_started();
    return 0;
  }
  mi_store_release(&start->is_taken, false);
  _mi_thread_exit_uncount();
  return err;
}

#else

  #define PRIM_INTERPOSES 0

static void prim_forget_starts(void) {}

static prim_create_t prim_create_of_libc(void) {
  return &pthread_create;
}

#endif

#if defined(__GLIBC_PREREQ)
  #if __GLIBC_PREREQ(2, 32)
    #include <sys/single_threaded.h>
    #define PRIM_IS_SINGLE __libc_single_threaded
  #endif
#endif
#if !defined(PRIM_IS_SINGLE)
  #define PRIM_IS_SINGLE false
#endif

// ---- the library's thread ---------------------------------------------------------------------------------------------

static mi_atomic(uintptr_t) prim_own; // the pthread_t of one that nobody joins or detaches yet; 0: there is none

// Threads on their way will not arrive in the child.
void _mi_prim_thread_after_fork(void) {
  _mi_thread_exit_after_fork();
  mi_store_relaxed(&prim_own, (uintptr_t)0);
  prim_forget_starts();
}

bool _mi_prim_thread_is_alone(void) {
  return PRIM_IS_SINGLE && mi_load_relaxed(&prim_own) == 0 && _mi_thread_exit_is_main();
}

static cpu_set_t prim_cpus; // those that the process may use, as it was started
static bool      prim_knows_cpus;
static bool      prim_sets_cpus; // the library's thread, for itself

int _mi_prim_thread_watch(void (*started)(void), void (*ended)(bool is_last)) {
  if (!PRIM_INTERPOSES) return ENOTSUP;
  int saved = errno;
  prim_knows_cpus = (sched_getaffinity(0, sizeof(prim_cpus), &prim_cpus) == 0);
  errno = saved;
  _mi_thread_exit_on_ended(ended);
  mi_store_release(&prim_on_started, started);
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
  if (thread == 0) return;
  int state = _mi_posix_process_shield(); // cancelled, the caller would leave ours behind as the last one
  pthread_join((pthread_t)thread, NULL);
  _mi_posix_process_unshield(state);
}

// The scheduling is set only where it is not what it should be: filters that let a program start threads need not let
// it do that.
typedef struct prim_scheduling_s {
  bool has_policy; // to be set
  bool is_idle;    // the maker's policy is SCHED_IDLE
  bool has_cpus;
} prim_scheduling_t;

static prim_scheduling_t prim_scheduling(void) {
  prim_scheduling_t s;
  cpu_set_t         cpus;
  long              policy = syscall(SYS_sched_getscheduler, 0); // musl has no function that does it
  s.has_policy = (policy >= 0 && policy != SCHED_OTHER);
  s.is_idle = (policy == SCHED_IDLE);
  s.has_cpus = (prim_knows_cpus && sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && !CPU_EQUAL(&cpus, &prim_cpus));
  return s;
}

// stack 0: what threads have by default.
mi_no_icall_check static int prim_thread_try(void (**entry)(void), size_t stack, prim_scheduling_t s) {
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

// glibc takes the thread-local variables of all libraries from the stack.  And who may not leave SCHED_IDLE, which is less than
// SCHED_OTHER, has a thread that may not leave it either.
static int prim_thread_try_all(void (**entry)(void)) {
  prim_scheduling_t s = prim_scheduling();
  size_t            stack = 128 * 1024;
  int               err = prim_thread_try(entry, stack, s);
  if (err == EPERM && s.is_idle) {
    s.has_policy = false;
    err = prim_thread_try(entry, stack, s);
  }
  return err == EINVAL ? prim_thread_try(entry, 0, s) : err;
}

int _mi_prim_thread_start(void (*run)(void)) {
  static void (*entry)(void);
  sigset_t all, before;
  int      saved = errno;
  entry = run;
  _mi_thread_exit_arm(false); // the main thread may not have allocated yet
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int err = prim_thread_try_all(&entry);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = saved;
  return err;
}
