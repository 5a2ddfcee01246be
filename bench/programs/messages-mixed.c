// messages-mixed: messages of many sizes, which two threads send each other.
//
// Pattern   Pairs of threads. Each thread sends blocks of random sizes to its partner through a bounded ring, and verifies
//           and frees what the partner sends. So each thread allocates as much as it frees, and all that it frees came
//           from its partner.
// Idea      Actors, request and response, exchanges between ranks. With many sizes, hardly two blocks that are freed one
//           after the other lie in the same page: what is done for each page is done for each block.
// Check     The first 16 bytes and the last byte of each message, and the number and sum of all.
// Usage     messages-mixed [PAIRS = 1] [MESSAGES = 3000000] [SIZES = 7985] [MAX = 8000] [RING = 1024]
//           MESSAGES: from each thread; SIZES: how many sizes, evenly from 16 to MAX; RING: how many messages are on
//           their way at most, in each direction, a power of 2
#include "ring.h"

#define SIZE_MIN    16
#define THREADS_MAX BENCH_THREADS_MAX
#define BURST       32 // messages that a thread sends before it looks for those of its partner

struct message_s {
  uint64_t tag;
  uint32_t size;
  uint32_t number;
};

typedef struct worker_s {
  _Alignas(64) uint64_t random;
  size_t   sent;
  size_t   received;
  uint64_t sum; // of the tags received
  ring_t   out; // to its partner
} worker_t;

static size_t   n_messages, n_sizes, size_max;
static worker_t workers[THREADS_MAX];

static uint64_t tag_of(size_t sender, size_t number) {
  return (number * THREADS_MAX + sender + 1) * 0x9E3779B97F4A7C15u;
}

static message_t* message_new(worker_t* w) {
  size_t     i = bench_random_below(&w->random, n_sizes);
  size_t     size = SIZE_MIN + (2 * i + 1) * (size_max - SIZE_MIN + 1) / (2 * n_sizes);
  message_t* message = bench_not_null(malloc(size));
  message->tag = tag_of((size_t)(w - workers), w->sent);
  message->size = (uint32_t)size;
  message->number = (uint32_t)w->sent;
  if (size > sizeof(message_t)) ((unsigned char*)message)[size - 1] = (unsigned char)size;
  return message;
}

static void message_free(worker_t* w, size_t sender, message_t* message) {
  size_t size = message->size;
  if (message->number != (uint32_t)w->received || message->tag != tag_of(sender, w->received)) bench_fail("a message");
  if (size > sizeof(message_t) && ((unsigned char*)message)[size - 1] != (unsigned char)size)
    bench_fail("the last byte of a message");
  w->received++;
  w->sum += message->tag;
  free(message);
}

// The partner is the other of the pair.
static void worker_run(size_t index) {
  worker_t* w = &workers[index];
  worker_t* partner = &workers[index ^ 1];
  while (w->sent < n_messages || w->received < n_messages) {
    bool has_any = false;
    for (size_t n = 0; n < BURST && w->sent < n_messages && ring_has_room(&w->out); n++, has_any = true) {
      ring_put(&w->out, message_new(w));
      w->sent++;
    }
    for (message_t* m; (m = ring_take(&partner->out)) != NULL; has_any = true) message_free(w, index ^ 1, m);
    if (!has_any) rest();
  }
}

int main(int argc, char** argv) {
  size_t n_threads = 2 * bench_argument(argc, argv, 1, "PAIRS", 1, THREADS_MAX / 2);
  n_messages = bench_argument(argc, argv, 2, "MESSAGES", 3000000, SIZE_MAX / THREADS_MAX);
  n_sizes = bench_argument(argc, argv, 3, "SIZES", 7985, UINT32_MAX);
  size_max = bench_argument(argc, argv, 4, "MAX", 8000, UINT32_MAX / 2);
  ring_size = bench_argument(argc, argv, 5, "RING", 1024, UINT32_MAX);
  if (size_max < SIZE_MIN) {
    fprintf(stderr, "%s: MAX must be at least %d\n", argv[0], SIZE_MIN);
    return 2;
  }
  if ((ring_size & (ring_size - 1)) != 0) {
    fprintf(stderr, "%s: RING must be a power of 2, not %zu\n", argv[0], ring_size);
    return 2;
  }
  for (size_t i = 0; i < n_threads; i++) {
    workers[i].random = bench_random_seed(i);
    ring_begin(&workers[i].out);
  }
  bench_threads_run(n_threads, worker_run);
  uint64_t received = 0;
  uint64_t sent = 0;
  for (size_t i = 0; i < n_threads; i++) {
    received += workers[i].sum;
    for (size_t n = 0; n < n_messages; n++) sent += tag_of(i, n);
    free(workers[i].out.slots);
  }
  if (received != sent) bench_fail("the sum of the messages");
  printf("messages-mixed %zu %zu %zu %zu %zu: %016llx\n", n_threads / 2, n_messages, n_sizes, size_max, ring_size,
         (unsigned long long)received);
  return 0;
}
