# Binary trees, as in the Computer Language Benchmarks Game: builds and drops perfect binary trees of many depths while one of the
# greatest depth lives.  Usage: binarytrees DEPTH
import std/[os, strutils]

type Node = ref object
  left, right: Node

proc build(depth: int): Node =
  if depth == 0: Node() else: Node(left: build(depth - 1), right: build(depth - 1))

proc count(node: Node): int =
  if node.left == nil: 1 else: 1 + count(node.left) + count(node.right)

proc main() =
  let
    minDepth = 4
    maxDepth = max(minDepth + 2, parseInt(paramStr(1)))
  echo "stretch tree of depth ", maxDepth + 1, " check: ", count(build(maxDepth + 1))
  let longLived = build(maxDepth)
  for depth in countup(minDepth, maxDepth, 2):
    let iterations = 1 shl (maxDepth - depth + minDepth)
    var check = 0
    for _ in 1 .. iterations:
      check += count(build(depth))
    echo iterations, " trees of depth ", depth, " check: ", check
  echo "long lived tree of depth ", maxDepth, " check: ", count(longLived)

main()
