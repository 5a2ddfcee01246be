# Threads allocate and free at the same time, free each other's blocks, and end; what they leave behind is used again.
import std/[locks, os]

const
  nThreads = 4
  nRounds = 20_000

type Node = ref object
  next: Node
  payload: seq[int]

# ---- each thread has its own blocks ------------------------------------------------------------------------------------

proc work(id: int) {.thread.} =
  var list: Node
  var text = ""
  for i in 0 ..< nRounds:
    list = Node(next: (if i mod 64 == 0: nil else: list), payload: newSeq[int](i mod 50))
    for value in list.payload: doAssert value == 0
    text.add char(ord('a') + i mod 26)
    if text.len > 5000: text = ""

proc testOwn() =
  var threads: array[nThreads, Thread[int]]
  for i in 0 ..< nThreads: createThread(threads[i], work, i)
  joinThreads(threads)

# ---- blocks go from thread to thread -------------------------------------------------------------------------------------

var
  lock: Lock
  depot: array[1024, pointer]

proc trade(id: int) {.thread.} =
  for i in 0 ..< nRounds:
    let size = 16 + (i * 37 + id) mod 600
    let mine = cast[ptr UncheckedArray[byte]](allocShared(size))
    mine[0] = byte(id)
    mine[size - 1] = byte(id)
    var other: pointer
    withLock lock:
      let place = (i * 13 + id * 7) mod depot.len
      other = depot[place]
      depot[place] = mine
    if other != nil:
      doAssert cast[ptr byte](other)[] < byte(nThreads)
      deallocShared other

proc testTrade() =
  initLock lock
  var threads: array[nThreads, Thread[int]]
  for i in 0 ..< nThreads: createThread(threads[i], trade, i)
  joinThreads(threads)
  for p in depot:
    if p != nil: deallocShared p
  deinitLock lock

# ---- messages ---------------------------------------------------------------------------------------------------------------

var channel: Channel[string]

proc produce() {.thread.} =
  for i in 0 ..< nRounds: channel.send("message " & $i)

proc testChannel() =
  channel.open(maxItems = 1000)
  var producer: Thread[void]
  createThread(producer, produce)
  for i in 0 ..< nRounds: doAssert channel.recv() == "message " & $i
  joinThread producer
  channel.close()

# ---- threads come and go ------------------------------------------------------------------------------------------------------

proc brief(id: int) {.thread.} =
  var kept: seq[string]
  for i in 0 ..< 500: kept.add newString(1 + i mod 1000)

proc runBriefly(n: int) =
  for i in 0 ..< n:
    var thread: Thread[int]
    createThread(thread, brief, i)
    joinThread thread

# 250 KiB in each thread: 1000 threads that left theirs behind would take 250 MB.
proc testBrief() =
  runBriefly(50)
  let before = getTotalMem()
  runBriefly(1000)
  let grown = getTotalMem() - before
  doAssert grown < 20_000_000, "1000 threads have left " & $grown & " bytes behind"

testOwn()
testTrade()
when not defined(mimallocTsan): # Nim's channel destroys a mutex that it has locked, which this sanitizer reports
  testChannel()
testBrief()
echo "threads are right"
