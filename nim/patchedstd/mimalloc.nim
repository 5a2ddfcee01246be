# Takes the place of lib/system/mm/malloc.nim of Nim's standard library, by patchFile("stdlib", "malloc", ...): all that
# Nim's runtime and alloc, realloc, dealloc, ... allocate comes from mimalloc.  It is included by the module system, with
# --mm:arc, --mm:orc or --mm:atomicArc and -d:useMalloc (mimalloc/config.nim sets these).  Nim 1.6 and 2.x.
#
# docs/nim.md describes the defines.

{.push stackTrace: off.}

# ---- which library -------------------------------------------------------------------------------------------------

const
  mimallocIsDynamic = defined(mimallocDynamic)
  mimallocIsChecked = defined(mimallocDebug) or defined(mimallocSecure) or defined(mimallocSecureFull)
  mimallocHasTool = defined(mimallocAsan) or defined(mimallocValgrind)

when mimallocIsDynamic and (mimallocIsChecked or mimallocHasTool or defined(mimallocTsan) or defined(mimallocUbsan) or
                            defined(mimallocOverride)):
  {.error: "mimalloc: -d:mimallocDynamic links a library that was built before, so mimallocDebug, mimallocSecure, " &
           "mimallocSecureFull, mimallocAsan, mimallocTsan, mimallocUbsan, mimallocValgrind and mimallocOverride cannot change it".}
when defined(mimallocSecure) and defined(mimallocSecureFull):
  {.error: "mimalloc: choose one of -d:mimallocSecure and -d:mimallocSecureFull".}
when mimallocIsChecked and mimallocHasTool:
  {.error: "mimalloc: mimallocDebug, mimallocSecure and mimallocSecureFull check blocks by themselves, and exclude " &
           "-d:mimallocAsan and -d:mimallocValgrind, which leave that to the tool".}
when ord(defined(mimallocAsan)) + ord(defined(mimallocValgrind)) + ord(defined(mimallocTsan)) > 1:
  {.error: "mimalloc: choose one of -d:mimallocAsan, -d:mimallocTsan and -d:mimallocValgrind".}
when defined(mimallocOverride) and (defined(mimallocAsan) or defined(mimallocTsan)):
  {.error: "mimalloc: the malloc of the sanitizer must stay in place: -d:mimallocOverride excludes -d:mimallocAsan and " &
           "-d:mimallocTsan".}
when defined(vcc):
  {.error: "mimalloc: the library needs GCC or clang: --cc:gcc, --cc:clang or --cc:clang_cl".}

when defined(mimallocAsan):
  {.passC: "-fsanitize=address -g -fno-omit-frame-pointer".}
  {.passL: "-fsanitize=address".}
elif defined(mimallocTsan):
  {.passC: "-fsanitize=thread -g -fno-omit-frame-pointer".}
  {.passL: "-fsanitize=thread".}
when defined(mimallocUbsan):
  # Nim's own C code is not free of what this sanitizer reports; only the library is instrumented.
  {.passL: "-fsanitize=undefined".}

when mimallocIsDynamic:
  {.passL: "-lmimalloc".}
  const mimallocFlags = "-DMI_NIM_DYNAMIC=1"
else:
  const mimallocFlags =
    # Nim's debug builds are slow enough.  Others have -O3 or -Os.
    (when compileOption("opt", "none"): "-O2 " else: "") &
    "-fvisibility=hidden -fno-builtin-malloc -fno-strict-aliasing" &
    (when defined(mimallocDebug): " -DMI_DEBUG=2 -g" else: " -DNDEBUG -DMI_BUILD_RELEASE") &
    (when defined(mimallocSecure): " -DMI_SECURE=4" elif defined(mimallocSecureFull): " -DMI_SECURE=5" else: "") &
    (when defined(mimallocAsan): " -DMI_TRACK_ASAN=1" else: "") &
    (when defined(mimallocValgrind): " -DMI_TRACK_VALGRIND=1 -g" else: "") &
    (when defined(mimallocUbsan): " -fsanitize=undefined -fno-sanitize-recover=all -g" else: "") &
    (when defined(mimallocGuarded): " -DMI_GUARDED=1" else: "") &
    (when defined(mimallocOverride): " -DMI_MALLOC_OVERRIDE=1" else: "") &
    (when defined(musl): " -DMI_LIBC_MUSL=1" else: "") &
    (when defined(windows): "" elif defined(library): " -ftls-model=initial-exec" else: "")
  {.compile("../csource/mimalloc.c", mimallocFlags).}
  when defined(linux):
    {.passL: "-pthread".}
{.compile("../csource/stats.c", mimallocFlags).}

# ---- blocks --------------------------------------------------------------------------------------------------------

# The entry points of csource/mimalloc.c, and the functions of a shared library.
const mimallocPrefix = when mimallocIsDynamic: "mi_" else: "mi_nim_"

proc mi_malloc(size: csize_t): pointer {.importc: mimallocPrefix & "malloc", cdecl, noSideEffect.}
proc mi_zalloc(size: csize_t): pointer {.importc: mimallocPrefix & "zalloc", cdecl, noSideEffect.}
proc mi_realloc(p: pointer, newSize: csize_t): pointer {.importc, cdecl, noSideEffect.}
proc mi_free(p: pointer) {.importc: mimallocPrefix & "free", cdecl, noSideEffect.}

proc allocImpl(size: Natural): pointer =
  result = mi_malloc(size.csize_t)
  if unlikely(result == nil): raiseOutOfMem()

proc alloc0Impl(size: Natural): pointer =
  result = mi_zalloc(size.csize_t)
  if unlikely(result == nil): raiseOutOfMem()

proc deallocImpl(p: pointer) =
  mi_free(p)

proc reallocImpl(p: pointer, newSize: Natural): pointer =
  if newSize == 0: # as the documentation of realloc says
    mi_free(p)
    return nil
  result = mi_realloc(p, newSize.csize_t)
  if unlikely(result == nil): raiseOutOfMem()

proc realloc0Impl(p: pointer, oldSize, newSize: Natural): pointer =
  result = reallocImpl(p, newSize)
  if newSize > oldSize:
    zeroMem(cast[pointer](cast[uint](result) + uint(oldSize)), newSize - oldSize)

# Any thread may free any block: shared blocks are nothing special.
proc allocSharedImpl(size: Natural): pointer = allocImpl(size)
proc allocShared0Impl(size: Natural): pointer = alloc0Impl(size)
proc reallocSharedImpl(p: pointer, newSize: Natural): pointer = reallocImpl(p, newSize)
proc reallocShared0Impl(p: pointer, oldSize, newSize: Natural): pointer = realloc0Impl(p, oldSize, newSize)
proc deallocSharedImpl(p: pointer) = deallocImpl(p)

# ---- statistics ----------------------------------------------------------------------------------------------------

proc mi_nim_occupied(): csize_t {.importc, cdecl.}
proc mi_nim_total(): csize_t {.importc, cdecl.}

proc getOccupiedMem(): int = int(mi_nim_occupied())
proc getTotalMem(): int = int(mi_nim_total())
proc getFreeMem(): int =
  # Blocks and memory are counted one after the other, while other threads allocate.
  let free = getTotalMem() - getOccupiedMem()
  result = if free > 0: free else: 0

# ---- what else the module system expects of its memory manager: there is no tracing collector to control -----------

proc GC_disable() = discard
proc GC_enable() = discard
when not defined(gcOrc):
  proc GC_fullCollect() = discard
  proc GC_enableMarkAndSweep() = discard
  proc GC_disableMarkAndSweep() = discard
proc GC_setStrategy(strategy: GC_Strategy) = discard
proc nimGC_setStackBottom(theStackBottom: pointer) = discard
proc initGC() = discard

proc newObjNoInit(typ: PNimType, size: int): pointer = alloc(size)
proc growObj(old: pointer, newsize: int): pointer = realloc(old, newsize)
proc nimGCref(p: pointer) {.compilerproc, inline.} = discard
proc nimGCunref(p: pointer) {.compilerproc, inline.} = discard
when not defined(gcDestructors):
  proc unsureAsgnRef(dest: PPointer, src: pointer) {.compilerproc, inline.} = dest[] = src
proc asgnRef(dest: PPointer, src: pointer) {.compilerproc, inline.} = dest[] = src
proc asgnRefNoCycle(dest: PPointer, src: pointer) {.compilerproc, inline, deprecated: "old compiler compat".} = asgnRef(dest, src)

type MemRegion = object

proc alloc(r: var MemRegion, size: int): pointer = alloc(size)
when NimMajor >= 2:
  proc alloc0(r: var MemRegion, size: int): pointer = alloc0Impl(size)
else:
  proc alloc0Impl(r: var MemRegion, size: int): pointer = alloc0Impl(size)
proc dealloc(r: var MemRegion, p: pointer) = dealloc(p)
proc deallocOsPages(r: var MemRegion) = discard
proc deallocOsPages() = discard

{.pop.}
