# The sources of the library, by layer from low to high.  src/static.c includes the same files one by one;
# scripts/check-layers.py holds the two lists against each other and against what lies in src/.
set(mi_sources
  src/prim/linux.c
  src/prim/linux_fault.c
  src/prim/linux_process.c
  src/prim/lock.c
  src/prim/pthread.c

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
  src/arena/slices.c
  src/arena/space.c

  src/page/guard_page.c
  src/page/page.c
  src/page/size_class.c
  src/page/verify.c

  src/heap/background.c
  src/heap/check.c
  src/heap/check_page.c
  src/heap/directory.c
  src/heap/ended.c
  src/heap/fork.c
  src/heap/guard.c
  src/heap/guard_report.c
  src/heap/heap.c
  src/heap/heap_stats.c
  src/heap/idle.c
  src/heap/large.c
  src/heap/meta.c
  src/heap/outbox.c
  src/heap/pool.c
  src/heap/quarantine.c
  src/heap/sampler.c
  src/heap/theap.c
  src/heap/thread.c
  src/heap/vacant.c
  src/heap/walk.c

  src/api/aligned.c
  src/api/arena.c
  src/api/catch.c
  src/api/cxx.c
  src/api/guard.c
  src/api/heap.c
  src/api/leaks.c
  src/api/level.c
  src/api/line.c
  src/api/inline.c
  src/api/malloc.c
  src/api/operators.c
  src/api/override.c
  src/api/posix.c
  src/api/process.c
  src/api/realloc.c
  src/api/stats.c
  src/api/stats_json.c
  src/api/stats_print.c
  src/api/subproc.c
  src/api/visit.c)

set(mi_public_headers
  include/mimalloc.h
  include/mimalloc-override.h
  include/mimalloc-new-delete.h
  include/mimalloc-inline.h
  include/mimalloc-pmr.h
  include/mimalloc-stats.h)
