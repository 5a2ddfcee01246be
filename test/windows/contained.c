// A DLL that contains the static library, for test-unload-contained.c.
#include <mimalloc.h>

__declspec(dllexport) void* contained_malloc(size_t size);
__declspec(dllexport) void  contained_free(void* p);

void* contained_malloc(size_t size) {
  return mi_malloc(size);
}

void contained_free(void* p) {
  mi_free(p);
}
