// A library whose constructor allocates more than is there already.  Preloaded behind the allocator, it is the first of the two to begin.
#include <stdlib.h>

extern void* early_block;
void*        early_block;

__attribute__((constructor)) static void begin(void) {
  early_block = malloc(20 << 20);
}
