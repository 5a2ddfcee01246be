// Slices that the system has left without memory, or without access.  Layer: heap.
#pragma once

#include "../page/page.h"

// The slices of a page that was deleted are RESERVED or LOST.  They stay in use until they can be used again.
mi_cold void _mi_lost_add(mi_page_t* page, mi_remap_t remap);

// Tries to have those of one page back, of each in turn: that costs little where the system still refuses.  A place that is LOST is mapped
// again, unless something lies there.
void _mi_lost_retry(void);
