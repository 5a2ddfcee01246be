// Freed blocks wait before they can be used again.  Layer: heap.
#include "quarantine.h"

#include "../page/verify.h"
#include "thread.h"

// A number below `n`, of a thread's own sequence (xorshift64*, G. Marsaglia and S. Vigna).
static size_t quarantine_choose(mi_theap_t* theap, size_t n) {
  uint64_t x = theap->quarantine_random;
  if (mi_unlikely(x == 0)) x = _mi_block_random(theap) | 1;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  theap->quarantine_random = x;
  return (size_t)(x * 0x2545F4914F6CDD1Du >> 32) % n;
}

// Has somebody written to a block that was waiting?
static void quarantine_check(const mi_page_t* page, void* p) {
  size_t size = _mi_page_block_size(page);
  if (mi_unlikely(!_mi_block_check_unlinked(p, size))) _mi_block_fill_freed(p, size);
}

void _mi_quarantine_free(mi_page_t* page, void* p) {
  mi_theap_t* thread = _mi_theap_backing();
  bool        may_wait =
      (thread != NULL && _mi_page_block_size(page) <= MI_QUARANTINE_BLOCK_MAX && !_mi_page_has(page, MI_PAGE_IN_HEAP));
  if (mi_likely(may_wait)) {
    mi_block_t** place = &thread->quarantine[quarantine_choose(thread, MI_QUARANTINE_SIZE)];
    mi_block_t*  block = *place;
    *place = (mi_block_t*)p;
    if (block == NULL) return;
    p = block;
    page = _mi_page_of(p);
    quarantine_check(page, p);
  }
  _mi_thread_free_block(thread, page, p);
}

void _mi_quarantine_flush(mi_theap_t* theap) {
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    mi_block_t* block = theap->quarantine[i];
    theap->quarantine[i] = NULL;
    if (block == NULL) continue;
    mi_page_t* page = _mi_page_of(block);
    quarantine_check(page, block);
    _mi_thread_free_block(theap, page, block);
  }
}
