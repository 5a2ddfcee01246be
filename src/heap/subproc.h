// Subprocesses: parts of the process whose threads share no memory, unless they pass blocks on.  Layer: heap.
#pragma once

#include "heap.h"

// NULL when out of memory.
mi_subproc_t* _mi_subproc_new(void);

// Ends a subprocess.  False while it has threads, and without `destroy` also while there is memory in use.
bool _mi_subproc_end(mi_subproc_t* subproc, bool destroy);

// How many threads are in other subprocesses than the main one.
size_t _mi_subproc_n_moved_threads(void);

// In the child of a fork: there is one thread, in this subprocess.
void _mi_subproc_after_fork(mi_subproc_t* mine);
