// grow-many: many large buffers grow at a time, one thread.
//
// Pattern   random: a random one of the buffers grows by half with realloc, from 4 KiB on; at its end it is freed and begins anew.
//           vector: the same by twice, as containers of C++ do it: a new block, a copy, a free.
//           append: the buffers grow by 64 KiB with realloc, in turn.
//           seesaw: a random buffer gets a random size with realloc, a quarter of the largest or more; a quarter of the
//           times half of what it has.
// Idea      Decoders, columns of tables, buffers of messages: what growth costs when a buffer's neighbours grow as well. All
//           that is new is written, so each OS page has to be backed once, and each further fault is the allocator's.
// Check     A word in every 4 KiB of each buffer, at the end of its life.
// Usage     grow-many [PATTERN = random] [STEPS = 40000] [BUFFERS = 64] [LARGEST = 16384 KiB]
#define STAMP_EACH 4096
#include "stamps.h"

static uint64_t random_state;
static size_t   size_largest;
static char     pattern;

static void buffer_begin(buffer_t* b) {
  buffer_make(b, STAMP_EACH, bench_random(&random_state));
}

static size_t buffer_next_size(const buffer_t* b) {
  if (pattern == 'v') return b->size * 2;
  if (pattern == 'a') return b->size + 65536;
  if (pattern == 'r') return b->size + b->size / 2;
  uint64_t r = bench_random(&random_state);
  return r % 4 == 0 ? b->size / 2 + STAMP_EACH : size_largest / 4 + (r >> 32) % (size_largest * 3 / 4);
}

static uint64_t buffer_step(buffer_t* b) {
  size_t   size = buffer_next_size(b);
  uint64_t sum = 0;
  if (size <= size_largest && (pattern != 's' || bench_random_below(&random_state, 32) != 0)) {
    if (pattern == 'v') buffer_copy(b, size);
    else buffer_resize(b, size);
    return 0;
  }
  sum = buffer_end(b);
  buffer_begin(b);
  return sum;
}

int main(int argc, char** argv) {
  const char* name = argc > 1 ? argv[1] : "random";
  size_t      steps = bench_argument(argc, argv, 2, "STEPS", 40000, SIZE_MAX);
  size_t      count = bench_argument(argc, argv, 3, "BUFFERS", 64, UINT32_MAX);
  size_largest = bench_argument(argc, argv, 4, "LARGEST", 16384, 1 << 22) << 10;
  pattern = name[0];
  if (pattern == 0 || strchr("rvas", pattern) == NULL) {
    fprintf(stderr, "%s: the pattern is random, vector, append or seesaw, not '%s'\n", argv[0], name);
    return 2;
  }
  buffer_t* buffers = bench_not_null(malloc(count * sizeof(buffer_t)));
  random_state = bench_random_seed(0);
  for (size_t i = 0; i < count; i++) buffer_begin(&buffers[i]);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    size_t k = pattern == 'a' ? i % count : bench_random_below(&random_state, count);
    sum = sum * 31 + buffer_step(&buffers[k]);
  }
  for (size_t i = 0; i < count; i++) sum = sum * 31 + buffer_end(&buffers[i]);
  free(buffers);
  printf("grow-many %s %zu %zu %zu: %016llx\n", name, steps, count, size_largest >> 10, (unsigned long long)sum);
  return 0;
}
