// A library for test-deepbind: it opens another one, which its own search path (RUNPATH) alone leads to.
#define _GNU_SOURCE
#include <dlfcn.h>

void* caller_open(const char* name, int flags, int calls_dlmopen);

void* caller_open(const char* name, int flags, int calls_dlmopen) {
#if defined(LM_ID_BASE)
  void* handle = (calls_dlmopen ? dlmopen(LM_ID_BASE, name, flags) : dlopen(name, flags));
#else // musl; the test skips itself
  void* handle = (calls_dlmopen ? 0 : dlopen(name, flags));
#endif
  __asm__ volatile("" : "+r"(handle)); // dlopen must return to here, not to who called this
  return handle;
}
