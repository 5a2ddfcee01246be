// Runs a program and writes what it cost to a file, as one line: seconds of wall time, of user and of system time, peak
// resident KiB, and page faults.
//
//   measure FILE [NAME=VALUE ...] PROGRAM [ARGUMENT ...]
//
// A program of its own because the kernel counts the memory of whoever starts a program towards that program's peak:
// this one is smaller than anything it measures, a shell or a script would not be.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds_of(const struct timeval* t) {
  return (double)t->tv_sec + (double)t->tv_usec * 1e-6;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int argc, char** argv) {
  int at = 2;
  if (argc < 3) {
    fputs("usage: measure FILE [NAME=VALUE ...] PROGRAM [ARGUMENT ...]\n", stderr);
    return 2;
  }
  double start = now();
  pid_t  child = fork();
  if (child == 0) {
    while (at < argc && strchr(argv[at], '=') != NULL) putenv(argv[at++]);
    if (at < argc) execvp(argv[at], &argv[at]);
    perror("measure");
    _exit(127);
  }
  int           status = 0;
  struct rusage usage;
  if (child < 0 || wait4(child, &status, 0, &usage) != child) {
    perror("measure");
    return 1;
  }
  double wall = now() - start;
  FILE*  out = fopen(argv[1], "a");
  if (out == NULL) {
    perror(argv[1]);
    return 1;
  }
  fprintf(out, "%.3f %.3f %.3f %ld %ld\n", wall, seconds_of(&usage.ru_utime), seconds_of(&usage.ru_stime),
          usage.ru_maxrss, usage.ru_minflt + usage.ru_majflt);
  if (fclose(out) != 0) return 1;
  if (WIFSIGNALED(status)) {
    fprintf(stderr, "measure: ended by signal %d\n", WTERMSIG(status));
    return 128 + WTERMSIG(status);
  }
  return WEXITSTATUS(status);
}
