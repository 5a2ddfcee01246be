// The scheduler: contexts, whose turn it is, and the system as the library sees it.  Compiled without hooks.h.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "schedule.h"

#include <errno.h>
#include <execinfo.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "../modes/support.h"
#include "prim/prim.h"

enum { stack_size = 256 * 1024, locals_max = 512, steps_max = 400000, changes_max = 4 };

extern char __start_mi_local[] __attribute__((visibility("hidden")));
extern char __stop_mi_local[] __attribute__((visibility("hidden")));

void _mi_schedule_step(const char* file, int line);
void _mi_schedule_pause(const char* file, int line);
int  _mi_schedule_fails(void);

// ---- tasks ------------------------------------------------------------------------------------------------------------

typedef enum task_state_e {
  TASK_OVER,    // or it was not begun
  TASK_STOPPED, // at a barrier
  TASK_READY,
  TASK_WAITS, // until somebody wakes it
  TASK_SLEEPS // ... or for a while
} task_state_t;

typedef struct task_s {
  task_state_t   state;
  int            priority; // the highest goes on, where the policy says so
  const void*    word;     // that it waits for
  uint64_t       thread;   // a number for each thread that ever was; 0: it is past its exit
  schedule_end_t exit_kind;
  bool           is_armed;
  jmp_buf        context;
  ucontext_t     start;
  _Alignas(64) char locals[locals_max];
} task_t;

static task_t             tasks[SCHEDULE_TASKS];
static char               stacks[SCHEDULE_TASKS][stack_size];
static char               locals_new[locals_max]; // of a thread that begins
static size_t             current, n_tasks;
static schedule_body_fun* task_body;
static uint64_t           n_threads_ever;
static bool               is_on; // tasks take turns
static bool               is_shown;

uintptr_t _mi_schedule_distance;

static size_t locals_size(void) {
  return (size_t)(__stop_mi_local - __start_mi_local);
}

// Before the library's own constructors allocate.
static void remember_locals(void) {
  if (locals_size() <= locals_max) memcpy(locals_new, __start_mi_local, locals_size());
}

__attribute__((section(".preinit_array"), used)) static void (*remember_locals_early)(void) = &remember_locals;

// ---- what went wrong ----------------------------------------------------------------------------------------------------

static struct {
  uint64_t    batch;
  size_t      run;
  const char* scenario;
} place;

void schedule_set_place(uint64_t batch, size_t run, const char* scenario) {
  place.batch = batch;
  place.run = run;
  place.scenario = scenario;
}

void schedule_fail(const char* fmt, ...) {
  va_list args;
  is_on = false;
  fflush(stdout);
  fprintf(stderr, "batch %llu, run %zu, %s, step %zu, task %zu: ", (unsigned long long)place.batch, place.run,
          place.scenario, schedule_steps(), current);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fprintf(stderr, "\n");
  _exit(1);
}

// Failed assertions, too.
static void on_signal(int number) {
  void* frames[32];
  signal(number, SIG_DFL);
  backtrace_symbols_fd(frames, backtrace(frames, 32), 2);
  schedule_fail("signal %d", number);
}

void schedule_note(const char* fmt, ...) {
  va_list args;
  if (!is_shown) return;
  fprintf(stderr, "step %zu: task %zu: ", schedule_steps(), current);
  va_start(args, fmt);
  vfprintf(stderr, fmt, args);
  va_end(args);
  fprintf(stderr, "\n");
}

// ---- whose turn it is ---------------------------------------------------------------------------------------------------

typedef enum policy_e {
  POLICY_UNIFORM, // after some steps any other task goes on
  POLICY_CHANGES, // the task of the highest priority goes on; at a few steps it gets the lowest one
  POLICY_SITES,   // after some places in the code any other task goes on
  POLICY_HOLD,    // at some places in the code a task gets the lowest priority
  POLICIES
} policy_t;

static struct {
  policy_t    policy;
  rng_t       rng;
  uint64_t    trace;
  size_t      n_steps, n_switches;
  const char* file; // of the last step
  int         line;
  size_t      gap, gap_max;         // UNIFORM
  size_t      changes[changes_max]; // CHANGES: at these steps
  size_t      preempted_at;         // ... or at this one, of those of all tasks together; 0: by chance
  size_t      preempted_for;        // ... and so many later again
  size_t      n_changes;            // ... and HOLD: so many at most
  uint64_t    salt;                 // SITES, HOLD: which places
  size_t      one_in;               // ... and how many
  int         lowest;
} turn;

static size_t usual_length = 2000; // of a run, in steps, as runs before it were

uint64_t schedule_trace(void) {
  return turn.trace;
}

size_t schedule_steps(void) {
  return turn.n_steps;
}

size_t schedule_switches(void) {
  return turn.n_switches;
}

void schedule_show(bool shown) {
  is_shown = shown;
}

static uint64_t site_hash(void) {
  uint64_t file = 0;
  if (turn.file != NULL) memcpy(&file, turn.file, sizeof(file));
  return mix64(file + (uint64_t)turn.line);
}

static bool by_priority(void) {
  return turn.policy == POLICY_CHANGES || turn.policy == POLICY_HOLD;
}

// A task in that state, SIZE_MAX if there is none; `but`: not this one.
static size_t find_task(task_state_t state, size_t but) {
  size_t found = SIZE_MAX, n = 0;
  for (size_t i = 1; i <= n_tasks; i++) {
    if (tasks[i].state != state || i == but) continue;
    n++;
    bool is_better = (found == SIZE_MAX ||
                      (by_priority() ? tasks[i].priority > tasks[found].priority : rng_below(&turn.rng, n) == 0));
    if (is_better) found = i;
  }
  return found;
}

static void set_current(size_t next) {
  current = next;
  _mi_schedule_distance = (next == 0 ? 0 : (uintptr_t)tasks[next].locals - (uintptr_t)__start_mi_local);
}

static void switch_to(size_t next) {
  size_t previous = current;
  if (next == previous) return;
  turn.n_switches++;
  turn.trace = mix64(turn.trace ^ (turn.n_steps * SCHEDULE_TASKS + next) ^ site_hash());
  if (is_on) schedule_note("is at %s:%d; task %zu goes on", turn.file, turn.line, next);
  set_current(next);
  if (_setjmp(tasks[previous].context) == 0) _longjmp(tasks[next].context, 1);
}

// SC2
static size_t wake_sleeper(void) {
  size_t next = find_task(TASK_SLEEPS, SIZE_MAX);
  if (next != SIZE_MAX) tasks[next].state = TASK_READY;
  return next;
}

// The task that runs cannot go on.
static void give_up_turn(void) {
  size_t next = find_task(TASK_READY, SIZE_MAX);
  if (next == SIZE_MAX) next = wake_sleeper();
  if (next == SIZE_MAX && find_task(TASK_WAITS, SIZE_MAX) != SIZE_MAX) schedule_fail("deadlock: all tasks wait");
  switch_to(next == SIZE_MAX ? 0 : next);
}

static void lower(size_t task) {
  tasks[task].priority = --turn.lowest;
}

static bool is_hot(void) {
  return mix64(site_hash() ^ turn.salt) % turn.one_in == 0;
}

// Does the task's turn end here?
static bool turn_ends(void) {
  switch (turn.policy) {
    case POLICY_UNIFORM:
      if (--turn.gap > 0) return false;
      turn.gap = 1 + rng_below(&turn.rng, turn.gap_max);
      return true;
    case POLICY_CHANGES:
      for (size_t i = 0; i < turn.n_changes; i++) {
        if (turn.changes[i] != turn.n_steps) continue;
        lower(current);
        return true;
      }
      return false;
    case POLICY_SITES: return is_hot() && rng_below(&turn.rng, 3) == 0;
    default:
      if (turn.n_changes == 0 || !is_hot() || rng_below(&turn.rng, 4) != 0) return false;
      turn.n_changes--;
      lower(current);
      return true;
  }
}

static void count_step(const char* file, int line) {
  turn.file = file;
  turn.line = line;
  if (++turn.n_steps > steps_max) schedule_fail("livelock: more than %d steps", steps_max);
}

void _mi_schedule_step(const char* file, int line) {
  count_step(file, line);
  if (!is_on || !turn_ends()) return;
  size_t next = find_task(TASK_READY, SIZE_MAX);
  if (next != SIZE_MAX) switch_to(next);
}

void _mi_schedule_pause(const char* file, int line) {
  count_step(file, line);
  if (!is_on) return;
  lower(current);
  size_t next = find_task(TASK_READY, current);
  if (next == SIZE_MAX) next = wake_sleeper();
  if (next != SIZE_MAX) switch_to(next);
}

int _mi_schedule_fails(void) {
  return is_on && rng_below(&turn.rng, 64) == 0;
}

// ---- runs -------------------------------------------------------------------------------------------------------------

static void thread_begin(size_t task) {
  tasks[task].thread = ++n_threads_ever;
  tasks[task].is_armed = false;
  size_t kind = rng_below(&turn.rng, 8);
  tasks[task].exit_kind = (kind == 0 ? SCHEDULE_END_UNSEEN : kind == 1 ? SCHEDULE_END_UNSURE : SCHEDULE_END_SEEN);
  memcpy(tasks[task].locals, locals_new, locals_size());
}

static void task_main(void) {
  for (;;) {
    task_body(current);
    tasks[current].state = TASK_OVER;
    if (is_on) give_up_turn();
    else switch_to(0);
  }
}

void schedule_init(void) {
  if (locals_size() > locals_max) schedule_fail("the variables of a thread have %zu bytes", locals_size());
  signal(SIGABRT, &on_signal);
  signal(SIGSEGV, &on_signal);
  tasks[0].thread = ++n_threads_ever;
  tasks[0].exit_kind = SCHEDULE_END_SEEN;
  for (size_t i = 1; i < SCHEDULE_TASKS; i++) {
    getcontext(&tasks[i].start);
    tasks[i].start.uc_stack.ss_sp = stacks[i];
    tasks[i].start.uc_stack.ss_size = stack_size;
    makecontext(&tasks[i].start, &task_main, 0);
  }
}

// From its start, or from where it was.
static void enter(size_t task) {
  static bool is_begun[SCHEDULE_TASKS];
  if (is_begun[task]) {
    switch_to(task);
    return;
  }
  is_begun[task] = true;
  set_current(task);
  if (_setjmp(tasks[0].context) == 0) setcontext(&tasks[task].start);
}

void schedule_begin(uint64_t seed, size_t n, schedule_body_fun* body) {
  static const size_t gaps[] = {3, 10, 40, 150, 600}, ones[] = {3, 10, 40, 150};
  memset(&turn, 0, sizeof(turn));
  turn.rng = rng_make(seed);
  turn.policy = (policy_t)rng_below(&turn.rng, POLICIES);
  turn.gap_max = gaps[rng_below(&turn.rng, COUNT_OF(gaps))];
  turn.gap = 1 + rng_below(&turn.rng, turn.gap_max);
  turn.one_in = ones[rng_below(&turn.rng, COUNT_OF(ones))];
  turn.salt = rng_next(&turn.rng);
  turn.n_changes = 1 + rng_below(&turn.rng, changes_max);
  n_tasks = n;
  task_body = body;
  for (size_t i = 1; i <= n; i++) {
    thread_begin(i);
    tasks[i].state = TASK_STOPPED;
    tasks[i].priority = (int)rng_below(&turn.rng, 1000);
  }
}

void schedule_preempt(size_t first, size_t n, size_t n_others) {
  turn.policy = POLICY_CHANGES;
  turn.preempted_at = n;
  turn.preempted_for = n_others;
  turn.n_changes = (n_others == SIZE_MAX ? 1 : 2);
  for (size_t i = 1; i <= n_tasks; i++) tasks[i].priority = (i == first ? 1 : 0);
}

void schedule_alone(size_t task) {
  tasks[task].state = TASK_READY;
  enter(task);
}

void schedule_together(void) {
  size_t first = turn.n_steps;
  for (size_t i = 0; i < turn.n_changes; i++) turn.changes[i] = first + 1 + rng_below(&turn.rng, usual_length);
  if (turn.preempted_at != 0) {
    turn.changes[0] = first + turn.preempted_at;
    turn.changes[1] = turn.changes[0] + turn.preempted_for;
  }
  for (size_t i = 1; i <= n_tasks; i++) {
    if (tasks[i].state == TASK_STOPPED) tasks[i].state = TASK_READY;
  }
  is_on = true;
  size_t next = find_task(TASK_READY, SIZE_MAX);
  if (next != SIZE_MAX) enter(next);
  is_on = false;
  usual_length = (7 * usual_length + turn.n_steps - first) / 8 + 1;
}

void schedule_barrier(void) {
  tasks[current].state = TASK_STOPPED;
  if (is_on) give_up_turn();
  else switch_to(0);
}

size_t schedule_task(void) {
  return current;
}

// ---- the system: waiting ------------------------------------------------------------------------------------------------

static int64_t now_ms = 1000000;

void _mi_schedule_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms);
void _mi_schedule_wake(mi_atomic(uint32_t)* word, bool all);

void _mi_schedule_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  _mi_schedule_step("   wait", 0);
  if (atomic_load(word) != expected) return;
  if (!is_on) {
    if (timeout_ms < 0) schedule_fail("deadlock: it waits, and is alone");
    return;
  }
  bool is_early = (rng_below(&turn.rng, 16) == 0); // as it may be
  tasks[current].word = word;
  tasks[current].state = (timeout_ms < 0 && !is_early ? TASK_WAITS : TASK_SLEEPS);
  give_up_turn();
}

void _mi_schedule_wake(mi_atomic(uint32_t)* word, bool all) {
  for (size_t i = 1; i <= n_tasks; i++) {
    bool waits = (tasks[i].state == TASK_WAITS || tasks[i].state == TASK_SLEEPS) && tasks[i].word == word;
    if (!waits) continue;
    tasks[i].state = TASK_READY;
    if (!all) break;
  }
  _mi_schedule_step("   wake", 0);
}

// ---- the system: threads --------------------------------------------------------------------------------------------------

static void (*exit_done)(void);
static void (*on_arm)(void);
static void (*fork_prepare)(void), (*fork_parent)(void), (*fork_child)(void);

void   _mi_schedule_exit_init(void (*done)(void));
void   _mi_schedule_exit_stop(void);
int    _mi_schedule_exit_arm(void);
bool   _mi_schedule_exit_is_armed(void);
bool   _mi_schedule_exit_is_sure(void);
int    _mi_schedule_pulse_begin(mi_prim_pulse_t* pulse);
bool   _mi_schedule_has_ended(mi_prim_pulse_t* pulse);
void   _mi_schedule_pulse_end(mi_prim_pulse_t* pulse);
int    _mi_schedule_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void));
int    _mi_schedule_watch(void (*started)(void), void (*ended)(bool is_last));
size_t _mi_schedule_watched(void);
void   _mi_schedule_after_fork(void);
bool   _mi_schedule_is_alone(void);
int    _mi_schedule_start(void (*run)(void));
void   _mi_schedule_join(void);

void _mi_schedule_exit_init(void (*done)(void)) {
  exit_done = done;
}

void _mi_schedule_exit_stop(void) {}

int _mi_schedule_exit_arm(void) {
  if (on_arm != NULL) on_arm();
  if (tasks[current].exit_kind == SCHEDULE_END_UNSEEN) return ENOTSUP;
  tasks[current].is_armed = true;
  return 0;
}

bool _mi_schedule_exit_is_armed(void) {
  return tasks[current].is_armed;
}

bool _mi_schedule_exit_is_sure(void) {
  return tasks[current].exit_kind == SCHEDULE_END_SEEN;
}

static uint64_t* pulse_thread(mi_prim_pulse_t* pulse) {
  return (uint64_t*)(void*)pulse->bytes;
}

int _mi_schedule_pulse_begin(mi_prim_pulse_t* pulse) {
  *pulse_thread(pulse) = tasks[current].thread;
  return 0;
}

bool _mi_schedule_has_ended(mi_prim_pulse_t* pulse) {
  for (size_t i = 0; i < SCHEDULE_TASKS; i++) {
    if (tasks[i].thread == *pulse_thread(pulse)) return false;
  }
  return *pulse_thread(pulse) != 0;
}

void _mi_schedule_pulse_end(mi_prim_pulse_t* pulse) {
  *pulse_thread(pulse) = 0;
}

void schedule_thread_exit(void) {
  if (tasks[current].is_armed) exit_done();
  tasks[current].thread = 0;
}

bool schedule_exit_is_seen(void) {
  return tasks[current].is_armed;
}

void schedule_thread_new(void) {
  thread_begin(current);
}

void schedule_thread_ends(schedule_end_t how) {
  tasks[current].exit_kind = how;
}

void schedule_thread_on_arm(void (*act)(void)) {
  on_arm = act;
}

int _mi_schedule_watch(void (*started)(void), void (*ended)(bool is_last)) {
  (void)started, (void)ended;
  return ENOTSUP;
}

size_t _mi_schedule_watched(void) {
  return 0;
}

void _mi_schedule_after_fork(void) {}

bool _mi_schedule_is_alone(void) {
  return false;
}

int _mi_schedule_start(void (*run)(void)) {
  (void)run;
  return ENOTSUP;
}

void _mi_schedule_join(void) {}

// ---- the system: fork -------------------------------------------------------------------------------------------------

int _mi_schedule_fork_init(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  fork_prepare = prepare;
  fork_parent = parent;
  fork_child = child;
  return 0;
}

bool schedule_fork(int* status) {
  fork_prepare();
  pid_t child = fork();
  if (child == 0) {
    is_on = false;
    for (size_t i = 0; i < SCHEDULE_TASKS; i++) {
      if (i == current) continue;
      tasks[i].state = TASK_OVER;
      tasks[i].thread = 0;
    }
    fork_child();
    return true;
  }
  if (child < 0 || waitpid(child, status, 0) != child) schedule_fail("fork: %s", strerror(errno));
  fork_parent();
  return false;
}

// ---- the system: time, chance -------------------------------------------------------------------------------------------

uintptr_t   _mi_schedule_id(void);
bool        _mi_schedule_is_ending(void);
int64_t     _mi_schedule_clock_ms(void);
int64_t     _mi_schedule_clock_ns(void);
uint64_t    _mi_schedule_random(void);
const char* _mi_schedule_environment_entry(size_t i);
size_t      _mi_schedule_numa_node_count(void);

uintptr_t _mi_schedule_id(void) {
  return current + 1;
}

bool _mi_schedule_is_ending(void) {
  return false;
}

void schedule_sleep(int64_t ms) {
  now_ms += ms;
}

int64_t _mi_schedule_clock_ms(void) {
  return now_ms;
}

int64_t _mi_schedule_clock_ns(void) {
  return now_ms * 1000000;
}

uint64_t _mi_schedule_random(void) {
  static uint64_t n;
  return mix64(++n);
}

const char* _mi_schedule_environment_entry(size_t i) {
  (void)i;
  return NULL;
}

size_t _mi_schedule_numa_node_count(void) {
  return 1;
}
