// Proves: one thread at a time is inside, all get in, what was written under the lock is seen under it; a try never
// waits; who waits for long sleeps instead of burning its time, and is woken; the lock is free in the end.  A look by a thread
// that hurries gives up once, after about a second, and then at once; any other one waits.  Where a filter of system calls does not
// know the one that takes time of 64 bits, threads sleep all the same.  What waits until a thread holds no lock is done once, then.
#include "../check.h"
#include "../modes/support.h"
#include "prim/lock.h"

#include <pthread.h>
#if defined(__linux__)
  #include <sys/syscall.h>
#endif
#if defined(SYS_futex_time64) && __has_include(<linux/seccomp.h>)
  #include <linux/filter.h>
  #include <linux/seccomp.h>
  #include <stddef.h>
  #include <sys/prctl.h>
  #include <sys/wait.h>
  #define TEST_HAS_FILTER 1
#else
  #define TEST_HAS_FILTER 0
#endif

enum { n_threads = 8, n_rounds = 20000, n_sleepers = 4 };

static mi_lock_t           lock;
static mi_atomic(uint32_t) n_inside;
static mi_atomic(uint32_t) n_ready;
static size_t              total; // plain, guarded by the lock
static size_t              shares[n_threads];

static uint32_t lock_state(void) {
  return mi_load_relaxed(&lock.state);
}

static void start_together(uint32_t n) {
  mi_fetch_add_acq_rel(&n_ready, 1);
  while (mi_load_acquire(&n_ready) < n) sched_yield();
}

// Some rounds hold the lock across a yield, so that others meet it held also on one processor.
static void inside(size_t round) {
  CHECK_EQ(mi_fetch_add_relaxed(&n_inside, 1), 0);
  total++;
  if (round % 256 == 0) sched_yield();
  CHECK_EQ(mi_fetch_sub_relaxed(&n_inside, 1), 1);
}

static void* contend(void* arg) {
  size_t index = (size_t)(uintptr_t)arg;
  start_together(n_threads);
  for (size_t i = 0; i < n_rounds; i++) {
    // Every other thread tries now and then, and goes on with something else when that fails.
    if (index % 2 == 0 || i % 4 != 0) _mi_lock_acquire(&lock);
    else if (!_mi_lock_try(&lock)) continue;
    shares[index]++;
    inside(i);
    _mi_lock_release(&lock);
  }
  return NULL;
}

static void run(size_t n, void* (*body)(void*), pthread_t* threads) {
  for (size_t i = 0; i < n; i++) pthread_create(&threads[i], NULL, body, (void*)(uintptr_t)i);
}

static void join(size_t n, pthread_t* threads) {
  for (size_t i = 0; i < n; i++) pthread_join(threads[i], NULL);
}

static void check_exclusion(void) {
  pthread_t threads[n_threads];
  size_t    sum = 0;
  total = 0;
  mi_store_relaxed(&n_ready, 0);
  run(n_threads, &contend, threads);
  join(n_threads, threads);
  for (size_t i = 0; i < n_threads; i++) {
    sum += shares[i];
    CHECK_FOR(shares[i] >= n_rounds / 2, "thread %zu got in %zu times", i, shares[i]);
  }
  CHECK_EQ(total, sum);
  CHECK_EQ(lock_state(), 0);
}

static void check_try(void) {
  CHECK_EQ(lock_state(), 0);
  CHECK(_mi_lock_try(&lock));
  CHECK_EQ(lock_state(), 1);
  CHECK(!_mi_lock_try(&lock));
  CHECK_EQ(lock_state(), 1);
  mi_store_relaxed(&lock.state, 2); // as if somebody slept
  CHECK(!_mi_lock_try(&lock));
  CHECK_EQ(lock_state(), 2);
  _mi_lock_release(&lock);
  CHECK_EQ(lock_state(), 0);
  _mi_lock_acquire(&lock);
  CHECK_EQ(lock_state(), 1);
  _mi_lock_release(&lock);
  CHECK_EQ(lock_state(), 0);
}

static void* sleep_for_it(void* arg) {
  (void)arg;
  start_together(n_sleepers + 1);
  _mi_lock_acquire(&lock);
  inside(0);
  _mi_lock_release(&lock);
  return NULL;
}

static void check_sleep(void) {
  pthread_t threads[n_sleepers];
  total = 0;
  mi_store_relaxed(&n_ready, 0);
  _mi_lock_acquire(&lock);
  run(n_sleepers, &sleep_for_it, threads);
  start_together(n_sleepers + 1);
  while (lock_state() != 2) sched_yield();
  sleep_ms(20); // the others, too
  double before = cpu_seconds();
  sleep_ms(200);
  double spent = cpu_seconds() - before;
  CHECK_FOR(spent < 0.1 || TEST_SANITIZED || !TEST_HAS_CPU_TIME, "%.3f s of processor time while all sleep", spent);
  CHECK_EQ(total, 0);
  CHECK_EQ(lock_state(), 2);
  _mi_lock_release(&lock);
  join(n_sleepers, threads);
  CHECK_EQ(total, n_sleepers);
  CHECK_EQ(lock_state(), 0);
}

static void* look_for_long(void* arg) {
  (void)arg;
  start_together(2);
  CHECK(_mi_lock_look(&lock));
  inside(0);
  _mi_lock_release(&lock);
  return NULL;
}

static double seconds_to_give_up(void) {
  double before = now_seconds();
  CHECK(!_mi_lock_look(&lock));
  return now_seconds() - before;
}

// Of a thread that hurries anew: about a second.  On a busy machine it is woken late, but not each time.
static void check_first_look(void) {
  double least = 1e9;
  for (int i = 0; i < 5 && least >= 2; i++) {
    _mi_lock_hurry(true);
    CHECK(_mi_lock_is_hurried());
    double seconds = seconds_to_give_up();
    CHECK_FOR(seconds >= 0.9, "%.3f s", seconds);
    if (seconds < least) least = seconds;
  }
  CHECK_FOR(least < 2, "%.3f s", least);
}

static void check_look(void) {
  pthread_t thread;
  total = 0;
  mi_store_relaxed(&n_ready, 0);
  CHECK(_mi_lock_look(&lock)); // as its own thread has it from here on
  run(1, &look_for_long, &thread);
  start_together(2);
  CHECK(!_mi_lock_is_hurried());
  check_first_look();
  double least = seconds_to_give_up(); // on a busy machine one of them may take as long
  for (int i = 0; i < 5 && least >= 0.9; i++) least = seconds_to_give_up();
  CHECK_FOR(least < 0.9, "%.3f s", least);
  CHECK_EQ(total, 0); // the other thread does not hurry
  _mi_lock_release(&lock);
  join(1, &thread);
  CHECK_EQ(total, 1);
  CHECK(_mi_lock_look(&lock));
  _mi_lock_release(&lock);
  _mi_lock_hurry(false);
  CHECK(!_mi_lock_is_hurried());
  CHECK_EQ(lock_state(), 0);
}

#if TEST_HAS_FILTER

static bool refuse_call(uint32_t number, uint32_t err) {
  struct sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | err),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog  program = {COUNT_OF(filter), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void sleep_refused(uint32_t err) {
  mi_atomic(uint32_t) word;
  mi_store_relaxed(&word, 0u);
  if (!refuse_call(SYS_futex_time64, err)) _exit(skip_code);
  for (int i = 0; i < 2; i++) {
    double start = now_seconds();
    _mi_prim_wait(&word, 0, 200);
    CHECK_FOR(now_seconds() - start > 0.1, "slept %.3f s", now_seconds() - start);
  }
  _mi_prim_wake(&word, true);
  fflush(stdout);
  _exit(check_result());
}

static void check_refused(uint32_t err) {
  int status = 0;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) sleep_refused(err);
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == skip_code) test_skip("filters", "there is no seccomp");
  else CHECK_FOR(status == 0, "error %u: status %x", (unsigned)err, (unsigned)status);
}

static void check_filters(void) {
  check_refused(ENOSYS);
  check_refused(EPERM);
}

#else

static void check_filters(void) {}

#endif

// ---- what waits until a thread holds none -----------------------------------------------------------------------------

static int n_acted;

static void act(void) {
  n_acted++;
}

static void check_postpone(void) {
  static mi_lock_t a, b;
  CHECK(!_mi_lock_postpone(&act));
  _mi_lock_acquire(&a);
  CHECK(_mi_lock_try(&b));
  CHECK(!_mi_lock_try(&b)); // counts nothing
  CHECK_EQ(_mi_lock_postpone(&act), MI_LOCK_COUNTED);
  CHECK_EQ(_mi_lock_postpone(&act), MI_LOCK_COUNTED);
  _mi_lock_release(&a);
  CHECK_EQ(n_acted, 0);
  _mi_lock_release(&b);
  CHECK_EQ(n_acted, MI_LOCK_COUNTED ? 1 : 0);
  CHECK(_mi_lock_look(&a));
  _mi_lock_release(&a);
  CHECK_EQ(n_acted, MI_LOCK_COUNTED ? 1 : 0);
}

int main(void) {
  watchdog(60);
  check_postpone();
  check_try();
  check_exclusion();
  check_sleep();
  check_look();
  check_filters();
  return check_result();
}
