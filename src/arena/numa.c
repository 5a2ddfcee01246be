// Which memory is near to which processor.  Layer: arena.
#include "numa.h"

#include "../prim/prim.h"
#include "../support/option.h"

static mi_atomic(size_t) numa_n_nodes; // 0: not asked yet

size_t _mi_numa_known_count(void) {
  long wanted = _mi_option_get_fast(mi_option_use_numa_nodes);
  return wanted > 0 ? (size_t)wanted : mi_load_relaxed(&numa_n_nodes);
}

size_t _mi_numa_node_count(void) {
  size_t n = _mi_numa_known_count();
  if (n == 0) {
    n = _mi_prim_numa_node_count();
    mi_store_relaxed(&numa_n_nodes, n);
  }
  return n;
}

size_t _mi_numa_node(void) {
  size_t n = _mi_numa_node_count();
  return n == 1 ? 0 : _mi_prim_numa_node() % n;
}
