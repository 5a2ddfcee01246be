// Limits on memory: options, the hook, and what is done before a request is refused.  Layer: api.
//
// LM1  The hook runs on the thread that allocates, without locks, outside of enter and leave, and at most once at a time on each
//      thread.
// LM2  It is called only when what we retain was given back and that did not suffice.
#pragma once

#include "../arena/limit.h"
#include "../heap/heap.h"

// Sets the limits that the options say.
mi_cold void _mi_limits_read_options(void);

// A soft limit was crossed.
mi_cold void _mi_limits_attend(void);

// How many requests have been refused because of limits: that of the process and that of the heap.
mi_cold size_t _mi_limits_refusals(mi_heap_t* heap);

// A request for the heap was refused although the calling thread has given back what it had.  True if it may be worth while to
// try again; `stage` says how often that was so, from 0 on.
mi_cold bool _mi_limits_relieve(mi_heap_t* heap, int stage);
