// What this build checks: constants, so that what is off costs nothing and is compiled all the same.  Layer: base.
//
//                    MI_SECURE   MI_PADDING  MI_CHECKED  MI_HARDENED  MI_FILL
//   release              0            0           0           0          0
//   secure             1..4           1           1           0          0
//   secure full          5            1           1           1          1
//   debug                0            1           1           0          1       MI_DEBUG > 0
//
//   MI_PADDING   the end of each block is guarded, and tells how much of it the program asked for (page/padding.h)
//   MI_CHECKED   links of free blocks are encoded and checked; so is each pointer that is freed (page/block.h)
//   MI_HARDENED  freed memory is kept for a while before it is used again; guard pages behind pages of blocks (heap/quarantine.h, page/page.h)
//   MI_FILL      freed memory is overwritten, and checked before it is used again
#pragma once

// The level of assertions: 0 none, 1 mi_assert, 2 also internal, 3 also expensive (support/assert.h).
#if !defined(MI_DEBUG)
  #if defined(NDEBUG) || defined(MI_BUILD_RELEASE)
    #define MI_DEBUG 0
  #else
    #define MI_DEBUG 2
  #endif
#endif
#if !defined(MI_SECURE)
  #define MI_SECURE 0
#endif

// Tools see every block and every access (base/track.h): blocks need a margin behind them, and nothing may be filled.
#if !defined(MI_TRACK_VALGRIND)
  #define MI_TRACK_VALGRIND 0
#endif
#if !defined(MI_TRACK_ASAN)
  #define MI_TRACK_ASAN 0
#endif
#if !defined(MI_TRACK_ETW)
  #define MI_TRACK_ETW 0
#endif
#define MI_TRACK (MI_TRACK_VALGRIND || MI_TRACK_ASAN || MI_TRACK_ETW)

#if !defined(MI_PADDING)
  #define MI_PADDING (MI_SECURE > 0 || MI_DEBUG > 0 || MI_TRACK)
#endif
#if MI_TRACK && !MI_PADDING
  #error "with MI_TRACK_VALGRIND, MI_TRACK_ASAN or MI_TRACK_ETW blocks are padded: MI_PADDING=0 cannot be had"
#endif
#define MI_CHECKED \
  (MI_PADDING && (MI_SECURE > 0 || MI_DEBUG > 0 || MI_TRACK)) // without padding there is nothing to check by
#define MI_HARDENED (MI_CHECKED && !MI_TRACK && MI_SECURE >= 5)
#define MI_FILL     (MI_CHECKED && !MI_TRACK && (MI_SECURE >= 5 || MI_DEBUG > 0))
#define MI_FILL_NEW (MI_DEBUG > 0 && !MI_HARDENED && !MI_TRACK) // new memory is filled: whoever reads it is to notice

// What blocks are filled with.
#define MI_FILL_FREED   (MI_HARDENED ? 0x00 : 0xDF)
#define MI_FILL_UNINIT  0xD0 // MI_FILL_NEW
#define MI_FILL_PADDING 0xDE

#define MI_PADDING_SIZE ((size_t)(MI_PADDING ? 8 : 0))
