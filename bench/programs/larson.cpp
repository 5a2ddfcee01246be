// larson: a server whose threads end and leave their blocks to successors.
//
// Pattern   Each chain of threads has a table of blocks. A thread replaces random ones by blocks of other random sizes,
//           ROUNDS times as many as the table has; then it starts its successor, which goes on with the same table, and
//           ends. So a successor frees what a thread allocated that is no more, and few blocks are left of each.
// Idea      P. Larson, M. Krishnan, "Memory Allocation for Long-Running Server Applications" (ISMM 1998), who call it
//           bleeding. They count the operations in a fixed time; here the work is fixed.
// Check     The first 4 bytes and the last byte of each block, when it is freed.
// Usage     larson [malloc | sized] [THREADS = 2] [GENERATIONS = 40] [ROUNDS = 100] [BLOCKS = 5000] [MIN = 8]
//                  [MAX = 1000]
//           sized: with C++'s operator new, and the operator delete that is told the size; ROUNDS: of each thread;
//           BLOCKS: in each table; MIN, MAX: the sizes
#include <semaphore.h>
#include <string.h>
#include <new>
#include "bench.h"

struct slot_t {
  unsigned char* block;
  uint32_t       size;
  uint32_t       tag;
};

// One after the other, the threads of a chain are all there is to touch it.
struct chain_t {
  bench_thread_t threads[2]; // of the even and the odd generations
  slot_t*        slots;
  size_t         generation;
  uint64_t       random;
  uint64_t       sum; // of the tags of the blocks freed
};

static bool    is_sized;
static size_t  n_generations, n_rounds, n_blocks, size_min, size_max;
static chain_t chains[BENCH_THREADS_MAX];
static sem_t   n_chains_ended;

static void slot_fill(slot_t* slot, uint64_t* random) {
  uint64_t r = bench_random(random);
  size_t   size = size_min + ((r >> 32) * (size_max - size_min + 1) >> 32);
  void*    block = is_sized ? ::operator new(size) : bench_not_null(malloc(size));
  slot->block = (unsigned char*)block;
  slot->size = (uint32_t)size;
  slot->tag = (uint32_t)r;
  memcpy(slot->block, &slot->tag, sizeof(slot->tag));
  slot->block[size - 1] = (unsigned char)slot->tag;
}

// Frees the block; gives its tag.
static uint64_t slot_empty(slot_t* slot) {
  if (memcmp(slot->block, &slot->tag, sizeof(slot->tag)) != 0) bench_fail("the first bytes of a block");
  if (slot->block[slot->size - 1] != (unsigned char)slot->tag) bench_fail("the last byte of a block");
  if (is_sized) ::operator delete(slot->block, (size_t)slot->size);
  else free(slot->block);
  return slot->tag;
}

static void chain_replace(chain_t* chain) {
  uint64_t random = chain->random; // a copy: the chains lie side by side
  uint64_t sum = 0;
  for (size_t i = 0; i < n_rounds * n_blocks; i++) {
    slot_t* slot = &chain->slots[bench_random_below(&random, n_blocks)];
    sum += slot_empty(slot);
    slot_fill(slot, &random);
  }
  chain->random = random;
  chain->sum += sum;
}

// A thread joins its predecessor, which may still be on its way out; the main thread joins the last one.
static void thread_run(size_t index) {
  chain_t* chain = &chains[index];
  size_t   generation = chain->generation++;
  if (generation > 0) bench_thread_join(&chain->threads[(generation - 1) % 2]);
  chain_replace(chain);
  if (generation + 1 == n_generations) sem_post(&n_chains_ended);
  else bench_thread_start(&chain->threads[(generation + 1) % 2], &thread_run, index);
}

static void chain_start(size_t index) {
  chain_t* chain = &chains[index];
  chain->random = bench_random_seed(index);
  chain->slots = (slot_t*)bench_not_null(malloc(n_blocks * sizeof(slot_t)));
  for (size_t i = 0; i < n_blocks; i++) slot_fill(&chain->slots[i], &chain->random);
  bench_thread_start(&chain->threads[0], &thread_run, index);
}

static uint64_t chain_end(chain_t* chain) {
  bench_thread_join(&chain->threads[(n_generations - 1) % 2]);
  uint64_t sum = chain->sum;
  for (size_t i = 0; i < n_blocks; i++) sum += slot_empty(&chain->slots[i]);
  free(chain->slots);
  return sum;
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "malloc";
  is_sized = strcmp(mode, "sized") == 0;
  if (!is_sized && strcmp(mode, "malloc") != 0) {
    fprintf(stderr, "%s: argument 1 is '%s'; it must be malloc or sized\n", argv[0], mode);
    return 2;
  }
  size_t n_threads = bench_argument(argc, argv, 2, "THREADS", 2, BENCH_THREADS_MAX);
  n_generations = bench_argument(argc, argv, 3, "GENERATIONS", 40, SIZE_MAX);
  n_rounds = bench_argument(argc, argv, 4, "ROUNDS", 100, UINT32_MAX);
  n_blocks = bench_argument(argc, argv, 5, "BLOCKS", 5000, INT32_MAX);
  size_min = bench_argument(argc, argv, 6, "MIN", 8, INT32_MAX);
  size_max = bench_argument(argc, argv, 7, "MAX", 1000, INT32_MAX);
  if (size_min < 5 || size_max < size_min) {
    fprintf(stderr, "%s: MIN must be 5 or more, and MAX not below it\n", argv[0]);
    return 2;
  }
  sem_init(&n_chains_ended, 0, 0);
  for (size_t i = 0; i < n_threads; i++) chain_start(i);
  for (size_t i = 0; i < n_threads; i++) sem_wait(&n_chains_ended);
  uint64_t sum = 0;
  for (size_t i = 0; i < n_threads; i++) sum += chain_end(&chains[i]);
  printf("larson %s %zu %zu %zu %zu %zu %zu: %016llx\n", mode, n_threads, n_generations, n_rounds, n_blocks, size_min,
         size_max, (unsigned long long)sum);
  return 0;
}
