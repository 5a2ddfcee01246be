// grow: buffers that grow by realloc, one thread.
//
// Pattern   Many buffers grow in turns by a small step (as text is appended to a string) or by half (as a vector does):
//           by half 1 of 8 times below 4 KiB and 3 of 4 times above. Each has its own final size, where it is verified,
//           freed and begun anew: 64 bytes to 32 KiB, and for 1 of 64 up to 8 MiB (uniform in the logarithm). More
//           large ones would leave a benchmark of memcpy.
// Idea      String builders, growing arrays, read buffers: the cost of realloc is the copying that the allocator cannot
//           avoid, and the memory that it touches for the first time.
// Check     A word in every 512 bytes of each buffer, at the end of its life.
// Usage     grow [STEPS = 6000000] [BUFFERS = 100]
#define STAMP_EACH 512
#include "stamps.h"

typedef struct growing_s {
  buffer_t buffer;
  size_t   size_end;
} growing_t;

static uint64_t random_state;

static void growing_begin(growing_t* g) {
  uint64_t r = bench_random(&random_state);
  g->buffer = (buffer_t){NULL, 0, r};
  g->size_end = r >> 58 == 0 ? (size_t)32768 << r % 8 : (size_t)64 << r % 9;
  g->size_end += r >> 32 & (g->size_end - 1);
  buffer_resize(&g->buffer, 16 + (r >> 8 & 31));
}

int main(int argc, char** argv) {
  size_t     steps = bench_argument(argc, argv, 1, "STEPS", 6000000, SIZE_MAX);
  size_t     count = bench_argument(argc, argv, 2, "BUFFERS", 100, UINT32_MAX);
  growing_t* all = bench_not_null(malloc(count * sizeof(growing_t)));
  random_state = bench_random_seed(0);
  for (size_t i = 0; i < count; i++) growing_begin(&all[i]);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    uint64_t   r = bench_random(&random_state);
    growing_t* g = &all[(r >> 32) * count >> 32];
    buffer_t*  b = &g->buffer;
    if (b->size >= g->size_end) {
      sum = sum * 31 + buffer_end(b);
      growing_begin(g);
    }
    else buffer_resize(b, b->size + ((r & 7) < (b->size < 4096 ? 1 : 6) ? b->size / 2 : 8 + (r >> 8 & 63)));
  }
  for (size_t i = 0; i < count; i++) sum = sum * 31 + buffer_end(&all[i].buffer);
  free(all);
  printf("grow %zu %zu: %016llx\n", steps, count, (unsigned long long)sum);
  return 0;
}
