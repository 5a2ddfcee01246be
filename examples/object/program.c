// The object mimalloc.o in one executable.  A linker takes from a static library only what it has not found before; an object it
// takes always.  So the position of mimalloc.o among libraries cannot matter, and every form of malloc comes from it.
//
// Build and run:
//   cc program.c $(pkg-config --variable=objectdir mimalloc)/mimalloc.o $(pkg-config --cflags mimalloc) -pthread -o program
//   ./program
//   ldd program | grep libmimalloc || echo it needs no libmimalloc.so
// Prints:
//   malloc belongs to the library
//   getline of the C library allocates from it: yes
//   it needs no libmimalloc.so
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  void* block = malloc(1);
  printf("malloc %s to the library\n", mi_is_in_heap_region(block) ? "belongs" : "does not belong");
  free(block);

  char*  line = NULL;
  size_t size = 0;
  FILE*  file = fopen("/proc/self/status", "r");
  if (file == NULL || getline(&line, &size, file) < 0) return 1;
  printf("getline of the C library allocates from it: %s\n", mi_is_in_heap_region(line) ? "yes" : "no");
  free(line);
  fclose(file);
  return 0;
}
