// A program that contains the library and libc: `-static`, with the flags that pkg-config gives for static programs.  The library
// starts no thread in such a program; ../event-loop shows how a program returns memory by itself.
//
// The library must stand before libc on the link line, which it does in this order.
//
// Build and run:
//   cc -static program.c $(pkg-config --static --cflags --libs mimalloc) -o program
//   ./program
// Prints:
//   malloc belongs to the library
//   posix_memalign belongs to the library
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>

static void say(const char* name, const void* block) {
  printf("%s %s to the library\n", name, mi_is_in_heap_region(block) ? "belongs" : "does not belong");
}

int main(void) {
  void* block = malloc(1);
  say("malloc", block);
  free(block);

  if (posix_memalign(&block, 256, 1000) != 0) return 1;
  say("posix_memalign", block);
  free(block);
  return 0;
}
