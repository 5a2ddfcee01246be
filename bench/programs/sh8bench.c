// sh8bench: bursts of blocks of one size, half of them freed by another thread than the one that allocated them.
//
// Pattern   As in sh6bench each thread goes round a cycle of sizes from 1 to 1000 bytes and allocates a burst of blocks
//           at each, of the small sizes more than of the large ones. Of three bursts one is freed where it was
//           allocated, one goes to the next thread, which frees it, and of the third every other block stays and is
//           freed at once while the rest goes. The next thread frees in turns last block first and first block first.
// Idea      MicroQuill's benchmark for SmartHeap, by its published description: a stress test for many threads where
//           some objects are freed by other threads, and some in the reverse order.
// Check     The first and the last byte of each block, when it is freed; the number of bursts that arrive.
// Usage     sh8bench [THREADS = 4] [CYCLES = 700]      CYCLES: of each thread
//
// The threads form a ring. One lock for all inboxes is enough: it is taken twice for hundreds of blocks. A thread waits
// only where the inbox of the next one is full and its own is empty, which cannot be true for all of them at once.
#include "bench.h"

#define INBOX_MAX 64 // bursts

static const uint16_t sizes[] = {1,   8,  12,  16, 20,  24, 32,  16, 40, 8,  48,  64, 24,  72, 100, 16, 32, 128,
                                 150, 24, 200, 48, 256, 12, 300, 64, 36, 16, 400, 96, 500, 40, 700, 24, 16, 1000};
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

typedef struct burst_s {
  struct burst_s* next; // in an inbox
  size_t          count;
  size_t          size;
  unsigned char   fill; // of the first block; counts up
  unsigned char*  blocks[];
} burst_t;

// All under `lock`.
typedef struct inbox_s {
  burst_t*       first;
  burst_t*       last;
  size_t         count;
  pthread_cond_t changed; // what the owner may be waiting for: a burst here, or room in the next inbox
} inbox_t;

static size_t          n_threads, n_cycles;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static inbox_t         inboxes[BENCH_THREADS_MAX];
static uint64_t        sums[BENCH_THREADS_MAX]; // each written once, at the end of its thread

// ---- bursts

// 50 blocks of 1000 bytes, 680 of 8.
static size_t burst_count(size_t size) {
  return 35 + 16000 / (size + 17);
}

static burst_t* burst_new(size_t size, unsigned char fill) {
  size_t   count = burst_count(size);
  burst_t* burst = bench_not_null(malloc(sizeof(burst_t) + count * sizeof(unsigned char*)));
  burst->count = count;
  burst->size = size;
  burst->fill = fill;
  for (size_t i = 0; i < count; i++) {
    unsigned char* block = bench_not_null(malloc(size));
    block[size - 1] = block[0] = (unsigned char)(fill + i);
    burst->blocks[i] = block;
  }
  return burst;
}

static uint64_t block_free(burst_t* burst, size_t i) {
  unsigned char* block = burst->blocks[i];
  unsigned char  fill = (unsigned char)(burst->fill + i);
  if (block == NULL) return 0;
  if (block[0] != fill || block[burst->size - 1] != fill) bench_fail("a block of %zu bytes", burst->size);
  free(block);
  burst->blocks[i] = NULL;
  return (uint64_t)burst->size + fill;
}

static uint64_t burst_free_every_other(burst_t* burst) {
  uint64_t sum = 0;
  for (size_t i = 0; i < burst->count; i += 2) sum += block_free(burst, i);
  return sum;
}

static uint64_t burst_free(burst_t* burst, size_t is_last_first) {
  uint64_t sum = 0;
  for (size_t i = 0; i < burst->count; i++) sum += block_free(burst, is_last_first ? burst->count - 1 - i : i);
  free(burst);
  return sum;
}

// ---- inboxes

// Called with the lock.
static void inbox_put(inbox_t* inbox, burst_t* burst) {
  burst->next = NULL;
  if (inbox->count++ == 0) inbox->first = burst;
  else inbox->last->next = burst;
  inbox->last = burst;
  if (inbox->count == 1) pthread_cond_signal(&inbox->changed);
}

// Takes all bursts of the thread's own inbox, NULL if there are none. Called with the lock.
static burst_t* inbox_take(size_t index) {
  inbox_t* inbox = &inboxes[index];
  burst_t* first = inbox->first;
  if (inbox->count >= INBOX_MAX) pthread_cond_signal(&inboxes[(index + n_threads - 1) % n_threads].changed);
  inbox->first = inbox->last = NULL;
  inbox->count = 0;
  return first;
}

// Sends `burst` (or nothing, if NULL) to the next thread and takes what has arrived, waiting until one of both is
// possible; *sent says whether it was sent.
static burst_t* inbox_exchange(size_t index, burst_t* burst, int* sent) {
  inbox_t* inbox = &inboxes[index];
  inbox_t* next = &inboxes[(index + 1) % n_threads];
  pthread_mutex_lock(&lock);
  while (inbox->count == 0 && (burst == NULL || next->count >= INBOX_MAX)) pthread_cond_wait(&inbox->changed, &lock);
  *sent = burst != NULL && next->count < INBOX_MAX;
  if (*sent) inbox_put(next, burst);
  burst_t* arrived = inbox_take(index);
  pthread_mutex_unlock(&lock);
  return arrived;
}

// ---- threads

typedef struct receipt_s {
  size_t   count; // of bursts
  uint64_t sum;
} receipt_t;

static void receive(receipt_t* receipt, burst_t* arrived) {
  while (arrived != NULL) {
    burst_t* next = arrived->next;
    receipt->sum += burst_free(arrived, receipt->count++ % 2);
    arrived = next;
  }
}

static void thread_run(size_t index) {
  receipt_t receipt = {0, 0};
  uint64_t  sum = 0;
  size_t    n_sent = 0;
  for (size_t i = 0; i < n_cycles * N_SIZES; i++) {
    burst_t* burst = burst_new(sizes[(i + index) % N_SIZES], (unsigned char)(i + index));
    if (i % 3 == 0) {
      sum += burst_free(burst, 1);
      continue;
    }
    if (i % 3 == 1) sum += burst_free_every_other(burst);
    int is_sent;
    do receive(&receipt, inbox_exchange(index, burst, &is_sent));
    while (!is_sent);
    n_sent++;
  }
  // Every thread sends as many.
  while (receipt.count < n_sent) {
    int is_sent;
    receive(&receipt, inbox_exchange(index, NULL, &is_sent));
  }
  if (receipt.count != n_sent) bench_fail("%zu bursts arrived instead of %zu", receipt.count, n_sent);
  sums[index] = sum + receipt.sum;
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 4, BENCH_THREADS_MAX);
  n_cycles = bench_argument(argc, argv, 2, "CYCLES", 700, SIZE_MAX / N_SIZES);
  for (size_t i = 0; i < n_threads; i++) pthread_cond_init(&inboxes[i].changed, NULL);
  bench_threads_run(n_threads, &thread_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum += sums[i];
  printf("sh8bench %zu %zu: %016llx\n", n_threads, n_cycles, (unsigned long long)sum);
  return 0;
}
