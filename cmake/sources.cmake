# The sources of the library, by layer from low to high.  src/static.c includes the same files one by one;
# scripts/check-layers.py holds the two lists against each other and against what lies in src/.
if(MI_PRIM_CUSTOM OR CMAKE_SYSTEM_NAME STREQUAL "Generic") # the program brings the rest (docs/design/porting.md)
  set(mi_system_sources)
elseif(CMAKE_SYSTEM_NAME MATCHES "^(Linux|Android)$")
  set(mi_system_sources
    src/prim/linux.c
    src/prim/linux_fault.c
    src/prim/linux_process.c
    src/prim/linux_thread.c)
elseif(CMAKE_SYSTEM_NAME STREQUAL "WASI")
  set(mi_system_sources src/prim/wasi.c)
elseif(CMAKE_SYSTEM_NAME STREQUAL "Emscripten")
  set(mi_system_sources src/prim/emscripten.c)
  if(MI_EMSCRIPTEN_THREADS)
    list(APPEND mi_system_sources src/prim/emscripten_thread.c)
  endif()
else()
  message(FATAL_ERROR "mimalloc does not know the system ${CMAKE_SYSTEM_NAME}.")
endif()

# Where memory only grows; and where there is one thread.
set(mi_has_threads ON)
if(MI_PRIM_CUSTOM OR CMAKE_SYSTEM_NAME MATCHES "^(WASI|Emscripten|Generic)$")
  list(APPEND mi_system_sources src/prim/grown.c src/prim/plain.c)
  if(NOT MI_EMSCRIPTEN_THREADS)
    set(mi_has_threads OFF)
    list(APPEND mi_system_sources src/prim/single.c)
  endif()
endif()
if(mi_has_threads AND (UNIX OR MI_EMSCRIPTEN_THREADS))
  list(APPEND mi_system_sources src/prim/thread_exit.c src/prim/local.c)
endif()

set(mi_sources
  ${mi_system_sources}
  src/prim/lock.c

  src/support/assert.c
  src/support/format.c
  src/support/message.c
  src/support/option.c
  src/support/options.c
  src/support/stat.c
  src/support/trace.c
  src/support/value.c

  src/arena/arena.c
  src/arena/chunk.c
  src/arena/commit.c
  src/arena/hole.c
  src/arena/mapped.c
  src/arena/numa.c
  src/arena/subregion.c
  src/arena/purge.c
  src/arena/range.c
  src/arena/region.c
  src/arena/window.c
  src/arena/slices.c
  src/arena/space.c

  src/page/block.c
  src/page/fill.c
  src/page/padding.c
  src/page/page.c
  src/page/size_class.c
  src/page/verify.c

  src/heap/attach.c
  src/heap/background.c
  src/heap/bin.c
  src/heap/check.c
  src/heap/check_page.c
  src/heap/directory.c
  src/heap/ended.c
  src/heap/event.c
  src/heap/fork.c
  src/heap/free.c
  src/heap/guard.c
  src/heap/guard_fault.c
  src/heap/heap.c
  src/heap/heap_end.c
  src/heap/heap_stats.c
  src/heap/idle.c
  src/heap/large.c
  src/heap/large_resize.c
  src/heap/late.c
  src/heap/meta.c
  src/heap/outbox.c
  src/heap/pool.c
  src/heap/presence.c
  src/heap/quarantine.c
  src/heap/queue.c
  src/heap/refill.c
  src/heap/registry.c
  src/heap/sampler.c
  src/heap/subproc.c
  src/heap/theap.c
  src/heap/thread.c
  src/heap/trim.c
  src/heap/vacant.c
  src/heap/view.c
  src/heap/walk.c

  src/api/hooks.c
  src/api/collect.c
  src/api/life.c
  src/api/alloc.c
  src/api/subproc.c
  src/api/line.c
  src/api/leaks.c
  src/api/stats.c
  src/api/stats_print.c
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

  src/override/glibc.c
  src/override/libc.c
  src/override/loader.c
  src/override/operators.c)

set(mi_public_headers
  include/mimalloc.h
  include/mimalloc-override.h
  include/mimalloc-new-delete.h
  include/mimalloc-inline.h
  include/mimalloc-pmr.h
  include/mimalloc-stats.h)
