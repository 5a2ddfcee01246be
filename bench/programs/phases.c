// phases: memory that is filled, freed for the most part, and filled again after a pause.
//
// Pattern   Each thread fills its part of MIB with blocks of 16 to SIZE bytes, frees FREED per cent of them, the oldest ones,
//           sleeps for PAUSE milliseconds, and begins again: a compiler from file to file, a game from level to level, a
//           service whose requests come in waves, a database between two queries. What is freed is soon needed again, but
//           the allocator cannot know that.
// Idea      Phase behaviour: P. Wilson, M. Johnstone, M. Neely, D. Boles, "Dynamic Storage Allocation: A Survey and Critical
//           Review" (1995), where ramps, peaks and plateaus of the live memory are told apart.
// Check     The first 16 bytes and the last one of each block, when it is freed; all bytes are written.
// Usage     phases [MIB = 200] [PAUSE = 150] [ROUNDS = 10] [FREED = 90] [THREADS = 1] [SIZE = 256]
#include <string.h>
#include <time.h>
#include "bench.h"

typedef struct block_s {
  struct block_s* next;   // the next younger one of the thread
  uint64_t        random; // its size, and what its last byte is
} block_t;

typedef struct part_s {
  block_t *oldest, *youngest;
  size_t   count, bytes;
  uint64_t random_state, sum;
} part_t;

static size_t part_bytes, pause_ms, rounds, freed, size_max;
static part_t parts[BENCH_THREADS_MAX];

static size_t size_of(uint64_t random) {
  return sizeof(block_t) + (size_t)((random >> 32) * (size_max - sizeof(block_t) + 1) >> 32);
}

static void part_add(part_t* part) {
  uint64_t r = bench_random(&part->random_state);
  size_t   size = size_of(r);
  block_t* block = bench_not_null(malloc(size));
  memset(block, (int)(r & 0xFF), size);
  block->next = NULL;
  block->random = r;
  if (part->count++ == 0) part->oldest = block;
  else part->youngest->next = block;
  part->youngest = block;
  part->bytes += size;
}

static void part_take(part_t* part) {
  block_t* block = part->oldest;
  uint64_t r = block->random;
  size_t   size = size_of(r);
  if (size > sizeof(block_t) && ((unsigned char*)block)[size - 1] != (r & 0xFF)) bench_fail("the end of a block");
  part->sum = part->sum * 31 + r;
  part->bytes -= size;
  part->oldest = block->next;
  part->count--;
  free(block);
}

static void part_run(size_t index) {
  part_t*         part = &parts[index];
  struct timespec pause = {(time_t)(pause_ms / 1000), (long)(pause_ms % 1000) * 1000000};
  part->random_state = bench_random_seed(index);
  for (size_t i = 0; i < rounds; i++) {
    while (part->bytes < part_bytes) part_add(part);
    for (size_t n = part->count * freed / 100; n > 0; n--) part_take(part);
    nanosleep(&pause, NULL);
  }
  while (part->count > 0) part_take(part);
}

int main(int argc, char** argv) {
  size_t mib = bench_argument(argc, argv, 1, "MIB", 200, 1 << 20);
  pause_ms = bench_argument(argc, argv, 2, "PAUSE", 150, 1000000);
  rounds = bench_argument(argc, argv, 3, "ROUNDS", 10, UINT32_MAX);
  freed = bench_argument(argc, argv, 4, "FREED", 90, 100);
  size_t threads = bench_argument(argc, argv, 5, "THREADS", 1, BENCH_THREADS_MAX);
  size_max = bench_argument(argc, argv, 6, "SIZE", 256, UINT32_MAX);
  if (size_max < sizeof(block_t)) size_max = sizeof(block_t);
  part_bytes = (mib << 20) / threads;
  if (threads == 1) part_run(0); // and no other thread
  else bench_threads_run(threads, &part_run);
  uint64_t sum = 0;
  for (size_t i = 0; i < threads; i++) sum = sum * 31 + parts[i].sum;
  printf("phases %zu %zu %zu %zu %zu: %016llx\n", mib, rounds, freed, threads, size_max, (unsigned long long)sum);
  return 0;
}
