// Files that other processes map, for systems where there are none yet.  Layer: prim.
#include <errno.h>

#include "prim.h"

// clang-format off
MI_PRIM_DEFAULT int  _mi_prim_self(mi_prim_self_t* self) { (void)self; return ENOTSUP; } // nothing else is asked then
MI_PRIM_DEFAULT bool _mi_prim_process_exists(uint64_t pid) { (void)pid; return true; }
MI_PRIM_DEFAULT int  _mi_prim_file_map(intptr_t file, size_t size, void** start) { (void)file, (void)size, (void)start; return ENOTSUP; }
MI_PRIM_DEFAULT bool _mi_prim_file_is_mapped(const char* name) { (void)name; return false; }
MI_PRIM_DEFAULT void _mi_prim_file_list(const char* directory, size_t max, void (*visit)(const char* name, void* arg), void* arg) { (void)directory, (void)max, (void)visit, (void)arg; }
MI_PRIM_DEFAULT const char* _mi_prim_file_directory(size_t i) { (void)i; return NULL; }
// clang-format on
