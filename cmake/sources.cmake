# The sources of the library, by layer from low to high.  src/static.c includes the same files one by one;
# scripts/check-layers.py holds the two lists against each other and against what lies in src/.

# What a system has beside its own sources: threads of POSIX, memory that only grows, one thread.
set(mi_has_threads ON)
set(mi_posix_sources src/prim/local.c src/prim/posix_memory.c src/prim/posix_process.c src/prim/thread_exit.c)
set(mi_unix_sources src/prim/no_advice.c src/prim/no_container.c src/prim/no_remap.c src/prim/unix_fault.c src/prim/unix_file.c src/prim/unix_memory.c src/prim/unix_process.c src/prim/unix_thread.c ${mi_posix_sources})
set(mi_grown_sources src/prim/grown.c src/prim/no_files.c src/prim/plain.c)

# Threads of Emscripten are a flag of its compiler.
set(mi_emscripten_threads OFF)
if(CMAKE_SYSTEM_NAME STREQUAL "Emscripten")
  include(CheckCSourceCompiles)
  check_c_source_compiles("
    #if !defined(__EMSCRIPTEN_PTHREADS__)
      #error no
    #endif
    int main(void) { return 0; }" mi_has_emscripten_threads)
  set(mi_emscripten_threads ${mi_has_emscripten_threads})
endif()

if(MI_PRIM_CUSTOM OR CMAKE_SYSTEM_NAME STREQUAL "Generic") # the program brings the rest (docs/design/porting.md)
  set(mi_has_threads OFF)
  set(mi_system_sources ${mi_grown_sources} src/prim/single.c)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  set(mi_system_sources src/prim/linux.c src/prim/linux_container.c src/prim/linux_fault.c src/prim/linux_process.c src/prim/linux_thread.c ${mi_posix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "Android")
  set(mi_system_sources src/prim/linux.c src/prim/linux_container.c src/prim/linux_fault.c src/prim/linux_process.c src/prim/unix_thread.c ${mi_posix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "Windows")
  set(mi_system_sources
    src/prim/no_advice.c
    src/prim/no_container.c
    src/prim/no_files.c
    src/prim/no_large.c
    src/prim/no_remap.c
    src/prim/no_watch.c
    src/prim/windows.c
    src/prim/windows_calls.c
    src/prim/windows_etw.c
    src/prim/windows_fault.c
    src/prim/windows_process.c
    src/prim/windows_thread.c)
elseif(CMAKE_SYSTEM_NAME MATCHES "^(Darwin|iOS|tvOS|watchOS|visionOS)$")
  set(mi_system_sources src/prim/darwin.c ${mi_unix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "FreeBSD")
  set(mi_system_sources src/prim/bsd.c src/prim/no_large.c src/prim/freebsd.c ${mi_unix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "NetBSD")
  set(mi_system_sources src/prim/bsd.c src/prim/no_large.c src/prim/netbsd.c ${mi_unix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "OpenBSD")
  set(mi_system_sources src/prim/bsd.c src/prim/no_large.c src/prim/openbsd.c ${mi_unix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "DragonFly")
  set(mi_system_sources src/prim/bsd.c src/prim/no_large.c src/prim/dragonfly.c ${mi_unix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "Haiku")
  set(mi_system_sources src/prim/haiku.c src/prim/no_large.c ${mi_unix_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "WASI")
  set(mi_has_threads OFF)
  set(mi_system_sources src/prim/wasi.c src/prim/wasm.c ${mi_grown_sources} src/prim/single.c)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Emscripten" AND mi_emscripten_threads)
  set(mi_system_sources
    src/prim/emscripten.c
    src/prim/emscripten_thread.c
    src/prim/local.c
    src/prim/thread_exit.c
    src/prim/unix_thread.c
    src/prim/wasm.c
    ${mi_grown_sources})
elseif(CMAKE_SYSTEM_NAME STREQUAL "Emscripten")
  set(mi_has_threads OFF)
  set(mi_system_sources src/prim/emscripten.c src/prim/wasm.c ${mi_grown_sources} src/prim/single.c)
else()
  message(FATAL_ERROR "mimalloc does not know the system ${CMAKE_SYSTEM_NAME}: see docs/design/porting.md.")
endif()

if(CMAKE_SYSTEM_NAME MATCHES "^(Linux|Android)$" AND NOT MI_PRIM_CUSTOM)
  list(APPEND mi_system_sources src/prim/linux_file.c)
else()
  list(APPEND mi_system_sources src/prim/no_share.c)
endif()

if(WIN32)
  set(mi_override_sources
    src/override/windows_crt.c
    src/override/windows_heap.c
    src/override/windows_inline.c
    src/override/windows_pe.c
    src/override/windows_redirect.c
    src/override/windows_runtime.c
    src/override/windows_threads.c)
else()
  set(mi_override_sources
    src/override/bsd.c
    src/override/darwin.c
    src/override/glibc.c
    src/override/libc.c
    src/override/loader.c
    src/override/operators.c)
endif()

set(mi_sources
  ${mi_system_sources}
  src/prim/inject.c
  src/prim/lock.c
  src/prim/tag.c

  src/support/assert.c
  src/support/chance.c
  src/support/format.c
  src/support/hook.c
  src/support/message.c
  src/support/option.c
  src/support/options.c
  src/support/pprof.c
  src/support/stat.c
  src/support/trace.c
  src/support/value.c

  src/arena/arena.c
  src/arena/chunk.c
  src/arena/commit.c
  src/arena/dense.c
  src/arena/hole.c
  src/arena/limit.c
  src/arena/recur.c
  src/arena/mapped_slot.c
  src/arena/mapped.c
  src/arena/numa.c
  src/arena/part.c
  src/arena/place.c
  src/arena/subregion.c
  src/arena/give.c
  src/arena/purge.c
  src/arena/purge_at_peak.c
  src/arena/purge_by_amount.c
  src/arena/purge_by_clock.c
  src/arena/purge_keep.c
  src/arena/hold.c
  src/arena/swing.c
  src/arena/range.c
  src/arena/recall.c
  src/arena/trade.c
  src/arena/region.c
  src/arena/reserve.c
  src/arena/shrink.c
  src/arena/window.c
  src/arena/slices.c
  src/arena/space.c

  src/page/block.c
  src/page/fill.c
  src/page/padding.c
  src/page/page.c
  src/page/size_class.c
  src/page/verify.c
  src/page/written.c

  src/heap/attach.c
  src/heap/background.c
  src/heap/bin.c
  src/heap/check.c
  src/heap/check_page.c
  src/heap/counted.c
  src/heap/directory.c
  src/heap/drain.c
  src/heap/ended.c
  src/heap/event.c
  src/heap/fork.c
  src/heap/free.c
  src/heap/gap_list.c
  src/heap/gap_map.c
  src/heap/gaps.c
  src/heap/grow.c
  src/heap/guard.c
  src/heap/guard_fault.c
  src/heap/heap.c
  src/heap/heap_end.c
  src/heap/heap_stats.c
  src/heap/hollow.c
  src/heap/idle.c
  src/heap/kept.c
  src/heap/large.c
  src/heap/large_resize.c
  src/heap/late.c
  src/heap/lost.c
  src/heap/meta.c
  src/heap/outbox.c
  src/heap/pool.c
  src/heap/presence.c
  src/heap/profile.c
  src/heap/quarantine.c
  src/heap/queue.c
  src/heap/refill.c
  src/heap/registry.c
  src/heap/sampler.c
  src/heap/spare.c
  src/heap/sparse.c
  src/heap/subproc.c
  src/heap/theap.c
  src/heap/thread.c
  src/heap/trim.c
  src/heap/vacant.c
  src/heap/view.c
  src/heap/waiting.c
  src/heap/walk.c
  src/heap/warm.c

  src/api/hooks.c
  src/api/collect.c
  src/api/life.c
  src/api/limits.c
  src/api/alloc.c
  src/api/subproc.c
  src/api/line.c
  src/api/leaks.c
  src/api/stats.c
  src/api/stats_print.c
  src/api/file.c
  src/api/publish.c
  src/api/profile_write.c
  src/api/profile.c
  src/api/process.c
  src/api/malloc.c
  src/api/heap.c
  src/api/realloc.c
  src/api/aligned.c
  src/api/sizes.c
  src/api/posix.c
  src/api/arena.c
  src/api/guard.c
  src/api/inline.c
  src/api/visit.c
  src/api/stats_json.c
  src/api/catch.c
  src/api/cxx.c
  src/api/level.c

  ${mi_override_sources})

set(mi_public_headers
  include/mimalloc.h
  include/mimalloc-override.h
  include/mimalloc-new-delete.h
  include/mimalloc-inline.h
  include/mimalloc-limit.h
  include/mimalloc-pmr.h
  include/mimalloc-profile.h
  include/mimalloc-stats.h)
