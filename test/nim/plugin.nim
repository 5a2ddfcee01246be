# A shared library in Nim, for a program that is not.
import mimalloc

proc plugin_words(n: cint): cint {.exportc, dynlib.} =
  var all: seq[string]
  for i in 0 ..< n: all.add "word " & $i
  if isFromMimalloc(addr all[0]) and isFromMimalloc(addr all[^1][0]): cint(all.len) else: -1
