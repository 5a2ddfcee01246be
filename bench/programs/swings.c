// swings: what is in use goes up and down by much within milliseconds.
//
// Pattern   Each thread makes steps, whose results take the places of random ones of KEPT.  Sizes are up to MAX KiB, uniform in the
//           logarithm over six octaves.
//           sums: two arrays of one size are made, and a third is their sum; the first two are dropped.
//           stages: an array is made from the one before, which is dropped then, twelve times, each time in another size.
//           windows: up to 16 arrays are alive at a time, the oldest one goes first; after each 64 all of them go.
//           vectors: an array grows by twice from 1 KiB to its size, and each time moves.
//           buffers: an array begins with 1 KiB, and grows by twice, by realloc, in each step that comes by; beyond its size it goes.
// Idea      Expressions over arrays, pipelines of filters, decoded frames, containers that grow: a program that needs 5 MiB at one
//           moment and 100 MiB at the next.  Giving back what is free pays only if it stays free.
// Check     A word in every 4 KiB of each array, at its end.
// Usage     swings [PATTERN = sums] [MAX = 4096] [KEPT = 8] [STEPS = 3000] [THREADS = 1]
#define STAMP_EACH 4096
#include "stamps.h"

#define STAGES   12
#define WINDOW   16
#define WINDOWS  64
#define KEPT_MAX 256

typedef struct worker_s {
  uint64_t random_state, sum;
  buffer_t kept[KEPT_MAX];
} worker_t;

static size_t   size_max, n_kept, n_steps;
static worker_t workers[BENCH_THREADS_MAX];
static void (*step)(worker_t* worker, buffer_t* result);

static size_t array_size(worker_t* worker) {
  size_t top = size_max >> bench_random_below(&worker->random_state, 6);
  return top / 2 + bench_random_below(&worker->random_state, top / 2) + 1;
}

static void array_make(worker_t* worker, buffer_t* a, size_t size) {
  buffer_make(a, size, bench_random(&worker->random_state));
}

static void array_end(worker_t* worker, buffer_t* a) {
  worker->sum = worker->sum * 31 + buffer_end(a);
}

static void step_sums(worker_t* worker, buffer_t* result) {
  buffer_t a, b;
  size_t   size = array_size(worker);
  array_make(worker, &a, size);
  array_make(worker, &b, size);
  array_make(worker, result, size);
  array_end(worker, &a);
  array_end(worker, &b);
}

static void step_stages(worker_t* worker, buffer_t* result) {
  array_make(worker, result, array_size(worker));
  for (int i = 1; i < STAGES; i++) {
    buffer_t input = *result;
    array_make(worker, result, array_size(worker));
    array_end(worker, &input);
  }
}

static void step_windows(worker_t* worker, buffer_t* result) {
  buffer_t arrays[WINDOW];
  for (int i = 0; i < WINDOWS; i++) {
    if (i >= WINDOW) array_end(worker, &arrays[i % WINDOW]);
    array_make(worker, &arrays[i % WINDOW], array_size(worker));
  }
  for (int i = 0; i < WINDOW; i++) array_end(worker, &arrays[i]);
  array_make(worker, result, array_size(worker));
}

static void step_vectors(worker_t* worker, buffer_t* result) {
  size_t size = array_size(worker);
  array_make(worker, result, 1024);
  while (result->size < size) buffer_copy(result, 2 * result->size);
}

// What is there is the one before.
static void step_buffers(worker_t* worker, buffer_t* result) {
  size_t top = size_max >> result->key % 6;
  if (result->bytes != NULL && result->size < top) {
    buffer_resize(result, 2 * result->size);
    return;
  }
  if (result->bytes != NULL) array_end(worker, result);
  array_make(worker, result, 1024);
}

static void worker_run(size_t index) {
  worker_t* worker = &workers[index];
  worker->random_state = bench_random_seed(size_max + index);
  for (size_t i = 0; i < n_steps; i++) {
    buffer_t* place = &worker->kept[bench_random_below(&worker->random_state, n_kept)];
    if (place->bytes != NULL && step != &step_buffers) array_end(worker, place);
    step(worker, place);
  }
  for (size_t i = 0; i < n_kept; i++)
    if (worker->kept[i].bytes != NULL) array_end(worker, &worker->kept[i]);
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "sums";
  size_max = bench_argument(argc, argv, 2, "MAX", 4096, 1 << 22) << 10;
  n_kept = bench_argument(argc, argv, 3, "KEPT", 8, KEPT_MAX);
  n_steps = bench_argument(argc, argv, 4, "STEPS", 3000, SIZE_MAX);
  size_t n_threads = bench_argument(argc, argv, 5, "THREADS", 1, BENCH_THREADS_MAX);
  if (strcmp(name, "sums") == 0) step = &step_sums;
  else if (strcmp(name, "stages") == 0) step = &step_stages;
  else if (strcmp(name, "windows") == 0) step = &step_windows;
  else if (strcmp(name, "vectors") == 0) step = &step_vectors;
  else if (strcmp(name, "buffers") == 0) step = &step_buffers;
  else {
    fprintf(stderr, "%s: the pattern is sums, stages, windows, vectors or buffers, not '%s'\n", argv[0], name);
    return 2;
  }
  if (n_threads == 1) worker_run(0); // and no other thread
  else bench_threads_run(n_threads, &worker_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum = sum * 31 + workers[i].sum;
  printf("swings %s %zu %zu %zu %zu: %016llx\n", name, size_max >> 10, n_kept, n_steps, n_threads,
         (unsigned long long)sum);
  return 0;
}
