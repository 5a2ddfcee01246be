// The modules whose functions are replaced: C runtimes, and those of the system that load modules.  Layer: override.
//
// WR1  A module is added or taken out by one thread at a time (windows_redirect.c holds its lock).  Others read meanwhile: an
//      entry counts when its `is_used` is true, and is written before that.
#pragma once

#include "../base/atomic.h"
#include "windows_pe.h"

// A function, by the name that it is exported under, and what replaces it.
typedef struct mi_windows_hook_s {
  const char* name;
  void*       own;
  bool        is_caller; // it calls another one of these: inline redirection need not touch it
} mi_windows_hook_t;

#define MI_WINDOWS_HOOKS_MAX 64

typedef struct mi_windows_runtime_s {
  mi_atomic(bool)          is_used;
  mi_windows_image_t       image;
  const mi_windows_hook_t* hooks;
  size_t                   n_hooks;
  void*                    originals[MI_WINDOWS_HOOKS_MAX]; // NULL where it has no such function
  void* (*heap)(void);                                      // these of a C runtime only, and NULL where it has none:
  int* (*error)(void);                                      // its errno
  int (*new_mode)(void);                                    // does its malloc call the handler of operator new?
  int (*new_handler)(size_t size);
} mi_windows_runtime_t;

// NULL if there are too many, it is no image, or it is there already.
mi_windows_runtime_t* _mi_windows_runtime_add(const void* base, const mi_windows_hook_t* hooks, size_t n_hooks);
void                  _mi_windows_runtime_remove(const void* base);
bool                  _mi_windows_runtime_has(const void* base);
// What stands in for a function of one of them; NULL if nothing does.
void*                 _mi_windows_runtime_own(const void* original);
// The original under that name in any of them, NULL if there is none.
void*                 _mi_windows_runtime_original(const char* name);
// The system heap from which a C runtime has taken this block, NULL if none has.  GetLastError stays as it was.
void*                 _mi_windows_runtime_heap_of(const void* p);
// Sets the errno of all C runtimes.
mi_cold void          _mi_windows_runtime_fails(int error);
// After a failure of malloc: sets the errno of all C runtimes, and does what they do then.  Is it worth another try?
mi_cold bool          _mi_windows_runtime_retries(size_t size);
