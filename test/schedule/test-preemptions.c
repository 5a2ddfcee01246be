// Proves, for pairs of threads, that it does not matter where one of them is stopped: for each step of either there is a run in which it
// is stopped there, the other one does all that it can, and the first one goes on.  After each no block may be lost or be there twice,
// no page may be left, and a child that was forked there can use what it has.  Then both are stopped once, at some of all pairs of steps.
//
// The pairs are those in which chance (test-protocols.c) or people have found faults; faults.py plants these again.
//
//   test-preemptions                              all pairs
//   test-preemptions --twice N                    so many runs in which both are stopped, for each thread of a pair (else 100)
//   test-preemptions NUMBER [TASK STEP [STEPS]]   one of them; or one of its runs, with its switches: the other one takes STEPS
#include <sys/wait.h>

#include "../check.h"
#include "../modes/support.h"
#include "../unload.h"
#include "arena/purge.h"
#include "blocks.h"
#include "heap/background.h"
#include "heap/event.h"
#include "heap/heap.h"
#include "heap/hollow.h"
#include "heap/view.h"
#include "library.h"
#include "support/stat.h"

#define STEPS_NEVER ((size_t)1 << 40)

enum { n_threads = 2, runs_max = 400 };

static size_t n_twice = 100;

typedef void act_fun(void);

typedef struct pair_s {
  const char* name;
  act_fun*    prepare[n_threads]; // what each thread does before, alone; NULL: nothing
  act_fun*    act[n_threads];
  act_fun*    after; // by main, when both have ended
} pair_t;

static const pair_t*   pair;
static size_t          preempted; // the thread that is stopped somewhere
static volatile size_t n_steps;   // that it took, with those of the other one if that came between
static volatile size_t n_errors, n_errors_expected;
static void* volatile held; // the block that the pair is about
static mi_theap_t* owner;   // of its page
static mi_heap_t*  heap;
static enum { PHASE_RUN, PHASE_LOOK } phase;

static void on_error(int err, void* arg) {
  (void)err, (void)arg;
  n_errors++;
}

// ---- what threads do ------------------------------------------------------------------------------------------------------

static void allocate(size_t n, size_t size) {
  for (; n > 0; n--) blocks_add(blocks_new(mi_malloc(size), size), size, NO_HEAP);
}

static void free_last(size_t n) {
  for (; n > 0; n--) mi_free(blocks_take(n_blocks - 1).p);
}

static void hold_last(void) {
  held = blocks_take(n_blocks - 1).p;
}

static void free_held(void) {
  mi_free(held);
}

static void begin_thread(schedule_end_t how) {
  schedule_thread_new();
  schedule_thread_ends(how);
}

// What a child has it can use, and give back.
static void be_child(void) {
  schedule_note("is a child");
  blocks_check();
  library_check();
  for (size_t i = 0; i < 4; i++) {
    allocate(20, 8 * KiB);
    allocate(1, 600 * KiB);
    library_round();
  }
  blocks_check();
  free_last(n_blocks);
  mi_collect(true);
  library_check();
  _exit(n_errors == 0 ? 0 : 1);
}

static void fork_now(void) {
  int status = 0;
  if (schedule_fork(&status)) be_child();
  if (status != 0) schedule_fail("the child of a fork has ended with %#x", (unsigned)status);
}

// ---- gap pages --------------------------------------------------------------------------------------------------------------

// The owner looks whether it has sparse pages, as it asks for one of another class.
static void look_at_pages(size_t size) {
  owner->sparse.n_requests = 1000;
  allocate(1, size);
  free_last(1);
}

// Makes blocks of 8 KiB, eight in a page, keeps the first one of each page, and holds the last of those.
static void hold_firsts(size_t n) {
  allocate(n, 8 * KiB);
  for (size_t i = n_blocks; i-- > 0;) {
    if ((uintptr_t)blocks[i].p % MI_SLICE_SIZE != 0) mi_free(blocks_take(i).p);
  }
  hold_last();
}

// Blocks of 8 KiB in 40 pages, of which one each is in use.
static void hold_sparse(void) {
  hold_firsts(336);
  owner = mi_load_relaxed(&_mi_page_at(held)->home);
  look_at_pages(2 * KiB);
}

// The thread that owns these makes gap pages of them, since no more blocks of their class are asked for; then they are shared.
static void make_gap_pages(void) {
  look_at_pages(4 * KiB);
  schedule_thread_exit();
}

static void hold_in_gap_page(void) {
  hold_sparse();
  make_gap_pages();
  if (_mi_page_kind(_mi_page_at(held)) != MI_PAGE_GAPS) schedule_fail("no gap page");
  begin_thread(SCHEDULE_END_SEEN);
}

static void grow_held(void) {
  uint64_t key = *(uint64_t*)held;
  held = blocks_new(mi_realloc(held, 24 * KiB), 24 * KiB);
  if (*(uint64_t*)held != key) schedule_fail("realloc has lost the contents of a block");
}

// ---- drains -----------------------------------------------------------------------------------------------------------------

enum { drained_size = 512, n_of_page = MI_SLICE_SIZE / drained_size };

static void expect_drained(const void* p, const char* otherwise) {
  if (mi_load_relaxed(&_mi_page_at(p)->bin_offset) < MI_DRAINS_OFFSET) schedule_fail("%s", otherwise);
}

// The first of two pages is full and nobody's, and one of its blocks is held; the second one is drained.
static void hold_and_drain(void) {
  size_t first = n_blocks;
  allocate(2 * n_of_page - 8, drained_size);
  held = blocks_take(first).p;
  free_last(n_of_page * 3 / 4);
  expect_drained(blocks[n_blocks - 1].p, "no page of the thread that holds a block is drained");
}

// Most of the page where the held block is comes to this thread, which drains it, too.
static void drain_page_of_held(void) {
  enum { n_most = n_of_page * 5 / 8 };
  size_t n = 0;
  for (size_t i = n_blocks; i-- > 0 && n < n_most;) {
    if (_mi_page_at(blocks[i].p) != _mi_page_at(held)) continue;
    mi_free(blocks_take(i).p);
    n++;
  }
  allocate(n, drained_size);
  free_last(n);
}

static void drain_both(void) {
  drain_page_of_held();
  expect_drained(held, "the page of the held block is not drained");
}

// ---- hollow pages -----------------------------------------------------------------------------------------------------------

static void make_hollow_rounds(size_t n) {
  _mi_background_lock();
  _mi_purge_set_has_thread(true); // it is the library's that makes them
  while (n-- > 0) _mi_hollow_round();
  _mi_purge_set_has_thread(false);
  _mi_background_unlock();
}

static void make_hollow(void) {
  make_hollow_rounds(2);
}

// A block of each of three pages, of which one is held, in a pool that will not be quiet for much longer.
static void hold_little(void) {
  hold_firsts(24);
}

static void wait_for_quiet(void) {
  mi_page_t* page = _mi_page_at(held);
  if (_mi_page_word_state(mi_load_relaxed(&page->word)) != MI_PAGE_SHARED) schedule_fail("its page is not shared");
  make_hollow_rounds(40);
  if (_mi_page_kind(page) == MI_PAGE_GAPS) schedule_fail("a hollow page too early");
}

static void hold_in_quiet_page(void) {
  hold_little();
  schedule_thread_exit();
  begin_thread(SCHEDULE_END_SEEN);
  wait_for_quiet();
}

// The same for a thread that goes on.
static void hold_asleep(void) {
  hold_little();
  for (size_t i = 0; i < 5; i++) library_round();
  wait_for_quiet();
}

static void free_held_and_allocate(void) {
  free_held();
  allocate(12, 8 * KiB);
  allocate(12, 2 * KiB);
}

// ---- large blocks -----------------------------------------------------------------------------------------------------------

static void hold_large(void) {
  allocate(1, 600 * KiB);
  hold_last();
}

// None that a thread keeps.
static void hold_larger(void) {
  allocate(1, 5 * MiB);
  hold_last();
}

static void free_held_too(void) {
  n_errors_expected = 1;
  mi_free(held);
}

// ---- threads that nobody counts ---------------------------------------------------------------------------------------------

// The only block in use of a page that nobody has; and the thread has no theap any more.
static void hold_without_theap(void) {
  allocate(8, 8 * KiB);
  hold_last();
  free_last(7);
  schedule_thread_exit();
  begin_thread(SCHEDULE_END_SEEN);
}

// A thread has ended, and nobody was told.  The next one will look.
static void end_unseen(void) {
  begin_thread(SCHEDULE_END_UNSEEN);
  allocate(12, 8 * KiB);
  free_last(6);
  schedule_thread_exit();
  begin_thread(SCHEDULE_END_UNSURE);
}

static void allocate_one(void) {
  mi_free(mi_malloc(64));
}

// As libc does, for the variables of a thread.
static void allocate_on_arm(void) {
  schedule_thread_on_arm(NULL);
  mi_free(mi_malloc(8 * KiB));
}

static void begin_with_arm(void) {
  schedule_thread_on_arm(&allocate_on_arm);
  allocate_one();
}

// ---- pages and heaps --------------------------------------------------------------------------------------------------------

static void allocate_pages(void) {
  allocate(20, 8 * KiB);
}

// Pages of 8 blocks, and what other threads do with them.
static void free_pages(void) {
  while (n_blocks > 0) free_last(1);
}

// Pages with room, which whoever asks for a block may adopt.
static void share_pages(void) {
  allocate(20, 8 * KiB);
  free_last(7);
  schedule_thread_exit();
  begin_thread(SCHEDULE_END_SEEN);
}

// Pages that nobody has, full but for what others free.
static void leave_pages(void) {
  allocate(40, 8 * KiB);
  schedule_thread_exit();
  begin_thread(SCHEDULE_END_SEEN);
}

// Pages that are empty, which wait for whoever wants one.
static void empty_pages(void) {
  allocate(40, 8 * KiB);
  allocate(8, 4 * KiB);
  free_last(48);
  mi_collect(false);
}

static void use_pages(void) {
  for (size_t i = 0; i < 3; i++) {
    allocate(20, 8 * KiB);
    free_last(20);
  }
}

static void allocate_and_end(void) {
  allocate(20, 8 * KiB);
  schedule_thread_exit();
}

static void fill_bins(void) {
  allocate(40, 64);
  free_last(30);
}

static void use_bins(void) {
  for (size_t i = 0; i < 4; i++) {
    allocate(3, 64);
    free_last(4);
  }
}

static void make_rounds(void) {
  for (size_t i = 0; i < 4; i++) library_round();
}

static void use_large(void) {
  allocate(2, 600 * KiB);
  free_last(2);
  allocate(1, 700 * KiB);
}

// The other thread keeps what it frees of these.
static void hold_and_keep_large(void) {
  use_large();
  use_large();
  hold_last();
}

static void free_held_and_use(void) {
  free_held();
  use_large();
}

static void hold_in_heap(void) {
  heap = mi_heap_new();
  for (size_t i = 0; i < 12; i++) blocks_add(blocks_new(mi_heap_malloc(heap, 8 * KiB), 8 * KiB), 8 * KiB, NO_HEAP);
}

static void delete_heap(void) {
  mi_heap_delete(heap);
}

// ---- arenas -----------------------------------------------------------------------------------------------------------------

// Memory for an arena of one chunk, which all runs use.
static mi_aligned(MI_SLICE_SIZE) char arena_memory[MI_CHUNK_SIZE];
static size_t arena;

static void add_arena_that(bool is_pinned) {
  const mi_arena_spec_t spec = {true, is_pinned, !is_pinned, true, -1, NULL, NULL};
  arena = _mi_arena_manage(arena_memory, sizeof(arena_memory), &spec);
  if (arena == 0) schedule_fail("no arena");
}

static void add_arena(void) {
  add_arena_that(false);
}

static void remove_arena(void) {
  if (!arena_unload(arena)) schedule_fail("the arena is in use");
}

// Nothing of it is: so nobody may say that there are blocks.
static void ask_about_arena(void) {
  if (mi_is_in_heap_region(arena_memory)) schedule_fail("a block in an arena without blocks");
  if (mi_heap_of(arena_memory + MI_SLICE_SIZE) != NULL) schedule_fail("a heap of no block");
}

// Slices that are free and backed, in chunks that are partly used.
static void free_slices(void) {
  allocate(2, 8 * KiB);
  allocate(1, 5 * MiB);
  free_last(1);
  allocate(1, 700 * KiB);
}

static void purge_all(void) {
  _mi_purge_slices(SIZE_MAX);
}

// An entry for a region was in use, and is again.
static void add_and_remove_arena(void) {
  add_arena();
  remove_arena();
}

static void use_pinned_arena(void) {
  add_arena_that(true);
  mi_run_t run = _mi_slices_alloc(4, 1, MI_REQUEST_MIXED, arena);
  if (run.region == NULL) schedule_fail("no slices");
  memset(arena_memory, 0xA5, 4 * MI_SLICE_SIZE);
  _mi_slices_free(run.region, run.slice, 4, false);
}

// Nothing of it went to the system.
static void check_pinned_arena(void) {
  for (size_t i = 0; i < 4 * MI_SLICE_SIZE; i += KiB) {
    if (arena_memory[i] != (char)0xA5) schedule_fail("a pinned arena was purged");
  }
  remove_arena();
}

// ---- looks ------------------------------------------------------------------------------------------------------------------

// As those do who visit blocks, or print which are in use: at the page of the block that is held, and at what follows.
static void look_at_held(void) {
  static struct {
    mi_view_t     view;
    unsigned char beyond[4 * KiB];
  } seen;
  const mi_page_t*    page = _mi_page_at(held);
  const mi_region_t*  region = _mi_page_region(page);
  mi_walk_t           walk = {heap, NULL, (size_t)(region - _mi_region_all), _mi_page_slice(page), false, 0};
  const unsigned char mark = 0x5A;
  memset(seen.beyond, mark, sizeof(seen.beyond));
  if (_mi_view_next(&walk, &seen.view)) {
    if (seen.view.heap == NULL || seen.view.n_blocks == 0) schedule_fail("a view of no blocks");
    if (seen.view.home == NULL && seen.view.cls != MI_CLASS_NONE) schedule_fail("a view of a page without a home");
  }
  for (size_t i = 0; i < sizeof(seen.beyond); i++) {
    if (seen.beyond[i] != mark) schedule_fail("a view wrote behind its end");
  }
}

// A block of a page with two, of which another thread frees the other.
static void hold_one_of_two(void) {
  allocate(2, 8 * KiB);
  hold_last();
}

static void hold_one_of_two_in_heap(void) {
  heap = mi_heap_new();
  for (size_t i = 0; i < 2; i++) blocks_add(blocks_new(mi_heap_malloc(heap, 8 * KiB), 8 * KiB), 8 * KiB, NO_HEAP);
  hold_last();
}

static void free_other(void) {
  free_last(1);
}

static void free_held_and_collect(void) {
  free_held();
  if (heap != NULL) mi_heap_collect(heap, true);
  mi_collect(true);
}

static void end_heap(void) {
  mi_heap_delete(heap);
  heap = NULL;
}

// ---- runs -------------------------------------------------------------------------------------------------------------------

static const pair_t pairs[] = {
    {"a free, and its page becomes a gap page", {NULL, &hold_sparse}, {&free_held, &make_gap_pages}, NULL},
    {"a block grows, and its page becomes a gap page", {NULL, &hold_sparse}, {&grow_held, &make_gap_pages}, &free_held},
    {"a free, and another thread drains its page", {&hold_and_drain, &allocate_one}, {&free_held, &drain_both}, NULL},
    {"two frees of a large block", {NULL, &hold_large}, {&free_held, &free_held_too}, NULL},
    {"two frees of a block that is not kept", {NULL, &hold_larger}, {&free_held, &free_held_too}, NULL},
    {"a free of a large block, and its thread ends",
     {NULL, &hold_large},
     {&free_held, &schedule_thread_exit},
     &fork_now},
    {"a free of the last block of a gap page, and a fork", {&hold_in_gap_page, NULL}, {&free_held, &fork_now}, NULL},
    {"a free by a thread without a theap, and a fork", {&hold_without_theap, NULL}, {&free_held, &fork_now}, NULL},
    {"a thread begins after one that has ended, and a fork", {&end_unseen, NULL}, {&allocate_one, &fork_now}, NULL},
    {"a thread begins, and a fork by the only other one", {NULL, &allocate_one}, {&begin_with_arm, &fork_now}, NULL},
    {"a thread begins, and a fork by one without a theap", {NULL, NULL}, {&begin_with_arm, &fork_now}, NULL},
    {"frees of whole pages, and their thread asks for more",
     {NULL, &allocate_pages},
     {&free_pages, &allocate_pages},
     NULL},
    {"frees of whole pages, and their thread ends",
     {NULL, &allocate_pages},
     {&free_pages, &schedule_thread_exit},
     NULL},
    {"frees of whole pages, and a fork", {NULL, &allocate_pages}, {&free_pages, &fork_now}, NULL},
    {"frees in shared pages, and another thread adopts them",
     {NULL, &share_pages},
     {&free_pages, &allocate_pages},
     NULL},
    {"a thread ends, and another one asks for pages", {&fill_bins, NULL}, {&allocate_and_end, &allocate_pages}, NULL},
    {"a thread ends, and a fork", {&fill_bins, NULL}, {&allocate_and_end, &fork_now}, NULL},
    {"rounds, and a thread that is at work", {NULL, &fill_bins}, {&make_rounds, &use_bins}, NULL},
    {"rounds, and a fork", {&fill_bins, NULL}, {&make_rounds, &fork_now}, NULL},
    {"gap pages are made, and a fork", {&hold_sparse, NULL}, {&make_gap_pages, &fork_now}, &free_held},
    {"a free, and its page becomes hollow", {NULL, &hold_in_quiet_page}, {&free_held, &make_hollow}, NULL},
    {"a thread frees and allocates, and its pages become hollow",
     {&hold_asleep, NULL},
     {&free_held_and_allocate, &make_hollow},
     NULL},
    {"pages become hollow, and another thread adopts them",
     {&hold_in_quiet_page, NULL},
     {&make_hollow, &allocate_pages},
     &free_held},
    {"pages become hollow, and a fork", {&hold_in_quiet_page, NULL}, {&make_hollow, &fork_now}, &free_held},
    {"frees by two threads in pages that nobody has", {NULL, &leave_pages}, {&free_pages, &free_pages}, NULL},
    {"two threads ask for pages that wait", {NULL, &empty_pages}, {&use_pages, &use_pages}, NULL},
    {"rounds, and a thread that asks for pages", {NULL, &fill_bins}, {&make_rounds, &use_pages}, NULL},
    {"a large block goes to its thread, which uses others",
     {NULL, &hold_and_keep_large},
     {&free_held_and_use, &use_large},
     NULL},
    {"large blocks come and go, and a fork", {NULL, NULL}, {&use_large, &fork_now}, NULL},
    {"a heap is deleted, and frees of its blocks", {&hold_in_heap, NULL}, {&delete_heap, &free_pages}, NULL},
    {"a heap is deleted, and a fork", {&hold_in_heap, NULL}, {&delete_heap, &fork_now}, NULL},
    {"an address is asked about, and its arena goes", {NULL, &add_arena}, {&ask_about_arena, &remove_arena}, NULL},
    {"a purge, and a pinned arena comes",
     {&free_slices, &add_and_remove_arena},
     {&purge_all, &use_pinned_arena},
     &check_pinned_arena},
    {"a page is looked at, and becomes a gap page", {NULL, &hold_sparse}, {&look_at_held, &make_gap_pages}, &free_held},
    {"a page is looked at, and waits", {&free_other, &hold_one_of_two}, {&look_at_held, &free_held_and_collect}, NULL},
    {"a page of a heap is looked at, and goes",
     {&free_other, &hold_one_of_two_in_heap},
     {&look_at_held, &free_held_and_collect},
     &end_heap},
};

static void task_run(size_t i) {
  schedule_thread_ends(SCHEDULE_END_SEEN);
  if (pair->prepare[i] != NULL) pair->prepare[i]();
  schedule_barrier();
  size_t begun = schedule_steps();
  pair->act[i]();
  if (i + 1 == preempted) n_steps = schedule_steps() - begun;
  schedule_barrier();
  schedule_thread_exit();
}

// A thread that looks whether others have ended of which nobody is told.
static void task_look(void) {
  begin_thread(SCHEDULE_END_UNSURE);
  allocate_one();
  schedule_thread_exit();
}

static void task_main(size_t task) {
  if (phase == PHASE_RUN) task_run(task - 1);
  else task_look();
}

static void tear_down(void) {
  blocks_check();
  free_last(n_blocks);
  mi_thread_done();
  phase = PHASE_LOOK;
  for (size_t i = 0; i < SCHEDULE_TASKS && library_live(&_mi_stat_live.threads) > 0; i++) schedule_alone(1);
  phase = PHASE_RUN;
  mi_collect(true);
  for (size_t i = 0; i < 4; i++) library_round();
  mi_thread_done();
  library_expect_none("threads", library_live(&_mi_stat_live.threads));
  library_expect_no_pages();
  library_expect_none("errors that should not be", (int64_t)n_errors - (int64_t)n_errors_expected);
  library_check();
}

// The thread is stopped at its n-th step, if it takes so many, and the other one n_others steps later.
static void run(size_t thread, size_t n, size_t n_others) {
  n_errors = n_errors_expected = 0;
  preempted = thread;
  static char where[160];
  if (n_others == SIZE_MAX) snprintf(where, sizeof(where), "%s", pair->name);
  else snprintf(where, sizeof(where), "%s, the other thread stopped after %zu steps", pair->name, n_others);
  schedule_set_place(thread, n, where);
  schedule_begin(1, n_threads, &task_main);
  schedule_preempt(thread, n, n_others);
  for (size_t t = n_threads; t > 0; t--) schedule_alone(t);
  mi_store_relaxed(&_mi_registry_has_others, false); // as if there had been none
  schedule_together();
  for (size_t t = 1; t <= n_threads; t++) schedule_alone(t);
  if (pair->after != NULL) pair->after();
  tear_down();
}

// How many steps the thread takes if nobody stops it.
static size_t count_steps(size_t thread) {
  run(thread, STEPS_NEVER, SIZE_MAX);
  return n_steps;
}

// Each step of it, or of many as many as there is time for.
static size_t run_all(size_t thread, size_t n_all) {
  size_t n_runs = 0, stride = n_all / runs_max + 1;
  for (size_t n = 1; n <= n_all; n += stride, n_runs++) run(thread, n, SIZE_MAX);
  return n_runs;
}

// The i-th of points that lie evenly in a square, however many there are: multiples of two numbers without a common measure.
static size_t spread(size_t i, double number, size_t n_all) {
  double at = (double)(i + 1) * number;
  return 1 + (size_t)((at - (double)(size_t)at) * (double)n_all);
}

static void run_twice(size_t thread, const size_t* n_all) {
  size_t n = n_all[thread - 1], n_others = n_all[n_threads - thread];
  for (size_t i = 0; i < n_twice; i++) run(thread, spread(i, 0.7548776662, n), spread(i, 0.5698402910, n_others));
}

static int run_pair(void) {
  pid_t child = fork();
  if (child == 0) {
    const size_t n_all[n_threads] = {count_steps(1), count_steps(2)};
    size_t       n_first = run_all(1, n_all[0]), n_second = run_all(2, n_all[1]);
    for (size_t thread = 1; thread <= n_threads; thread++) run_twice(thread, n_all);
    printf("%s: stopped at %zu steps, and at %zu of the other thread\n", pair->name, n_first, n_second);
    CHECK_FOR(n_first > 4 && n_second > 4, "%s: too few steps", pair->name);
    exit(check_result());
  }
  int status = -1;
  CHECK_FOR(waitpid(child, &status, 0) == child && status == 0, "%s has ended with %#x", pair->name, (unsigned)status);
  return status;
}

static void begin_library(void) {
  schedule_init();
  mi_register_error(&on_error, NULL);
  mi_option_set(mi_option_show_errors, 0);
  mi_option_set(mi_option_purge_delay, -1);
  mi_free(mi_malloc(1));
  mi_collect(true);
  mi_thread_done();
}

int main(int argc, char** argv) {
  bool   is_twice = (argc == 3 && strcmp(argv[1], "--twice") == 0);
  size_t only = (argc > 1 && !is_twice ? strtoull(argv[1], NULL, 0) : SIZE_MAX);
  if (is_twice) n_twice = strtoull(argv[2], NULL, 0);
  begin_library();
  for (size_t i = 0; i < COUNT_OF(pairs); i++) {
    pair = &pairs[i];
    if (only != SIZE_MAX && only != i) continue;
    schedule_show(argc > 3);
    if (argc > 3)
      run(strtoull(argv[2], NULL, 0), strtoull(argv[3], NULL, 0), argc > 4 ? strtoull(argv[4], NULL, 0) : SIZE_MAX);
    else run_pair();
  }
  return check_result();
}
