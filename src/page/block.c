// The keys of links and padding.  Layer: page.
#include "block.h"

#include "../prim/prim.h"

mi_block_keys_t _mi_block_keys;

void _mi_block_init(void) {
  if (!MI_PADDING) return;
  _mi_block_keys.link = _mi_prim_random();
  _mi_block_keys.padding = _mi_prim_random();
}

// Keys, address and a counter.
uint64_t _mi_block_random(const void* where) {
  static mi_atomic(uint64_t) counter;
  uint64_t                   x = _mi_block_keys.link ^ ((uint64_t)(uintptr_t)where + _mi_block_keys.padding);
  return mi_mix64(x + (mi_fetch_add_relaxed(&counter, 1) + 1) * MI_MIX);
}
