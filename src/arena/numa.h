// Which memory is near to which processor.  Layer: arena.
#pragma once

#include "../base/compiler.h"

// How many nodes there are, or as many as option use_numa_nodes says; at least 1.  Asks the system for files: nothing that
// happens by itself later than at the start of the process may be the first to ask (docs/design/prim.md).
mi_cold size_t _mi_numa_node_count(void);

// The same if it was asked for already, 0 otherwise.
size_t _mi_numa_known_count(void);

// The node of the calling thread, below that count.
size_t _mi_numa_node(void);
