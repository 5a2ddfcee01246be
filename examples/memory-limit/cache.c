// A limit on the memory of a program that has a cache: at the soft limit the cache shrinks, so that the hard limit is never met.  A
// part of the program, such as a plug-in, has a heap with a limit of its own, at which its requests fail and nobody else's.
//
// Without calls, for a program that exists: MIMALLOC_LIMIT=512M or MIMALLOC_LIMIT=80% (of what its container has).
//
// Build and run:
//   cc -O2 cache.c $(pkg-config --cflags --libs mimalloc) -o cache
//   ./cache
// Prints:
//   the cache was asked to shrink: yes
//   refused requests: 0
//   memory that counts is below the hard limit of 64 MiB: yes
//   the plug-in had room for N blocks of 100 KiB, then: Cannot allocate memory
//   malloc still works
#include <errno.h>
#include <mimalloc-limit.h>
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MIB ((size_t)1 << 20)

// ---- a cache of entries, of which the oldest goes first ---------------------------------------------------------------------

#define ENTRIES_MAX 100000

typedef struct cache_s {
  void* entries[ENTRIES_MAX];
  int   first, count; // those in use, in a ring
  int   shrinks;
} cache_t;

static cache_t cache;

static void cache_drop(int n) {
  for (; n > 0 && cache.count > 0; n--) {
    free(cache.entries[cache.first]);
    cache.first = (cache.first + 1) % ENTRIES_MAX;
    cache.count--;
  }
}

// Returns whether there was memory for the entry.
static int cache_add(size_t size) {
  void* entry = malloc(size);
  if (entry == NULL) return 0;
  memset(entry, 1, size);
  if (cache.count == ENTRIES_MAX) cache_drop(1);
  cache.entries[(cache.first + cache.count++) % ENTRIES_MAX] = entry;
  return 1;
}

// Called by the thread that allocates, in the middle of its malloc.  It may free, and does nothing for limits of heaps.
static void on_limit(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  (void)used;
  (void)arg;
  if (heap != NULL) return;
  cache.shrinks++;
  cache_drop(event == mi_limit_soft ? cache.count / 4 : cache.count);
}

// ---- the program ---------------------------------------------------------------------------------------------------------------

int main(void) {
  mi_limit_hook(&on_limit, NULL);
  if (mi_limit_set(64 * MIB, 48 * MIB) != 0) return 1;

  int refused = 0;
  for (int i = 0; i < 1000000; i++) { // 1 GB passes through the cache
    if (!cache_add((size_t)(500 + i % 1000))) refused++;
  }
  printf("the cache was asked to shrink: %s\n", cache.shrinks > 0 ? "yes" : "no");
  printf("refused requests: %d\n", refused);
  printf("memory that counts is below the hard limit of 64 MiB: %s\n", mi_limit_used() < 64 * MIB ? "yes" : "no");

  mi_heap_t* plugin = mi_heap_new();
  if (plugin == NULL || mi_heap_limit_set(plugin, 8 * MIB, 0) != 0) return 1;
  int blocks = 0;
  while (mi_heap_malloc(plugin, 100 * 1024) != NULL) blocks++;
  printf("the plug-in had room for %d blocks of 100 KiB, then: %s\n", blocks, strerror(errno));
  void* block = malloc(100 * 1024);
  printf("malloc %s\n", block != NULL ? "still works" : "fails, too");
  free(block);
  mi_heap_destroy(plugin);
  return 0;
}
