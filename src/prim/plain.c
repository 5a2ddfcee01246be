// What a system without a process, an environment, processors, signals and stacks to look at has to say of them.  Layer: prim.
#include "prim.h"

#include <errno.h>
#include <string.h>

#include "../base/bits.h"

// clang-format off

MI_PRIM_DEFAULT int64_t _mi_prim_clock_ms(void)    { return _mi_prim_clock_ns() / 1000000; }
MI_PRIM_DEFAULT int64_t _mi_prim_cpu_time_ms(void) { return 0; }

MI_PRIM_DEFAULT size_t _mi_prim_numa_node_count(void) { return 1; }
MI_PRIM_DEFAULT size_t _mi_prim_numa_node(void)       { return 0; }
MI_PRIM_DEFAULT int    _mi_prim_numa_bind(void* start, size_t size, size_t node, bool only) { (void)start, (void)size, (void)node, (void)only; return ENOTSUP; }

MI_PRIM_DEFAULT size_t _mi_prim_container_limit(void) { return 0; }
MI_PRIM_DEFAULT size_t _mi_prim_machine_memory(void)  { return 0; }

MI_PRIM_DEFAULT bool   _mi_prim_is_privileged(void)   { return false; }
MI_PRIM_DEFAULT bool   _mi_prim_is_unloadable(void)   { return false; }
MI_PRIM_DEFAULT bool   _mi_prim_is_ending(void)       { return false; }
MI_PRIM_DEFAULT const wchar_t* _mi_prim_wide_variable(const wchar_t* name) { (void)name; return NULL; }

MI_PRIM_DEFAULT int    _mi_prim_fault_init(void (*on_fault)(const mi_fault_t* fault)) { (void)on_fault; return ENOTSUP; }
MI_PRIM_DEFAULT void   _mi_prim_fault_stop(void)      {}
MI_PRIM_DEFAULT size_t _mi_prim_stack(void** frames, size_t max) { (void)frames, (void)max; return 0; }
MI_PRIM_DEFAULT bool   _mi_prim_stack_init(void)      { return false; }
MI_PRIM_DEFAULT bool   _mi_prim_find_module(uintptr_t address, char* name, size_t size, uintptr_t* offset) { (void)address, (void)name, (void)size, (void)offset; return false; }

// clang-format on

MI_PRIM_DEFAULT void _mi_prim_process_info(mi_process_info_t* info) {
  static mi_atomic(int64_t) started_ms; // about: when this was first asked
  int64_t                   now = _mi_prim_clock_ms(), none = 0;
  mi_cas_strong(&started_ms, &none, now, relaxed, relaxed);
  memset(info, 0, sizeof(*info));
  info->elapsed_ms = now - mi_load_relaxed(&started_ms);
  info->user_ms = _mi_prim_cpu_time_ms();
}

#if MI_SYSTEM_CUSTOM

MI_PRIM_DEFAULT size_t _mi_prim_os_page_size(void) {
  return 4096;
}

MI_PRIM_DEFAULT const char* _mi_prim_environment_entry(size_t i) {
  (void)i;
  return NULL;
}

#endif

#if MI_SYSTEM_CUSTOM || MI_SYSTEM_WASI

MI_PRIM_DEFAULT char* _mi_prim_real_path(const char* path, char* resolved) {
  (void)path, (void)resolved;
  errno = ENOSYS;
  return NULL;
}

#endif
