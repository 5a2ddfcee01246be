// What tools that watch memory are told: Valgrind's memcheck and the address sanitizer.  Layer: base.
//
// To them a block is [p, p + size) from mi_track_block to mi_track_unblock; all else of a page is out of bounds, for us as
// well: we say so before we touch a free block, and afterwards.  In other builds all of this is nothing.
#pragma once

#include "mode.h"

#if MI_TRACK_VALGRIND
  #include <valgrind/memcheck.h>
  #include <valgrind/valgrind.h>

  // The program has a block from now on, or not any more (the tool reports it if it had none), or one of another size.
  #define mi_track_block(p, size, is_zero)   VALGRIND_MALLOCLIKE_BLOCK(p, size, 0, is_zero)
  #define mi_track_unblock(p)                VALGRIND_FREELIKE_BLOCK(p, 0)
  #define mi_track_resize(p, size, new_size) VALGRIND_RESIZEINPLACE_BLOCK(p, size, new_size, 0)
  // We are going to read what we wrote there, or to write; or are done.
  #define mi_track_readable(p, n)            ((void)VALGRIND_MAKE_MEM_DEFINED(p, n))
  #define mi_track_writable(p, n)            ((void)VALGRIND_MAKE_MEM_UNDEFINED(p, n))
  #define mi_track_closed(p, n)              ((void)VALGRIND_MAKE_MEM_NOACCESS(p, n))

#elif MI_TRACK_ASAN
  #include <sanitizer/asan_interface.h>

  #define mi_track_block(p, size, is_zero)   ASAN_UNPOISON_MEMORY_REGION(p, size)
  #define mi_track_unblock(p)                ((void)(p))
  #define mi_track_resize(p, size, new_size) ASAN_UNPOISON_MEMORY_REGION(p, new_size)
  #define mi_track_readable(p, n)            ASAN_UNPOISON_MEMORY_REGION(p, n)
  #define mi_track_writable(p, n)            ASAN_UNPOISON_MEMORY_REGION(p, n)
  #define mi_track_closed(p, n)              ASAN_POISON_MEMORY_REGION(p, n)

#else
  #define mi_track_block(p, size, is_zero)   ((void)0)
  #define mi_track_unblock(p)                ((void)0)
  #define mi_track_resize(p, size, new_size) ((void)0)
  #define mi_track_readable(p, n)            ((void)0)
  #define mi_track_writable(p, n)            ((void)0)
  #define mi_track_closed(p, n)              ((void)0)
#endif
