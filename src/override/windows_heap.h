// Blocks of the C runtimes themselves ("foreign"): allocated before a runtime was redirected, or by its own code.
// Layer: override.
//
// A C runtime takes its blocks from a heap of the system, so that is whom they are given back to; the runtime's own free may be
// ours by now.  None of these functions changes errno or GetLastError.
#pragma once

#include "../base/compiler.h"

// The system heap that has a block, NULL if none has: then the pointer is not one that free may be given.
void*  _mi_windows_heap_of(const void* p);
// For a block from _aligned_malloc of a runtime: *block is where it begins in the heap.
void*  _mi_windows_heap_of_aligned(void* p, void** block);
void   _mi_windows_heap_free(void* heap, void* p);
size_t _mi_windows_heap_size(void* heap, const void* p);
// Makes it larger or smaller where it is; false if it cannot be.
bool   _mi_windows_heap_expand(void* heap, void* p, size_t size);
