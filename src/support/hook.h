// Functions that the program registers, each with an argument.  Layer: support.
//
// HK1  Whoever gets a function gets the argument that was registered with it, whatever other threads register meanwhile.
//      So does the child of a fork.
// HK2  Whoever gets a function waits for nobody: while another thread registers one, which may never run again, what was registered
//      before is had.  Only two that were registered meanwhile are a reason to look again.
#pragma once

#include "../base/compiler.h"

typedef enum mi_hook_e { MI_HOOK_OUTPUT, MI_HOOK_ERROR, MI_HOOK_LIMIT, MI_HOOK_DEFERRED_FREE, MI_HOOK_COUNT } mi_hook_t;

typedef void (*mi_hook_fun_t)(void);

void          _mi_hook_set(mi_hook_t hook, mi_hook_fun_t fun, void* arg);
// NULL: there is none.
mi_hook_fun_t _mi_hook_get(mi_hook_t hook, void** arg);

// In the child of a fork: whoever was registering a function is not there any more.
void _mi_hook_after_fork(void);
