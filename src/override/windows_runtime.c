// The modules whose functions are replaced.  Layer: override.  windows_runtime.h has the invariant.
#include "windows_runtime.h"

#include <errno.h>
#include <string.h>
#include <windows.h>

#include "../base/bits.h"

// Twelve C runtimes have existed, and two modules of the system load others.
#define RUNTIME_MAX 16

static mi_windows_runtime_t runtime_all[RUNTIME_MAX];

static mi_windows_runtime_t* runtime_next(size_t* i) {
  for (; *i < RUNTIME_MAX; (*i)++) {
    if (mi_load_acquire(&runtime_all[*i].is_used)) return &runtime_all[(*i)++]; // WR1
  }
  return NULL;
}

#define RUNTIME_EACH(runtime) \
  size_t i_runtime = 0; \
  for (mi_windows_runtime_t * runtime; (runtime = runtime_next(&i_runtime)) != NULL;)

// A function as a pointer to data and back: the system has one kind of address.
#define RUNTIME_FUNCTION(variable, p) memcpy(&(variable), &(p), sizeof(void*))

static void runtime_fill(mi_windows_runtime_t* runtime, const mi_windows_hook_t* hooks, size_t n_hooks) {
  runtime->hooks = hooks;
  runtime->n_hooks = mi_min(n_hooks, (size_t)MI_WINDOWS_HOOKS_MAX);
  for (size_t i = 0; i < runtime->n_hooks; i++) {
    runtime->originals[i] = _mi_windows_pe_export(&runtime->image, hooks[i].name);
  }
  void* heap = _mi_windows_pe_export(&runtime->image, "_get_heap_handle");
  void* error = _mi_windows_pe_export(&runtime->image, "_errno");
  void* new_mode = _mi_windows_pe_export(&runtime->image, "_query_new_mode");
  void* new_handler = _mi_windows_pe_export(&runtime->image, "_callnewh");
  if (new_mode == NULL) new_mode = _mi_windows_pe_export(&runtime->image, "?_query_new_mode@@YAHXZ");
  RUNTIME_FUNCTION(runtime->heap, heap);
  RUNTIME_FUNCTION(runtime->error, error);
  RUNTIME_FUNCTION(runtime->new_mode, new_mode);
  RUNTIME_FUNCTION(runtime->new_handler, new_handler);
}

mi_windows_runtime_t* _mi_windows_runtime_add(const void* base, const mi_windows_hook_t* hooks, size_t n_hooks) {
  if (_mi_windows_runtime_has(base)) return NULL;
  for (size_t i = 0; i < RUNTIME_MAX; i++) {
    mi_windows_runtime_t* runtime = &runtime_all[i];
    if (mi_load_relaxed(&runtime->is_used)) continue;
    if (!_mi_windows_pe_open(&runtime->image, base)) return NULL;
    runtime_fill(runtime, hooks, n_hooks);
    mi_store_release(&runtime->is_used, true); // WR1
    return runtime;
  }
  return NULL;
}

static mi_windows_runtime_t* runtime_find(const void* base) {
  RUNTIME_EACH(runtime) {
    if (runtime->image.base == base) return runtime;
  }
  return NULL;
}

bool _mi_windows_runtime_has(const void* base) {
  return runtime_find(base) != NULL;
}

void _mi_windows_runtime_remove(const void* base) {
  mi_windows_runtime_t* runtime = runtime_find(base);
  if (runtime != NULL) mi_store_release(&runtime->is_used, false);
}

// ---- functions --------------------------------------------------------------------------------------------------------

void* _mi_windows_runtime_own(const void* original) {
  RUNTIME_EACH(runtime) {
    if (!_mi_windows_pe_has(&runtime->image, original)) continue;
    for (size_t i = 0; i < runtime->n_hooks; i++) {
      if (runtime->originals[i] == original) return runtime->hooks[i].own;
    }
  }
  return NULL;
}

void* _mi_windows_runtime_original(const char* name) {
  RUNTIME_EACH(runtime) {
    for (size_t i = 0; i < runtime->n_hooks; i++) {
      if (runtime->originals[i] != NULL && strcmp(runtime->hooks[i].name, name) == 0) return runtime->originals[i];
    }
  }
  return NULL;
}

// ---- what C runtimes do -----------------------------------------------------------------------------------------------

// A runtime that is not initialised yet has no heap.  That of the process is asked too: it is the one of runtimes that do not
// tell theirs.
void* _mi_windows_runtime_heap_of(const void* p) {
  DWORD  error = GetLastError();
  HANDLE found = (HeapValidate(GetProcessHeap(), 0, p) ? GetProcessHeap() : NULL);
  RUNTIME_EACH(runtime) {
    HANDLE heap = (found != NULL || runtime->heap == NULL ? NULL : runtime->heap());
    if (heap != NULL && HeapValidate(heap, 0, p)) found = heap;
  }
  SetLastError(error);
  return found;
}

void _mi_windows_runtime_fails(int error) {
  RUNTIME_EACH(runtime) {
    if (runtime->error != NULL) *runtime->error() = error;
  }
}

bool _mi_windows_runtime_retries(size_t size) {
  _mi_windows_runtime_fails(ENOMEM);
  if (size > PTRDIFF_MAX) return false; // no handler makes room for that
  RUNTIME_EACH(runtime) {
    if (runtime->new_mode == NULL || runtime->new_handler == NULL || runtime->new_mode() == 0) continue;
    if (runtime->new_handler(size) != 0) return true;
  }
  return false;
}
