// Linked with the shared library, a program needs no change: `malloc`, `operator new` and the C library's own allocations are
// served by it.  The functions of mimalloc.h are there as well.
//
// Build and run:
//   cc program.c $(pkg-config --cflags --libs mimalloc) -o program
//   ./program
// Prints:
//   version N.N of the library
//   malloc(100) has room for N bytes, and belongs to the library
//   strdup of the C library belongs to it, too
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  printf("version %d.%d of the library\n", mi_version() / 10000, mi_version() / 100 % 100);

  void* block = malloc(100);
  printf("malloc(100) has room for %zu bytes, and %s to the library\n", mi_usable_size(block),
         mi_is_in_heap_region(block) ? "belongs" : "does not belong");
  free(block); // or mi_free: they are the same function

  char* copy = strdup("a string that libc copies");
  printf("strdup of the C library %s to it, too\n", mi_is_in_heap_region(copy) ? "belongs" : "does not belong");
  free(copy);
  return 0;
}
