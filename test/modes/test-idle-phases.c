// Proves: whatever threads do, what they have freed goes back.  In random phases blocks of random classes are allocated by some
// threads and freed by others, which then sleep, compute, go on with other classes, or end; some threads only ever free, and some
// free when they are past their end.  After each phase hardly a block is live, and what is resident without a live block comes down
// to 8 MiB and 64 KiB a thread: within the four seconds for which memory is held (arena/recall.h), but a busy machine has forty.
// (Memory that holds a live block is counted by the test itself.)
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include "support.h"

enum { n_workers = 16, n_slots = 200000, n_phases = 8, n_survivors = 20, max_wait_s = 40 };

typedef enum job_e { JOB_ALLOCATE, JOB_FREE, JOB_CHURN, JOB_PAIRS, JOB_COMPUTE, JOB_SLEEP, JOB_COUNT } job_t;
static const char* const job_names[JOB_COUNT] = {"allocates", "frees", "churns", "pairs", "computes", "sleeps"};

typedef struct slot_s {
  _Atomic(void*) block;
  atomic_size_t  size;
} slot_t;

static slot_t slots[n_slots];

typedef struct worker_s {
  pthread_t thread;
  uint64_t  seed;
  job_t     job, after; // in the phase, and when it is over
  size_t    sizes[4];   // that it uses in the phase
  size_t    first, n;   // slots that it fills or empties
  bool      has_thread, ends, only_frees;
  bool      halves; // frees every second of the blocks that it has allocated, so that its pages are not full
} worker_t;

static worker_t          workers[n_workers];
static pthread_barrier_t begin, done;
static atomic_bool       is_over; // the phase: threads may go on to the next
static atomic_size_t     n_back;  // of those that have
static pthread_key_t     late_key;

// ---- what threads do --------------------------------------------------------------------------------------------------

static void slot_fill(slot_t* slot, size_t size) {
  void* p = mi_malloc(size);
  memset(p, 1, size);
  atomic_store_explicit(&slot->size, size, memory_order_relaxed);
  mi_free(atomic_exchange(&slot->block, p));
}

static void slot_empty(slot_t* slot) {
  mi_free(atomic_exchange(&slot->block, NULL));
}

static void do_job(worker_t* w, rng_t* rng) {
  for (size_t i = 0; i < w->n; i++) {
    slot_t* slot = &slots[(w->first + i) % n_slots];
    size_t  size = w->sizes[rng_below(rng, 4)];
    if (w->job == JOB_ALLOCATE) slot_fill(slot, size);
    else if (w->job == JOB_FREE) slot_empty(slot);
    else if (w->job == JOB_CHURN) mi_free(memset(mi_malloc(size), 2, size));
  }
  if (!w->halves) return;
  for (size_t i = 0; i < w->n; i += 2) slot_empty(&slots[(w->first + i) % n_slots]);
  mi_free(memset(mi_malloc(3 * MiB), 3, 3 * MiB)); // large blocks are kept for the next request
}

// Until the main thread has looked: what may keep a thread from giving back what it has.
static void do_after(const worker_t* w) {
  static _Atomic(uint64_t) sink;
  void*                    q[64];
  for (uint64_t n = 0; !atomic_load(&is_over); n++) {
    if (w->after == JOB_CHURN) {
      for (size_t i = 0; i < 64; i++) q[i] = mi_malloc(w->sizes[0]);
      for (size_t i = 0; i < 64; i++) mi_free(q[i]);
      sleep_ms(2);
    }
    else if (w->after == JOB_PAIRS) {
      for (size_t i = 0; i < 1000; i++) mi_free(mi_malloc(w->sizes[1]));
      sched_yield();
    }
    else if (w->after == JOB_COMPUTE) {
      for (size_t i = 0; i < 10000; i++) atomic_fetch_add_explicit(&sink, n ^ i, memory_order_relaxed);
      sched_yield();
    }
    else {
      sleep_ms(50);
    }
  }
}

static void free_late(void* value) {
  worker_t* w = (worker_t*)value;
  for (size_t i = 0; i < w->n; i++) slot_empty(&slots[(w->first + i) % n_slots]);
}

static void* work(void* arg) {
  worker_t* w = (worker_t*)arg;
  for (;;) {
    pthread_barrier_wait(&begin);
    rng_t rng = rng_make(w->seed);
    do_job(w, &rng);
    if (w->ends) pthread_setspecific(late_key, w);
    bool ends = w->ends;
    pthread_barrier_wait(&done);
    if (ends) return NULL;
    do_after(w);
    atomic_fetch_add(&n_back, 1);
  }
}

// ---- phases -----------------------------------------------------------------------------------------------------------

static size_t any_size(rng_t* rng) {
  size_t kind = rng_below(rng, 100);
  if (kind < 70) return 1 + rng_below(rng, 1024);
  if (kind < 92) return 1024 + rng_below(rng, 8 * KiB);
  return 8 * KiB + rng_below(rng, kind < 98 ? 60 * KiB : 2000 * KiB);
}

static void worker_plan(worker_t* w, rng_t* rng, size_t index) {
  w->seed = rng_next(rng);
  w->job = (job_t)rng_below(rng, JOB_PAIRS);
  w->after = (job_t)(JOB_CHURN + rng_below(rng, JOB_COUNT - JOB_CHURN));
  if (w->only_frees) {
    w->job = JOB_FREE;
    w->after = (rng_below(rng, 2) == 0 ? JOB_SLEEP : JOB_COMPUTE);
  }
  for (size_t i = 0; i < 4; i++) w->sizes[i] = any_size(rng);
  if (w->sizes[0] > 8 * KiB || w->sizes[1] > 8 * KiB) w->sizes[0] = w->sizes[1] = 3000;
  w->n = rng_below(rng, n_slots / 2);
  size_t average = (w->sizes[0] + w->sizes[1] + w->sizes[2] + w->sizes[3]) / 4;
  if (w->n * average > 60 * MiB) w->n = 60 * MiB / average;
  w->first = rng_below(rng, n_slots);
  w->ends = (rng_below(rng, 5) == 0);
  if (index == 0) w->job = JOB_ALLOCATE; // there is something in each phase
  w->halves = (w->job == JOB_ALLOCATE && rng_below(rng, 2) == 0);
}

static void workers_start(rng_t* rng) {
  for (size_t i = 0; i < n_workers; i++) {
    worker_t* w = &workers[i];
    w->only_frees = (i == 1 || (!w->has_thread && rng_below(rng, 4) == 0));
    if (!w->has_thread) CHECK_EQ(pthread_create(&w->thread, NULL, &work, w), 0);
    w->has_thread = true;
  }
}

// All but some survivors, by this thread.
static void free_rest(rng_t* rng, size_t* live_bytes) {
  size_t survivors = rng_below(rng, n_survivors);
  *live_bytes = 0;
  for (size_t i = 0; i < n_slots; i++) {
    slot_t* slot = &slots[i];
    if (atomic_load(&slot->block) == NULL) continue;
    if (survivors > 0 && slot->size <= 8 * KiB && rng_below(rng, 100) == 0) {
      survivors--;
      *live_bytes += 64 * KiB; // all of the page that it is in
    }
    else {
      slot_empty(slot);
    }
  }
}

// What those that go on have live at any moment.
static size_t busy_bytes(void) {
  size_t bytes = 0;
  for (size_t i = 0; i < n_workers; i++) {
    if (workers[i].after == JOB_CHURN) bytes += 64 * workers[i].sizes[0] + 128 * KiB;
    if (workers[i].after == JOB_PAIRS) bytes += 64 * KiB;
  }
  return bytes;
}

static bool settles_within(size_t base, size_t bound, double* seconds) {
  double start = now_seconds();
  *seconds = 0;
  if (!rss_is_meaningful()) sleep_ms(500);
  while (rss_is_meaningful() && (*seconds = now_seconds() - start) < max_wait_s) {
    if (minus(rss_now(), base) <= bound) return true;
    sleep_ms(20);
  }
  return !rss_is_meaningful();
}

static void phase_describe(size_t phase) {
  printf("phase %zu:", phase);
  for (size_t i = 0; i < n_workers; i++)
    printf(" %s/%s", job_names[workers[i].job], workers[i].ends ? "ends" : job_names[workers[i].after]);
  printf("\n");
}

static void check_phase(size_t phase, rng_t* rng, size_t base) {
  size_t live;
  double seconds;
  workers_start(rng);
  for (size_t i = 0; i < n_workers; i++) worker_plan(&workers[i], rng, i);
  phase_describe(phase);
  atomic_store(&is_over, false);
  atomic_store(&n_back, 0);
  pthread_barrier_wait(&begin);
  pthread_barrier_wait(&done);
  size_t full = minus(rss_now(), base);
  free_rest(rng, &live);
  size_t n_ended = 0;
  for (size_t i = 0; i < n_workers; i++) {
    if (!workers[i].ends) continue;
    pthread_join(workers[i].thread, NULL);
    workers[i].has_thread = false;
    n_ended++;
  }
  size_t bound = 8 * MiB + n_workers * 64 * KiB + live + busy_bytes();
  bool   ok = settles_within(base, bound, &seconds);
  size_t left = minus(rss_now(), base);
  printf("%.1f MiB full, %.2f MiB left after %.2f s (at most %.2f)\n", (double)full / (double)MiB,
         (double)left / (double)MiB, seconds, (double)bound / (double)MiB);
  CHECK_FOR(ok, "phase %zu: %.2f MiB resident", phase, (double)left / (double)MiB);
  atomic_store(&is_over, true);
  while (atomic_load(&n_back) < n_workers - n_ended) sleep_ms(1);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  rng_t    rng = rng_make(seed);
  size_t   n = (TEST_SANITIZED ? 3 : n_phases) * test_scale();
  watchdog(250);
  if (!TEST_HAS_BACKGROUND) {
    test_skip("memory of threads that sleep", "the library has no thread of its own on this system");
    return skip_code;
  }
  if (MI_API_LEVEL >= 3) mi_option_set(mi_option_purge_delay, 100); // at level 3 it is a second
  CHECK_EQ(pthread_key_create(&late_key, &free_late), 0);
  pthread_barrier_init(&begin, NULL, n_workers + 1);
  pthread_barrier_init(&done, NULL, n_workers + 1);
  for (size_t i = 0; i < n_slots; i++) atomic_store(&slots[i].size, 1); // touched: not part of the account
  workers_start(&rng);
  size_t base = rss_now();
  for (size_t phase = 0; phase < n; phase++) check_phase(phase, &rng, base);
  CHECK(mi_heap_check(NULL));
  return check_result();
}
