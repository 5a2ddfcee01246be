# Who serves this program?  All that Nim allocates comes from mimalloc: strings, sequences, references, closures, tables, and
# what alloc and its relatives return.  The C library's malloc stays what it is, unless -d:mimallocOverride asks for more.
import std/[strutils, tables]
import mimalloc

type
  Node = ref object of RootObj
    value: int
  Wide = ref object
    line {.align: 64.}: array[64, byte]

proc malloc(size: csize_t): pointer {.importc, header: "<stdlib.h>".}
proc free(p: pointer) {.importc, header: "<stdlib.h>".}

proc counter(start: int): proc (): int =
  var n = start
  result = proc (): int =
    inc n
    n

proc check(what: string, p: pointer, isOurs = true) =
  doAssert isFromMimalloc(p) == isOurs, what & (if isOurs: " is not from mimalloc" else: " is from mimalloc")

doAssert mimallocVersion() >= 20000, $mimallocVersion()

var text = repeat('x', 100)
check "a string", addr text[0]
text.add repeat('y', 1_000_000)
check "a long string", addr text[0]
doAssert text[99] == 'x' and text[100] == 'y' and text.len == 1_000_100

var numbers = newSeq[int](1000)
check "a sequence", addr numbers[0]
for i in 0 ..< 100_000: numbers.add i
check "a sequence that has grown", addr numbers[0]

let node = Node(value: 7)
check "a reference", cast[pointer](node)
let wide = Wide()
check "an aligned reference", cast[pointer](wide)
doAssert cast[uint](addr wide.line) mod 64 == 0

let next = counter(41)
doAssert next() == 42
check "the environment of a closure", rawEnv(next)

var words = initTable[string, seq[int]]()
for i in 0 ..< 20_000: words.mgetOrPut("word " & $(i mod 1000), @[]).add i
check "a sequence in a table", addr words["word 7"][0]

let unmanaged = create(int)
check "create", unmanaged
dealloc unmanaged
let common = createShared(int)
check "createShared", common
deallocShared common

var onStack = 1
check "a variable on the stack", addr onStack, false
let foreign = malloc(100)
check "malloc", foreign, defined(mimallocOverride)
free foreign

echo "served by mimalloc ", mimallocVersion()
