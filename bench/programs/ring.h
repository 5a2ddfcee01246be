// What messages and messages-mixed share: bounded rings with one writer and one reader each (L. Lamport, "Specifying
// Concurrent Program Modules", 1983).
//
// Positions only grow. The writer owns `written` and reads `taken`, the reader the other way round; each publishes its
// own with release and reads the other's with acquire, which orders the slots and the messages. Each keeps what it saw
// last of the other's, and looks again only when that says full or empty.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>
#include "bench.h"

typedef struct message_s message_t; // of the program

typedef struct ring_s {
  _Alignas(64) _Atomic size_t written;
  size_t taken_seen;
  _Alignas(64) _Atomic size_t taken;
  size_t written_seen;
  _Alignas(64) message_t** slots;
} ring_t;

static size_t ring_size; // of all rings; a power of 2

static void ring_begin(ring_t* ring) {
  *ring = (ring_t){.slots = bench_not_null(malloc(ring_size * sizeof(message_t*)))};
}

static bool ring_has_room(ring_t* ring) {
  size_t at = atomic_load_explicit(&ring->written, memory_order_relaxed);
  if (at - ring->taken_seen == ring_size) ring->taken_seen = atomic_load_explicit(&ring->taken, memory_order_acquire);
  return at - ring->taken_seen < ring_size;
}

// Into a ring that has room.
static void ring_put(ring_t* ring, message_t* message) {
  size_t at = atomic_load_explicit(&ring->written, memory_order_relaxed);
  ring->slots[at & (ring_size - 1)] = message;
  atomic_store_explicit(&ring->written, at + 1, memory_order_release);
}

// NULL if it is empty.
static message_t* ring_take(ring_t* ring) {
  size_t at = atomic_load_explicit(&ring->taken, memory_order_relaxed);
  if (at == ring->written_seen) {
    ring->written_seen = atomic_load_explicit(&ring->written, memory_order_acquire);
    if (at == ring->written_seen) return NULL;
  }
  message_t* message = ring->slots[at & (ring_size - 1)];
  atomic_store_explicit(&ring->taken, at + 1, memory_order_release);
  return message;
}

// What a thread does that can make no progress: spinning would be measured as CPU time of the allocator.
static void rest(void) {
  nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}
