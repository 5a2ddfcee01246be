// The padding of large blocks.  Layer: page.
#include "padding.h"

// What follows a large block that ends there (D2).  The first byte is the fill's: a zero that is written there is never the same.
static uint64_t padding_behind(const char* end) {
  uint64_t word = ((uintptr_t)end ^ _mi_block_keys.padding) * MI_MIX;
  memset(&word, MI_FILL_PADDING, 1);
  return word;
}

void _mi_padding_write_large(mi_page_t* page, size_t size) {
  char*    end = _mi_page_large_block(page) + size;
  uint64_t behind = padding_behind(end);
  page->asked = size;
  if (_mi_page_has(page, MI_PAGE_GUARDED)) return; // what follows is inaccessible
  if (!MI_TRACK) memcpy(end, &behind, sizeof(behind));
}

void _mi_padding_clear_large(mi_page_t* page, size_t size) {
  if (MI_TRACK || _mi_page_has(page, MI_PAGE_GUARDED)) return;
  if (size + MI_PADDING_SIZE <= _mi_page_large_size(page))
    memset(_mi_page_large_block(page) + size, 0, MI_PADDING_SIZE);
}

size_t _mi_padding_read_large(const mi_page_t* page) {
  uint64_t    behind;
  const char* end = _mi_page_large_block(page) + page->asked;
  if (MI_TRACK || _mi_page_has(page, MI_PAGE_GUARDED)) return page->asked;
  memcpy(&behind, end, sizeof(behind));
  return behind == padding_behind(end) ? page->asked : SIZE_MAX;
}
