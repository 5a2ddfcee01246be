// Slices that the system has left without memory, or without access.  Layer: heap.
#include "lost.h"

static mi_atomic(mi_page_t*) lost_pages; // `block` is NULL if the place is LOST

void _mi_lost_add(mi_page_t* page, mi_remap_t remap) {
  page->block = (remap == MI_REMAP_LOST ? NULL : _mi_page_start(page));
  _mi_page_push(&lost_pages, page);
}

static bool lost_recover(mi_page_t* page) {
  char*  start = _mi_page_start(page);
  size_t n = page->n_slices, size = n * MI_SLICE_SIZE;
  int    err = (page->block == NULL ? _mi_prim_map_at(start, size, false) : _mi_prim_commit(start, size));
  if (err == 0) _mi_slices_free(_mi_page_region(page), _mi_page_slice(page), n, false);
  return err == 0;
}

static mi_page_t* lost_reverse(mi_page_t* page) {
  mi_page_t* reversed = NULL;
  for (mi_page_t* next; page != NULL; page = next) {
    next = page->next;
    page->next = reversed;
    reversed = page;
  }
  return reversed;
}

void _mi_lost_retry(void) {
  mi_page_t* page = _mi_page_pop_all(&lost_pages);
  if (mi_likely(page == NULL)) return;
  mi_page_t* rest = lost_reverse(page->next);
  if (!lost_recover(page)) _mi_page_push(&lost_pages, page); // the others come before it
  for (mi_page_t* next; rest != NULL; rest = next) {
    next = rest->next;
    _mi_page_push(&lost_pages, rest);
  }
}
