# Memory stays bounded: what is freed is used again, or goes back to the system.
proc residentBytes(): int =
  ## As the system sees the process, on Linux.
  for line in lines("/proc/self/status"):
    if line.len > 6 and line[0 .. 5] == "VmRSS:":
      for c in line:
        if c in {'0' .. '9'}: result = result * 10 + ord(c) - ord('0')
      return result * 1024

proc resident(): int = (when defined(linux): residentBytes() else: getTotalMem())

type Tree = ref object
  left, right: Tree

proc build(depth: int): Tree =
  if depth == 0: Tree() else: Tree(left: build(depth - 1), right: build(depth - 1))

# A cycle, which ORC has to find.
type Ring = ref object
  next: Ring
  ballast: array[100, int]

proc dropRing() =
  let a = Ring()
  a.next = Ring(next: a)

proc check(what: string, bound: int, act: proc ()) =
  act() # what a round needs
  let before = resident()
  for _ in 1 .. 30: act()
  let grown = resident() - before
  doAssert grown < bound, what & ": 30 rounds have grown by " & $grown & " bytes"

check("trees", 8_000_000) do (): # 4 MB each
  discard build(16)
check("sequences that grow", 20_000_000) do ():
  var numbers: seq[int]
  for i in 0 ..< 1_000_000: numbers.add i
check("strings of all sizes", 20_000_000) do ():
  var all: seq[string]
  for i in 0 ..< 2000: all.add newString(i * 10)
check("large blocks", 30_000_000) do ():
  for size in 1 .. 20: dealloc alloc(size * 1_000_000)
check("blocks that are resized", 20_000_000) do ():
  var p = alloc(10)
  for i in 1 .. 2000: p = realloc(p, i * 500)
  dealloc p
when defined(gcOrc):
  check("cycles", 8_000_000) do ():
    for _ in 1 .. 1000: dropRing()
    GC_fullCollect()
echo "memory is bounded"
