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

typedef struct buffer_s {
  unsigned char* bytes;
  size_t         size;
  size_t         size_end;
  uint64_t       key;
} buffer_t;

static uint64_t random_state;

static void buffer_resize(buffer_t* b, size_t size) {
  b->bytes = bench_not_null(realloc(b->bytes, size));
  stamps_write(b->bytes, b->size, size, b->key);
  b->size = size;
}

static void buffer_begin(buffer_t* b) {
  uint64_t r = bench_random(&random_state);
  b->bytes = NULL;
  b->size = 0;
  b->size_end = r >> 58 == 0 ? (size_t)32768 << r % 8 : (size_t)64 << r % 9;
  b->size_end += r >> 32 & (b->size_end - 1);
  b->key = r;
  buffer_resize(b, 16 + (r >> 8 & 31));
}

// Verifies and frees it; gives a sum of its content.
static uint64_t buffer_end(buffer_t* b) {
  uint64_t sum = stamps_sum(b->bytes, b->size, b->key);
  free(b->bytes);
  return sum;
}

int main(int argc, char** argv) {
  size_t    steps = bench_argument(argc, argv, 1, "STEPS", 6000000, SIZE_MAX);
  size_t    count = bench_argument(argc, argv, 2, "BUFFERS", 100, UINT32_MAX);
  buffer_t* buffers = bench_not_null(malloc(count * sizeof(buffer_t)));
  random_state = bench_random_seed(0);
  for (size_t i = 0; i < count; i++) buffer_begin(&buffers[i]);
  uint64_t sum = 0;
  for (size_t i = 0; i < steps; i++) {
    uint64_t  r = bench_random(&random_state);
    buffer_t* b = &buffers[(r >> 32) * count >> 32];
    if (b->size >= b->size_end) {
      sum = sum * 31 + buffer_end(b);
      buffer_begin(b);
    }
    else buffer_resize(b, b->size + ((r & 7) < (b->size < 4096 ? 1 : 6) ? b->size / 2 : 8 + (r >> 8 & 63)));
  }
  for (size_t i = 0; i < count; i++) sum = sum * 31 + buffer_end(&buffers[i]);
  free(buffers);
  printf("grow %zu %zu: %016llx\n", steps, count, (unsigned long long)sum);
  return 0;
}
