// The padding of large blocks.  Layer: page.
#include "padding.h"

void _mi_padding_write_large(mi_page_t* page, size_t size) {
  const uint64_t filled = MI_PADDING_FILLED;
  page->asked = size;
  if (_mi_page_has(page, MI_PAGE_GUARDED)) return; // what follows is inaccessible
  if (!MI_TRACK) memcpy(_mi_page_large_block(page) + size, &filled, sizeof(filled));
}

size_t _mi_padding_read_large(const mi_page_t* page) {
  uint64_t filled;
  if (MI_TRACK || _mi_page_has(page, MI_PAGE_GUARDED)) return page->asked;
  memcpy(&filled, _mi_page_large_block(page) + page->asked, sizeof(filled));
  return filled == MI_PADDING_FILLED ? page->asked : SIZE_MAX;
}
