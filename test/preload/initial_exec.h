// Whether the C library opens a library with dlopen whose thread-local variables are initial-exec: musl does not.
#pragma once

#include "../check.h"
#include <dlfcn.h>
#include "../modes/support.h"

// False, and it is said that the test skips itself.  A library that is loaded already must not be asked about.
static inline bool opens_initial_exec(const char* path) {
  void*       handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char* error = (handle == NULL ? dlerror() : NULL);
  if (handle != NULL) dlclose(handle);
  if (error == NULL || strstr(error, "initial-exec TLS") == NULL) return true; // the test finds what else is wrong
  test_skip("dlopen", "this C library opens the library only if it is built with MI_LOCAL_DYNAMIC_TLS");
  return false;
}
