// Built three times by CMakeLists.txt.
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
  void* block = malloc(1);
  printf("malloc %s to the library\n", mi_is_in_heap_region(block) ? "belongs" : "does not belong");
  free(block);
  return 0;
}
