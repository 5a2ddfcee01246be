// Inaccessible memory behind pages of blocks.  Layer: page.
#include "guard_page.h"

static mi_atomic(size_t) gap_count;

static size_t gap_size(const mi_page_t* page) {
  return (page->n_slices + _mi_guard_page_slices(page->n_slices)) * MI_SLICE_SIZE - _mi_guard_page_space(page);
}

void _mi_guard_page_close(mi_page_t* page) {
  if (!_mi_guard_page_is_wanted(page) || mi_load_relaxed(&gap_count) >= MI_GUARD_PAGE_MAX) return;
  // First: the child of a fork in between must open what it finds closed.
  mi_fetch_add_relaxed(&gap_count, 1);
  _mi_page_set(page, MI_PAGE_HAS_GUARD);
  if (_mi_prim_protect(_mi_page_start(page) + _mi_guard_page_space(page), gap_size(page)) == 0) return;
  mi_fetch_sub_relaxed(&gap_count, 1);
  _mi_page_clear(page, MI_PAGE_HAS_GUARD);
}

bool _mi_guard_page_open(mi_page_t* page) {
  if (!_mi_page_has(page, MI_PAGE_HAS_GUARD)) return true;
  if (_mi_prim_commit(_mi_page_start(page) + _mi_guard_page_space(page), gap_size(page)) != 0) return false;
  mi_fetch_sub_relaxed(&gap_count, 1);
  return true;
}
