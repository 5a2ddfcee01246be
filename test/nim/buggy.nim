# One mistake, by name; checked builds report each.
import std/os

proc use(p: pointer) {.noinline.} =
  cast[ptr UncheckedArray[byte]](p)[0] = 1

let p = alloc(40)
use p
case paramStr(1)
of "overflow":
  var i = 41 # not known to the compiler
  if paramCount() > 5: i = 0
  cast[ptr UncheckedArray[byte]](p)[i] = 7
  dealloc p
of "double":
  dealloc p
  dealloc p
of "use":
  dealloc p
  use p
  echo cast[ptr UncheckedArray[byte]](p)[0]
of "none":
  dealloc p
else: discard
echo "done"
