// test_package ours|other: header and library agree, mi_malloc works, and malloc is served by whom the argument says.
#include <mimalloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  void* const mine = mi_malloc(100);
  void* const theirs = malloc(100);
  const char* found = mi_is_in_heap_region(theirs) ? "ours" : "other";
  const int   version = mi_version();
  const bool  ok = mi_is_in_heap_region(mine) && version == MI_MALLOC_VERSION && strcmp(found, argv[1]) == 0;
  printf("version=%d header=%d malloc=%s\n", version, MI_MALLOC_VERSION, found);
  free(theirs);
  mi_free(mine);
  return ok ? 0 : 1;
}
