// mstress: phases of new threads; blocks of very mixed sizes and ages, some of which migrate between the threads.
//
// Pattern   In each phase all threads are new. A thread allocates blocks, most of 16 bytes to 2 KiB, 1 of 128 up to
//           32 KiB, 1 of 2048 up to 512 KiB. It keeps 1 of 8 until it ends, and the others in a small window. 1 of 8
//           times it exchanges a block of its own for one in a table that all threads share; what is there when a phase
//           ends survives it. Every fourth phase half of the table is freed. Not all threads have equally much to do:
//           half, once or one and a half times the average, in turn.
// Idea      mimalloc's stress test as a benchmark: "simulates real-world server-like allocation patterns", where
//           "objects can migrate between threads and some have long life times", and "after each phase all threads are
//           destroyed and new threads created where some objects survive between phases" (README of mimalloc-bench).
// Check     The first 16 bytes, one word of each 512 bytes, and the last word of each block, when it is freed; that the
//           tags of the blocks freed sum up to those of the blocks allocated.
// Usage     mstress [THREADS = 2] [SCALE = 25] [PHASES = 300]
//           SCALE: thousands of blocks that a thread allocates in a phase, on average
#include <stdatomic.h>
#include <stdbool.h>
#include "bench.h"

#define TRANSFER_SLOTS 1024
#define WINDOW         256
#define KEEP_EACH      8
#define EXCHANGE_EACH  8
#define RELEASE_EACH   4  // phases
#define CHECK_STEP     64 // words

typedef struct block_s {
  uint64_t tag;
  uint64_t n_words; // of the whole block
  uint64_t words[];
} block_t;

#define HEADER_WORDS (sizeof(block_t) / sizeof(uint64_t))

// What a thread does in one phase. What it draws must not depend on what it receives.
typedef struct worker_s {
  uint64_t  random;
  uint64_t  sum; // of the tags of the blocks allocated, less those freed
  uint64_t  sum_allocated;
  block_t*  window[WINDOW];
  block_t** kept;
  size_t    n_kept;
} worker_t;

static size_t            n_threads, n_steps, phase;
static _Atomic(block_t*) transfer[TRANSFER_SLOTS];
static uint64_t          sums[BENCH_THREADS_MAX], sums_allocated[BENCH_THREADS_MAX];

// The number of significant bits of a size in words: 2 to 8, rarely up to 12 or 16.
static unsigned draw_bits(uint64_t* random) {
  size_t r = bench_random_below(random, 2048);
  if (r == 0) return 13 + (unsigned)bench_random_below(random, 4);
  if (r <= 16) return 9 + (unsigned)bench_random_below(random, 4);
  return 2 + (unsigned)bench_random_below(random, 7);
}

static block_t* block_new(worker_t* w) {
  size_t   top = (size_t)1 << (draw_bits(&w->random) - 1);
  size_t   n_words = top + bench_random_below(&w->random, top);
  block_t* block = bench_not_null(malloc(n_words * sizeof(uint64_t)));
  block->tag = bench_random(&w->random);
  block->n_words = n_words;
  for (size_t i = HEADER_WORDS; i < n_words; i += CHECK_STEP) block->words[i - HEADER_WORDS] = block->tag + i;
  if (n_words > HEADER_WORDS) block->words[n_words - 1 - HEADER_WORDS] = block->tag + n_words - 1;
  w->sum += block->tag;
  w->sum_allocated += block->tag;
  return block;
}

// Gives the tag; 0 for NULL.
static uint64_t block_free(block_t* block) {
  if (block == NULL) return 0;
  uint64_t tag = block->tag;
  size_t   n_words = block->n_words;
  for (size_t i = HEADER_WORDS; i < n_words; i += CHECK_STEP) {
    if (block->words[i - HEADER_WORDS] != tag + i) bench_fail("word %zu of a block of %zu", i, n_words);
  }
  if (n_words > HEADER_WORDS && block->words[n_words - 1 - HEADER_WORDS] != tag + n_words - 1)
    bench_fail("the last word of a block of %zu", n_words);
  free(block);
  return tag;
}

// Acquire and release: the content of the blocks must pass with them.
static void worker_exchange(worker_t* w, block_t** mine) {
  size_t at = bench_random_below(&w->random, TRANSFER_SLOTS);
  *mine = atomic_exchange_explicit(&transfer[at], *mine, memory_order_acq_rel);
}

static void worker_step(worker_t* w) {
  block_t* block = block_new(w);
  uint64_t r = bench_random(&w->random) >> 16; // the low bits of these numbers are the worse ones
  if (r % KEEP_EACH == 0) {
    w->kept[w->n_kept++] = block;
  }
  else {
    block_t** young = &w->window[(r >> 8) % WINDOW];
    w->sum -= block_free(*young);
    *young = block;
  }
  if ((r >> 16) % EXCHANGE_EACH != 0) return;
  bool is_old = (r >> 24) % 2 == 0 && w->n_kept > 0;
  worker_exchange(w, is_old ? &w->kept[bench_random_below(&w->random, w->n_kept)] : &w->window[(r >> 8) % WINDOW]);
}

static void thread_run(size_t index) {
  worker_t w = {.random = bench_random_seed(phase * BENCH_THREADS_MAX + index)};
  size_t   n = n_steps * (1 + (index + phase) % 3) / 2;
  w.kept = bench_not_null(malloc(n * sizeof(block_t*)));
  for (size_t i = 0; i < n; i++) worker_step(&w);
  for (size_t i = 0; i < w.n_kept; i++) w.sum -= block_free(w.kept[i]);
  for (size_t i = 0; i < WINDOW; i++) w.sum -= block_free(w.window[i]);
  free(w.kept);
  sums[index] += w.sum;
  sums_allocated[index] += w.sum_allocated;
}

// Frees each step-th block of the table; gives the sum of their tags.
static uint64_t transfer_release(size_t step) {
  uint64_t sum = 0;
  for (size_t i = 0; i < TRANSFER_SLOTS; i += step) sum += block_free(atomic_exchange(&transfer[i], NULL));
  return sum;
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  size_t scale = bench_argument(argc, argv, 2, "SCALE", 25, UINT32_MAX);
  size_t n_phases = bench_argument(argc, argv, 3, "PHASES", 300, UINT32_MAX);
  n_steps = scale * 1000;
  uint64_t released = 0;
  for (phase = 0; phase < n_phases; phase++) {
    bench_threads_run(n_threads, &thread_run);
    if (phase % RELEASE_EACH == RELEASE_EACH - 1) released += transfer_release(2);
  }
  released += transfer_release(1);
  uint64_t sum = 0, sum_allocated = 0;
  for (size_t i = 0; i < n_threads; i++) {
    sum += sums[i];
    sum_allocated += sums_allocated[i];
  }
  if (sum != released) bench_fail("the blocks freed are not those allocated");
  printf("mstress %zu %zu %zu: %016llx\n", n_threads, scale, n_phases, (unsigned long long)sum_allocated);
  return 0;
}
