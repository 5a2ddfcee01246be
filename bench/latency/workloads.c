// The workloads whose calls are timed.  Each thread writes into every OS page of a block, outside of the timed call.
#include <math.h>

#include "latency.h"

static void touch(unsigned char* p, size_t size) {
  for (size_t at = 0; at < size; at += 4096) p[at] = 1;
  p[size - 1] = 1;
}

typedef struct held_s {
  unsigned char* p;
  size_t         size;
} held_t;

static void held_get(latency_t* l, held_t* h, size_t size) {
  h->p = (unsigned char*)latency_malloc(l, size);
  h->size = size;
  touch(h->p, size);
}

static void held_put(latency_t* l, held_t* h) {
  if (h->p != NULL) latency_free(l, h->p, h->size);
  h->p = NULL;
}

// Uniform in the logarithm.
static size_t log_uniform(uint64_t* random, size_t low, size_t high) {
  double x = (double)(bench_random(random) >> 11) / 9007199254740992.0;
  return (size_t)((double)low * pow((double)high / (double)low, x));
}

// ---- mixed: 20000 live blocks of 16 to 4096 bytes, one at random replaced at a time -------------------------------------

static void run_mixed(latency_t* l, size_t index, size_t n_rounds) {
  enum { n_live = 20000, n_steps = 100000 };
  uint64_t random = bench_random_seed(index);
  held_t*  live = (held_t*)calloc(n_live, sizeof(held_t));
  for (size_t i = 0; i < n_rounds * n_steps; i++) {
    held_t* h = &live[bench_random_below(&random, n_live)];
    held_put(l, h);
    held_get(l, h, log_uniform(&random, 16, 4096));
  }
  for (size_t i = 0; i < n_live; i++) held_put(l, &live[i]);
  free(live);
}

// ---- large: 64 live blocks of 64 KiB to 4 MiB, one at random replaced at a time --------------------------------------------

static void run_large(latency_t* l, size_t index, size_t n_rounds) {
  enum { n_live = 64, n_steps = 200 };
  uint64_t random = bench_random_seed(index);
  held_t   live[n_live] = {{NULL, 0}};
  for (size_t i = 0; i < n_rounds * n_steps; i++) {
    held_t* h = &live[bench_random_below(&random, n_live)];
    held_put(l, h);
    held_get(l, h, log_uniform(&random, 64 << 10, 4 << 20));
  }
  for (size_t i = 0; i < n_live; i++) held_put(l, &live[i]);
}

// ---- swing: 16 MiB of small blocks are made, and most of them freed, again and again ----------------------------------------

static void run_swing(latency_t* l, size_t index, size_t n_rounds) {
  enum { n_live = 60000 };
  uint64_t random = bench_random_seed(index);
  held_t*  live = (held_t*)calloc(n_live, sizeof(held_t));
  for (size_t round = 0; round < n_rounds; round++) {
    for (size_t i = 0; i < n_live; i++) {
      if (live[i].p == NULL) held_get(l, &live[i], log_uniform(&random, 32, 2048));
    }
    for (size_t i = 0; i < n_live; i++) {
      if (bench_random_below(&random, 20) != 0) held_put(l, &live[i]);
    }
  }
  for (size_t i = 0; i < n_live; i++) held_put(l, &live[i]);
  free(live);
}

// ---- server: sessions that live for a time with a lognormal distribution; a request reads, works and answers -----------------
// A session belongs to no thread: the next request is served, and its end seen, by any of them.

enum { n_sessions = 4000, n_session_blocks = 12 };

typedef struct session_s {
  pthread_mutex_t lock;
  uint64_t        n_left; // requests until its end; 0: there is none
  held_t          state[n_session_blocks];
} session_t;

static session_t sessions[n_sessions];

// About 10 requests; one in a hundred has 500 and more.
static uint64_t lifetime(uint64_t* random) {
  double u = (double)((bench_random(random) >> 11) + 1) / 9007199254740993.0;
  double v = (double)(bench_random(random) >> 11) / 9007199254740992.0;
  return 1 + (uint64_t)exp(2.3 + 1.7 * sqrt(-2 * log(u)) * cos(6.283185307179586 * v));
}

static void session_end(latency_t* l, session_t* s) {
  for (size_t i = 0; i < n_session_blocks; i++) held_put(l, &s->state[i]);
}

static void session_begin(latency_t* l, session_t* s, uint64_t* random) {
  s->n_left = lifetime(random);
  for (size_t i = 0; i < n_session_blocks; i++) held_get(l, &s->state[i], log_uniform(random, 24, 1500));
}

static void serve(latency_t* l, uint64_t* random) {
  enum { n_parts = 20 };
  held_t     request, answer, parts[n_parts];
  session_t* s = &sessions[bench_random_below(random, n_sessions)];
  held_get(l, &request, log_uniform(random, 200, 8000));
  pthread_mutex_lock(&s->lock);
  if (s->n_left == 0) session_begin(l, s, random);
  for (size_t i = 0; i < n_parts; i++) held_get(l, &parts[i], log_uniform(random, 16, 400));
  held_t* state = &s->state[bench_random_below(random, n_session_blocks)];
  held_put(l, state);
  held_get(l, state, log_uniform(random, 24, 1500));
  if (--s->n_left == 0) session_end(l, s);
  pthread_mutex_unlock(&s->lock);
  held_get(l, &answer, log_uniform(random, 500, 200000));
  for (size_t i = 0; i < n_parts; i++) held_put(l, &parts[i]);
  held_put(l, &request);
  held_put(l, &answer);
}

static void run_server(latency_t* l, size_t index, size_t n_rounds) {
  enum { n_requests = 4000 };
  uint64_t random = bench_random_seed(index);
  for (size_t i = 0; i < n_rounds * n_requests; i++) serve(l, &random);
}

// ---- all ----------------------------------------------------------------------------------------------------------------------

static const workload_t workloads[] = {
    {"mixed", &run_mixed}, {"server", &run_server}, {"large", &run_large}, {"swing", &run_swing}};

const workload_t* workload_named(const char* name) {
  for (size_t i = 0; i < sizeof(workloads) / sizeof(workloads[0]); i++) {
    if (strcmp(workloads[i].name, name) == 0) return &workloads[i];
  }
  return NULL;
}

void workload_prepare(size_t n_threads) {
  (void)n_threads;
  for (size_t i = 0; i < n_sessions; i++) pthread_mutex_init(&sessions[i].lock, NULL);
}
