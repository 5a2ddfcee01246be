// xmalloc-test: some threads only allocate, others only free.
//
// Pattern   Each of THREADS allocating threads fills batches of 4096 blocks and puts them into a queue; as many freeing
//           threads take batches out of it. Half of the blocks have SIZE bytes, a quarter twice, and so on to 8 times.
//           The queue is bounded, and passes whole batches under a mutex, so it costs little.
// Idea      C. Lever, D. Boreham, "malloc() Performance in a Multithreaded Linux Environment" (USENIX 2000), as it has
//           become a common test: nothing is ever freed where it was allocated, so what an allocator keeps for a thread
//           to use again runs empty in some threads and overflows in the others.
// Check     All of the first 8 bytes and the last byte of each block, when it is freed: they follow from the number of
//           the batch.
// Usage     xmalloc-test [THREADS = 2] [BATCHES = 2000] [SIZE = 64]
//           THREADS: of each kind; BATCHES: of each allocating thread
#include <string.h>
#include "bench.h"

#define BATCH_BLOCKS       4096
#define BATCHES_PER_THREAD 4

typedef struct batch_s {
  struct batch_s* next;
  uint64_t        seed; // of the random numbers whose tags and sizes the blocks have
  unsigned char*  blocks[BATCH_BLOCKS];
} batch_t;

static size_t n_threads, n_batches, size_smallest;

// The empty batches are what bounds the queue.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  has_empty = PTHREAD_COND_INITIALIZER;
static pthread_cond_t  has_full = PTHREAD_COND_INITIALIZER;
static batch_t *       empty, *full_first, *full_last; // the full ones: first in, first out
static size_t          n_to_take;                      // batches that are not taken yet, or not even filled

static uint64_t sums[2 * BENCH_THREADS_MAX]; // each written once, at the end of its thread

static size_t size_of(uint64_t tag) {
  size_t r = tag >> 61; // the high bits are the better ones
  return size_smallest << (r < 4 ? 0 : r < 6 ? 1 : r < 7 ? 2 : 3);
}

static batch_t* empty_take(void) {
  pthread_mutex_lock(&lock);
  while (empty == NULL) pthread_cond_wait(&has_empty, &lock);
  batch_t* batch = empty;
  empty = batch->next;
  pthread_mutex_unlock(&lock);
  return batch;
}

static void empty_put(batch_t* batch) {
  pthread_mutex_lock(&lock);
  batch->next = empty;
  empty = batch;
  pthread_cond_signal(&has_empty);
  pthread_mutex_unlock(&lock);
}

static void full_put(batch_t* batch) {
  batch->next = NULL;
  pthread_mutex_lock(&lock);
  if (full_first == NULL) full_first = batch;
  else full_last->next = batch;
  full_last = batch;
  pthread_cond_signal(&has_full);
  pthread_mutex_unlock(&lock);
}

// NULL: none will come.
static batch_t* full_take(void) {
  batch_t* batch = NULL;
  pthread_mutex_lock(&lock);
  while (full_first == NULL && n_to_take > 0) pthread_cond_wait(&has_full, &lock);
  if (n_to_take > 0) {
    batch = full_first;
    full_first = batch->next;
    if (--n_to_take == 0) pthread_cond_broadcast(&has_full);
  }
  pthread_mutex_unlock(&lock);
  return batch;
}

static void batch_fill(batch_t* batch, uint64_t seed) {
  uint64_t random = batch->seed = seed;
  for (size_t i = 0; i < BATCH_BLOCKS; i++) {
    uint64_t       tag = bench_random(&random);
    size_t         size = size_of(tag);
    unsigned char* block = bench_not_null(malloc(size));
    block[size - 1] = (unsigned char)tag;
    memcpy(block, &tag, sizeof(tag));
    batch->blocks[i] = block;
  }
}

// Gives the sum of the tags.
static uint64_t batch_free(batch_t* batch) {
  uint64_t random = batch->seed, sum = 0;
  for (size_t i = 0; i < BATCH_BLOCKS; i++) {
    uint64_t       tag = bench_random(&random);
    size_t         size = size_of(tag);
    unsigned char* block = batch->blocks[i];
    if (memcmp(block, &tag, sizeof(tag)) != 0) bench_fail("the first bytes of a block");
    if (size > sizeof(tag) && block[size - 1] != (unsigned char)tag) bench_fail("the last byte of a block");
    sum += tag;
    free(block);
  }
  return sum;
}

static void allocating_run(size_t index) {
  for (size_t i = 0; i < n_batches; i++) {
    batch_t* batch = empty_take();
    batch_fill(batch, bench_random_seed(i * BENCH_THREADS_MAX + index));
    full_put(batch);
  }
}

static void freeing_run(size_t index) {
  uint64_t sum = 0;
  for (batch_t* batch; (batch = full_take()) != NULL;) {
    sum += batch_free(batch);
    empty_put(batch);
  }
  sums[index] = sum;
}

static void thread_run(size_t index) {
  if (index < n_threads) allocating_run(index);
  else freeing_run(index);
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX / 2);
  n_batches = bench_argument(argc, argv, 2, "BATCHES", 2000, UINT32_MAX);
  size_smallest = bench_argument(argc, argv, 3, "SIZE", 64, UINT32_MAX);
  if (size_smallest < sizeof(uint64_t)) {
    fprintf(stderr, "%s: SIZE must be %zu or more\n", argv[0], sizeof(uint64_t));
    return 2;
  }
  n_to_take = n_threads * n_batches;
  batch_t* batches = bench_not_null(malloc(n_threads * BATCHES_PER_THREAD * sizeof(batch_t)));
  for (size_t i = 0; i < n_threads * BATCHES_PER_THREAD; i++) empty_put(&batches[i]);
  bench_threads_run(2 * n_threads, &thread_run);
  free(batches);
  uint64_t sum = 0;
  for (size_t i = 0; i < 2 * n_threads; i++) sum += sums[i];
  printf("xmalloc-test %zu %zu %zu: %016llx\n", n_threads, n_batches, size_smallest, (unsigned long long)sum);
  return 0;
}
