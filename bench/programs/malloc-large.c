// malloc-large: large blocks are replaced in a small table, one thread.
//
// Pattern   A table of 20 blocks of 5 to 25 MiB; each step frees that of a random slot and allocates one of another
//           random size there. The program writes the first and the last bytes of a block and a word in each 64th page
//           between them.
// Idea      Images, matrices, tables of a database: blocks beyond every size class and most caches. Published as
//           malloc-large among the benchmarks of mimalloc: a few large blocks, one thread. What is measured is whether
//           the allocator keeps such memory or maps and unmaps it each time.
//           Touching no page at all would reward an allocator that returns each block at once, at the price of a page
//           fault in each page of the next; touching all of them would measure the kernel's zeroing. One of 64, a word
//           in 256 KiB, keeps both in sight; the third argument changes it.
// Check     Every word written, when the block is freed.
// Usage     malloc-large [STEPS = 20000] [SLOTS = 20] [PAGES_PER_TOUCH = 64]
#include "bench.h"

#define PAGE_SIZE 4096
#define SIZE_MIN  ((size_t)5 << 20)
#define SIZE_SPAN ((size_t)20 << 20)

typedef struct slot_s {
  unsigned char* block;
  size_t         size;
  uint64_t       tag;
} slot_t;

static size_t   stride; // from one touched word to the next
static uint64_t random_state;

static uint64_t* word_at(const slot_t* slot, size_t at) {
  return (uint64_t*)(void*)(slot->block + at);
}

// The words at the multiples of `stride`, and the last one.
static void slot_fill(slot_t* slot) {
  slot->tag = bench_random(&random_state);
  slot->size = SIZE_MIN + bench_random_below(&random_state, SIZE_SPAN) / sizeof(uint64_t) * sizeof(uint64_t);
  slot->block = bench_not_null(malloc(slot->size));
  for (size_t at = 0; at < slot->size; at += stride) *word_at(slot, at) = slot->tag + at;
  *word_at(slot, slot->size - sizeof(uint64_t)) = slot->tag;
}

static uint64_t slot_empty(slot_t* slot) {
  uint64_t sum = slot->size;
  for (size_t at = 0; at < slot->size - sizeof(uint64_t); at += stride) {
    if (*word_at(slot, at) != slot->tag + at) bench_fail("the word at %zu in a block of %zu bytes", at, slot->size);
    sum = sum * 31 + slot->tag;
  }
  if (*word_at(slot, slot->size - sizeof(uint64_t)) != slot->tag) bench_fail("the end of a block");
  free(slot->block);
  return sum;
}

int main(int argc, char** argv) {
  size_t steps = bench_argument(argc, argv, 1, "STEPS", 20000, SIZE_MAX);
  size_t slots = bench_argument(argc, argv, 2, "SLOTS", 20, 10000);
  stride = PAGE_SIZE * bench_argument(argc, argv, 3, "PAGES_PER_TOUCH", 64, 1 << 20);
  random_state = bench_random_seed(0);
  slot_t* table = bench_not_null(malloc(slots * sizeof(slot_t)));
  for (size_t i = 0; i < slots; i++) slot_fill(&table[i]);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    slot_t* slot = &table[bench_random_below(&random_state, slots)];
    sum = sum * 31 + slot_empty(slot);
    slot_fill(slot);
  }
  for (size_t i = 0; i < slots; i++) sum = sum * 31 + slot_empty(&table[i]);
  free(table);
  printf("malloc-large %zu %zu %zu: %016llx\n", steps, slots, stride / PAGE_SIZE, (unsigned long long)sum);
  return 0;
}
