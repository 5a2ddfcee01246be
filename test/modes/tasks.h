// The threads of this process as the system sees them, and parts of tests in processes of their own.
#pragma once

#include <dirent.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>

#include "../check.h"
#include "support.h"

// How many threads there are, 0 where unknown.
static inline size_t task_count(void) {
  char        text[4096];
  const char* at = (read_file("/proc/self/status", text, sizeof(text)) > 0 ? strstr(text, "\nThreads:") : NULL);
  return at == NULL ? 0 : (size_t)strtoull(at + strlen("\nThreads:"), NULL, 10);
}

static inline bool task_has_name(const char* id, const char* name) {
  char path[300], text[64];
  snprintf(path, sizeof(path), "/proc/self/task/%s/comm", id);
  if (read_file(path, text, sizeof(text)) == 0) return false;
  text[strcspn(text, "\n")] = 0;
  return strcmp(text, name) == 0;
}

// The thread of that name, 0 if there is none.
static inline pid_t task_named(const char* name) {
  pid_t found = 0;
  DIR*  tasks = opendir("/proc/self/task");
  if (tasks == NULL) return 0;
  for (const struct dirent* entry; (entry = readdir(tasks)) != NULL && found == 0;) {
    if (entry->d_name[0] != '.' && task_has_name(entry->d_name, name)) found = (pid_t)atoi(entry->d_name);
  }
  closedir(tasks);
  return found;
}

// The library's own.  It names itself, and goes by itself.
static inline pid_t library_task(void) {
  return task_named("mimalloc");
}

static inline bool library_task_comes(void) {
  for (int i = 0; i < 12000 && library_task() == 0; i++) sleep_ms(5);
  return library_task() != 0;
}

static inline bool tasks_become(size_t n) {
  for (int i = 0; i < 12000 && task_count() != n; i++) sleep_ms(5);
  return task_count() == n;
}

// The processor's time that another process has had, and its children that have ended; 0 where unknown.
static inline double task_worked(pid_t pid) {
  char   path[64], text[1024];
  double ticks = 0;
  snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
  const char* at = (read_file(path, text, sizeof(text)) > 0 ? strrchr(text, ')') : NULL);
  for (int field = 3; at != NULL && field <= 17; field++) {
    at = strchr(at + 1, ' ');
    if (at != NULL && field >= 14) ticks += (double)strtoull(at, NULL, 10); // utime, stime, cutime, cstime
  }
  return ticks / (double)sysconf(_SC_CLK_TCK);
}

// Runs `part` in a child, which is killed if it hangs: with all signals blocked it would not hear of anything else.  It hangs if it
// hardly did anything for so many seconds, or has worked for as long: beside 50 busy processes all goes on, but slowly.
static inline void in_child(const char* what, void (*part)(void), double limit_s) {
  int status = 0;
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    check_n_done = check_n_failed = 0;
    part();
    CHECK(true);
    fflush(stdout);
    _exit(check_result());
  }
  limit_s *= (TEST_SANITIZED ? 10 : 1);
  double end = now_seconds() + limit_s, worked = task_worked(pid);
  while (waitpid(pid, &status, WNOHANG) == 0) {
    sleep_ms(5);
    if (now_seconds() <= end) continue;
    double before = worked;
    worked = task_worked(pid);
    if (worked <= before + 1 || worked >= limit_s) kill(pid, SIGKILL);
    end = now_seconds() + limit_s;
  }
  CHECK_FOR(status == 0, "%s: status %x", what, (unsigned)status);
}
