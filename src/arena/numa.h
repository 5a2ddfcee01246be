// Which memory is near to which processor.  Layer: arena.
#pragma once

#include "../base/compiler.h"

// How many nodes there are, or as many as option use_numa_nodes says; at least 1.
mi_cold size_t _mi_numa_node_count(void);

// The node of the calling thread, below that count.
size_t _mi_numa_node(void);
