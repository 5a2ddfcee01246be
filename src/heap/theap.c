// The theaps of the calling thread.  Layer: heap.
#include "theap.h"

MI_LOCAL(mi_theap_t*, _mi_theap_local) = &_mi_theap_none;

mi_theap_t _mi_theap_none;
mi_theap_t _mi_theap_dead;

void _mi_theap_init(mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_bin_t* bin = &theap->bins[cls];
    bin->limit = bin->slots = theap->classes[cls].book.total = _mi_size_class_info[cls].bin_limit;
  }
}
