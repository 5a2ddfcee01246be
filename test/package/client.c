// Uses the allocator through its public header; exit status 0 means that header and library agree and that it works.
#include <mimalloc.h>
#include <stdio.h>
#include <string.h>

int main(void) {
  char* p = (char*)mi_malloc(100);
  if (p == NULL) return 1;
  memset(p, 1, 100);
  p = (char*)mi_realloc(p, 100000);
  if (p == NULL || p[99] != 1 || !mi_is_in_heap_region(p)) return 2;
  mi_free(p);
  printf("mimalloc %d\n", mi_version());
  return mi_version() == MI_MALLOC_VERSION ? 0 : 3;
}
