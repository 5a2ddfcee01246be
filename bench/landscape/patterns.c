// The patterns of calls.  A pair is what takes a block and what gives it back; each block is written to.
//
// At most `live_bytes` are live at once, so that large sizes have fewer blocks.
#include "patterns.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "counting.h"

enum { max_blocks = 1024, table_pairs = 64 };

static const size_t live_bytes = 64 * MiB;

static char*    blocks[max_blocks];
static size_t   block_sizes[max_blocks];
static uint64_t random_state = 0x9E3779B97F4A7C15U;

static uint64_t next_random(void) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return random_state >> 11;
}

// Every page where page faults count: else its first and last byte, which is quicker.
static char* touched(void* block, size_t size) {
  volatile char* p = block;
  size_t         step = counting_touches_pages() ? 4 * KiB : size;
  if (p == NULL) abort();
  for (size_t i = 0; i < size; i += step) p[i] = 1;
  p[size - 1] = 1;
  return block;
}

static size_t at_most(size_t n, size_t size) {
  size_t fit = live_bytes / size;
  return fit < 16 ? 16 : fit < n ? fit : n;
}

// ---- how many blocks ------------------------------------------------------------------------------------------------

static size_t n_16(size_t size) {
  (void)size;
  return 16;
}

static size_t n_256(size_t size) {
  return at_most(256, size);
}

static size_t n_256_mixed(size_t size) {
  (void)size;
  return 256;
}

static size_t n_table(size_t size) {
  return at_most(max_blocks, size);
}

static void prepare_nothing(size_t size, size_t n) {
  (void)size, (void)n;
}

// ---- one after another, and batches ---------------------------------------------------------------------------------

static void lone(size_t size, size_t n) {
  for (size_t i = 0; i < n; i++) free(touched(malloc(size), size));
}

static void take(size_t size, size_t n) {
  for (size_t i = 0; i < n; i++) blocks[i] = touched(malloc(size), size);
}

static void give_first(size_t n) {
  for (size_t i = 0; i < n; i++) free(blocks[i]);
}

static void give_last(size_t n) {
  while (n-- > 0) free(blocks[n]);
}

static void lifo(size_t size, size_t n) {
  take(size, n);
  give_last(n);
}

static void fifo(size_t size, size_t n) {
  take(size, n);
  give_first(n);
}

static void zeroed(size_t size, size_t n) {
  for (size_t i = 0; i < n; i++) blocks[i] = touched(calloc(1, size), size);
  give_last(n);
}

static void aligned(size_t size, size_t n) {
  for (size_t i = 0; i < n; i++) {
    void* p = NULL;
    if (posix_memalign(&p, 64, size) != 0) abort();
    blocks[i] = touched(p, size);
  }
  give_last(n);
}

static void aligned_page(size_t size, size_t n) {
  size = (size + 4 * KiB - 1) & ~(4 * KiB - 1);
  for (size_t i = 0; i < n; i++) blocks[i] = touched(aligned_alloc(4 * KiB, size), size);
  give_last(n);
}

// A pair is malloc, two calls of realloc and free: to the size by way of a quarter and a half of it.
static void grown(size_t size, size_t n) {
  for (size_t i = 0; i < n; i++) {
    char* p = touched(malloc(size / 4), size / 4);
    p = touched(realloc(p, size / 2), size / 2);
    blocks[i] = touched(realloc(p, size), size);
  }
  give_last(n);
}

// ---- a table in which blocks come and go at random ------------------------------------------------------------------

static size_t any_size(size_t size) {
  return size / 2 + next_random() % size;
}

// Half of it at first, and about half of it always.
static void fill_table(size_t size, size_t n) {
  for (size_t i = 0; i < n; i += 2) blocks[i] = touched(malloc(size), size);
}

// Two steps to a pair: a random place is filled if it is empty, and emptied if it is not.
static void come_and_go(size_t size, size_t n, bool is_mixed) {
  for (size_t i = 0; i < 2 * table_pairs; i++) {
    size_t k = next_random() % n, own = is_mixed ? any_size(size) : size;
    if (blocks[k] == NULL) {
      blocks[k] = touched(malloc(own), own);
    }
    else {
      free(blocks[k]);
      blocks[k] = NULL;
    }
  }
}

static void come_and_go_alike(size_t size, size_t n) {
  come_and_go(size, n, false);
}

static void come_and_go_mixed(size_t size, size_t n) {
  come_and_go(size, n, true);
}

// ---- another thread frees -------------------------------------------------------------------------------------------

static sem_t  is_filled, is_emptied;
static size_t n_remote;

static void wait_for(sem_t* semaphore) {
  while (sem_wait(semaphore) != 0) {
  }
}

static void* free_all(void* unused) {
  (void)unused;
  for (;;) {
    wait_for(&is_filled);
    counting_resume();
    give_first(n_remote);
    counting_pause();
    sem_post(&is_emptied);
  }
  return NULL;
}

static void start_thread(size_t size, size_t n) {
  pthread_t thread;
  (void)size;
  n_remote = n;
  if (sem_init(&is_filled, 0, 0) != 0 || sem_init(&is_emptied, 0, 0) != 0) abort();
  if (pthread_create(&thread, NULL, &free_all, NULL) != 0) abort();
}

static void let_free(void) {
  counting_pause();
  sem_post(&is_filled);
  wait_for(&is_emptied);
  counting_resume();
}

static void remote(size_t size, size_t n) {
  take(size, n);
  let_free();
}

// From 8 bytes to the size, uniform in the logarithm; the same sizes in each round.
static void start_thread_mixed(size_t size, size_t n) {
  size_t n_doublings = 0;
  while ((size_t)16 << n_doublings < size) n_doublings++;
  for (size_t i = 0; i < n; i++) {
    size_t low = (size_t)8 << next_random() % (n_doublings + 1);
    block_sizes[i] = low + next_random() % low;
  }
  start_thread(size, n);
}

static void remote_mixed(size_t size, size_t n) {
  (void)size;
  for (size_t i = 0; i < n; i++) blocks[i] = touched(malloc(block_sizes[i]), block_sizes[i]);
  let_free();
}

// ---- all of them ----------------------------------------------------------------------------------------------------

static const struct pattern patterns[] = {
    {"lone", n_16, 0, prepare_nothing, lone},
    {"lifo16", n_16, 0, prepare_nothing, lifo},
    {"fifo16", n_16, 0, prepare_nothing, fifo},
    {"lifo256", n_256, 0, prepare_nothing, lifo},
    {"fifo256", n_256, 0, prepare_nothing, fifo},
    {"random", n_table, table_pairs, fill_table, come_and_go_alike},
    {"mixed", n_table, table_pairs, fill_table, come_and_go_mixed},
    {"aligned64", n_16, 0, prepare_nothing, aligned},
    {"aligned4k", n_16, 0, prepare_nothing, aligned_page},
    {"grow", n_16, 0, prepare_nothing, grown},
    {"calloc", n_16, 0, prepare_nothing, zeroed},
    {"remote", n_256, 0, start_thread, remote},
    {"remote-mixed", n_256_mixed, 0, start_thread_mixed, remote_mixed},
};

const struct pattern* pattern_at(size_t n) {
  return n < sizeof(patterns) / sizeof(patterns[0]) ? &patterns[n] : NULL;
}

const struct pattern* pattern_named(const char* name) {
  const struct pattern* found = patterns;
  for (size_t i = 0; (found = pattern_at(i)) != NULL && strcmp(found->name, name) != 0; i++) {
  }
  return found;
}
