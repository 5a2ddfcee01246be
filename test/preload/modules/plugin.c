// A library for test-unload, which contains the allocator as a private part.
#include <mimalloc.h>
#include <string.h>

int  plugin_work(void);
int* plugin_number(void);
void plugin_fill(void);

// Uses the allocator in the calling thread; returns 0 if it went well.
int plugin_work(void) {
  for (size_t size = 1; size < 100000; size = size * 4 + 3) {
    char* p = mi_calloc(1, size);
    if (p == NULL || p[size - 1] != 0) return 1;
    memset(p, 1, size);
    p = mi_realloc(p, 2 * size);
    if (p == NULL || p[size - 1] != 1) return 2;
    mi_free(p);
  }
  return 0;
}

// Leaves free memory that the thread gives back when it ends.
void plugin_fill(void) {
  enum { n = 30, size = 30000 };
  char* blocks[n];
  for (size_t i = 0; i < n; i++) {
    blocks[i] = mi_malloc(size);
    if (blocks[i] != NULL) memset(blocks[i], 1, size);
  }
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
}

// Begins with 0 in each library.
int* plugin_number(void) {
  static int number;
  return &number;
}
