// rptest: blocks of up to 16 kB, replaced at random; every second time the old ones are passed on to another thread.
//
// Pattern   Each thread holds BLOCKS blocks. In each loop it replaces OPS random ones, and frees the old ones; in every
//           CROSS-th loop it sends the old ones to the next thread instead, as one list, and that one frees them. Sizes
//           from MIN to MAX, their probability falling linearly to 0 at MAX.
// Idea      The benchmark that comes with rpmalloc: random sizes with a probability that falls linearly, a number of
//           blocks held, and every so many loops a deallocation across threads.
// Check     8 of the first 16 bytes and the last byte of each block, when it is freed; that the tags of the blocks
//           freed sum up to those of the blocks allocated.
// Usage     rptest [THREADS = 2] [LOOPS = 20000] [BLOCKS = 1000] [OPS = 100] [CROSS = 2] [MIN = 16] [MAX = 16000]
#include <stdbool.h>
#include <time.h>
#include "bench.h"

#define MAILBOX_LISTS 8

typedef struct block_s {
  struct block_s* next; // in a list that is passed on
  uint32_t        tag;  // the size follows from it
  uint32_t        check;
} block_t;

// The lists that a thread has been sent and not yet freed. Bounded, else the memory needed would depend on how the
// threads are scheduled.
typedef struct mailbox_s {
  _Alignas(64) pthread_mutex_t lock;
  size_t   n_lists;
  block_t* lists[MAILBOX_LISTS];
} mailbox_t;

typedef struct worker_s {
  size_t     index;
  uint64_t   random;
  uint64_t   sum_allocated, sum_freed; // of the tags
  size_t     n_received;               // lists
  block_t**  blocks;
  mailbox_t* mailbox;
} worker_t;

static size_t    n_threads, n_loops, n_blocks, n_ops, cross, size_min, size_max;
static mailbox_t mailboxes[BENCH_THREADS_MAX];
static worker_t  workers[BENCH_THREADS_MAX]; // each written once, at the end of its thread

static void rest(void) {
  nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

// The smaller one of two random numbers: its probability falls linearly.
static size_t size_of(uint32_t tag) {
  uint64_t a = tag >> 16, b = tag & 0xFFFF;
  return size_min + (size_t)((a < b ? a : b) * (size_max - size_min + 1) >> 16);
}

static uint32_t check_of(uint32_t tag) {
  return tag * 0x9E3779B1u + 1;
}

static block_t* block_new(worker_t* w) {
  uint32_t tag = (uint32_t)(bench_random(&w->random) >> 32);
  size_t   size = size_of(tag);
  block_t* block = bench_not_null(malloc(size));
  ((unsigned char*)block)[size - 1] = (unsigned char)tag;
  block->tag = tag;
  block->check = check_of(tag);
  w->sum_allocated += tag;
  return block;
}

static void block_free(worker_t* w, block_t* block) {
  uint32_t tag = block->tag;
  size_t   size = size_of(tag);
  if (block->check != check_of(tag)) bench_fail("the first bytes of a block");
  if (size > sizeof(block_t) && ((unsigned char*)block)[size - 1] != (unsigned char)tag)
    bench_fail("the last byte of a block");
  w->sum_freed += tag;
  free(block);
}

// Frees what this thread has been sent.
static bool worker_receive(worker_t* w) {
  block_t* lists[MAILBOX_LISTS];
  pthread_mutex_lock(&w->mailbox->lock);
  size_t n = w->mailbox->n_lists;
  for (size_t i = 0; i < n; i++) lists[i] = w->mailbox->lists[i];
  w->mailbox->n_lists = 0;
  pthread_mutex_unlock(&w->mailbox->lock);
  for (size_t i = 0; i < n; i++) {
    for (block_t *block = lists[i], *next; block != NULL; block = next) {
      next = block->next;
      block_free(w, block);
    }
  }
  w->n_received += n;
  return n > 0;
}

static bool mailbox_put(mailbox_t* mailbox, block_t* list) {
  pthread_mutex_lock(&mailbox->lock);
  bool has_room = mailbox->n_lists < MAILBOX_LISTS;
  if (has_room) mailbox->lists[mailbox->n_lists++] = list;
  pthread_mutex_unlock(&mailbox->lock);
  return has_room;
}

// A thread that waits for room frees what it is sent meanwhile, so a ring of full mailboxes does not block itself.
static void worker_send(worker_t* w, block_t* list) {
  while (!mailbox_put(&mailboxes[(w->index + 1) % n_threads], list)) {
    if (!worker_receive(w)) rest();
  }
}

static void worker_loop(worker_t* w, bool is_crossing) {
  block_t* list = NULL;
  for (size_t i = 0; i < n_ops; i++) {
    block_t** slot = &w->blocks[bench_random_below(&w->random, n_blocks)];
    if (is_crossing) {
      (*slot)->next = list;
      list = *slot;
    }
    else {
      block_free(w, *slot);
    }
    *slot = block_new(w);
  }
  if (is_crossing) worker_send(w, list);
}

static void thread_run(size_t index) {
  worker_t w = {.index = index, .random = bench_random_seed(index), .mailbox = &mailboxes[index]};
  w.blocks = bench_not_null(malloc(n_blocks * sizeof(block_t*)));
  for (size_t i = 0; i < n_blocks; i++) w.blocks[i] = block_new(&w);
  for (size_t i = 1; i <= n_loops; i++) {
    worker_loop(&w, i % cross == 0);
    worker_receive(&w);
  }
  for (size_t i = 0; i < n_blocks; i++) block_free(&w, w.blocks[i]);
  free(w.blocks);
  while (w.n_received < n_loops / cross) {
    if (!worker_receive(&w)) rest();
  }
  workers[index] = w;
}

int main(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  n_loops = bench_argument(argc, argv, 2, "LOOPS", 20000, SIZE_MAX - 1);
  n_blocks = bench_argument(argc, argv, 3, "BLOCKS", 1000, UINT32_MAX);
  n_ops = bench_argument(argc, argv, 4, "OPS", 100, UINT32_MAX);
  cross = bench_argument(argc, argv, 5, "CROSS", 2, SIZE_MAX);
  size_min = bench_argument(argc, argv, 6, "MIN", 16, INT32_MAX);
  size_max = bench_argument(argc, argv, 7, "MAX", 16000, INT32_MAX);
  if (size_min < sizeof(block_t) || size_max < size_min) {
    fprintf(stderr, "%s: MIN must be %zu or more, and MAX not below it\n", argv[0], sizeof(block_t));
    return 2;
  }
  for (size_t i = 0; i < n_threads; i++) pthread_mutex_init(&mailboxes[i].lock, NULL);
  bench_threads_run(n_threads, &thread_run);
  uint64_t sum_allocated = 0, sum_freed = 0;
  for (size_t i = 0; i < n_threads; i++) {
    sum_allocated += workers[i].sum_allocated;
    sum_freed += workers[i].sum_freed;
  }
  if (sum_freed != sum_allocated) bench_fail("the blocks freed are not those allocated");
  printf("rptest %zu %zu %zu %zu %zu %zu %zu: %016llx\n", n_threads, n_loops, n_blocks, n_ops, cross, size_min,
         size_max, (unsigned long long)sum_allocated);
  return 0;
}
