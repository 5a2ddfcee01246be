// Files that we write, for systems where there are none yet: programs get profiles by mi_profile_dump_to.  Layer: prim.
#include "prim.h"

#include <errno.h>

// clang-format off
MI_PRIM_DEFAULT int _mi_prim_file_create(const char* path, intptr_t* file) { (void)path, (void)file; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_file_write(intptr_t file, const void* data, size_t size) { (void)file, (void)data, (void)size; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_file_close(intptr_t file) { (void)file; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_file_rename(const char* from, const char* to) { (void)from, (void)to; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_file_remove(const char* path) { (void)path; return ENOTSUP; }

MI_PRIM_DEFAULT void _mi_prim_prepare_stderr(void) {}

MI_PRIM_DEFAULT size_t _mi_prim_process_id(void) { return 0; }

// Nor modules and a signal, for the heap profile.
MI_PRIM_DEFAULT void _mi_prim_modules(bool (*visit)(const mi_module_t* module, void* arg), void* arg) { (void)visit, (void)arg; }
MI_PRIM_DEFAULT int  _mi_prim_signal_init(int sig, void (*on_signal)(int value)) { (void)sig, (void)on_signal; return ENOTSUP; }
MI_PRIM_DEFAULT void _mi_prim_signal_stop(void) {}
// clang-format on
