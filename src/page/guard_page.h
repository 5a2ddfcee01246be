// Inaccessible memory behind pages of blocks, so that no write runs on from one into the next.  Layer: page; only in the
// full level of security.
//
//   a page of one slice       | blocks ...                  |####|   its last OS page
//   one of several slices     | blocks ...                       |######|   a slice more
//
// Each costs up to two of the kernel's mappings, of which a process may have 65530; so there are at most MI_GUARD_PAGE_MAX.  Dense
// pages of one slice have none: gaps would split the huge OS pages behind them (15 to 20 % of the time of a program with a
// large heap).  Nor have pages in arenas: memory that the program has brought is not ours to protect.
#pragma once

#include "page.h"

#define MI_GUARD_PAGE_MAX ((size_t)16 * 1024)

#define MI_GUARD_PAGE_SIZE_MAX ((size_t)16 * MI_KiB) // of the gap of a page of one slice: OS pages are no larger

// Slices that a page takes beside its own.
static inline size_t _mi_guard_page_slices(size_t n_slices) {
  return MI_HARDENED && n_slices > 1 ? 1 : 0;
}

// Is it a page that has a gap, if there are not too many?
static inline bool _mi_guard_page_is_wanted(const mi_page_t* page) {
  const mi_region_t* region = _mi_page_region(page);
  return MI_HARDENED && region->origin == MI_REGION_OWN && (page->n_slices > 1 || !region->is_huge);
}

// Bytes of a page that are for blocks.
static inline size_t _mi_guard_page_space(const mi_page_t* page) {
  bool is_short = (page->n_slices == 1 && _mi_guard_page_is_wanted(page));
  return page->n_slices * MI_SLICE_SIZE - (is_short ? _mi_prim_os_page_size() : 0);
}

// Blocks of a page of that class.
static inline uint16_t _mi_guard_page_capacity(const mi_page_t* page, const mi_class_info_t* info) {
  return MI_HARDENED ? (uint16_t)(_mi_guard_page_space(page) / info->block_size) : info->capacity;
}

void _mi_guard_page_close(mi_page_t* page); // when the page is made

bool _mi_guard_page_open(
    mi_page_t* page); // before the page is given back; false: the system would not, ask again later
