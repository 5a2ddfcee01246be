// messages: blocks that are allocated in one thread and freed in another.
//
// Pattern   Producers send messages of 32 to 1024 bytes to all consumers in turn through bounded rings; a consumer
//           verifies and frees each, and answers 1 of 4 with a fresh message, which the producer verifies and frees.
// Idea      Pipelines and actor systems, where nearly every free is a free from another thread.
// Check     The first 24 bytes and the last byte of each message, and the number and sum of all.
// Usage     messages [PRODUCERS = 2] [CONSUMERS = 2] [MESSAGES = 3000000]      MESSAGES: from each producer
//
// A producer that waits for room takes its answers meanwhile, so the rings cannot block each other.
#include "ring.h"

#define RING_SIZE   1024
#define THREADS_MAX 64
#define ANSWER_EACH 4

struct message_s {
  uint64_t tag;
  uint32_t size;
  uint32_t producer;
  uint64_t number;
};

typedef struct worker_s {
  _Alignas(64) uint64_t random;
  uint64_t       count; // of the messages received and freed
  uint64_t       sum;   // of their tags
  bench_thread_t thread;
  uint32_t       index;
} worker_t;

static size_t   n_producers, n_consumers, n_messages;
static ring_t*  requests; // from producer p to consumer c: [p * n_consumers + c]
static ring_t*  answers;  // and back
static worker_t producers[THREADS_MAX], consumers[THREADS_MAX];

static uint64_t tag_of(uint32_t producer, uint64_t number) {
  return (number * THREADS_MAX + producer + 1) * 0x9E3779B97F4A7C15u;
}

// 32 to 1024 bytes, uniform in the logarithm.
static message_t* message_new(worker_t* w, uint32_t producer, uint64_t number) {
  uint64_t   r = bench_random(&w->random);
  uint32_t   base = 32u << (r >> 32) % 5;
  uint32_t   size = base + (uint32_t)(r & (base - 1)) + 1;
  message_t* message = bench_not_null(malloc(size));
  message->tag = tag_of(producer, number);
  message->size = size;
  message->producer = producer;
  message->number = number;
  ((unsigned char*)message)[size - 1] = (unsigned char)size;
  return message;
}

static void message_free(worker_t* w, message_t* message) {
  if (message->tag != tag_of(message->producer, message->number)) bench_fail("the tag of a message");
  if (((unsigned char*)message)[message->size - 1] != (unsigned char)message->size)
    bench_fail("the last byte of a message");
  w->count++;
  w->sum += message->tag;
  free(message);
}

// Receives what is there; gives whether there was anything.
static bool producer_receive(worker_t* w) {
  bool has_any = false;
  for (size_t c = 0; c < n_consumers; c++) {
    for (message_t* m; (m = ring_take(&answers[w->index * n_consumers + c])) != NULL; has_any = true) {
      if (m->producer != w->index) bench_fail("the producer of an answer");
      message_free(w, m);
    }
  }
  return has_any;
}

static void producer_run(size_t index) {
  worker_t* w = &producers[index];
  for (uint64_t i = 0; i < n_messages; i++) {
    message_t* m = message_new(w, w->index, i);
    ring_t*    ring = &requests[w->index * n_consumers + i % n_consumers];
    while (!ring_has_room(ring)) {
      if (!producer_receive(w)) rest();
    }
    ring_put(ring, m);
    if (i % 64 == 0) producer_receive(w);
  }
  while (w->count < (n_messages + ANSWER_EACH - 1) / ANSWER_EACH) {
    if (!producer_receive(w)) rest();
  }
}

static void consumer_take(worker_t* w, uint32_t p, message_t* m) {
  uint64_t number = m->number;
  if (m->producer != p) bench_fail("the producer of a message");
  message_free(w, m);
  if (number % ANSWER_EACH != 0) return;
  message_t* answer = message_new(w, p, number);
  ring_t*    ring = &answers[p * n_consumers + w->index];
  while (!ring_has_room(ring)) rest();
  ring_put(ring, answer);
}

// The messages for this consumer: those of each producer whose number is its index modulo the number of consumers.
static void consumer_run(size_t index) {
  worker_t* w = &consumers[index];
  uint64_t  expected = n_producers * ((n_messages + n_consumers - 1 - w->index) / n_consumers);
  while (w->count < expected) {
    bool has_any = false;
    for (uint32_t p = 0; p < n_producers; p++) {
      ring_t* ring = &requests[p * n_consumers + w->index];
      for (message_t* m; (m = ring_take(ring)) != NULL; has_any = true) consumer_take(w, p, m);
    }
    if (!has_any) rest();
  }
}

static void workers_start(worker_t* workers, size_t count, void (*run)(size_t index)) {
  for (size_t i = 0; i < count; i++) {
    workers[i].index = (uint32_t)i;
    workers[i].random = bench_random_seed(i);
    bench_thread_start(&workers[i].thread, run, i);
  }
}

static uint64_t workers_join(worker_t* workers, size_t count) {
  uint64_t sum = 0;
  for (size_t i = 0; i < count; i++) {
    bench_thread_join(&workers[i].thread);
    sum += workers[i].sum;
  }
  return sum;
}

static void rings_free(ring_t* rings) {
  for (size_t i = 0; i < n_producers * n_consumers; i++) free(rings[i].slots);
  free(rings);
}

int main(int argc, char** argv) {
  n_producers = bench_argument(argc, argv, 1, "PRODUCERS", 2, THREADS_MAX);
  n_consumers = bench_argument(argc, argv, 2, "CONSUMERS", 2, THREADS_MAX);
  n_messages = bench_argument(argc, argv, 3, "MESSAGES", 3000000, SIZE_MAX / THREADS_MAX);
  ring_size = RING_SIZE;
  requests = bench_not_null(aligned_alloc(64, n_producers * n_consumers * sizeof(ring_t)));
  answers = bench_not_null(aligned_alloc(64, n_producers * n_consumers * sizeof(ring_t)));
  for (size_t i = 0; i < n_producers * n_consumers; i++) {
    ring_begin(&requests[i]);
    ring_begin(&answers[i]);
  }
  workers_start(consumers, n_consumers, consumer_run);
  workers_start(producers, n_producers, producer_run);
  uint64_t received = workers_join(producers, n_producers) + workers_join(consumers, n_consumers);
  uint64_t sent = 0;
  for (uint32_t p = 0; p < n_producers; p++) {
    for (uint64_t i = 0; i < n_messages; i++) sent += tag_of(p, i) * (i % ANSWER_EACH == 0 ? 2 : 1);
  }
  if (received != sent) bench_fail("the sum of the messages");
  rings_free(requests);
  rings_free(answers);
  printf("messages %zu %zu %zu: %016llx\n", n_producers, n_consumers, n_messages, (unsigned long long)received);
  return 0;
}
