# The Nim package; docs/nim.md describes it.
version       = "2.4.1"
author        = "The authors of this mimalloc"
description   = "Replaces the allocator of Nim's standard library by an independent implementation of mimalloc's interface"
license       = "MIT"
srcDir        = "nim"
installExt    = @["nim", "c", "h"]

requires "nim >= 1.6.0"

import std/os

# An installed package consists of files below srcDir, so that the library is copied there before it is installed.
# In the source tree the copy is not used (nim/csource/mimalloc.c).
const copied = ["src", "include"]

before install:
  for dir in copied:
    rmDir("nim/csource/" & dir)
    cpDir(dir, "nim/csource/" & dir)

task test, "compiles and runs the tests with ORC and ARC, in release and debug builds":
  for options in ["--mm:orc --threads:on -d:release", "--mm:arc --threads:on -d:mimallocDebug"]:
    for program in ["blocks", "served", "threads", "bounded"]:
      exec quoteShell(selfExe()) & " c -r --hints:off --warnings:off -d:useMimalloc " & options & " -o:build/nim/" & program &
        " test/nim/" & program & ".nim"

task bench, "prints the time of binary trees with mimalloc and without it":
  exec "python3 bench/nim/run.py"
