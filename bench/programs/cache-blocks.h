// What cache-scratch and cache-thrash share: small blocks whose bytes are incremented many times.
//
// The two differ in who allocated what lies beside such a block; the work on it is the same.
#pragma once

#include "bench.h"

static size_t            n_threads, n_blocks, n_writes, block_size;
static pthread_barrier_t start;
static uint64_t          sums[BENCH_THREADS_MAX]; // each written once, at the end of its thread

static void block_fill(volatile unsigned char* block, unsigned char first) {
  for (size_t at = 0; at < block_size; at++) block[at] = (unsigned char)(first + at);
}

// Verifies a block that was filled and then incremented n times.
static uint64_t block_sum(const volatile unsigned char* block, unsigned char first, size_t n) {
  uint64_t sum = 0;
  for (size_t at = 0; at < block_size; at++) {
    if (block[at] != (unsigned char)(first + at + n)) bench_fail("byte %zu of a block", at);
    sum = sum * 31 + block[at];
  }
  return sum;
}

// volatile: each write must reach the cache.
static void block_increment(volatile unsigned char* block) {
  for (size_t i = 0; i < n_writes; i++) {
    for (size_t at = 0; at < block_size; at++) block[at]++;
  }
}

// Allocates, increments and frees the thread's blocks, one after the other; gives the sum of their bytes.
static uint64_t blocks_use(size_t index) {
  uint64_t sum = 0;
  for (size_t i = 0; i < n_blocks; i++) {
    unsigned char* block = bench_not_null(malloc(block_size));
    unsigned char  first = (unsigned char)(index + i);
    block_fill(block, first);
    block_increment(block);
    sum += block_sum(block, first, n_writes);
    free(block);
  }
  return sum;
}

static void cache_arguments(int argc, char** argv) {
  n_threads = bench_argument(argc, argv, 1, "THREADS", 2, BENCH_THREADS_MAX);
  n_blocks = bench_argument(argc, argv, 2, "BLOCKS", 1000, SIZE_MAX);
  n_writes = bench_argument(argc, argv, 3, "WRITES", 200000, SIZE_MAX);
  block_size = bench_argument(argc, argv, 4, "SIZE", 8, 4096);
}

// Runs the threads, which wait for each other at `start`; gives the sum of their sums.
static uint64_t cache_run(void (*thread_run)(size_t index)) {
  uint64_t sum = 0;
  pthread_barrier_init(&start, NULL, (unsigned)n_threads);
  bench_threads_run(n_threads, thread_run);
  for (size_t i = 0; i < n_threads; i++) sum += sums[i];
  return sum;
}
