// Proves: the library's own thread is there when the program has threads, is no business of the program's, and goes with the last
// of them.  It has a name, all signals blocked, the scheduling and the processors of a new process, and the user of the program.
// It is never the last thread of all, on which libc ends the process.  A start that failed is tried again, and option
// background_thread switches it off; a fork and a vfork leave it as it is.
#define _GNU_SOURCE
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include "ballast.h"
#include "tasks.h"

enum { n_blocks = 300000, block_size = 200, part_seconds = 100, settle_seconds = 40 };

static cpu_set_t cpus; // of the start
static bool      may_unshare;

// ---- a thread of the program --------------------------------------------------------------------------------------------

typedef struct other_s {
  pthread_t   thread;
  atomic_bool is_over;
} other_t;

static void* wait_for_end(void* arg) {
  other_t* other = (other_t*)arg;
  while (!atomic_load(&other->is_over)) sleep_ms(2);
  return NULL;
}

static bool other_start(other_t* other) {
  atomic_store(&other->is_over, false);
  return pthread_create(&other->thread, NULL, &wait_for_end, other) == 0;
}

static void other_end(other_t* other) {
  atomic_store(&other->is_over, true);
  CHECK_EQ(pthread_join(other->thread, NULL), 0);
}

// ---- memory ---------------------------------------------------------------------------------------------------------------

static void* blocks[n_blocks];

static void allocate(void) {
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = memset(mi_malloc(block_size), 1, block_size);
}

static void free_all(void) {
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
}

static void check_goes_back(const char* what, size_t base) {
  double end = now_seconds() + settle_seconds;
  while (minus(rss_now(), base) > 4 * MiB && now_seconds() < end) sleep_ms(20);
  CHECK_FOR(rss_within(what, minus(rss_now(), base), 4 * MiB), "%s", what);
}

// ---- what the thread is -----------------------------------------------------------------------------------------------------

static size_t task_status(pid_t task, const char* key, int base) {
  char        path[64], text[4096];
  const char* at;
  snprintf(path, sizeof(path), "/proc/self/task/%d/status", (int)task);
  if (read_file(path, text, sizeof(text)) == 0 || (at = strstr(text, key)) == NULL) return SIZE_MAX;
  return (size_t)strtoull(at + strlen(key), NULL, base);
}

static void check_signals(pid_t task) {
  size_t blocked = task_status(task, "\nSigBlk:", 16);
  for (int number = 1; number <= 64; number++) {
    bool is_special = (number == SIGKILL || number == SIGSTOP || (number > 31 && number < SIGRTMIN)); // libc keeps some
    if (!is_special) CHECK_FOR((blocked >> (number - 1)) % 2 == 1, "signal %d", number);
  }
}

static void check_scheduling(pid_t task) {
  cpu_set_t set;
  CHECK_EQ(sched_getscheduler(task), SCHED_OTHER);
  CHECK_EQ(sched_getaffinity(task, sizeof(set), &set), 0);
  CHECK(CPU_EQUAL(&set, &cpus));
}

static void comes_and_goes(void) {
  other_t others[2];
  for (int i = 0; i < 3; i++) {
    CHECK_EQ(task_count(), 1);
    CHECK(other_start(&others[0]) && other_start(&others[1]));
    CHECK(library_task_comes());
    CHECK_EQ(task_count(), 4);
    check_signals(library_task());
    check_scheduling(library_task());
    other_end(&others[0]);
    sleep_ms(300);
    CHECK(library_task() != 0);
    other_end(&others[1]);
    CHECK_FOR(tasks_become(1), "%zu threads", task_count());
  }
  if (may_unshare) CHECK_FOR(unshare(CLONE_NEWUSER) == 0, "%s", strerror(errno));
}

static void real_time(void) {
  const struct sched_param first = {.sched_priority = 1}, none = {0};
  other_t                  other;
  if (sched_setscheduler(0, SCHED_FIFO, &first) != 0) {
    test_skip("real-time creator", "not permitted here");
    return;
  }
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  check_scheduling(library_task());
  CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
  other_end(&other);
}

// Who may not leave SCHED_IDLE has a thread that does not, either.
static void idle_creator(void) {
  const struct sched_param none = {0};
  other_t                  other;
  if (geteuid() == 0 && setuid(54321) != 0) {
    test_skip("idle creator", "there is only root");
    return;
  }
  CHECK_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  int policy = sched_getscheduler(library_task());
  CHECK_FOR(policy == SCHED_IDLE || policy == SCHED_OTHER, "policy %d", policy);
  other_end(&other);
}

static void pinned(void) {
  cpu_set_t one;
  size_t    first = 0;
  other_t   other;
  if (CPU_COUNT(&cpus) < 2) {
    test_skip("pinned creator", "one processor");
    return;
  }
  while (!CPU_ISSET(first, &cpus)) first++;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  CHECK_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  check_scheduling(library_task());
  other_end(&other);
}

static void another_user(void) {
  other_t other;
  if (geteuid() != 0) {
    test_skip("another user", "needs root");
    return;
  }
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  if (setuid(54321) == 0) CHECK_EQ(task_status(library_task(), "\nUid:", 10), 54321);
  other_end(&other);
  CHECK(tasks_become(1));
}

// ---- what it does -----------------------------------------------------------------------------------------------------------

static atomic_bool are_freed; // the blocks of the other thread; from then on they are the main thread's

static void* allocate_and_free(void* arg) {
  allocate();
  free_all();
  atomic_store(&are_freed, true);
  return wait_for_end(arg);
}

static void takes_back(void) {
  other_t others[2];
  ballast_take();
  size_t base = rss_now();
  CHECK(other_start(&others[0]));
  atomic_store(&others[1].is_over, false);
  CHECK_EQ(pthread_create(&others[1].thread, NULL, &allocate_and_free, &others[1]), 0);
  while (!atomic_load(&are_freed)) sleep_ms(2);
  check_goes_back("freed by one that sleeps then", base);
  allocate();
  free_all();
  mi_free(memset(mi_malloc(3 * MiB), 1, 3 * MiB));
  check_goes_back("freed by the main thread", base);
  allocate();
  other_end(&others[0]);
  free_all();
  other_end(&others[1]);
  check_goes_back("freed before the last thread ends", base);
  ballast_drop();
  CHECK(tasks_become(1));
}

// What stays then is bounded by the frees themselves, or goes as the program allocates again: 32 MiB if they were held (AM1, AM3),
// two chunks of which parts were freed just before (AM4), and what bins and the C library have.
static void switched_off(void) {
  other_t other;
  size_t  base = rss_now();
  CHECK(other_start(&other));
  for (int i = 0; i < 20; i++) {
    mi_free(memset(mi_malloc(20 * MiB), 1, 20 * MiB));
    sleep_ms(5);
    CHECK_EQ(task_count(), 2);
  }
  allocate();
  free_all();
  CHECK(rss_within("switched off, all free", minus(rss_now(), base), 32 * MiB + 4 * MiB + 4 * MiB));
  CHECK_EQ(library_task(), 0);
  other_end(&other);
}

// ---- where it is hard to start ------------------------------------------------------------------------------------------------

static void failed_start(void) {
  struct rlimit limit = {2, 10}; // of threads of this user: one of the program's besides the first
  other_t       others[2];
  if (geteuid() != 0 || setrlimit(RLIMIT_NPROC, &limit) != 0 || setuid((uid_t)(100000 + getpid())) != 0) {
    test_skip("a failed start", "needs root, and users that nobody is");
    return;
  }
  CHECK(other_start(&others[0]));
  if (library_task() != 0) test_skip("a failed start", "threads are not limited here");
  else CHECK_EQ(task_count(), 2);
  CHECK(library_task() != 0 || !other_start(&others[1])); // neither can the program
  limit.rlim_cur = limit.rlim_max;
  CHECK_EQ(setrlimit(RLIMIT_NPROC, &limit), 0);
  CHECK(other_start(&others[1]));
  CHECK(library_task_comes());
  other_end(&others[0]);
  other_end(&others[1]);
  CHECK(tasks_become(1));
}

static void child_has_its_own(void) {
  other_t other;
  CHECK_EQ(task_count(), 1);
  allocate();
  free_all();
  CHECK_EQ(task_count(), 1);
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  other_end(&other);
  CHECK(tasks_become(1));
}

static void forks(void) {
  other_t other;
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  for (int i = 0; i < 5; i++) in_child("fork", &child_has_its_own, part_seconds / 2);
  CHECK(library_task() != 0);
  other_end(&other);
  CHECK(tasks_become(1));
}

// A child of a fork by a thread of the program that is not the main thread: what runs there when the forking thread has ended.
static void* outlives_main(void* arg) {
  CHECK(library_task_comes());
  for (int i = 0; i < 60; i++) sleep_ms(20);
  CHECK(library_task() != 0);
  fflush(stdout);
  _exit(check_result());
  return arg;
}

static void* fork_and_end(void* arg) {
  pthread_t thread;
  int       status = 0;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    CHECK_EQ(pthread_create(&thread, NULL, &outlives_main, NULL), 0);
    pthread_exit(NULL);
  }
  CHECK(waitpid(pid, &status, 0) == pid && status == 0);
  return arg;
}

static void thread_forks(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &fork_and_end, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

// Calls of exit are the program's, also those that libc makes when the last thread ends.
static void at_exit(void) {
  sigset_t blocked;
  char     big[512 * 1024]; // more than the stack of the library's thread
  memset(big, 1, sizeof(big));
  pthread_sigmask(SIG_SETMASK, NULL, &blocked);
  CHECK(big[(size_t)getpid() % sizeof(big)] == 1 && !sigismember(&blocked, SIGTERM));
  CHECK_EQ((pid_t)syscall(SYS_gettid) == library_task(), false);
  fflush(stdout);
  _exit(check_result());
}

static void* end_last(void* arg) {
  CHECK(library_task_comes());
  mi_free(mi_malloc(100));
  sleep_ms((int)(uintptr_t)arg);
  return NULL;
}

static void main_ends_first(void) {
  pthread_t threads[2];
  atexit(&at_exit);
  for (uintptr_t i = 0; i < COUNT_OF(threads); i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, &end_last, (void*)(20 * i)), 0);
  pthread_exit(NULL);
}

static void main_ends_last(void) {
  other_t other;
  atexit(&at_exit);
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  other_end(&other);
  pthread_exit(NULL);
}

static void* end_cancelled(void* arg) {
  CHECK(library_task_comes());
  CHECK_EQ(pthread_cancel(pthread_self()), 0); // nothing looks for that before the thread ends
  return arg;
}

static void cancelled_ends_last(void) {
  pthread_t thread;
  atexit(&at_exit);
  CHECK_EQ(pthread_create(&thread, NULL, &end_cancelled, NULL), 0);
  CHECK_EQ(pthread_detach(thread), 0);
  pthread_exit(NULL);
}

// The child shares all memory with its parent, and the library's thread as far as it knows.
static __attribute__((noinline)) void free_in_vfork(void* block) {
  pid_t pid = vfork();
  if (pid == 0) {
    mi_free(block);
    free_all();
    _exit(0);
  }
  CHECK_EQ(waitpid(pid, NULL, 0), pid);
}

static void vforks(void) {
  other_t other;
  size_t  base = rss_now();
  CHECK(other_start(&other));
  CHECK(library_task_comes());
  for (int i = 0; i < 20; i++) {
    void* block = memset(mi_malloc(16 * MiB), 1, 16 * MiB);
    allocate();
    free_in_vfork(block);
    sleep_ms(1);
  }
  check_goes_back("freed by children that share it", base);
  CHECK(library_task() != 0);
  other_end(&other);
  CHECK(tasks_become(1));
}

static bool can_unshare(void) {
  int   status = 0;
  pid_t pid = fork();
  if (pid == 0) _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
  return waitpid(pid, &status, 0) == pid && status == 0;
}

// In a program that begins with the option.
static void switched_off_from_outside(void) {
  setenv("MIMALLOC_BACKGROUND_THREAD", "0", 1);
  execl("/proc/self/exe", "test", "switched-off", (char*)NULL);
  CHECK(false);
}

int main(int argc, char** argv) {
  static const struct part_s {
    const char* name;
    void (*run)(void);
  } parts[] = {{"comes and goes", &comes_and_goes},
               {"real-time creator", &real_time},
               {"idle creator", &idle_creator},
               {"pinned creator", &pinned},
               {"another user", &another_user},
               {"takes back", &takes_back},
               {"switched off", &switched_off_from_outside},
               {"failed start", &failed_start},
               {"forks", &forks},
               {"a thread forks", &thread_forks},
               {"the main thread ends first", &main_ends_first},
               {"the main thread ends last", &main_ends_last},
               {"a cancelled thread ends last", &cancelled_ends_last},
               {"vforks", &vforks}};
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = &blocks[i]; // touched: not part of the account
  if (argc > 1 && strcmp(argv[1], "switched-off") == 0) {
    switched_off();
    return check_result();
  }
  if (TEST_SANITIZED || task_count() != 1) {
    test_skip("the thread", "the sanitizer has a thread of its own, or /proc is missing");
    return skip_code;
  }
  sched_getaffinity(0, sizeof(cpus), &cpus);
  may_unshare = can_unshare();
  mi_option_set(mi_option_purge_delay, MI_API_LEVEL >= 3 ? 100 : mi_option_get(mi_option_purge_delay));
  for (size_t i = 0; i < COUNT_OF(parts); i++) in_child(parts[i].name, parts[i].run, part_seconds);
  return check_result();
}
