// Foreign blocks.  Layer: override.
#include "windows_heap.h"

#include <windows.h>

#include "windows_runtime.h"

void* _mi_windows_heap_of(const void* p) {
  return (uintptr_t)p % sizeof(void*) == 0 ? _mi_windows_runtime_heap_of(p) : NULL;
}

// All runtimes have the address of the block in the last word before the aligned address.
void* _mi_windows_heap_of_aligned(void* p, void** block) {
  void**                   word = (void**)((uintptr_t)p & ~(uintptr_t)(sizeof(void*) - 1)) - 1;
  MEMORY_BASIC_INFORMATION info;
  DWORD                    error = GetLastError();
  bool                     is_there = (VirtualQuery(word, &info, sizeof(info)) != 0 && info.State == MEM_COMMIT);
  SetLastError(error);
  if (!is_there || (info.Protect & (PAGE_NOACCESS | PAGE_GUARD)) != 0) return NULL;
  *block = *word;
  return _mi_windows_heap_of(*block);
}

void _mi_windows_heap_free(void* heap, void* p) {
  DWORD error = GetLastError();
  HeapFree((HANDLE)heap, 0, p);
  SetLastError(error);
}

size_t _mi_windows_heap_size(void* heap, const void* p) {
  return HeapSize((HANDLE)heap, 0, p);
}

bool _mi_windows_heap_expand(void* heap, void* p, size_t size) {
  DWORD error = GetLastError();
  bool  done = (HeapReAlloc((HANDLE)heap, HEAP_REALLOC_IN_PLACE_ONLY, p, size) != NULL);
  SetLastError(error);
  return done;
}
