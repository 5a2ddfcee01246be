// An allocator with a fault, for test_traces.py: -DDIRTY calloc's blocks are not zero; -DTWICE two live blocks overlap; else
// realloc loses the content.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static char   memory[1 << 24] __attribute__((aligned(4096)));
static size_t used;

void* malloc(size_t size) {
  if (size > sizeof(memory) - used - 4096) return NULL;
  void* block = memory + used;
#ifdef TWICE
  static void*  last;
  static size_t last_size, n;
  if (last != NULL && size <= last_size && ++n % 5 == 0) return last;
  last = block;
  last_size = size;
#endif
  used += (size + 63) / 64 * 64 + 64;
  return block;
}

void* calloc(size_t n, size_t size) {
  void* block = malloc(n * size);
#ifdef DIRTY
  if (block != NULL) memset(block, 1, n * size);
#endif
  return block;
}

void free(void* block) {
  (void)block;
}

void* realloc(void* block, size_t size) {
#if defined(DIRTY) || defined(TWICE)
  void* fresh = malloc(size);
  if (fresh != NULL && block != NULL) memcpy(fresh, block, size < 64 ? size : 64);
  return fresh;
#else
  (void)block;
  return malloc(size);
#endif
}

int posix_memalign(void** block, size_t align, size_t size) {
  used = (used + align - 1) & ~(align - 1);
  *block = malloc(size);
  return *block == NULL ? 12 : 0;
}
