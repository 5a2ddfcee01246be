// Proves: whichever request to the system fails, the caller gets NULL and ENOMEM and nothing else happens: earlier
// blocks keep their contents, later requests work again, and nothing leaks.
//
// A script that uses every part of the allocator runs with the n-th memory call failing, for n = 1, 2, ... until a run
// meets no failure; then again with all calls from the n-th on failing.  The same in fresh processes, where the calls
// that fail are those of the start-up.
#include <sys/wait.h>

#include "script.h"
#include "arena/place.h"
#include "base/mode.h"

#if MI_API_LEVEL < 3
  #define SUBPROC_POINTER(id) (id)
#else
  #define SUBPROC_POINTER(id) ((id)._mi_subproc_id)
#endif

// Present in libraries that were built for this test; see src/prim/prim.h.
extern size_t _mi_prim_fail_nth(size_t n, bool repeat);

static run_t run;

// Returns the number of memory calls that were made while failures were armed.
static size_t run_armed(size_t n, bool repeat, uint64_t seed, bool is_armed_already) {
  memset(&run, 0, sizeof(run));
  run.rng = rng_make(seed + n % 1000);
  run.huge = 33 * MiB + n % 4 * (16 * MiB);
  if (!is_armed_already) _mi_prim_fail_nth(n, repeat);
  script(&run);
  size_t n_calls = _mi_prim_fail_nth(0, false);
  recover(&run);
  return n_calls;
}

static size_t committed(void) {
  size_t commit = 0;
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &commit, NULL, NULL);
  return commit;
}

// What stays after the runs of a pass.  What one run leaves depends on chance: the least of many is what each one leaves.
typedef struct rest_s {
  size_t taken;  // in slices, the least of the last 32 runs
  size_t commit; // the committed statistic, the least of all runs
} rest_t;

static size_t least(size_t a, size_t b) {
  return a < b ? a : b;
}

// One run for each n, with other seeds in each pass.
static rest_t do_pass(bool repeat, uint64_t seed, size_t max_runs) {
  static size_t taken[32];
  rest_t        rest = {SIZE_MAX, SIZE_MAX};
  size_t        n_runs = 0, n_failures = 0, n_refused = 0;
  for (size_t n = 1;; n += n_runs < max_runs ? 1 : 1 + n / 8) {
    size_t n_calls = run_armed(n, repeat, seed, false);
    CHECK_FOR(run.n_wrong == 0, "call %zu%s failing", n, repeat ? " and later" : "");
    n_refused += run.n_refused;
    taken[n_runs++ % COUNT_OF(taken)] = _mi_place_n_taken() * MI_SLICE_SIZE;
    rest.commit = least(rest.commit, committed());
    if (n_calls < n) break;
    n_failures++;
  }
  printf("%s: %zu runs, %zu failures, %zu requests refused, %zu mappings\n", repeat ? "all from the n-th" : "n-th",
         n_runs, n_failures, n_refused, mapping_count());
  CHECK(n_failures > 5);
  for (size_t i = 0; i < COUNT_OF(taken) && i < n_runs; i++) rest.taken = least(rest.taken, taken[i]);
  return rest;
}

static void check_here(bool repeat, uint64_t seed) {
  enum { n_passes = (TEST_SANITIZED || MI_HARDENED ? 2 : 3) };
  size_t max_runs = (TEST_TSAN ? 15 : TEST_SANITIZED ? 40 : MI_HARDENED ? 125 : 250) * test_scale();
  size_t rss_at_start = rss_now(), n_mappings = mapping_count();
  rest_t first = do_pass(repeat, seed, max_runs), last = first;
  for (unsigned i = 1; i < n_passes; i++) last = do_pass(repeat, seed + 1000u * i, max_runs);
  CHECK(rss_within("growth of resident memory", minus(rss_now(), rss_at_start), 6 * MiB));
  // Free blocks that are guarded wait: after most runs 4 to 65 MiB are left, but not after all.
  CHECK(rss_within("in slices after the last runs", last.taken, 6 * MiB));
  // A run ends with 18 to 80 MiB committed, as chunks happen to be open; each pass has one with 18 MiB.  What lies
  // between guarded blocks that wait is not always large enough: there it is 22 to 760 MiB, and 22 to 92.
  CHECK(rss_within("growth of the committed statistic after the first pass", minus(last.commit, first.commit),
                   (MI_HARDENED ? 160 : 16) * MiB));
  if (!TEST_TSAN)
    CHECK_FOR(mapping_count() <= n_mappings + (MI_HARDENED ? 80 : 40), "%zu mappings, then %zu", n_mappings,
              mapping_count());
}

// ---- heaps and subprocesses -------------------------------------------------------------------------------------------

static size_t n_reports;

static void count_report(int err, void* arg) {
  (void)arg;
  n_reports += (err == ENOMEM);
}

typedef struct filler_s {
  struct filler_s* next;
} filler_t;

// All that can be had without the system but pieces: memory that went back may still be accessible.
static filler_t* fill(void) {
  filler_t* first = NULL;
  for (size_t size = MiB; size >= 16 * KiB; size /= 2) {
    for (filler_t* block; (block = (filler_t*)mi_malloc(size)) != NULL; first = block) block->next = first;
  }
  return first;
}

// What can be had without the system is bounded.
static void check_refused_heaps(void) {
  static mi_heap_t* heaps[200 * 1000];
  size_t            n = 0;
  mi_register_error(&count_report, NULL);
  while (n < 1000) heaps[n++] = mi_heap_new();
  mi_collect(true);
  _mi_prim_fail_nth(1, true);
  filler_t* filler = fill();
  n_reports = 0;
  errno = 0;
  while (n < COUNT_OF(heaps) && (heaps[n] = mi_heap_new()) != NULL) n++;
  int error = errno;
  CHECK_FOR(n < COUNT_OF(heaps) && error == ENOMEM && n_reports == 1, "%zu heaps, errno %d, %zu reports", n, error,
            n_reports);
  errno = 0;
  bool is_refused = (SUBPROC_POINTER(mi_subproc_new()) == NULL);
  error = errno;
  CHECK_FOR(is_refused && error == ENOMEM && n_reports == 2, "a subprocess: errno %d, %zu reports", error, n_reports);
  size_t     k = 0;
  mi_heap_t* heap = mi_heap_main();
  errno = 0;
  while (k < n && (heap = mi_heap_set_default(heaps[k])) != NULL) k++;
  error = errno;
  CHECK_FOR(heap == NULL && error == ENOMEM && n_reports == 3, "default heap %zu of %zu: errno %d, %zu reports", k, n,
            error, n_reports);
  CHECK(mi_heap_get_default() == (k > 0 ? heaps[k - 1] : mi_heap_main()));
  _mi_prim_fail_nth(0, false);
  CHECK(mi_heap_set_default(mi_heap_main()) != NULL);
  mi_register_error(NULL, NULL);
  while (n > 0) mi_heap_delete(heaps[--n]);
  for (filler_t* next; filler != NULL; filler = next) {
    next = filler->next;
    mi_free(filler);
  }
  CHECK((heaps[0] = mi_heap_new()) != NULL);
  mi_heap_delete(heaps[0]);
}

// ---- fresh processes ------------------------------------------------------------------------------------------------

enum { child_met_no_failure = 10, child_was_not_refused = 11 };

// Before any other constructor, hence before the allocator's own start.
__attribute__((constructor(101))) static void arm_early(void) {
  size_t n = test_env("MI_TEST_FAIL_AT", 0);
  if (n > 0) _mi_prim_fail_nth(n, test_env("MI_TEST_FAIL_REPEAT", 0) != 0);
}

static int child_main(size_t n, uint64_t seed) {
  size_t n_calls = run_armed(n, false, seed, true);
  if (run.n_wrong != 0) return 1;
  return n_calls < n ? child_met_no_failure : run.n_refused == 0 ? child_was_not_refused : 0;
}

static void check_fresh(bool repeat, const char* program) {
  size_t n_max = (TEST_SANITIZED ? 10 : 150) * test_scale(), n_with_refusals = 0;
  for (size_t n = 1; n <= n_max; n++) {
    char number[32];
    snprintf(number, sizeof(number), "%zu", n);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
      setenv("MI_TEST_FAIL_AT", number, 1);
      setenv("MI_TEST_FAIL_REPEAT", repeat ? "1" : "0", 1);
      execl("/proc/self/exe", program, (char*)NULL);
      _exit(99);
    }
    int status = 0;
    waitpid(pid, &status, 0);
    int code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    CHECK_FOR(code == 0 || code == child_met_no_failure || code == child_was_not_refused,
              "fresh process, call %zu%s failing: %d", n, repeat ? " and later" : "", code);
    n_with_refusals += code == 0;
    if (code == child_met_no_failure) break;
  }
  printf("fresh processes, %s: refusals in %zu runs\n", repeat ? "all from the n-th" : "n-th", n_with_refusals);
  // One failure may be made good by another way to the same end; if the system refuses for ever, somebody must hear it.
  CHECK(!repeat || n_with_refusals > 5);
}

int main(int argc, char** argv) {
  watchdog(240);
  size_t n = test_env("MI_TEST_FAIL_AT", 0);
  if (n > 0) return child_main(n, test_env("MI_TEST_SEED", 20401));
  uint64_t seed = test_seed(argc, argv);
  size_t   n_calls = run_armed(SIZE_MAX, false, seed, false); // counts, and never fails
  CHECK(n_calls > 5 && run.n_refused == 0 && run.n_wrong == 0);
  check_here(false, seed);
  check_here(true, seed);
  check_fresh(false, argv[0]);
  check_fresh(true, argv[0]);
  check_refused_heaps();
  return check_result();
}
