#include "counting.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#if __has_include(<valgrind/callgrind.h>)
  #include <valgrind/callgrind.h>
#else
  #define CALLGRIND_ZERO_STATS
  #define CALLGRIND_TOGGLE_COLLECT
  #define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

#include "outside.h"
#include "stepper.h"
#include "tracer.h"

enum { time_limit_s = 300 };

static enum mode          mode_now = mode_faults;
static _Thread_local bool is_counting;
static long               faults_before;

bool counting_pause(void) {
  if (!is_counting) return false;
  if (mode_now == mode_step) stepper_stop();
  if (mode_now == mode_callgrind) CALLGRIND_TOGGLE_COLLECT;
  if (mode_now == mode_calls) tracer_toggle();
  is_counting = false;
  return true;
}

void counting_resume(void) {
  if (is_counting) return;
  is_counting = true;
  if (mode_now == mode_callgrind) CALLGRIND_TOGGLE_COLLECT;
  if (mode_now == mode_calls) tracer_toggle();
  if (mode_now == mode_step) stepper_start();
}

bool counting_touches_pages(void) {
  return mode_now == mode_calls || mode_now == mode_faults;
}

static long faults_now(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

void counting_begin(void) {
  if (mode_now == mode_callgrind) CALLGRIND_ZERO_STATS;
  if (mode_now == mode_step) stepper_reset();
  if (mode_now == mode_calls) *tracer_count() = 0;
  faults_before = faults_now();
  counting_resume();
}

void counting_end(const char* name) {
  counting_pause();
  if (mode_now == mode_callgrind) {
    CALLGRIND_DUMP_STATS_AT(name);
  }
  else {
    long count = mode_now == mode_step    ? stepper_count()
                 : mode_now == mode_calls ? *tracer_count()
                                          : faults_now() - faults_before;
    printf("%s %ld\n", name, count);
    fflush(stdout);
  }
}

void counting_prepare(enum mode mode) {
  mode_now = mode;
  outside_prepare(mode == mode_callgrind || mode == mode_step);
  if (mode == mode_step) stepper_prepare();
  if (mode == mode_calls) tracer_prepare();
}

int counting_run(void (*function)(const void*), const void* argument) {
  int   status = 0;
  pid_t child = fork();
  if (child < 0) return -1;
  if (child == 0) {
    alarm(time_limit_s);
    if (mode_now == mode_calls) tracer_start();
    function(argument);
    _exit(0);
  }
  if (mode_now == mode_calls) return tracer_run(child);
  return waitpid(child, &status, 0) == child ? status : -1;
}
