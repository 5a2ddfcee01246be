// unnamed ours|other: the same for malloc, in a program that does not name the library.
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool mi_is_in_heap_region(const void* p) __attribute__((weak));

int main(int argc, char** argv) {
  void* const p = malloc(100);
  const char* found = mi_is_in_heap_region != NULL && mi_is_in_heap_region(p) ? "ours" : "other";
  if (argc != 2) return 1;
  printf("unnamed: malloc=%s\n", found);
  free(p);
  return strcmp(found, argv[1]) == 0 ? 0 : 1;
}
