# As in each project that uses the package; there it is `import mimalloc/config`.
import "../../nim/mimalloc/config"
switch("path", thisDir() & "/../../nim")
