// The public interface as the library itself sees it; its sources include this instead of the public headers.
// Layer: base.
//
// For programs of level 2 a theap is another name of a heap and its functions are macros; the library has both types,
// and defines the functions at either level.
#pragma once

#if !defined(MI_LIBRARY_BUILD)
  #define MI_LIBRARY_BUILD 1
#endif
#include "../../include/mimalloc-inline.h"
#include "../../include/mimalloc-limit.h"
#include "../../include/mimalloc-profile.h"
#include "../../include/mimalloc-stats.h"
#include "../../include/mimalloc.h"

// What mi_heap_visit_blocks takes: the levels differ in a const.
#if MI_API_LEVEL >= 3
typedef mi_heap_t mi_visited_heap_t;
#else
typedef const mi_heap_t mi_visited_heap_t;
#endif
