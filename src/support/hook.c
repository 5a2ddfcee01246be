// Functions that the program registers.  Layer: support.  See hook.h.
#include "hook.h"

#include "../base/atomic.h"
#include "../prim/lock.h"

typedef struct hook_pair_s {
  mi_atomic(mi_hook_fun_t) fun;
  mi_atomic(void*)         arg;
} hook_pair_t;

// Half of `version` says which pair holds.  It is odd while the other one is written, which holds from then on.
typedef struct hook_state_s {
  mi_atomic(uint32_t) version;
  hook_pair_t         pairs[2];
} hook_state_t;

static hook_state_t hook_states[MI_HOOK_COUNT];

static hook_pair_t* hook_pair(hook_state_t* state, uint32_t version) {
  return &state->pairs[version / 2 % 2];
}

void _mi_hook_set(mi_hook_t hook, mi_hook_fun_t fun, void* arg) {
  hook_state_t* state = &hook_states[hook];
  int           n_spins = 0;
  uint32_t      version = mi_load_relaxed(&state->version) & ~1u;
  while (!mi_cas_weak(&state->version, &version, version + 1, acquire, relaxed)) { // one writer at a time
    if (version % 2 != 0) _mi_lock_pause(&state->version, version, &n_spins);
    version &= ~1u;
  }
  hook_pair_t* pair = hook_pair(state, version + 2);
  mi_store_release(&pair->fun, fun); // release: who sees one of these sees the odd version before it
  mi_store_release(&pair->arg, arg);
  mi_store_release(&state->version, version + 2);
}

mi_hook_fun_t _mi_hook_get(mi_hook_t hook, void** arg) {
  hook_state_t* state = &hook_states[hook];
  for (;;) {
    uint32_t      before = mi_load_acquire(&state->version); // an odd one continues the release of the even one before
    hook_pair_t*  pair = hook_pair(state, before);
    mi_hook_fun_t fun = mi_load_acquire(&pair->fun); // acquire: the version is read again only after these two
    *arg = mi_load_acquire(&pair->arg);
    // The pair is not written again before the other one holds, and then the version is odd.
    if (mi_load_relaxed(&state->version) - (before & ~1u) <= 2) return fun;
  }
}

void _mi_hook_after_fork(void) {
  for (size_t i = 0; i < MI_HOOK_COUNT; i++) {
    mi_store_relaxed(&hook_states[i].version, mi_load_relaxed(&hook_states[i].version) & ~1u);
  }
}
