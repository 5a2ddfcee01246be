// Jumps at the start of functions.  Layer: override.
//
//   function   e9 <distance>                jmp stub          5 bytes: the shortest there is, with a reach of 2 GiB
//   stub       ff 25 00000000 <address>     jmp [address]     in a page of ours near the module
//
// The original is never called afterwards, so no instruction needs to be moved.
//
// WJ1  The jump is written with one store of eight bytes within a cache line, so a thread that calls the function meanwhile
//      executes the old instructions or the jump.
// WJ2  All other threads stand still meanwhile, and none of them within the first five bytes.
#include "windows_inline.h"

#include <string.h>
#include <windows.h>

#include "../base/bits.h"
#include "windows_threads.h"

#if defined(__x86_64__) || defined(_M_X64)

  #define INLINE_JUMP        5
  #define INLINE_STUB        16
  #define INLINE_REACH       ((size_t)0x70000000)
  #define INLINE_GRANULARITY ((size_t)0x10000) // of addresses that VirtualAlloc takes

// ---- a page near the module -------------------------------------------------------------------------------------------

static unsigned char* inline_try_at(uintptr_t at, size_t* next, bool up) {
  MEMORY_BASIC_INFORMATION info;
  if (VirtualQuery((void*)at, &info, sizeof(info)) == 0) return NULL;
  uintptr_t start = (uintptr_t)info.BaseAddress, end = start + info.RegionSize;
  *next = up ? mi_align_up(end, INLINE_GRANULARITY)
             : mi_align_down((info.State == MEM_FREE ? start : (uintptr_t)info.AllocationBase) - 1, INLINE_GRANULARITY);
  if (info.State != MEM_FREE || end - at < INLINE_GRANULARITY) return NULL;
  return (unsigned char*)VirtualAlloc((void*)at, INLINE_GRANULARITY, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
}

static unsigned char* inline_find_room(const mi_windows_image_t* image) {
  uintptr_t base = (uintptr_t)image->base, end = base + image->size, next;
  for (uintptr_t at = mi_align_up(end, INLINE_GRANULARITY); at - base < INLINE_REACH; at = next) {
    next = base + INLINE_REACH;
    unsigned char* room = inline_try_at(at, &next, true);
    if (room != NULL) return room;
  }
  for (uintptr_t at = mi_align_down(base - 1, INLINE_GRANULARITY); at != 0 && end - at < INLINE_REACH; at = next) {
    next = 0;
    unsigned char* room = inline_try_at(at, &next, false);
    if (room != NULL) return room;
  }
  return NULL;
}

static unsigned char* inline_make_stubs(const mi_windows_runtime_t* runtime) {
  static const unsigned char jump[6] = {0xff, 0x25, 0, 0, 0, 0};
  unsigned char*             stubs = inline_find_room(&runtime->image);
  DWORD                      old;
  if (stubs == NULL) return NULL;
  for (size_t i = 0; i < runtime->n_hooks; i++) {
    memcpy(stubs + i * INLINE_STUB, jump, sizeof(jump));
    memcpy(stubs + i * INLINE_STUB + sizeof(jump), &runtime->hooks[i].own, sizeof(void*));
  }
  if (VirtualProtect(stubs, INLINE_GRANULARITY, PAGE_EXECUTE_READ, &old)) return stubs;
  VirtualFree(stubs, 0, MEM_RELEASE);
  return NULL;
}

// ---- the jumps --------------------------------------------------------------------------------------------------------

static bool inline_is_patched(const mi_windows_runtime_t* runtime, size_t i) {
  return runtime->originals[i] != NULL && !runtime->hooks[i].is_caller;
}

// False for a thread that a jump would hit between the instructions that it replaces.
static bool inline_is_clear(uintptr_t at, const void* arg) {
  const mi_windows_runtime_t* runtime = (const mi_windows_runtime_t*)arg;
  for (size_t i = 0; i < runtime->n_hooks; i++) {
    uintptr_t distance = at - (uintptr_t)runtime->originals[i];
    if (inline_is_patched(runtime, i) && distance - 1 < INLINE_JUMP - 1) return false;
  }
  return true;
}

static bool inline_write(unsigned char* at, const unsigned char* stub) {
  DWORD    old;
  uint64_t code;
  int32_t  distance = (int32_t)(stub - (at + INLINE_JUMP));
  if (!VirtualProtect(at, sizeof(code), PAGE_EXECUTE_READWRITE, &old)) return false;
  memcpy(&code, at, sizeof(code));
  ((unsigned char*)&code)[0] = 0xe9;
  memcpy((unsigned char*)&code + 1, &distance, sizeof(distance));
  *(volatile uint64_t*)at = code; // WJ1
  VirtualProtect(at, sizeof(code), old, &old);
  FlushInstructionCache(GetCurrentProcess(), at, sizeof(code));
  return true;
}

static const char* inline_check(const mi_windows_runtime_t* runtime) {
  for (size_t i = 0; i < runtime->n_hooks; i++) {
    uintptr_t at = (uintptr_t)runtime->originals[i];
    if (inline_is_patched(runtime, i) && at % 64 > 64 - sizeof(uint64_t)) return "has a function across cache lines";
  }
  return NULL;
}

const char* _mi_windows_inline_apply(const mi_windows_runtime_t* runtime, size_t* n_functions) {
  const char* reason = inline_check(runtime);
  if (reason != NULL) return reason;
  unsigned char* stubs = inline_make_stubs(runtime);
  if (stubs == NULL) return "has no free memory near it, or the process must not make code";
  if (!_mi_windows_threads_stop(inline_is_clear, runtime)) return "is used by threads that cannot be stopped";
  for (size_t i = 0; i < runtime->n_hooks && reason == NULL; i++) {
    if (!inline_is_patched(runtime, i)) continue;
    if (!inline_write((unsigned char*)runtime->originals[i], stubs + i * INLINE_STUB)) reason = "must not be changed";
    else ++*n_functions;
  }
  _mi_windows_threads_resume();
  return reason;
}

#else

const char* _mi_windows_inline_apply(const mi_windows_runtime_t* runtime, size_t* n_functions) {
  (void)runtime;
  (void)n_functions;
  return "is for a processor whose jumps are not known here";
}

#endif
