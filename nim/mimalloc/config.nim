## For the config.nims, or PROGRAM.nims, of a project:
##
## .. code-block:: nim
##   import mimalloc/config
##
## With `-d:useMimalloc`, `-d:mimalloc` or `-d:mimallocDynamic` the program allocates from mimalloc; otherwise nothing is changed.
## docs/nim.md describes the other defines.
import std/[os, strutils]

const patches = currentSourcePath().parentDir.parentDir / "patchedstd"

when defined(useMimalloc) or defined(mimalloc) or defined(mimallocDynamic):
  # The command line is read once more after this file, and has the last word; but each collector that was named leaves its
  # symbols behind.  So the default is set only if the command line names none.
  proc namesCollector(): bool =
    for i in 1 .. paramCount():
      let option = paramStr(i).toLowerAscii
      for name in ["--mm:", "--mm=", "--gc:", "--gc="]:
        if option.startsWith(name): return true

  when not (defined(gcArc) or defined(gcOrc) or defined(gcAtomicArc)):
    if not namesCollector(): switch("mm", "orc")
  switch("define", "useMalloc")
  patchFile("stdlib", "malloc", patches / "mimalloc")
  for manager in ["alloc", "gc_regions", "boehm", "go"]:
    patchFile("stdlib", manager, patches / "refused")
