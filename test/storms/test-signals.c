// Proves: signals may arrive at any instruction of malloc and free, on all threads: handlers that only write, and those that
// leave by siglongjmp out of code that is not in the allocator, change nothing about it; a process that is stopped and
// continued again and again goes on; what a signal interrupts (a wait for a lock) is done to its end, and errno stays.
//
// Some thousand signals; 10^5 and more with MI_TEST_SCALE=20 (make storms).
#include <setjmp.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/mode.h"
#include "storm.h"

enum { n_workers = 4 };

static int                                 sink[2]; // a pipe that nobody reads to its end
static atomic_size_t                       n_written, n_jumped, n_changed;
static _Thread_local sigjmp_buf            outside;
static _Thread_local volatile sig_atomic_t may_jump; // the thread is not in the allocator
static pthread_t                           workers[n_workers];
static volatile unsigned                   sum;

// All that a handler may do everywhere.
static void on_write(int number) {
  int saved = errno;
  (void)number;
  if (write(sink[1], "x", 1) == 1) atomic_fetch_add(&n_written, 1);
  errno = saved;
}

static void on_jump(int number) {
  (void)number;
  if (!may_jump) return;
  may_jump = 0;
  atomic_fetch_add(&n_jumped, 1);
  siglongjmp(outside, 1);
}

static void compute(void) {
  for (unsigned i = 0; i < 3000; i++) sum += i * i;
}

// Its blocks are whole, whatever was left behind by a jump.
static void* work(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  while (!atomic_load_explicit(&storm_must_stop, memory_order_relaxed)) {
    if (sigsetjmp(outside, 1) == 0) {
      may_jump = 1;
      compute();
      may_jump = 0;
    }
    errno = 77;
    for (size_t i = 0; i < 20; i++) storm_step(&rng);
    if (errno != 77) atomic_fetch_add(&n_changed, 1);
  }
  return NULL;
}

static void set_handler(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_handler = handler;
  action.sa_flags = flags;
  CHECK_EQ(sigaction(number, &action, NULL), 0);
}

static void drain(void) {
  char text[4096];
  while (read(sink[0], text, sizeof(text)) > 0) {
  }
}

enum { n_writes_wanted = 100, n_jumps_wanted = 10 };

// Threads that spend nearly all their time in the allocator, as under the sanitizers, are seldom where they may jump.
static bool is_rain_enough(void) {
  return atomic_load(&n_written) > n_writes_wanted && atomic_load(&n_jumped) > n_jumps_wanted;
}

static void rain(size_t n_signals, rng_t* rng, storm_memory_t* memory) {
  for (size_t i = 0; i < n_signals || (!is_rain_enough() && i < 1000 * n_signals); i++) {
    pthread_kill(workers[rng_below(rng, n_workers)], rng_below(rng, 2) == 0 ? SIGUSR1 : SIGUSR2);
    if (i % 64 == 0) drain();
    if (i % 1000 == 0) storm_look(memory);
    if (rng_below(rng, 8) == 0) sched_yield();
  }
}

static void check_rain(uint64_t seed) {
  rng_t rng = rng_make(seed);
  CHECK_EQ(pipe(sink), 0);
  fcntl(sink[0], F_SETFL, O_NONBLOCK);
  fcntl(sink[1], F_SETFL, O_NONBLOCK);
  set_handler(SIGUSR1, &on_write, 0); // calls that it interrupts are not begun again by the system
  set_handler(SIGUSR2, &on_jump, 0);
  atomic_store(&storm_must_stop, false);
  for (size_t i = 0; i < n_workers; i++) {
    CHECK_EQ(pthread_create(&workers[i], NULL, &work, (void*)(uintptr_t)(seed + i)), 0);
  }
  sleep_ms(100);
  storm_memory_t memory = storm_memory();
  rain((TEST_SANITIZED ? 1000 : 10000) * test_scale(), &rng, &memory);
  atomic_store(&storm_must_stop, true);
  for (size_t i = 0; i < n_workers; i++) pthread_join(workers[i], NULL);
  storm_clear();
  printf("%zu handlers have written, %zu have jumped, %zu steps\n", atomic_load(&n_written), atomic_load(&n_jumped),
         atomic_load(&storm_n_steps));
  CHECK(is_rain_enough());
  CHECK_EQ(atomic_load(&n_changed), 0);
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
  CHECK_EQ(atomic_load(&storm_n_refused), 0);
  storm_check(&memory, 48 * MiB, 8 * MiB, 60 + (MI_HARDENED ? 4000 : 0));
  close(sink[0]);
  close(sink[1]);
}

// ---- stopped and continued --------------------------------------------------------------------------------------------

enum { min_stops = 6 };
static atomic_size_t* n_stops; // in memory that both processes have

// Its threads and the library's own are stopped wherever they are.
static int stopped_main(size_t number) {
  storm_load_t load;
  alarm(60);
  signal(SIGALRM, SIG_DFL);
  mi_option_set(mi_option_purge_delay, 1);
  storm_begin(&load, 3, number);
  while (atomic_load(&storm_n_steps) < 50000 || atomic_load(n_stops) < min_stops) sleep_ms(1);
  storm_end(&load);
  return check_result();
}

static void check_stops(size_t number) {
  int   status = 0;
  void* shared = mmap(NULL, sizeof(*n_stops), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  if (shared == MAP_FAILED) return;
  n_stops = (atomic_size_t*)shared;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    atomic_store(&storm_n_steps, 0);
    _exit(stopped_main(number));
  }
  while (waitpid(pid, &status, WNOHANG) == 0) {
    kill(pid, SIGSTOP);
    if (atomic_load(n_stops) % 4 == 0) sleep_ms(2);
    kill(pid, SIGCONT);
    sleep_ms(1);
    atomic_fetch_add(n_stops, 1);
  }
  printf("stopped %zu times\n", atomic_load(n_stops));
  CHECK_FOR(status == 0, "status %x", (unsigned)status);
  CHECK(atomic_load(n_stops) >= min_stops);
  munmap(shared, sizeof(*n_stops));
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  watchdog(200);
  check_rain(seed);
  for (size_t i = 0; i < 2 * test_scale() && !TEST_TSAN; i++) check_stops(i);
  return check_result();
}
