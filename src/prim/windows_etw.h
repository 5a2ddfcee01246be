// Events for Event Tracing for Windows: each block of the program, in builds with MI_TRACK_ETW.  Layer: prim.
//
//   ETW_MI_ALLOC(address, size)   the program has a block
//   ETW_MI_FREE(address, size)    it has not any more; this comes before the address is used again
//
// A block that gets another size where it is, is freed and allocated.  `size` is what the program asked for.  While nobody
// listens, an event is a load and a jump.  tools/etw/mimalloc-etw.man has the same for those who listen.
#pragma once

#include "../base/atomic.h"
#include "../base/mode.h"
#include "system.h"

// {53E6C9F1-0B8D-4A57-9C3E-7D2A41B86F05}
#define MI_ETW_ID_ALLOC      100
#define MI_ETW_ID_FREE       101
#define MI_ETW_LEVEL         4 // information
#define MI_ETW_KEYWORD_BLOCK 1

// Does somebody listen to this provider, with that level and keyword?
extern mi_atomic(uint32_t) _mi_windows_etw_is_on;

// When the library is loaded, and before it is unloaded.
void         _mi_windows_etw_begin(void);
void         _mi_windows_etw_end(void);
mi_cold void _mi_windows_etw_write(uint16_t id, const void* p, size_t size);

static mi_always_inline void _mi_windows_etw_block(uint16_t id, const void* p, size_t size) {
  if (mi_unlikely(mi_load_relaxed(&_mi_windows_etw_is_on) != 0)) _mi_windows_etw_write(id, p, size);
}

#if MI_TRACK_ETW // base/track.h says when they are used
  #if !MI_SYSTEM_WINDOWS
    #error "MI_TRACK_ETW is for Windows"
  #endif
  #define mi_track_block(p, size, is_zero) ((void)(is_zero), _mi_windows_etw_block(MI_ETW_ID_ALLOC, p, size))
  #define mi_track_freed(p, size)          _mi_windows_etw_block(MI_ETW_ID_FREE, p, size)
  #define mi_track_resize(p, size, new_size) \
    (_mi_windows_etw_block(MI_ETW_ID_FREE, p, size), _mi_windows_etw_block(MI_ETW_ID_ALLOC, p, new_size))
#endif
