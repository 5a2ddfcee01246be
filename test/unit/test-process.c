// Proves: a process whose thread holds a lock when it calls `exit`, as the handler of a signal may, ends all the same: within about
// a second, with a line in place of each report that needs the lock, and with its published page marked as ended.  Locks that other
// threads hold for a while are waited for.  Handlers that exit at any moment of a slow path do not hang.
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/region.h"
#include "heap/idle.h"
#include "heap/registry.h"
#include "mimalloc.h"

enum { wait_ms = 60000, n_moments = 40, held_ms = 50, n_tries = 5, n_locks = 3 };

static mi_lock_t* const locks[n_locks] = {&_mi_idle_lock, &_mi_registry_lock, &_mi_region_lock};

static char directory[] = "/tmp/mi-process-XXXXXX";
static char said[64 * 1024]; // by the last child

// ---- the ways to end --------------------------------------------------------------------------------------------------

static void* hold_for_a_while(void* arg) {
  _mi_lock_acquire(&_mi_region_lock);
  mi_store_release((mi_atomic(uint32_t)*)arg, 1u);
  sleep_ms(held_ms);
  _mi_lock_release(&_mi_region_lock);
  return NULL;
}

static void end_beside_holder(void) {
  static mi_atomic(uint32_t) is_held;
  pthread_t                  thread;
  if (pthread_create(&thread, NULL, &hold_for_a_while, &is_held) != 0) _exit(1);
  pthread_detach(thread);
  while (mi_load_acquire(&is_held) == 0) sched_yield();
  exit(0);
}

static void on_signal(int sig) {
  (void)sig;
  exit(0);
}

// Large and small blocks, for slow paths.
static void end_at(long us) {
  static void*     blocks[256];
  struct itimerval timer = {{0, 0}, {0, us}};
  rng_t            r = rng_make((uint64_t)us);
  signal(SIGALRM, &on_signal);
  setitimer(ITIMER_REAL, &timer, NULL);
  for (;;) {
    size_t i = rng_below(&r, COUNT_OF(blocks));
    mi_free(blocks[i]);
    blocks[i] = mi_malloc(1000 + rng_below(&r, 600000));
    if (blocks[i] != NULL) *(char*)blocks[i] = 1;
  }
}

static int end_by(const char* way, long n) {
  mi_free(mi_malloc(100));
  if (strcmp(way, "lock") == 0) _mi_lock_acquire(locks[n]);
  else if (strcmp(way, "holder") == 0) end_beside_holder();
  else if (strcmp(way, "signal") == 0) end_at(n);
  exit(0);
}

// ---- children -----------------------------------------------------------------------------------------------------------

static void exec_child(const char* name, const char* way, long n, int out) {
  char        number[24], setting[64];
  const char* arguments[] = {name, way, number, NULL};
  const char* environment[] = {setting, "MIMALLOC_PUBLISH=1", "MIMALLOC_SHOW_STATS=1", "MIMALLOC_SHOW_LEAKS=1", NULL};
  snprintf(number, sizeof(number), "%ld", n);
  snprintf(setting, sizeof(setting), "MIMALLOC_PUBLISH_DIR=%s", directory);
  dup2(out, 2);
  test_exec((char* const*)(uintptr_t)arguments, (char* const*)(uintptr_t)environment);
  _exit(1);
}

// It says no more than a pipe holds.
static bool ends(pid_t child) {
  int status = -1;
  for (int ms = 0; ms < wait_ms; ms++) {
    if (waitpid(child, &status, WNOHANG) == child) return status == 0;
    sleep_ms(1);
  }
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  return false;
}

static bool run_child(const char* name, const char* way, long n) {
  int    out[2];
  size_t length = 0;
  if (pipe(out) != 0) return false;
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) exec_child(name, way, n, out[1]);
  close(out[1]);
  bool is_right = ends(child);
  for (ssize_t got; (got = read(out[0], said + length, sizeof(said) - 1 - length)) > 0;) length += (size_t)got;
  close(out[0]);
  said[length] = 0;
  return is_right;
}

static bool has_said(const char* text) {
  return strstr(said, text) != NULL;
}

// The states of all published pages that were left, which go; 0: there were none, or they differ.
static int published_state(void) {
  int  state = 0;
  DIR* files = opendir(directory);
  for (const struct dirent* entry; files != NULL && (entry = readdir(files)) != NULL;) {
    char path[400], header[32];
    int  one = 0;
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
    int fd = open(path, O_RDONLY);
    if (read(fd, header, sizeof(header)) == sizeof(header)) memcpy(&one, header + 28, sizeof(one));
    close(fd);
    unlink(path);
    if (state != 0 && one != state) return 0;
    state = one;
  }
  if (files != NULL) closedir(files);
  return state;
}

static void check_published(void) {
#if defined(__linux__)
  CHECK_EQ(published_state(), 2);
#else
  published_state();
#endif
}

// ---- the checks ---------------------------------------------------------------------------------------------------------

static const char not_known[] = "not known, the process ends within a call";

static void check_plain(const char* name) {
  CHECK(run_child(name, "plain", 0));
  CHECK_FOR(!has_said(not_known) && has_said("not freed") && has_said("reserved"), "%s", said);
  check_published();
}

static void check_locks(const char* name) {
  for (long i = 0; i < n_locks; i++) {
    CHECK_FOR(run_child(name, "lock", i), "lock %ld", i);
    CHECK_FOR(has_said("heap stats: not known") && has_said("not freed: not known"), "lock %ld: %s", i, said);
    check_published();
  }
}

// On a busy machine the other thread may hold it for longer.  Then it tries again.
static void check_holder(const char* name) {
  bool waits = false;
  for (int i = 0; i < n_tries && !waits; i++) {
    CHECK(run_child(name, "holder", 0));
    waits = !has_said(not_known) && has_said("reserved");
  }
  CHECK_FOR(waits, "%s", said);
  check_published();
}

static void check_moments(const char* name) {
  for (long i = 1; i <= n_moments * (long)test_scale(); i++) {
    long us = i * 7919 % 10007;
    CHECK_FOR(run_child(name, "signal", us), "after %ld us", us);
  }
  published_state();
}

int main(int argc, char** argv) {
  if (argc > 2) return end_by(argv[1], strtol(argv[2], NULL, 10));
  watchdog(120);
  if (!test_can_exec()) return skip_code;
  if (mkdtemp(directory) == NULL) {
    test_skip("everything", "there is no directory for it");
    return skip_code;
  }
  check_plain(argv[0]);
  check_locks(argv[0]);
  check_holder(argv[0]);
  if (!TEST_SANITIZED) check_moments(argv[0]); // their runtimes wait for themselves
  CHECK_EQ(rmdir(directory), 0);
  return check_result();
}
