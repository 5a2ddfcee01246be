// The whole library as one source: compile this file alone, with the include directory, and link what it gives.
//
//   cc -O2 -DNDEBUG -Iinclude -c src/static.c                                the mi_ functions only
//   cc -O2 -DNDEBUG -Iinclude -DMI_MALLOC_OVERRIDE -fno-builtin-malloc ...   and malloc, free, operator new, ...
//
// It is also how the build makes its libraries: in one translation unit the standard names are aliases of ours, and
// calls between layers can be inlined.  The list is checked against the build's (scripts/check-layers.py).
#define MI_SINGLE_SOURCE 1
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif

#include "prim/system.h"
#if MI_SYSTEM_LINUX
  #include "prim/linux.c"
  #include "prim/linux_container.c"
  #include "prim/linux_fault.c"
  #include "prim/linux_process.c"
#endif
#if MI_SYSTEM_LINUX
  #include "prim/linux_file.c"
#else
  #include "prim/no_share.c"
#endif
#if MI_SYSTEM_LINUX && !MI_SYSTEM_ANDROID
  #include "prim/linux_thread.c"
#elif MI_SYSTEM_WINDOWS
  #include "prim/no_watch.c"
  #include "prim/windows.c"
  #include "prim/windows_calls.c"
  #include "prim/windows_etw.c"
  #include "prim/windows_fault.c"
  #include "prim/windows_process.c"
  #include "prim/windows_thread.c"
#endif
#if MI_SYSTEM_UNIX || MI_SYSTEM_WINDOWS
  #include "prim/no_remap.c"
#endif
#if MI_SYSTEM_UNIX || MI_SYSTEM_ANDROID || (MI_SYSTEM_EMSCRIPTEN && MI_PRIM_THREADS)
  #include "prim/unix_thread.c"
#endif
#if MI_SYSTEM_POSIX || (MI_SYSTEM_EMSCRIPTEN && MI_PRIM_THREADS)
  #include "prim/thread_exit.c"
  #include "prim/local.c"
#endif
#if MI_SYSTEM_POSIX
  #include "prim/posix_memory.c"
  #include "prim/posix_process.c"
#endif
#include "prim/inject.c"
#if MI_SYSTEM_UNIX || MI_SYSTEM_WINDOWS
  #include "prim/no_advice.c"
  #include "prim/no_container.c"
#endif
#if MI_SYSTEM_BSD || MI_SYSTEM_HAIKU || MI_SYSTEM_WINDOWS
  #include "prim/no_large.c"
#endif
#if MI_SYSTEM_UNIX
  #include "prim/unix_fault.c"
  #include "prim/unix_file.c"
  #include "prim/unix_memory.c"
  #include "prim/unix_process.c"
#endif
#if MI_SYSTEM_BSD
  #include "prim/bsd.c"
#endif
#if MI_SYSTEM_DARWIN
  #include "prim/darwin.c"
#elif MI_SYSTEM_FREEBSD
  #include "prim/freebsd.c"
#elif MI_SYSTEM_NETBSD
  #include "prim/netbsd.c"
#elif MI_SYSTEM_OPENBSD
  #include "prim/openbsd.c"
#elif MI_SYSTEM_DRAGONFLY
  #include "prim/dragonfly.c"
#elif MI_SYSTEM_HAIKU
  #include "prim/haiku.c"
#endif
#if MI_SYSTEM_WASI
  #include "prim/wasi.c"
#endif
#if MI_SYSTEM_EMSCRIPTEN
  #include "prim/emscripten.c"
#endif
#if MI_SYSTEM_EMSCRIPTEN && MI_PRIM_THREADS
  #include "prim/emscripten_thread.c"
#endif
#if MI_SYSTEM_WASI || MI_SYSTEM_EMSCRIPTEN
  #include "prim/wasm.c"
#endif
#if !MI_SYSTEM_POSIX
  #include "prim/no_files.c"
#endif
#if !MI_PRIM_VIRTUAL
  #include "prim/grown.c"
  #include "prim/plain.c"
#endif
#if !MI_PRIM_THREADS
  #include "prim/single.c"
#endif
#include "prim/lock.c"
#include "prim/tag.c"

#include "support/assert.c"
#include "support/chance.c"
#include "support/format.c"
#include "support/hook.c"
#include "support/message.c"
#include "support/option.c"
#include "support/options.c"
#include "support/pprof.c"
#include "support/stat.c"
#include "support/trace.c"
#include "support/value.c"

#include "arena/arena.c"
#include "arena/chunk.c"
#include "arena/commit.c"
#include "arena/dense.c"
#include "arena/hole.c"
#include "arena/limit.c"
#include "arena/recur.c"
#include "arena/mapped_slot.c"
#include "arena/mapped.c"
#include "arena/numa.c"
#include "arena/part.c"
#include "arena/place.c"
#include "arena/subregion.c"
#include "arena/give.c"
#include "arena/purge.c"
#include "arena/purge_at_peak.c"
#include "arena/purge_by_amount.c"
#include "arena/purge_by_clock.c"
#include "arena/purge_keep.c"
#include "arena/hold.c"
#include "arena/swing.c"
#include "arena/range.c"
#include "arena/recall.c"
#include "arena/trade.c"
#include "arena/region.c"
#include "arena/reserve.c"
#include "arena/shrink.c"
#include "arena/window.c"
#include "arena/slices.c"
#include "arena/space.c"

#include "page/block.c"
#include "page/fill.c"
#include "page/padding.c"
#include "page/page.c"
#include "page/size_class.c"
#include "page/verify.c"
#include "page/written.c"

#include "heap/attach.c"
#include "heap/background.c"
#include "heap/bin.c"
#include "heap/check.c"
#include "heap/check_page.c"
#include "heap/counted.c"
#include "heap/directory.c"
#include "heap/drain.c"
#include "heap/ended.c"
#include "heap/event.c"
#include "heap/fork.c"
#include "heap/free.c"
#include "heap/gap_list.c"
#include "heap/gap_map.c"
#include "heap/gaps.c"
#include "heap/grow.c"
#include "heap/guard.c"
#include "heap/guard_fault.c"
#include "heap/heap.c"
#include "heap/heap_end.c"
#include "heap/heap_stats.c"
#include "heap/hollow.c"
#include "heap/idle.c"
#include "heap/kept.c"
#include "heap/large.c"
#include "heap/large_resize.c"
#include "heap/late.c"
#include "heap/lost.c"
#include "heap/meta.c"
#include "heap/outbox.c"
#include "heap/pool.c"
#include "heap/presence.c"
#include "heap/profile.c"
#include "heap/quarantine.c"
#include "heap/queue.c"
#include "heap/refill.c"
#include "heap/registry.c"
#include "heap/sampler.c"
#include "heap/spare.c"
#include "heap/sparse.c"
#include "heap/subproc.c"
#include "heap/theap.c"
#include "heap/thread.c"
#include "heap/trim.c"
#include "heap/vacant.c"
#include "heap/view.c"
#include "heap/waiting.c"
#include "heap/walk.c"
#include "heap/warm.c"

#include "api/hooks.c"
#include "api/collect.c"
#include "api/life.c"
#include "api/limits.c"
#include "api/alloc.c"
#include "api/subproc.c"
#include "api/line.c"
#include "api/leaks.c"
#include "api/stats.c"
#include "api/stats_print.c"
#include "api/file.c"
#include "api/publish.c"
#include "api/profile_write.c"
#include "api/profile.c"
#include "api/process.c"
#include "api/malloc.c"
#include "api/heap.c"
#include "api/realloc.c"
#include "api/aligned.c"
#include "api/sizes.c"
#include "api/posix.c"
#include "api/arena.c"
#include "api/guard.c"
#include "api/inline.c"
#include "api/visit.c"
#include "api/stats_json.c"
#include "api/catch.c"
#include "api/cxx.c"
#include "api/level.c"

#if MI_SYSTEM_WINDOWS
  #include "override/windows_crt.c"
  #include "override/windows_heap.c"
  #include "override/windows_inline.c"
  #include "override/windows_pe.c"
  #include "override/windows_redirect.c"
  #include "override/windows_runtime.c"
  #include "override/windows_threads.c"
#else
  #include "override/bsd.c"
  #include "override/darwin.c"
  #include "override/glibc.c"
  #include "override/libc.c"
  #include "override/loader.c"
  #include "override/operators.c"
#endif
