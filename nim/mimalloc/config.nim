## For the config.nims, or PROGRAM.nims, of a project:
##
## .. code-block:: nim
##   import mimalloc/config
##
## With `-d:useMimalloc`, `-d:mimalloc` or `-d:mimallocDynamic` the program allocates from mimalloc; otherwise nothing is changed.
## docs/nim.md describes the other defines.
import std/os

const patches = currentSourcePath().parentDir.parentDir / "patchedstd"

when defined(useMimalloc) or defined(mimalloc) or defined(mimallocDynamic):
  when not (defined(gcArc) or defined(gcOrc) or defined(gcAtomicArc)):
    switch("mm", "orc")
  switch("define", "useMalloc")
  patchFile("stdlib", "malloc", patches / "mimalloc")
  # The command line is read once more after this file, and has the last word on --mm.
  for manager in ["alloc", "gc_regions", "boehm", "go"]:
    patchFile("stdlib", manager, patches / "refused")
