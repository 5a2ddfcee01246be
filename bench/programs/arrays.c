// arrays: large arrays of many sizes that come and go, one thread.
//
// Pattern   blobs: a random one of 24 arrays is freed and another takes its place, 64 KiB to 8 MiB, uniform in the logarithm.
//           temporaries: three arrays of one size, 0.4 to 7.6 MiB, are written and freed again, beside a small one that grows.
//           columns: twelve arrays grow by twice at the same time, up to a size that becomes larger from table to table, and are
//           freed together.
// Idea      Values of a store, expressions over arrays, tables that are read from files: memory of one size is free when that of
//           another is needed. What is measured is what an allocator does with it in between, page faults most of all.
// Check     A word in every 4 KiB of each array, at its end.
// Usage     arrays [PATTERN = blobs] [STEPS = 3000]
#define STAMP_EACH 4096
#include "stamps.h"

#define BLOBS   24
#define COLUMNS 12

static uint64_t random_state;
static uint64_t sum;

static void array_make(buffer_t* a, size_t size) {
  buffer_make(a, size, bench_random(&random_state));
}

static void array_end(buffer_t* a) {
  sum = sum * 31 + buffer_end(a);
}

static void step_blobs(buffer_t* blobs) {
  buffer_t* a = &blobs[bench_random_below(&random_state, BLOBS)];
  size_t    size = (size_t)65536 << bench_random_below(&random_state, 7);
  if (a->bytes != NULL) array_end(a);
  array_make(a, size + bench_random_below(&random_state, size));
}

static void step_temporaries(buffer_t* small) {
  buffer_t arrays[3];
  size_t   size = 400000 + bench_random_below(&random_state, 7200000);
  for (int i = 0; i < 3; i++) array_make(&arrays[i], size);
  if (small->bytes != NULL) array_end(small);
  array_make(small, 8000 + bench_random_below(&random_state, 800000));
  for (int i = 0; i < 3; i++) array_end(&arrays[i]);
}

static void step_columns(size_t step) {
  buffer_t columns[COLUMNS];
  size_t   most = (size_t)1 << (19 + step % 3); // bytes
  for (int i = 0; i < COLUMNS; i++) array_make(&columns[i], 64);
  while (columns[0].size < most)
    for (int i = 0; i < COLUMNS; i++) buffer_copy(&columns[i], 2 * columns[i].size);
  for (int i = 0; i < COLUMNS; i++) array_end(&columns[i]);
}

int main(int argc, char** argv) {
  static buffer_t arrays[BLOBS];
  const char*     name = argc > 1 ? argv[1] : "blobs";
  size_t          steps = bench_argument(argc, argv, 2, "STEPS", 3000, SIZE_MAX);
  if (name[0] == 0 || strchr("btc", name[0]) == NULL) {
    fprintf(stderr, "%s: the pattern is blobs, temporaries or columns, not '%s'\n", argv[0], name);
    return 2;
  }
  random_state = bench_random_seed(0);
  for (size_t i = 0; i < steps; i++) {
    if (name[0] == 'b') step_blobs(arrays);
    else if (name[0] == 't') step_temporaries(arrays);
    else step_columns(i);
  }
  for (size_t i = 0; i < BLOBS; i++)
    if (arrays[i].bytes != NULL) array_end(&arrays[i]);
  printf("arrays %s %zu: %016llx\n", name, steps, (unsigned long long)sum);
  return 0;
}
