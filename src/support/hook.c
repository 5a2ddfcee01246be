// Functions that the program registers.  Layer: support.  See hook.h.
#include "hook.h"

#include "../base/atomic.h"
#include "../prim/lock.h"

#define HOOK_TRIES 64 // to find something at rest that others change within a few instructions

// `version` is odd while the others change.
typedef struct hook_state_s {
  mi_atomic(uint32_t)      version;
  mi_atomic(mi_hook_fun_t) fun;
  mi_atomic(void*)         arg;
} hook_state_t;

static hook_state_t hook_states[MI_HOOK_COUNT];

void _mi_hook_set(mi_hook_t hook, mi_hook_fun_t fun, void* arg) {
  hook_state_t* state = &hook_states[hook];
  int           n_spins = 0;
  uint32_t      version = mi_load_relaxed(&state->version) & ~1u;
  while (!mi_cas_weak(&state->version, &version, version + 1, acquire, relaxed)) { // one writer at a time
    if (version % 2 != 0) _mi_lock_pause(&state->version, version, &n_spins);
    version &= ~1u;
  }
  mi_store_release(&state->fun, fun); // release: who sees one of these sees the odd version before it
  mi_store_release(&state->arg, arg);
  mi_store_release(&state->version, version + 2);
}

mi_hook_fun_t _mi_hook_get(mi_hook_t hook, void** arg) {
  hook_state_t* state = &hook_states[hook];
  for (int i = 0; i < HOOK_TRIES; i++) {
    uint32_t      before = mi_load_acquire(&state->version);
    mi_hook_fun_t fun = mi_load_acquire(&state->fun); // acquire: the version is read again only after these two
    *arg = mi_load_acquire(&state->arg);
    uint32_t after = mi_load_relaxed(&state->version);
    if (before == after && before % 2 == 0) return fun;
    mi_cpu_pause();
  }
  return NULL;
}

void _mi_hook_after_fork(void) {
  for (size_t i = 0; i < MI_HOOK_COUNT; i++) {
    mi_store_relaxed(&hook_states[i].version, mi_load_relaxed(&hook_states[i].version) & ~1u);
  }
}
