# alloc, alloc0, realloc, realloc0 and dealloc, and their shared relatives, in all orders of magnitude of size.
const sizes = [1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 100, 127, 128, 129, 255, 256, 257, 500, 1000, 1023, 1024, 1025, 2000,
               4095, 4096, 4097, 8192, 10_000, 32_768, 32_769, 65_536, 100_000, 524_288, 524_289, 1_000_000, 3_000_000, 40_000_000]

type Bytes = ptr UncheckedArray[byte]

proc pattern(i: int): byte = byte(i * 7 + 1) or 1 # never 0

proc fill(p: pointer, first, size: int) =
  for i in first ..< size: cast[Bytes](p)[i] = pattern(i)

proc isFilled(p: pointer, size: int): bool =
  for i in 0 ..< size:
    if cast[Bytes](p)[i] != pattern(i): return false
  true

proc isZero(p: pointer, first, size: int): bool =
  for i in first ..< size:
    if cast[Bytes](p)[i] != 0: return false
  true

proc isAligned(p: pointer, size: int): bool =
  cast[uint](p) mod (if size > 8: 16'u else: 8'u) == 0

proc testAlloc() =
  for size in sizes:
    let a = alloc(size)
    let b = allocShared(size)
    doAssert a != nil and b != nil and a != b
    doAssert a.isAligned(size) and b.isAligned(size)
    a.fill(0, size)
    b.fill(0, size)
    doAssert a.isFilled(size) and b.isFilled(size)
    dealloc a
    deallocShared b

# Blocks that were in use before, too, are zero.
proc testAlloc0() =
  for size in sizes:
    for _ in 1 .. 3:
      let a = alloc0(size)
      let b = allocShared0(size)
      doAssert a.isZero(0, size), "alloc0 of " & $size
      doAssert b.isZero(0, size), "allocShared0 of " & $size
      a.fill(0, size)
      b.fill(0, size)
      dealloc a
      deallocShared b

proc testRealloc() =
  for old in sizes:
    for new in sizes:
      # Large blocks from and to a few sizes only: to fill them takes long where the program is not optimised.
      if max(old, new) > 1_000_000 and min(old, new) notin [1, 3_000_000]: continue
      var a = alloc(old)
      a.fill(0, old)
      a = realloc(a, new)
      doAssert a.isFilled(min(old, new)), $old & " to " & $new
      a.fill(0, new)
      dealloc a

proc testRealloc0() =
  for old in sizes:
    for new in sizes:
      if old > 100_000 or new > 1_000_000: continue
      var a = allocShared0(old)
      a.fill(0, old)
      a = reallocShared0(a, old, new)
      doAssert a.isFilled(min(old, new)), $old & " to " & $new
      if new > old: doAssert a.isZero(old, new), $old & " to " & $new & " is not cleared"
      deallocShared a
      a = realloc0(nil, 0, new)
      doAssert a.isZero(0, new)
      dealloc a

# As the documentation of realloc says: nil is a new block, and size 0 frees.
proc testEnds() =
  var a = realloc(nil, 100)
  doAssert a != nil
  a = realloc(a, 0)
  doAssert a == nil
  a = reallocShared(nil, 100)
  doAssert reallocShared(a, 0) == nil
  doAssert realloc0(alloc(10), 10, 0) == nil
  doAssert realloc(nil, 0) == nil
  dealloc nil
  let empty = alloc(0)
  doAssert empty != nil
  dealloc empty

proc testTyped() =
  var p = create(int, 10)
  for i in 0 ..< 10: doAssert cast[ptr UncheckedArray[int]](p)[i] == 0
  cast[ptr UncheckedArray[int]](p)[9] = 9
  p = resize(p, 1000)
  doAssert cast[ptr UncheckedArray[int]](p)[9] == 9
  dealloc p
  var q = createSharedU(int, 10)
  q = resizeShared(q, 20)
  freeShared q

# getOccupiedMem follows what is in use, and what was taken for reallocated blocks is given back.
proc testStatistics() =
  let before = getOccupiedMem()
  var blocks: seq[pointer]
  for _ in 1 .. 1000: blocks.add alloc(10_000)
  let grown = getOccupiedMem() - before
  doAssert grown in 9_500_000 .. 14_000_000, $grown
  doAssert getTotalMem() >= getOccupiedMem() and getFreeMem() >= 0
  for p in blocks: dealloc p
  let left = getOccupiedMem() - before
  doAssert left < 1_000_000, $left

testAlloc()
testAlloc0()
testRealloc()
testRealloc0()
testEnds()
testTyped()
when not defined(mimallocDynamic) or defined(mimallocHasStats):
  testStatistics()
doAssert getTotalMem() > 0
echo "blocks are right"
