// Pages: making, extending and giving back.  Layer: page.
#include "page.h"

#include <errno.h>
#include <string.h>

#include "../base/probe.h"
#include "../support/stat.h"
#include "../support/message.h"
#include "../support/trace.h"
#include "fill.h"

// From this many bytes on, fresh memory is backed by one system call instead of a fault per OS page: 0.9 us an OS page
// against 1.2-2 us.  Smaller steps gain nothing.
#define PAGE_POPULATE_MIN (16 * MI_KiB)

mi_noinline mi_page_t* _mi_page_at_other(const void* p) {
  const mi_region_t* region = _mi_region_search(p);
  if (region == NULL) return (mi_page_t*)_mi_mapped_find(p);
  return (mi_page_t*)_mi_region_descriptor(region, _mi_region_slice_index(region, p));
}

mi_page_t* _mi_page_look(const void* p, bool* is_held) {
  if (MI_TAGS) p = _mi_prim_tag_strip(p);
  const mi_region_t* region = _mi_region_search(p);
  *is_held = (region != NULL && region != &_mi_region_all[0]);
  if (*is_held) _mi_lock_acquire(&_mi_region_lock);
  if (region != NULL) return _mi_page_of(p); // NULL if the region is gone
  mi_page_t* page = (mi_page_t*)_mi_mapped_find(p);
  return page == NULL || _mi_page_kind(page) == MI_PAGE_NONE ? NULL : page;
}

void _mi_page_look_end(bool is_held) {
  if (is_held) _mi_lock_release(&_mi_region_lock);
}

mi_block_t* _mi_page_next_any(const mi_block_t* block) {
  uint64_t    found = _mi_block_next(block);
  mi_block_t* next = (mi_block_t*)(uintptr_t)found;
  if (found == 0) return NULL;
  if (found == (uintptr_t)next && mi_is_aligned(next, sizeof(found)) && _mi_page_at(next) != NULL) return next;
  const mi_page_t* page = _mi_page_of(block);
  if (page == NULL) {
    _mi_message_error(EFAULT, "corrupted list of free blocks: %p is no block\n", (const void*)block);
  }
  else {
    _mi_trace_explain(block);
    _mi_message_error(EFAULT,
                      "corrupted free block %p of %zu bytes: it was written to after it was freed, or from the block "
                      "before it (page %p)\n",
                      (const void*)block, _mi_page_block_size(page), (void*)_mi_page_start(page));
  }
  return NULL;
}

// ---- guard pages ------------------------------------------------------------------------------------------------------

static mi_atomic(size_t) page_n_guards;

static size_t page_guard_size(const mi_page_t* page) {
  return (page->n_slices + _mi_page_guard_slices(page->n_slices)) * MI_SLICE_SIZE - _mi_page_guard_space(page);
}

static bool page_unguard(mi_page_t* page) {
  if (!_mi_page_has(page, MI_PAGE_HAS_GUARD)) return true;
  if (_mi_prim_commit(_mi_page_start(page) + _mi_page_guard_space(page), page_guard_size(page)) != 0) return false;
  mi_fetch_sub_relaxed(&page_n_guards, 1);
  return true;
}

static void page_guard(mi_page_t* page) {
  if (!_mi_page_guard_is_wanted(page) || mi_load_relaxed(&page_n_guards) >= MI_GUARD_PAGE_MAX) return;
  // First: the child of a fork in between must open what it finds closed.
  mi_fetch_add_relaxed(&page_n_guards, 1);
  _mi_page_set(page, MI_PAGE_HAS_GUARD);
  if (_mi_prim_protect(_mi_page_start(page) + _mi_page_guard_space(page), page_guard_size(page)) == 0) return;
  if (page_unguard(page)) _mi_page_clear(page, MI_PAGE_HAS_GUARD); // a part of it may be inaccessible
}

// ---- making and giving back --------------------------------------------------------------------------------------------

static void page_reset(mi_page_t* page, mi_page_kind_t kind) {
  mi_store_relaxed(&page->home, (mi_theap_t*)NULL);
  mi_store_relaxed(&page->word, _mi_page_word_make(MI_PAGE_OWNED, 0, NULL));
  page->free = NULL;
  page->next = page->prev = NULL;
  page->extended = page->capacity = 0;
  _mi_page_set_used(page, 0);
  mi_store_relaxed(&page->flags, (uint8_t)0);
  page->to_first = 0;
  mi_store_relaxed(&page->block_size, 0u);
  mi_store_relaxed(&page->kind, (uint8_t)kind);
}

// What a block needs to find in the descriptor of its own slice: its size, its bin, and the way back to the first.
static void page_set_slices(mi_page_t* page, uint32_t block_size) {
  uint16_t bin_offset = mi_load_relaxed(&page->bin_offset);
  mi_store_relaxed(&page->block_size, block_size);
  uint32_t to_first = 0;
  for (mi_page_t *at = page + 1, *end = page + page->n_slices; at < end; at++) {
    at->to_first = ++to_first;
    mi_store_relaxed(&at->bin_offset, bin_offset);
    mi_store_relaxed(&at->home, (mi_theap_t*)NULL);
    mi_store_relaxed(&at->block_size, block_size);
    mi_store_relaxed(&at->kind, (uint8_t)MI_PAGE_INTERIOR);
  }
}

// The descriptors of the later slices belong to no page any more.
static void page_clear_slices(mi_page_t* page) {
  for (mi_page_t *at = page + 1, *end = page + page->n_slices; at < end; at++) {
    mi_store_relaxed(&at->home, (mi_theap_t*)NULL);
    mi_store_relaxed(&at->block_size, 0u);
    mi_store_relaxed(&at->kind, (uint8_t)MI_PAGE_NONE);
  }
}

static mi_request_t page_request(const mi_class_info_t* info, bool is_huge) {
  if (info->n_slices > 1) return is_huge ? MI_REQUEST_MEDIUM_HUGE : MI_REQUEST_MEDIUM;
  return is_huge ? MI_REQUEST_HUGE : MI_REQUEST_SMALL;
}

mi_page_t* _mi_page_new(size_t cls, size_t bin_offset, bool is_huge, size_t arena) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  size_t                 n_slices = info->n_slices + _mi_page_guard_slices(info->n_slices);
  mi_run_t               run = _mi_slices_alloc(n_slices, 1, page_request(info, is_huge), arena);
  if (run.region == NULL) return NULL;
  mi_page_t* page = (mi_page_t*)_mi_region_descriptor(run.region, run.slice);
  page_reset(page, MI_PAGE_BLOCKS);
  mi_store_relaxed(&page->bin_offset, (uint16_t)bin_offset);
  page->cls = (uint8_t)cls;
  page->region = (uint8_t)_mi_region_index(run.region);
  page->n_slices = info->n_slices;
  page->capacity = _mi_page_capacity(page, info);
  if (run.is_zero) _mi_page_set(page, MI_PAGE_IS_ZERO);
  page_set_slices(page, info->block_size);
  if (MI_HARDENED) page_guard(page);
  if (MI_TRACK) mi_track_closed(_mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
  _mi_stat_increase(&_mi_stat_live.pages, 1);
  _mi_stat_increase(&_mi_stat_live.page_committed, (int64_t)(info->n_slices * MI_SLICE_SIZE));
  MI_PROBE4(page_new, page, _mi_page_start(page), info->block_size, info->n_slices);
  return page;
}

static void page_give_back(mi_page_t* page) {
  size_t n_slices = page->n_slices;
  page_clear_slices(page);
  page_reset(page, MI_PAGE_NONE);
  _mi_slices_free(_mi_page_region(page), _mi_page_slice(page), n_slices + _mi_page_guard_slices(n_slices), false);
}

// Deleted pages whose guard page the system has refused to make accessible, linked by `next`: a later deletion whose own guard page it
// makes accessible tries them again, until one is refused.
static mi_atomic(mi_page_t*) page_deferred;

void _mi_page_push(mi_atomic(mi_page_t*)* stack, mi_page_t* page) {
  mi_page_t* first = mi_load_relaxed(stack);
  _mi_page_set_home(page, NULL);
  do {
    page->next = first;
  } while (!mi_cas_weak(stack, &first, page, release, relaxed)); // release: whoever takes it follows `next`
}

mi_page_t* _mi_page_pop_all(mi_atomic(mi_page_t*)* stack) {
  return mi_load_relaxed(stack) == NULL ? NULL : mi_exchange_acq_rel(stack, (mi_page_t*)NULL);
}

// From now on nobody else takes it for a page, in the child of a fork either: only the stack has it.
static void page_defer(mi_page_t* page) {
  page_clear_slices(page);
  mi_store_relaxed(&page->block_size, 0u);
  mi_store_relaxed(&page->kind, (uint8_t)MI_PAGE_NONE);
  _mi_page_push(&page_deferred, page);
}

static void page_delete_guarded(mi_page_t* page) {
  bool ok = page_unguard(page);
  if (!ok) {
    page_defer(page);
    return;
  }
  page_give_back(page);
  page = _mi_page_pop_all(&page_deferred);
  for (mi_page_t* next; page != NULL; page = next) {
    next = page->next;
    ok = ok && page_unguard(page);
    if (ok) page_give_back(page);
    else page_defer(page);
  }
}

void _mi_page_delete(mi_page_t* page) {
  mi_assert_internal(_mi_page_used(page) == 0 && _mi_page_kind(page) == MI_PAGE_BLOCKS);
  MI_PROBE2(page_free, page, _mi_page_block_size(page));
  _mi_stat_decrease(&_mi_stat_live.pages, 1);
  _mi_stat_decrease(&_mi_stat_live.page_committed, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  if (MI_HARDENED) page_delete_guarded(page);
  else page_give_back(page);
}

// Pages all start at multiples of 64 KiB.  If all began with their first block, the blocks in use of a program with a
// small heap and many classes would fall into the same few sets of the cache: 5 % of the churn benchmark.  So
// each page begins with a different block and wraps around; in secure builds nobody can foresee with which.
size_t _mi_page_first_made(const mi_page_t* page) {
  if (page->n_slices > 1) return 0;
  if (!(MI_SECURE > 0 && MI_CHECKED)) return (_mi_page_slice(page) * 5 % 16) * page->capacity / 16;
  uint64_t random = (_mi_block_keys.link ^ (uintptr_t)_mi_page_start(page)) * MI_MIX;
  return (size_t)((random >> 32) * page->capacity >> 32);
}

#define PAGE_GROUP ((size_t)(MI_HARDENED ? 8 : 4)) // a power of two

// Which of n blocks comes in place i of the list: block i, but in secure builds groups of a few neighbours are put into an order that
// `random` chooses.  Only neighbours change places, since blocks that are allocated together are used together: with blocks from
// anywhere in the page lua and python took 9 % more time.
static size_t page_place(size_t i, size_t n, uint64_t random) {
  size_t first = mi_align_down(i, PAGE_GROUP);
  if (MI_SECURE == 0 || first + PAGE_GROUP > n) return i;
  size_t bits = (size_t)(random >> (first / PAGE_GROUP * 7 % 48)); // different ones for each group
  return first + ((i - first) * (2 * bits + 1) + (bits >> 8)) % PAGE_GROUP;
}

static mi_block_t* page_link_blocks(char* start, size_t size, size_t n) {
  uint64_t    random = (MI_SECURE > 0 ? _mi_block_random(start) : 0);
  mi_block_t* first = (mi_block_t*)(start + page_place(0, n, random) * size);
  mi_block_t* last = first;
  _mi_block_set_end(first, size);
  for (size_t i = 1; i < n; i++) {
    mi_block_t* block = (mi_block_t*)(start + page_place(i, n, random) * size);
    _mi_block_set_end(block, size);
    _mi_block_set_next(last, block);
    last = block;
  }
  _mi_block_set_next(last, NULL);
  return first;
}

void _mi_page_extend(mi_page_t* page, size_t bytes) {
  mi_assert_internal(page->free == NULL);
  size_t size = _mi_page_block_size(page);
  size_t at = page->extended + _mi_page_first_made(page);
  if (at >= page->capacity) at -= page->capacity;
  char*  start = _mi_page_block(page, at);
  size_t os_page = _mi_prim_os_page_size();
  // Blocks that end within the OS page where the first one ends, or within `bytes`.
  char*  end = (char*)mi_align_up((uintptr_t)start + mi_max(size, bytes), os_page);
  size_t n = mi_min((size_t)(end - start) / size,
                    mi_min((size_t)(page->capacity - at), (size_t)(page->capacity - page->extended)));
  mi_assert_internal(n > 0);
  // In pages of several slices the program may not touch all of a block.
  bool is_fresh = _mi_page_has(page, MI_PAGE_IS_ZERO) && page->n_slices == 1;
  if (bytes >= PAGE_POPULATE_MIN && n * size >= PAGE_POPULATE_MIN && is_fresh) {
    char* from = (char*)mi_align_up((uintptr_t)start, os_page);
    char* to = (char*)mi_align_down((uintptr_t)start + n * size, os_page);
    if (to > from) _mi_prim_populate(from, (size_t)(to - from));
  }
  if (MI_FILL && !(MI_HARDENED && _mi_page_has(page, MI_PAGE_IS_ZERO)))
    _mi_fill_freed(start, n * size + MI_PADDING_SIZE); // with all last words
  page->free = page_link_blocks(start, size, n);
  mi_store_growing(&page->extended, (uint16_t)(page->extended + n)); // after what it counts (padding.h, D4)
  _mi_stat_count(&_mi_stat_live.pages_extended, 1);
}

void _mi_page_put_free(mi_page_t* page, mi_chain_t chain) {
  if (chain.count == 0) return;
  mi_assert_internal(chain.count <= _mi_page_used(page));
  if (page->free != NULL) {
    mi_block_t* last = chain.first;
    for (mi_block_t* next; (next = _mi_page_next_block(last)) != NULL;) last = next;
    _mi_block_set_next(last, page->free);
  }
  page->free = chain.first;
  _mi_page_set_used(page, _mi_page_used(page) - chain.count);
}

void _mi_page_unpack(mi_page_t* page, mi_chain_t free) {
  if (mi_unlikely(_mi_page_kind(page) == MI_PAGE_GAPS)) { // heap/gaps.h, GP4
    page->free = free.first;
    _mi_page_set_used(page, page->capacity - free.count);
    return;
  }
  size_t n_unmade = (size_t)(page->capacity - page->extended);
  mi_assert_internal(page->free == NULL && free.count >= n_unmade);
  page->free = free.first;
  _mi_page_set_used(page, page->extended - (free.count - n_unmade));
  mi_assert_expensive(_mi_page_is_valid(page));
}

bool _mi_page_is_valid(const mi_page_t* page) {
  size_t size = _mi_page_block_size(page);
  char*  start = _mi_page_start(page);
  size_t n_free = 0;
  for (const mi_block_t* b = page->free; b != NULL && n_free <= page->capacity; b = _mi_page_next_block(b)) {
    size_t offset = (size_t)((const char*)b - start);
    if (offset % size != 0 || offset / size >= page->capacity) return false;
    n_free++;
  }
  return _mi_page_used(page) <= page->extended && page->extended <= page->capacity &&
         n_free == page->extended - _mi_page_used(page);
}

// ---- pages of one large block ---------------------------------------------------------------------------------------

// The slice in which the block starts, when that is not the first, so that the block finds its page.
static mi_page_t* page_large_interior(mi_page_t* page) {
  size_t i = (size_t)(_mi_page_large_block(page) - _mi_page_start(page)) >> MI_SLICE_SHIFT;
  return i == 0 ? NULL : page + i;
}

static void page_reset_large(mi_page_t* page, size_t region, size_t n_slices, char* block) {
  page_reset(page, MI_PAGE_NONE);
  mi_store_relaxed(&page->word, _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL));
  page->region = (uint8_t)region;
  page->cls = MI_CLASS_NONE;
  page->n_slices = (uint32_t)n_slices;
  page->block = block;
}

mi_page_t* _mi_page_new_large(mi_run_t run, size_t offset, uint8_t flags) {
  mi_page_t* page = (mi_page_t*)_mi_region_descriptor(run.region, run.slice);
  char*      start = _mi_region_slice_start(run.region, run.slice);
  page_reset_large(page, _mi_region_index(run.region), run.n_slices, start + offset);
  page->is_plain = (offset == 0);
  _mi_page_set(page, flags);
  mi_page_t* interior = page_large_interior(page);
  if (interior != NULL) {
    interior->to_first = (uint32_t)(interior - page);
    mi_store_relaxed(&interior->kind, (uint8_t)MI_PAGE_INTERIOR);
  }
  mi_store_release(&page->kind, (uint8_t)MI_PAGE_LARGE); // release: whoever walks all pages sees the rest
  return page;
}

void _mi_page_delete_large(mi_page_t* page) {
  mi_page_t* interior = page_large_interior(page);
  if (interior != NULL) mi_store_relaxed(&interior->kind, (uint8_t)MI_PAGE_NONE);
  mi_store_relaxed(&page->kind, (uint8_t)MI_PAGE_NONE);
}

mi_page_t* _mi_page_new_deleted(mi_run_t run) {
  mi_page_t* page = (mi_page_t*)_mi_region_descriptor(run.region, run.slice);
  page_reset_large(page, _mi_region_index(run.region), run.n_slices, _mi_region_slice_start(run.region, run.slice));
  return page;
}

mi_page_t* _mi_page_new_mapped(void* descriptor, size_t n_slices, size_t offset) {
  mi_page_t* page = (mi_page_t*)descriptor;
  page_reset_large(page, MI_REGION_MAPPED, n_slices, _mi_mapped_start(page) + offset);
  _mi_page_set(page, MI_PAGE_MAPPED);
  mi_store_release(&page->kind, (uint8_t)MI_PAGE_LARGE); // as above
  return page;
}

void _mi_page_delete_mapped(mi_page_t* page) {
  mi_store_relaxed(&page->kind, (uint8_t)MI_PAGE_NONE);
}
