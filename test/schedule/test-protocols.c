// Proves: whatever the order in which threads take their steps, no block is handed out twice or lost, no page is lost, nobody waits for
// ever, and a fork's child can use what it has: remote frees, outboxes, shared pages, spare pages, kept large blocks, rounds, the end
// of threads and of heaps, forks.
//
//   test-schedule-protocols                       20000 interleavings, or 20 seconds of the processor
//   test-schedule-protocols COUNT [SEED [JOBS]]   so many, however long they take
//   test-schedule-protocols --batch NUMBER [RUN]  one batch again, with the switches of a run
//   ... --only NAME                               of one scenario
//
// A batch is a process that makes RUNS runs: what one leaves behind is where the next begins.  The number of a batch decides all that
// happens in it.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/purge.h"
#include "arena/region.h"
#include "blocks.h"
#include "heap/event.h"
#include "heap/heap.h"
#include "library.h"
#include "support/stat.h"

enum { runs_of_batch = 64, n_heaps = 2, sizes_max = 4, late_ops = 3 };

// ---- what is run --------------------------------------------------------------------------------------------------------

typedef enum op_e {
  OP_ALLOC,
  OP_FREE,      // blocks of anybody
  OP_FREE_OWN,  // ... of the same task
  OP_FREE_PAGE, // all blocks of a page
  OP_REALLOC,
  OP_COLLECT,
  OP_ROUND,
  OP_THREAD,     // the thread ends, and another one begins
  OP_HEAP_ALLOC, // makes the heap if need be
  OP_HEAP_DEFAULT,
  OP_HEAP_DELETE,
  OP_HEAP_DESTROY,
  OP_FORK,
  OP_FREE_TWICE, // one of the blocks that two tasks free
  OPS
} op_t;

typedef struct scenario_s {
  const char* name;
  size_t      n_tasks;
  size_t      n_ops;            // of each task
  size_t      burst;            // blocks of one at most
  size_t      n_first;          // blocks of each task at most, to begin with
  size_t      rounds_first;     // so many rounds at most come then
  size_t      sizes[sizes_max]; // 0: none
  uint8_t     weights[OPS];
  void (*prepare)(void); // by the first task
} scenario_t;

static void make_gaps(void);

static const scenario_t scenarios[] = {
    {.name = "remote frees",
     .n_tasks = 3,
     .n_ops = 8,
     .burst = 6,
     .n_first = 24,
     .rounds_first = 2,
     .sizes = {2048, 8192},
     .weights = {[OP_ALLOC] = 5, [OP_FREE] = 6, [OP_FREE_PAGE] = 2, [OP_FREE_OWN] = 2}},
    {.name = "outboxes",
     .n_tasks = 3,
     .n_ops = 8,
     .burst = 16,
     .n_first = 60,
     .rounds_first = 2,
     .sizes = {1024, 1000},
     .weights = {[OP_ALLOC] = 4, [OP_FREE] = 5, [OP_FREE_PAGE] = 4, [OP_COLLECT] = 1, [OP_THREAD] = 1}},
    {.name = "pages of 8",
     .n_tasks = 4,
     .n_ops = 8,
     .burst = 4,
     .n_first = 16,
     .rounds_first = 1,
     .sizes = {8192, 16384},
     .weights = {[OP_ALLOC] = 5, [OP_FREE] = 5, [OP_FREE_PAGE] = 3, [OP_THREAD] = 1}},
    {.name = "exit",
     .n_tasks = 4,
     .n_ops = 6,
     .burst = 8,
     .n_first = 12,
     .rounds_first = 1,
     .sizes = {2048, 8192, 64},
     .weights = {[OP_ALLOC] = 3, [OP_FREE] = 4, [OP_FREE_PAGE] = 1, [OP_THREAD] = 3, [OP_FORK] = 1}},
    {.name = "rounds",
     .n_tasks = 3,
     .n_ops = 10,
     .burst = 4,
     .n_first = 12,
     .rounds_first = 3,
     .sizes = {64, 2048, 8192},
     .weights = {[OP_ALLOC] = 5, [OP_FREE] = 3, [OP_FREE_OWN] = 4, [OP_ROUND] = 3}},
    {.name = "bins",
     .n_tasks = 2,
     .n_ops = 16,
     .burst = 2,
     .n_first = 6,
     .rounds_first = 3,
     .sizes = {64},
     .weights = {[OP_ALLOC] = 6, [OP_FREE_OWN] = 6, [OP_ROUND] = 4}},
    {.name = "spare pages",
     .n_tasks = 4,
     .n_ops = 10,
     .burst = 8,
     .n_first = 16,
     .rounds_first = 2,
     .sizes = {8192, 16384},
     .weights = {[OP_ALLOC] = 6, [OP_FREE_PAGE] = 6, [OP_COLLECT] = 1, [OP_ROUND] = 1, [OP_THREAD] = 1, [OP_FORK] = 1}},
    {.name = "kept blocks",
     .n_tasks = 4,
     .n_ops = 8,
     .burst = 2,
     .n_first = 3,
     .rounds_first = 2,
     .sizes = {600 * KiB, 1024 * KiB, 700 * KiB},
     .weights = {[OP_ALLOC] = 5,
                 [OP_FREE] = 6,
                 [OP_ROUND] = 1,
                 [OP_THREAD] = 2,
                 [OP_COLLECT] = 1,
                 [OP_REALLOC] = 1,
                 [OP_FORK] = 1}},
    {.name = "freed twice",
     .n_tasks = 3,
     .n_ops = 5,
     .burst = 0,
     .n_first = 4,
     .rounds_first = 1,
     .sizes = {600 * KiB},
     .weights = {[OP_FREE_TWICE] = 6, [OP_ROUND] = 1}},
    {.name = "heaps",
     .n_tasks = 3,
     .n_ops = 8,
     .burst = 6,
     .n_first = 10,
     .rounds_first = 1,
     .sizes = {2048, 8192},
     .weights = {[OP_ALLOC] = 3,
                 [OP_FREE] = 5,
                 [OP_HEAP_ALLOC] = 5,
                 [OP_HEAP_DEFAULT] = 2,
                 [OP_HEAP_DELETE] = 2,
                 [OP_HEAP_DESTROY] = 1,
                 [OP_ROUND] = 1,
                 [OP_THREAD] = 1,
                 [OP_FORK] = 1}},
    {.name = "forks",
     .n_tasks = 3,
     .n_ops = 6,
     .burst = 6,
     .n_first = 16,
     .rounds_first = 2,
     .sizes = {2048, 8192, 600 * KiB},
     .weights = {[OP_ALLOC] = 8,
                 [OP_FREE] = 8,
                 [OP_FREE_PAGE] = 2,
                 [OP_ROUND] = 2,
                 [OP_THREAD] = 2,
                 [OP_HEAP_ALLOC] = 2,
                 [OP_HEAP_DELETE] = 1,
                 [OP_FORK] = 1}},
    {.name = "everything",
     .n_tasks = 5,
     .n_ops = 10,
     .burst = 6,
     .n_first = 12,
     .rounds_first = 3,
     .sizes = {64, 2048, 8192, 600 * KiB},
     .weights = {[OP_ALLOC] = 8,
                 [OP_FREE] = 8,
                 [OP_FREE_OWN] = 3,
                 [OP_FREE_PAGE] = 3,
                 [OP_REALLOC] = 1,
                 [OP_COLLECT] = 1,
                 [OP_ROUND] = 2,
                 [OP_THREAD] = 2,
                 [OP_HEAP_ALLOC] = 2,
                 [OP_HEAP_DEFAULT] = 1,
                 [OP_HEAP_DELETE] = 1,
                 [OP_FORK] = 1}},
    {.name = "gaps",
     .n_tasks = 3,
     .n_ops = 8,
     .burst = 8,
     .n_first = 12,
     .rounds_first = 3,
     .sizes = {2048, 4096, 8192},
     .weights = {[OP_ALLOC] = 6,
                 [OP_FREE] = 8,
                 [OP_FREE_PAGE] = 3,
                 [OP_ROUND] = 1,
                 [OP_THREAD] = 1,
                 [OP_COLLECT] = 1,
                 [OP_FORK] = 1},
     .prepare = &make_gaps},
};

static const scenario_t* scenario;
static rng_t             task_rng[SCHEDULE_TASKS];
static volatile size_t   forks_left;
static enum { PHASE_RUN, PHASE_LOOK } phase;

static rng_t* rng(void) {
  return &task_rng[schedule_task()];
}

// ---- heaps --------------------------------------------------------------------------------------------------------------

// What tasks share is volatile where the compiler could think that no call of the library changes it.
static volatile struct {
  mi_heap_t* heap;       // NULL: it was ended
  uint64_t   generation; // of heaps that had this number
  size_t     n_calls;    // that name it
  size_t     n_frees;    // of its blocks
} heaps[n_heaps];
static volatile int defaults[SCHEDULE_TASKS]; // the heap that a task has chosen

static size_t default_count(int i) {
  size_t n = 0;
  for (size_t t = 0; t < SCHEDULE_TASKS; t++) n += (defaults[t] == i);
  return n;
}

static void allocate_in(int i, size_t size) {
  if (heaps[i].heap == NULL) return;
  heaps[i].n_calls++;
  void* p = blocks_new(mi_heap_malloc(heaps[i].heap, size), size);
  heaps[i].n_calls--;
  blocks_add(p, size, i);
}

static void make_heap(int i) {
  if (heaps[i].heap != NULL || heaps[i].n_calls + heaps[i].n_frees + default_count(i) > 0) return;
  heaps[i].n_calls++;
  mi_heap_t* heap = mi_heap_new();
  heaps[i].n_calls--;
  if (heap == NULL) schedule_fail("no heap");
  heaps[i].heap = heap;
  heaps[i].generation++;
  schedule_note("made heap %d", i);
}

// Nobody may name it meanwhile; that threads have it as their default, and free its blocks, does not matter.
static void delete_heap(int i) {
  mi_heap_t* heap = heaps[i].heap;
  if (heap == NULL || heaps[i].n_calls > 0) return;
  heaps[i].heap = NULL;
  heaps[i].n_calls++;
  blocks_end_heap(i, false);
  schedule_note("deletes heap %d", i);
  mi_heap_delete(heap);
  schedule_note("has deleted heap %d", i);
  heaps[i].n_calls--;
  for (size_t t = 0; t < SCHEDULE_TASKS; t++) {
    if (defaults[t] == i) defaults[t] = NO_HEAP;
  }
}

static void destroy_heap(int i) {
  mi_heap_t* heap = heaps[i].heap;
  if (heap == NULL || heaps[i].n_calls + heaps[i].n_frees + default_count(i) > 0) return;
  heaps[i].heap = NULL;
  heaps[i].n_calls++;
  blocks_end_heap(i, true);
  schedule_note("destroys heap %d", i);
  mi_heap_destroy(heap);
  schedule_note("has destroyed heap %d", i);
  heaps[i].n_calls--;
}

static void choose_heap(int i) {
  if (heaps[i].heap == NULL || defaults[schedule_task()] != NO_HEAP) return;
  heaps[i].n_calls++;
  defaults[schedule_task()] = i;
  schedule_note("has heap %d as its default", i);
  mi_heap_set_default(heaps[i].heap);
  heaps[i].n_calls--;
}

// ---- blocks ---------------------------------------------------------------------------------------------------------------

static size_t any_size(void) {
  size_t n = 0;
  while (n < sizes_max && scenario->sizes[n] != 0) n++;
  return scenario->sizes[rng_below(rng(), n)];
}

static void allocate(size_t n, size_t size) {
  for (size_t i = 0; i < n && n_blocks < BLOCKS_MAX / 2; i++) {
    int      heap = defaults[schedule_task()];
    uint64_t generation = (heap == NO_HEAP ? 0 : heaps[heap].generation);
    void*    p = blocks_new(mi_malloc(size), size);
    bool     is_of_heap = (heap != NO_HEAP && heaps[heap].heap != NULL && heaps[heap].generation == generation);
    blocks_add(p, size, is_of_heap ? heap : NO_HEAP);
  }
}

static void free_block(size_t i) {
  block_t block = blocks_take(i);
  if (block.heap != NO_HEAP) heaps[block.heap].n_frees++;
  mi_free(block.p);
  if (block.heap != NO_HEAP) heaps[block.heap].n_frees--;
}

static void free_some(size_t n, bool own) {
  for (size_t tries = 4 * n; n > 0 && tries > 0 && n_blocks > 0; tries--) {
    size_t i = rng_below(rng(), n_blocks);
    if (own && blocks[i].task != schedule_task()) continue;
    free_block(i);
    n--;
  }
}

static void free_page(void) {
  if (n_blocks == 0) return;
  uintptr_t slice = (uintptr_t)blocks[rng_below(rng(), n_blocks)].p / MI_SLICE_SIZE;
  for (size_t i = n_blocks; i-- > 0;) {
    if (i < n_blocks && (uintptr_t)blocks[i].p / MI_SLICE_SIZE == slice) free_block(i);
  }
}

// Pages with one block each, so that the next request of another size makes gap pages of them.
static void make_gaps(void) {
  enum { n = 336 };
  mi_theap_t* theap = NULL;
  size_t      first = n_blocks;
  allocate(n, 8 * KiB);
  for (size_t i = n_blocks; i-- > first;) {
    theap = mi_load_relaxed(&_mi_page_at(blocks[i].p)->home);
    if ((uintptr_t)blocks[i].p % MI_SLICE_SIZE != 0) free_block(i);
  }
  theap->sparse.n_requests = 1000; // it is time to look
  allocate(8, 4 * KiB);
}

static void resize(void) {
  if (n_blocks == 0) return;
  size_t  size = any_size();
  block_t block = blocks_take(rng_below(rng(), n_blocks));
  if (block.heap != NO_HEAP) heaps[block.heap].n_frees++;
  void* p = blocks_new(mi_realloc(block.p, size), size);
  if (block.heap != NO_HEAP) heaps[block.heap].n_frees--;
  if (*(uint64_t*)p != block.key) schedule_fail("realloc has lost the contents of %p", (void*)block.p);
  blocks_add(p, size, NO_HEAP);
}

// ---- frees of the same block by two threads ---------------------------------------------------------------------------------

static volatile struct {
  void*  p;
  size_t n_frees;
} twice[8];
static size_t          n_twice;
static volatile size_t n_errors, n_errors_expected;

static void on_error(int err, void* arg) {
  (void)err, (void)arg;
  n_errors++;
}

static void free_twice(void) {
  size_t i = rng_below(rng(), n_twice);
  if (n_twice == 0 || twice[i].n_frees >= 2) return;
  if (++twice[i].n_frees == 2) n_errors_expected++;
  mi_free(twice[i].p);
}

// ---- threads, rounds, forks ---------------------------------------------------------------------------------------------------

static void end_thread(void) {
  schedule_note("ends its thread");
  bool is_late = schedule_exit_is_seen();
  defaults[schedule_task()] = NO_HEAP;
  schedule_thread_exit();
  for (size_t i = rng_below(rng(), 2 * late_ops); is_late && i > late_ops; i--) {
    if (rng_below(rng(), 2) == 0 && scenario->sizes[0] <= 8 * KiB) allocate(1, scenario->sizes[0]);
    else if (scenario->weights[OP_FREE] != 0) free_some(2, false);
  }
}

// What a child has it can use, and give back.
static void be_child(void) {
  rng_t* r = rng();
  blocks_check();
  schedule_note("is a child");
  for (size_t i = 0; i < 12; i++) allocate(1, any_size());
  for (size_t i = n_blocks / 2; i > 0; i--) free_block(rng_below(r, n_blocks));
  for (size_t i = 0; i < 4; i++) library_round();
  for (size_t i = 0; i < 12; i++) allocate(1, any_size());
  blocks_check();
  while (n_blocks > 0) free_block(n_blocks - 1);
  mi_collect(true);
  library_check();
  _exit(n_errors == 0 ? 0 : 1);
}

static void fork_now(void) {
  int status = 0;
  if (forks_left == 0) return;
  forks_left--;
  if (schedule_fork(&status)) be_child();
  if (status != 0) schedule_fail("the child of a fork has ended with %#x", (unsigned)status);
}

// ---- tasks ----------------------------------------------------------------------------------------------------------------

static op_t any_op(void) {
  size_t sum = 0, op = 0;
  for (size_t i = 0; i < OPS; i++) sum += scenario->weights[i];
  for (size_t at = rng_below(rng(), sum); at >= scenario->weights[op]; op++) at -= scenario->weights[op];
  return (op_t)op;
}

static void do_op(op_t op) {
  size_t n = 1 + rng_below(rng(), scenario->burst + 1);
  int    heap = (int)rng_below(rng(), n_heaps);
  switch (op) {
    case OP_ALLOC: allocate(n, any_size()); break;
    case OP_FREE: free_some(n, false); break;
    case OP_FREE_OWN: free_some(n, true); break;
    case OP_FREE_PAGE: free_page(); break;
    case OP_REALLOC: resize(); break;
    case OP_COLLECT: mi_collect(rng_below(rng(), 4) == 0); break;
    case OP_ROUND: library_round(); break;
    case OP_THREAD:
      end_thread();
      schedule_thread_new();
      break;
    case OP_HEAP_ALLOC:
      make_heap(heap);
      for (; n > 0; n--) allocate_in(heap, any_size());
      break;
    case OP_HEAP_DEFAULT: choose_heap(heap); break;
    case OP_HEAP_DELETE: delete_heap(heap); break;
    case OP_HEAP_DESTROY: destroy_heap(heap); break;
    case OP_FORK: fork_now(); break;
    case OP_FREE_TWICE: free_twice(); break;
    default: break;
  }
}

static void task_run(void) {
  size_t n_first = rng_below(rng(), scenario->n_first + 1);
  if (scenario->prepare != NULL && schedule_task() == 1) scenario->prepare();
  allocate(n_first, any_size());
  if (rng_below(rng(), 2) == 0) free_some(n_first / 3, true);
  schedule_barrier();
  for (size_t i = 0; i < scenario->n_ops; i++) do_op(any_op());
  bool ends = (rng_below(rng(), 2) == 0);
  if (ends) end_thread();
  schedule_barrier();
  if (!ends) end_thread();
}

// A thread that looks whether others have ended of which nobody is told.
static void task_look(void) {
  schedule_thread_new();
  schedule_thread_ends(SCHEDULE_END_UNSURE);
  mi_free(mi_malloc(64));
  schedule_thread_exit();
}

static void task_main(size_t task) {
  (void)task;
  if (phase == PHASE_RUN) task_run();
  else task_look();
}

// ---- a run ----------------------------------------------------------------------------------------------------------------

static void check_nothing_left(bool is_whole) {
  library_expect_none("blocks", (int64_t)n_blocks);
  library_expect_none("theaps", library_live(&_mi_stat_live.theaps) - 1 - (_mi_heap_main.late != NULL));
  library_expect_none("threads", library_live(&_mi_stat_live.threads) - 1);
  library_expect_no_pages();
  library_expect_none("bytes of pages", library_live(&_mi_stat_live.page_committed));
  library_expect_none("errors that should not be", (int64_t)n_errors - (int64_t)n_errors_expected);
  if (is_whole) library_check();
}

static void begin_twice(void) {
  n_twice = 0;
  for (size_t i = 0; scenario->weights[OP_FREE_TWICE] != 0 && n_blocks > 0 && i < COUNT_OF(twice); i++) {
    twice[n_twice].p = blocks_take(n_blocks - 1).p;
    twice[n_twice++].n_frees = 0;
  }
}

static void end_twice(void) {
  for (size_t i = 0; i < n_twice; i++) {
    if (twice[i].n_frees == 0) mi_free(twice[i].p);
  }
}

static void tear_down(bool is_whole) {
  for (size_t t = 1; t <= scenario->n_tasks; t++) schedule_alone(t);
  blocks_check();
  while (n_blocks > 0) free_block(n_blocks - 1);
  end_twice();
  for (int i = 0; i < n_heaps; i++) delete_heap(i);
  phase = PHASE_LOOK;
  for (size_t i = 0; i < SCHEDULE_TASKS && library_live(&_mi_stat_live.threads) > 1; i++) schedule_alone(1);
  phase = PHASE_RUN;
  mi_collect(is_whole);
  for (size_t i = 0; i < 4; i++) library_round();
  check_nothing_left(is_whole);
}

// Returns what the order of steps was.
static uint64_t run(const scenario_t* what, uint64_t seed, bool is_whole) {
  rng_t r = rng_make(seed);
  scenario = what;
  n_errors = n_errors_expected = 0;
  forks_left = (rng_below(&r, 16) == 0 ? 1 : 0);
  for (size_t t = 0; t < SCHEDULE_TASKS; t++) {
    task_rng[t] = rng_make(rng_next(&r));
    defaults[t] = NO_HEAP;
  }
  schedule_begin(rng_next(&r), what->n_tasks, &task_main);
  for (size_t t = 1; t <= what->n_tasks; t++) schedule_alone(t);
  begin_twice();
  for (size_t i = rng_below(&r, what->rounds_first + 1); i > 0; i--) library_round();
  schedule_together();
  tear_down(is_whole);
  return schedule_trace();
}

// ---- batches --------------------------------------------------------------------------------------------------------------

// What processes that run batches tell the one that began them.
static struct {
  uint64_t n_runs, n_steps, n_switches;
  uint64_t traces[16]; // of the first batches
}* shared;

static const scenario_t* only; // NULL: all in turn

static const scenario_t* scenario_of(uint64_t batch) {
  return only != NULL ? only : &scenarios[batch % COUNT_OF(scenarios)];
}

// Returns what the order of steps in all of its runs was.
static uint64_t run_batch(uint64_t batch, size_t run_shown) {
  const scenario_t* what = scenario_of(batch);
  rng_t             r = rng_make(batch);
  uint64_t          trace = 0;
  mi_option_set(mi_option_purge_delay, rng_below(&r, 8) == 0 ? 10 : -1); // most go without the system
  for (size_t i = 0; i < runs_of_batch; i++) {
    schedule_set_place(batch, i, what->name);
    schedule_show(i == run_shown);
    trace = mix64(trace ^ run(what, rng_next(&r), i % 16 == 15));
    __atomic_add_fetch(&shared->n_runs, 1, __ATOMIC_RELAXED);
    __atomic_add_fetch(&shared->n_steps, schedule_steps(), __ATOMIC_RELAXED);
    __atomic_add_fetch(&shared->n_switches, schedule_switches(), __ATOMIC_RELAXED);
  }
  return trace;
}

static void begin_batch(uint64_t batch, uint64_t* trace) {
  fflush(stdout);
  pid_t child = fork();
  if (child != 0) return;
  uint64_t made = run_batch(batch, SIZE_MAX);
  if (trace != NULL) *trace = made;
  _exit(0);
}

static void end_batch(void) {
  int   status = 0;
  pid_t child = wait(&status);
  CHECK_FOR(child > 0 && status == 0, "a batch has ended with %#x", (unsigned)status);
}

// The same batch again takes the same way.
static void check_same(uint64_t seed) {
  for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
    for (size_t k = 0; k < 2; k++) {
      begin_batch(seed + i, &shared->traces[k]);
      end_batch();
    }
    CHECK_EQ(shared->traces[0], shared->traces[1]);
    CHECK(shared->traces[0] != 0);
  }
}

// The processor's time of all batches that have ended.
static double batch_seconds(void) {
  struct rusage usage;
  getrusage(RUSAGE_CHILDREN, &usage);
  return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
         1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static void run_all(uint64_t count, uint64_t seed, size_t n_jobs, double seconds_max) {
  size_t n_running = 0;
  for (uint64_t batch = seed; shared->n_runs + n_running * runs_of_batch < count; batch++) {
    if (check_n_failed > 0 || batch_seconds() > seconds_max) break;
    begin_batch(batch, NULL);
    if (++n_running < n_jobs) continue;
    end_batch();
    n_running--;
  }
  for (; n_running > 0; n_running--) end_batch();
  printf("%llu interleavings, %.0f steps and %.1f switches in each, %.1f seconds\n", (unsigned long long)shared->n_runs,
         (double)shared->n_steps / (double)(shared->n_runs + 1),
         (double)shared->n_switches / (double)(shared->n_runs + 1), batch_seconds());
}

static const scenario_t* find_scenario(const char* name) {
  for (size_t i = 0; i < COUNT_OF(scenarios); i++) {
    if (strcmp(scenarios[i].name, name) == 0) return &scenarios[i];
  }
  printf("there is no scenario %s\n", name);
  exit(2);
}

static void begin_library(void) {
  schedule_init();
  mi_register_error(&on_error, NULL);
  mi_option_set(mi_option_show_errors, 0);
  mi_free(mi_malloc(1));
  mi_collect(true);
}

int main(int argc, char** argv) {
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return 1;
  begin_library();
  if (argc > 2 && strcmp(argv[1], "--only") == 0) {
    only = find_scenario(argv[2]);
    argc -= 2;
    argv += 2;
  }
  if (argc > 2 && strcmp(argv[1], "--batch") == 0) {
    printf("trace %#llx\n",
           (unsigned long long)run_batch(strtoull(argv[2], NULL, 0), argc > 3 ? strtoull(argv[3], NULL, 0) : SIZE_MAX));
    return 0;
  }
  uint64_t count = (argc > 1 ? strtoull(argv[1], NULL, 0) : 20000);
  uint64_t seed = (argc > 2 ? strtoull(argv[2], NULL, 0) : 1);
  printf("seed: %llu\n", (unsigned long long)seed);
  if (argc <= 1) check_same(seed);
  run_all(count, seed, argc > 3 ? strtoull(argv[3], NULL, 0) : 1, argc > 1 ? 1e9 : 20);
  return check_result();
}
