# Asks for more memory than there is: Nim's own message, not a nil that somebody writes to.
let p = alloc(1 shl 60)
echo p == nil
