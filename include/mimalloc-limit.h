/* Limits on memory: for the process and for single heaps.

   A hard limit refuses memory: malloc returns NULL with errno ENOMEM, operator new throws std::bad_alloc, and the function of
   mi_register_error is called, all as when the system has no memory.  Nothing is lost, and allocation works again as soon as
   memory was freed or the limit was raised.  Before a request is refused, the allocator gives back the memory that it retains: free
   memory, memory that the calling thread keeps for its next requests, and large blocks that other threads keep.  Then it calls the
   hook, and tries once more.  In secure full builds freed blocks wait before they are used again, 64 of them at a time, also at a limit.

   A soft limit refuses nothing.  When it is crossed, free memory is given back, and if that does not suffice, the hook is called:
   a program may drop its caches there.

     static void on_limit(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
       cache_t* cache = arg;
       cache_shrink(cache, event == mi_limit_soft ? 2 : 8);       // frees, and may allocate
     }

     mi_limit_hook(&on_limit, &cache);
     if (mi_limit_set(512 * 1024 * 1024, 448 * 1024 * 1024) != 0) ...   // 512 MiB at most, hook from 448 MiB on
     mi_heap_limit_set(plugin_heap, 64 * 1024 * 1024, 0);               // and a plug-in 64 MiB of these

   The environment sets the limits of the process, if the program does not:

     MIMALLOC_LIMIT=512M        bytes, or a number with K, M, G or T (KiB, ...), or a share such as 80%
     MIMALLOC_LIMIT_SOFT=70%    the same
     MIMALLOC_RETAIN=16M        the most free memory that is kept for later use; also as a share

   off, no, false and 0 mean none.  An empty value and other words are refused with a warning.
   A share is of the memory that the container allows (mi_limit_container), or, without such a limit, of the memory of the machine.

   These count towards the limits of the process: all pages and large blocks, as a whole, whether the program has touched them or not;
   the allocator's own data; free memory that is still backed.  These do not: memory that the program has provided as an arena; OS pages
   of 2 MiB or 1 GiB that the system had set aside; the table of pages (1/1000 of the memory that it describes); and memory that does
   not come from this allocator, such as code, stacks, files and mappings of the program.  Pages and large blocks of a
   heap count towards the limits of that heap.  A block that is guarded, or sampled by the heap profile, has a page of its own, so it
   counts as 64 KiB or more.

   A large block that is resized counts twice while it is copied; on Linux blocks of more than 32 MiB move without a copy.

   Where memory only grows (WebAssembly, and systems with a memory function of their own), nothing goes back.  There all memory that the
   system has given for pages and large blocks counts, free or not, and for ever: mi_limit_used never becomes less.  A hard limit bounds
   how far memory grows.  Requests that free memory can serve are granted, even if more memory has come than the limit allows, and a
   refused request adds no memory.  The hook for the soft limit is called when memory has grown beyond the limit, and then at most once a
   second while it grows further.  Limits of heaps are the same everywhere.

   A page of the smallest kind has 64 KiB.  So a limit of less than about 4 MiB leaves little to use, and a heap's limit should
   be some hundred KiB for each thread that uses it.

   All functions may be called by any thread at any time, except in signal handlers.  The child of a fork has the limits and the hook
   of its parent, and its own count.  */
#pragma once
#ifndef MIMALLOC_LIMIT_H
#define MIMALLOC_LIMIT_H

#include "mimalloc.h"

#if defined(__cplusplus)
extern "C" {
#endif

/* Sets the limits of the process in bytes; 0: none.  Returns 0, or EINVAL if the soft limit is above the hard one: nothing changes
   then.  If more is in use than the hard limit, what is in use stays, and requests that need more memory fail until it is less. */
mi_decl_export int mi_limit_set(size_t hard, size_t soft) mi_attr_noexcept;

/* The limits in force, in bytes; 0: none.  Either pointer may be NULL. */
mi_decl_export void mi_limit_get(size_t* hard, size_t* soft) mi_attr_noexcept;

/* Bytes that count towards the limits of the process now, whether or not it has limits. */
mi_decl_export size_t mi_limit_used(void) mi_attr_noexcept;

/* The same for a heap that the program has made.  The main heap of the main subprocess has no limits of its own: setting them gives
   EINVAL, as for NULL and for a heap that is not in use, and reading gives 0.  The memory of a heap counts towards the limits of the
   process as well.  Threads that resize large blocks of a heap at the same time may together exceed its limit by what they add. */
mi_decl_export int    mi_heap_limit_set(mi_heap_t* heap, size_t hard, size_t soft) mi_attr_noexcept;
mi_decl_export void   mi_heap_limit_get(mi_heap_t* heap, size_t* hard, size_t* soft) mi_attr_noexcept;
mi_decl_export size_t mi_heap_limit_used(mi_heap_t* heap) mi_attr_noexcept;

typedef enum mi_limit_event_e {
  mi_limit_soft, /* the soft limit is exceeded, although free memory was given back */
  mi_limit_hard  /* a request is going to be refused */
} mi_limit_event_t;

/* The hook.  `heap`: whose limit it is; NULL: that of the process.  `used`: bytes that count. */
typedef void(mi_cdecl mi_limit_fun)(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg);

/* Sets the hook of all limits; NULL: none.

   It is called by the thread that allocates, within its call of malloc, free of locks of the allocator.  It may allocate and free; if
   that exceeds a limit, the hook is not called again by this thread before it has returned.  Other threads may call it at the same
   time.  It must not end the heap that the call allocates from, and must not throw.  The library restores errno afterwards.

   For a soft limit it is called once when the limit is crossed.  It is called again after a second if the limit is still exceeded and
   more memory is taken, and when the limit is crossed again after use was below 15/16 of it.  For a hard limit it is called for the first
   request that would be refused, and then at most every 100 ms until a request that needs memory was granted. */
mi_decl_export void mi_limit_hook(mi_limit_fun* hook, void* arg) mi_attr_noexcept;

/* The memory that the container of the process allows it, in bytes: on Linux the least of memory.max and memory.high (version 2 of control
   groups) or memory.limit_in_bytes (version 1) of its group and those above it.  0: no limit, or none that can be seen.
   Each call reads files below /proc and /sys; the library itself does so at the start of the process, if one of the options
   above is a share, and at no other time. */
mi_decl_export size_t mi_limit_container(void) mi_attr_noexcept;

#if defined(__cplusplus)
}
#endif

#endif
