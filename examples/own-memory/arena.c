// An arena of memory that the program provides: a file, shared memory, memory of a device, or, as here, an anonymous mapping.  The
// arena is exclusive: only heaps that were made for it take memory from it, and they take none elsewhere.  So it is also a budget
// for one part of a program.
//
// Build and run:
//   cc arena.c $(pkg-config --cflags --libs mimalloc) -o arena
//   ./arena
// Prints:
//   every block was in the arena: yes
//   the arena of 64 MiB had room for N blocks of 100 KiB, then: Cannot allocate memory
//   malloc does not take from it
//   a heap that was made after the first was destroyed has room for as many: yes
#include <errno.h>
#include <mimalloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define MEMORY     (64u << 20)
#define BLOCK_SIZE (100u << 10)

// Fills the heap, and returns how many blocks it had room for.
static int fill(mi_heap_t* heap, mi_arena_id_t arena, bool* is_in_arena) {
  int count = 0;
  for (void* block; (block = mi_heap_malloc(heap, BLOCK_SIZE)) != NULL; count++) {
    memset(block, 1, BLOCK_SIZE);
    if (!mi_arena_contains(arena, block)) *is_in_arena = false;
  }
  return count;
}

int main(void) {
  // It must stay mapped until the process ends, and be aligned to mi_arena_min_alignment() to be used as a whole.
  size_t alignment = mi_arena_min_alignment();
  char*  memory = (char*)mmap(NULL, MEMORY + alignment, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  char* start = memory + (alignment - (size_t)memory % alignment) % alignment;

  mi_arena_id_t arena;
  if (!mi_manage_os_memory_ex(start, MEMORY, true /* committed */, false /* pinned */, true /* zero */, -1 /* NUMA node */,
                              true /* exclusive */, &arena)) {
    return 1;
  }
  mi_heap_t* heap = mi_heap_new_in_arena(arena);
  if (heap == NULL) return 1;

  bool is_in_arena = true;
  int  count = fill(heap, arena, &is_in_arena);
  int  error = errno;
  printf("every block was in the arena: %s\n", is_in_arena ? "yes" : "no");
  printf("the arena of %u MiB had room for %d blocks of %u KiB, then: %s\n", MEMORY >> 20, count, BLOCK_SIZE >> 10, strerror(error));

  void* other = malloc(BLOCK_SIZE);
  printf("malloc %s from it\n", mi_arena_contains(arena, other) ? "takes" : "does not take");
  free(other);

  mi_heap_destroy(heap); // all its blocks
  heap = mi_heap_new_in_arena(arena);
  if (heap == NULL) return 1;
  printf("a heap that was made after the first was destroyed has room for as many: %s\n",
         fill(heap, arena, &is_in_arena) == count ? "yes" : "no");
  mi_heap_destroy(heap);
  return 0;
}
