// Proves: one process lives on through phases of work, in which threads come and go, forks and heaps happen beside them, and
// pauses: in each pause memory, mappings, threads and statistics are what they were in the first ones, and all structures are
// whole.
//
// Some seconds; MI_SOAK_SECONDS=n as long as one likes (make soak).
#include <mimalloc-stats.h>
#include <sys/wait.h>

#include "base/mode.h"
#include "storm.h"

enum { n_workers = 3, n_heap_blocks = 2000, child_seconds = 60, n_settling = 3 };

static rng_t rng;

// ---- statistics -----------------------------------------------------------------------------------------------------

static void check_stat(const char* name, const mi_stat_count_t* count) {
  CHECK_FOR(count->current >= 0, "%s: %lld", name, (long long)count->current);
  CHECK_FOR(count->peak >= count->current, "%s: %lld, peak %lld", name, (long long)count->current,
            (long long)count->peak);
}

static mi_stats_t stats_now(void) {
  mi_stats_t_decl(stats);
  CHECK(mi_stats_get(&stats));
  check_stat("pages", &stats.pages);
  check_stat("reserved", &stats.reserved);
  check_stat("committed", &stats.committed);
  check_stat("malloc_normal", &stats.malloc_normal);
  check_stat("malloc_huge", &stats.malloc_huge);
  check_stat("threads", &stats.threads);
  CHECK(stats.committed.current <= stats.reserved.current);
  return stats;
}

// ---- what happens beside the load -------------------------------------------------------------------------------------

static void fork_once(size_t number) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(child_seconds);
    signal(SIGALRM, SIG_DFL);
    atomic_store(&storm_n_wrong, 0);
    for (size_t i = 0; i < 500; i++) storm_step(&rng);
    storm_clear();
    _exit(atomic_load(&storm_n_wrong) != 0);
  }
  int status = -1;
  if (pid > 0) waitpid(pid, &status, 0);
  CHECK_FOR(status == 0, "fork %zu: status %x", number, (unsigned)status);
}

static void* use_heap(void* heap) {
  rng_t own = rng_make((uint64_t)(uintptr_t)heap);
  for (size_t i = 0; i < n_heap_blocks; i++) {
    void* p = mi_heap_malloc((mi_heap_t*)heap, rng_size(&own, 3000));
    CHECK(p != NULL);
    if (rng_below(&own, 3) > 0) mi_free(p); // the rest ends with the heap
  }
  return NULL;
}

static void heap_once(void) {
  pthread_t  t;
  mi_heap_t* heap = mi_heap_new();
  CHECK(heap != NULL);
  if (heap == NULL) return;
  CHECK_EQ(pthread_create(&t, NULL, &use_heap, heap), 0);
  use_heap(heap);
  pthread_join(t, NULL);
  mi_heap_destroy(heap);
}

static void phase(size_t number, storm_memory_t* memory) {
  storm_load_t load;
  storm_begin(&load, n_workers, rng_next(&rng));
  for (size_t i = 0; i < 3; i++) {
    sleep_ms(100);
    if (!TEST_TSAN) fork_once(number);
    heap_once();
    stats_now();
    storm_look(memory);
  }
  atomic_store(&storm_must_stop, true);
  for (size_t i = 0; i < load.n; i++) pthread_join(load.threads[i], NULL);
  storm_clear();
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
  CHECK_EQ(atomic_load(&storm_n_refused), 0);
}

// ---- pauses -----------------------------------------------------------------------------------------------------------

typedef struct pause_s {
  size_t     rss, mappings;
  mi_stats_t stats;
} pause_t;

static int64_t live_bytes(const mi_stats_t* stats) {
  return stats->malloc_normal.current + stats->malloc_huge.current;
}

static pause_t make_pause(void) {
  mi_collect(true);
  CHECK(mi_heap_check(NULL));
  pause_t p = {rss_now(), mapping_count(), stats_now()};
  return p;
}

// What may differ: blocks of the C library, and stacks that it keeps.
static bool is_like(const pause_t* p, const pause_t* first) {
  CHECK_EQ(p->stats.threads.current, first->stats.threads.current);
  int64_t more = live_bytes(&p->stats) - live_bytes(&first->stats);
  CHECK_FOR(more < 64 * 1024, "%lld bytes more are live than in the first pauses", (long long)more);
  CHECK(TEST_SANITIZED || p->mappings <= first->mappings + 60 + (MI_HARDENED ? 4000 : 0));
  bool is_small = (p->rss <= first->rss + 8 * MiB || !rss_is_meaningful());
  CHECK_FOR(is_small, "%.1f MiB resident, %.1f in the first pauses", (double)p->rss / (double)MiB,
            (double)first->rss / (double)MiB);
  return is_small;
}

int main(int argc, char** argv) {
  double seconds = (double)test_env("MI_SOAK_SECONDS", 3);
  rng = rng_make(test_seed(argc, argv));
  storm_memory_t memory = storm_memory();
  pause_t        first = make_pause(), last = first;
  size_t         n_phases = 0;
  double         end = now_seconds() + seconds, told = now_seconds();
  for (; now_seconds() < end || n_phases < n_settling + 3; n_phases++) {
    watchdog(120);
    phase(n_phases, &memory);
    last = make_pause();
    if (n_phases <= n_settling) first = last;
    if (!is_like(&last, &first)) break;
    if (now_seconds() - told > 60) {
      told = now_seconds();
      printf("%zu phases, %zu steps, %.1f MiB resident, %zu mappings\n", n_phases, atomic_load(&storm_n_steps),
             (double)last.rss / (double)MiB, last.mappings);
      fflush(stdout);
    }
  }
  printf("%zu phases, %zu steps\n", n_phases, atomic_load(&storm_n_steps));
  storm_check(&memory, 64 * MiB, 12 * MiB, 100 + (MI_HARDENED ? 4000 : 0));
  return check_result();
}
