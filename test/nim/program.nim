# Says whether mimalloc serves it, without a module of the package.
proc mi_is_in_heap_region(p: pointer): bool {.importc.}
var text = newString(100)
echo "from mimalloc: ", mi_is_in_heap_region(addr text[0])
