// Proves: version, process information and the text forms of the statistics are there, parse, and are plausible;
// starting and ending the process or a thread by hand may be done twice.
#include "../check.h"
#include "../sink.h"
#include "entries.h"
#if defined(__linux__)
  #include <sys/wait.h>
#endif

static void check_version(void) {
  CHECK_EQ(mi_version(), MI_MALLOC_VERSION);
  CHECK(mi_version() >= 20401 && mi_version() < 40000);
#if defined(_WIN32) && defined(MI_SHARED_LIB)
  CHECK(mi_is_redirected());
#else
  CHECK(!mi_is_redirected());
#endif
}

static void check_process_info(void) {
  size_t block_size = 64 * MiB;
  char*  p = (char*)mi_malloc(block_size);
  CHECK(p != NULL);
  memset(p, 0xAB, block_size);
  double start = now_seconds();
  while (now_seconds() - start < 0.02) {
  }
  size_t elapsed = 0, user = 0, system_time = 0, rss = 0, peak_rss = 0, commit = 0, peak_commit = 0, faults = 0;
  mi_process_info(&elapsed, &user, &system_time, &rss, &peak_rss, &commit, &peak_commit, &faults);
  CHECK(elapsed >= 15 && elapsed < 1000 * 1000);
  CHECK(user + system_time >= 10);
  CHECK(peak_rss >= block_size);
  // The system counts OS pages, which are smaller than those that an emulator may be told to have.
  CHECK(rss >= block_size && (rss <= peak_rss + 16 * MiB || !rss_is_meaningful()));
  CHECK(commit >= block_size && commit <= peak_commit);
  if (rss_is_meaningful()) {
    size_t seen = rss_now();
    CHECK_FOR(rss < seen + seen / 4 + 16 * MiB && seen < rss + rss / 4 + 16 * MiB, "rss %zu seen %zu", rss, seen);
  }
  mi_free(p);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
  size_t only = 0;
  mi_process_info(NULL, NULL, NULL, NULL, &only, NULL, NULL, NULL);
  CHECK(only >= block_size);
}

// The system counts the peak less exactly than what is resident now.  Before all else, so that each step is the peak.
static void check_peak(void) {
  enum { n_steps = 1000, step = 20 * KiB };
  char* p = (char*)mi_malloc((size_t)n_steps * step);
  CHECK(p != NULL);
  for (size_t i = 0; i < n_steps; i++) {
    size_t rss = 0, peak_rss = 0;
    memset(p + i * step, 0xAB, step);
    mi_process_info(NULL, NULL, NULL, &rss, &peak_rss, NULL, NULL, NULL);
    CHECK_FOR(peak_rss >= rss, "step %zu: rss %zu, peak %zu", i, rss, peak_rss);
  }
  mi_free(p);
}

#if defined(__linux__)
// What was resident before the program was started is not its peak.
static void check_peak_is_own(char* name) {
  size_t size = 256 * MiB;
  char   most[24];
  char   way[] = "peak";
  char*  arguments[] = {name, way, most, NULL};
  int    status = -1;
  if (!rss_is_meaningful() || !test_can_exec()) return;
  snprintf(most, sizeof(most), "%zu", size / 2);
  char* p = (char*)mi_malloc(size);
  memset(p, 0xAB, size);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    test_exec(arguments, environ);
    _exit(1);
  }
  CHECK(waitpid(child, &status, 0) == child);
  CHECK_EQ(status, 0);
  mi_free(p);
}
#else
static void check_peak_is_own(char* name) {
  (void)name;
}
#endif

// The program that was started: is its peak as low as it should be?
static int see_peak(const char* most) {
  size_t peak = 0;
  mi_process_info(NULL, NULL, NULL, NULL, &peak, NULL, NULL, NULL);
  CHECK_FOR(peak > 0 && peak <= strtoull(most, NULL, 10), "%zu", peak);
  return check_result();
}

static void check_stats_text(void) {
  static const char* const words[] = {"reserved", "committed", "threads", "elapsed", "process", "peak", "total"};
  static sink_t            sink;
  mi_stats_print_out(&sink_write, &sink);
  CHECK(sink.length > 100 && sink.length < sizeof(sink.text));
  for (size_t i = 0; i < COUNT_OF(words); i++) CHECK_FOR(strstr(sink.text, words[i]) != NULL, "%s", words[i]);
  sink.length = 0;
  mi_process_info_print_out(&sink_write, &sink);
  CHECK(sink.length > 0 && strstr(sink.text, "elapsed") != NULL);
  mi_register_output(&sink_write, &sink);
  size_t had = sink.length;
  mi_process_info_print();
  CHECK(sink.length > had);
  mi_register_output(NULL, NULL);
  mi_stats_merge();
  mi_stats_reset();
}

// Init and done by hand, in an order that no sane program would use: all of it must be harmless.
static void check_manual_life_cycle(void) {
  mi_process_init();
  mi_process_init();
  mi_thread_init();
  mi_thread_init();
  void* p = mi_malloc(1000);
  memset(p, 0xAB, 1000);
  mi_thread_done();
  mi_thread_done();
  CHECK_EQ(((unsigned char*)p)[999], 0xAB);
  void* q = mi_malloc(1000);
  CHECK(q != NULL && q != p);
  mi_free(p);
  mi_thread_init();
  mi_free(q);
  mi_thread_set_in_threadpool();
  mi_collect(false);
  mi_collect(true);
}

static void check_debugging_aids(void) {
  void* p = mi_malloc(100);
  CHECK(mi_check_owned(p));
  CHECK(!mi_check_owned(NULL));
  mi_free(p);
}

// "After mi_process_done and mi_thread_done allocation still works."
static void check_after_done(void) {
  void* before = mi_malloc(5000);
  mi_process_done();
  mi_process_done();
  mi_thread_done();
  for (size_t size = 1; size < 8 * MiB; size *= 3) {
    void* p = mi_malloc(size);
    CHECK_FOR(p != NULL, "size %zu", size);
    memset(p, 0xAB, size);
    mi_free(p);
  }
  mi_free(before);
  mi_process_init();
}

int main(int argc, char** argv) {
  if (argc > 2 && strcmp(argv[1], "peak") == 0) return see_peak(argv[2]);
  test_seed(argc, argv);
  check_version();
  check_peak();
  check_peak_is_own(argv[0]);
  check_process_info();
  check_stats_text();
  check_manual_life_cycle();
  check_debugging_aids();
  check_after_done();
  return check_result();
}
