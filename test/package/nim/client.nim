# Prints who serves what, in the form of ../client.c; "nim" is what Nim's own runtime allocates.
import std/[tables, strutils]

proc mi_version(): cint {.importc.}
proc mi_is_in_heap_region(p: pointer): bool {.importc.}
proc malloc(size: csize_t): pointer {.importc, header: "<stdlib.h>".}
proc free(p: pointer) {.importc, header: "<stdlib.h>".}

proc served(p: pointer): string = (if mi_is_in_heap_region(p): "ours" else: "other")

var words = initTable[string, seq[int]]()
for i in 0 ..< 20000:
  words.mgetOrPut("word " & $(i mod 1000), @[]).add i
var sum = 0
for v in words.values: sum += v.len
doAssert sum == 20000
var text = repeat('x', 100)
text.add repeat('y', 100000)
doAssert text[99] == 'x' and text[100099] == 'y'
let block1 = malloc(100)
echo "version=", mi_version(), " nim=", served(addr text[0]), " malloc=", served(block1)
free(block1)
