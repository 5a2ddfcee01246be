## What a program can ask the allocator that serves it.  All else goes through Nim's own `alloc`, `new`, `seq`, ... and
## `getOccupiedMem`, `getTotalMem`, `getFreeMem`.

when not (defined(useMalloc) and (defined(useMimalloc) or defined(mimalloc) or defined(mimallocDynamic))):
  {.error: "mimalloc does not serve this program: put `import mimalloc/config` into its config.nims, and compile with -d:useMimalloc".}

{.push raises: [].}

proc mi_version(): cint {.importc, cdecl.}
proc mi_is_in_heap_region(p: pointer): bool {.importc, cdecl.}
proc mi_collect(force: bool) {.importc, cdecl.}
proc mi_stats_print(toIgnore: pointer) {.importc, cdecl.}

proc mimallocVersion*(): int =
  ## The version of the interface, for example 20401 for 2.4.1.
  int(mi_version())

proc isFromMimalloc*(p: pointer): bool =
  ## Is `p` in memory of the allocator?  True for each block in use.
  mi_is_in_heap_region(p)

proc mimallocCollect*(force = false) =
  ## Gives free memory back; with `force` all that can be given back now.
  mi_collect(force)

proc mimallocPrintStats*() =
  ## Prints statistics of the process to standard error.
  mi_stats_print(nil)

{.pop.}
