// Telling live blocks from free ones.  Layer: heap.
#include "view.h"

#include <string.h>

#include "bin.h"
#include "fork.h"
#include "idle.h"
#include "outbox.h"

bool _mi_view_holds(mi_faults_t* faults, bool is_so, const char* otherwise, const void* at, const mi_page_t* page) {
  if (is_so || faults == NULL) return is_so;
  mi_damage_t fault = {otherwise, at, page, page == NULL ? 0 : _mi_page_block_size(page)};
  if (faults->n < MI_FAULTS_KEPT) faults->kept[faults->n] = fault;
  faults->n++;
  return false;
}

static void view_set_free(mi_view_t* view, size_t i) {
  view->free[i / 64] |= (uint64_t)1 << (i % 64);
}

static bool view_is_made(const mi_view_t* view, size_t i) {
  if (view->has_gaps) return true;
  size_t first = _mi_page_first_made(view->page);
  return (i >= first ? i - first : i + view->n_blocks - first) < view->n_made;
}

// False: it cannot be in a list, and so the list ends here.
static bool view_mark(mi_view_t* view, const mi_block_t* block, mi_faults_t* faults) {
  size_t      offset = (size_t)((const char*)block - view->start);
  size_t      i = offset / view->block_size;
  const char* wrong = NULL;
  if (i >= view->n_blocks || offset % view->block_size != 0) wrong = "a link to where no block is";
  else if (!view_is_made(view, i)) wrong = "a free block that was never made";
  else if (!_mi_view_is_live(view, i)) wrong = "a block that is free twice";
  if (!_mi_view_holds(faults, wrong == NULL, wrong, block, view->page)) return false;
  view_set_free(view, i);
  view->n_live--;
  return true;
}

// Marks a list that is to have n blocks.
static void view_mark_list(mi_view_t* view, const mi_block_t* block, size_t n, const char* wrong, mi_faults_t* faults) {
  size_t found = 0;
  for (; block != NULL && view_mark(view, block, faults); block = _mi_block_peek(block)) found++;
  _mi_view_holds(faults, found == n, wrong, view->page, view->page);
}

static void view_mark_unmade(mi_view_t* view) {
  size_t i = _mi_page_first_made(view->page) + view->n_made;
  for (size_t n = view->n_blocks - view->n_made; n > 0; n--, i++) view_set_free(view, i % view->n_blocks);
  view->n_live = view->n_made;
}

// A bin may have blocks of all pages of its heap: its thread's home can have been another when they were freed.
static void view_mark_bin(mi_view_t* view, size_t cls, const mi_block_t* block, mi_faults_t* faults) {
  for (size_t n = 0; block != NULL && n < MI_PAGE_BLOCKS_MAX; n++, block = _mi_block_peek(block)) {
    const mi_page_t* page = _mi_bin_page_of(block, cls);
    if (page == NULL || (page == view->page && !view_mark(view, block, faults))) return;
  }
}

static void view_mark_outbox(mi_view_t* view, const mi_theap_t* theap, mi_faults_t* faults) {
  const mi_batch_t* batch = _mi_outbox_batch((mi_theap_t*)theap, view->page);
  if (batch->page == view->page) view_mark_list(view, batch->first, batch->count, "a batch of another length", faults);
}

// Blocks of the main heap, whichever heap the threads have that freed them.
static void view_mark_quarantines(mi_view_t* view, mi_faults_t* faults) {
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    for (size_t i = 0; i < MI_QUARANTINE_SIZE && !theap->is_orphan; i++) {
      const mi_block_t* block = theap->quarantine.blocks[i];
      if (block != NULL && _mi_page_of(block) == view->page) view_mark(view, block, faults);
    }
  }
}

static void view_mark_class(mi_view_t* view, const mi_theap_t* theap, size_t cls, mi_faults_t* faults) {
  const mi_block_t* lists[MI_WAITING_LISTS];
  _mi_waiting_lists(theap, cls, lists);
  for (int i = 0; i < MI_WAITING_LISTS; i++) view_mark_bin(view, cls, lists[i], faults);
}

static bool view_mark_sorted(mi_view_t* view, uint64_t waiting, mi_faults_t* faults) {
  size_t           n;
  const char*      end = view->start + view->n_blocks * view->block_size;
  const uintptr_t* blocks = _mi_waiting_find(waiting, view->start, end, &n);
  for (size_t i = 0; blocks != NULL && i < n; i++) view_mark(view, (const mi_block_t*)blocks[i], faults);
  return blocks != NULL;
}

// The bins of all threads; and the outboxes, where only blocks of the main heap are (heap.h, Q4).
static void view_mark_theaps(mi_view_t* view, uint64_t waiting, mi_faults_t* faults) {
  if (view_mark_sorted(view, waiting, faults)) return;
  bool is_mains = !_mi_page_has(view->page, MI_PAGE_IN_HEAP);
  for (const mi_theap_t* theap = view->heap->theaps; theap != NULL; theap = theap->in_heap.next) {
    if (theap->is_orphan) continue; // fork.c, F2
    for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
      if (cls == view->cls || view->has_gaps) view_mark_class(view, theap, cls, faults);
    }
    if (is_mains) view_mark_outbox(view, theap, faults);
  }
  if (MI_HARDENED && is_mains) view_mark_quarantines(view, faults);
}

// Are the constants of the page those of its class?
static bool view_is_possible(const mi_view_t* view) {
  const mi_page_t* page = view->page;
  if (view->cls >= MI_CLASS_COUNT) return false;
  const mi_class_info_t* info = &_mi_size_class_info[view->cls];
  if (_mi_page_region(page)->base == 0 || _mi_page_slice(page) >= _mi_page_region(page)->n_slices) return false;
  return view->block_size == info->block_size && view->n_blocks == _mi_page_capacity(page, info) &&
         page->n_slices == info->n_slices && view->n_made <= view->n_blocks;
}

#define VIEW_STARTS (MI_PAGE_BLOCKS_MAX / 2) // of gap pages: where in `free`

mi_static_assert(MI_GAP_UNITS <= VIEW_STARTS, "two bits for each unit");

static bool view_is_start(const mi_view_t* view, size_t i) {
  return !_mi_view_is_live(view, VIEW_STARTS + i);
}

size_t _mi_view_block_size(const mi_view_t* view, size_t i) {
  if (!view->has_gaps) return view->usable_size;
  size_t end = i + 1;
  while (end < view->n_blocks && !view_is_start(view, end)) end++;
  return (end - i) * MI_GAP_UNIT;
}

static void view_make_empty(mi_view_t* view) {
  view->start = NULL;
  view->block_size = view->usable_size = 0;
  view->n_blocks = view->n_made = view->n_live = 0;
}

static void view_mark_runs(mi_view_t* view) {
  size_t n_live = 0, size;
  for (size_t i = 0; i < MI_GAP_UNITS; i++) view_set_free(view, i);
  for (size_t i = 0; _mi_gaps_next(view->page, &i, &size); i += size / MI_GAP_UNIT, n_live++) {
    view->free[i / 64] &= ~((uint64_t)1 << (i % 64));
    view_set_free(view, VIEW_STARTS + i);
    if (i + size / MI_GAP_UNIT < MI_GAP_UNITS) view_set_free(view, VIEW_STARTS + i + size / MI_GAP_UNIT);
  }
  view->n_live = n_live;
}

static void view_make_gaps(mi_view_t* view, mi_page_t* page, uint64_t waiting, mi_faults_t* faults) {
  mi_chain_t frees = _mi_gaps_chain(page);
  view->has_gaps = true;
  view->start = _mi_page_start(page);
  view->block_size = view->usable_size = MI_GAP_UNIT;
  view->n_blocks = view->n_made = MI_GAP_UNITS;
  view->is_shared = (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_SHARED);
  view->home = mi_load_relaxed(&page->home);
  memset(view->free, 0, sizeof(view->free));
  view_mark_runs(view);
  view_mark_list(view, frees.first, frees.count, "I2: a chain of another length", faults);
  view_mark_theaps(view, waiting, faults);
}

static void view_make_large(mi_view_t* view, const mi_page_t* page) {
  view->start = _mi_page_large_block(page);
  view->block_size = _mi_page_large_size(page);
  view->usable_size = (MI_PADDING ? page->asked : view->block_size);
  view->n_blocks = view->n_made = view->n_live = 1;
  view->free[0] = 0;
}

// VW3
static void view_make_blocks(mi_view_t* view, mi_page_t* page, uint64_t waiting, mi_faults_t* faults) {
  uint64_t   word = mi_load_acquire(&page->word);
  mi_chain_t chain = _mi_page_word_chain(word);
  view->block_size = _mi_page_block_size(page);
  view->n_blocks = mi_load_relaxed(_mi_page_capacity_of(page));
  view->n_made = mi_load_plain_relaxed(&page->extended);
  if (!_mi_view_holds(faults, view_is_possible(view), "a descriptor that fits no size class", page, page)) {
    view_make_empty(view);
    return;
  }
  view->start = _mi_page_start(page);
  view->usable_size = view->block_size - MI_PADDING_SIZE;
  view->is_shared = (_mi_page_word_state(word) == MI_PAGE_SHARED);
  view->home = mi_load_relaxed(&page->home);
  memset(view->free, 0, mi_div_up(view->n_blocks, 64) * sizeof(view->free[0]));
  view_mark_unmade(view);
  if (!view->is_shared)
    view_mark_list(view, page->free, view->n_made - _mi_page_used(page), "P1: a list of another length", faults);
  size_t n_unmade = (view->is_shared ? view->n_blocks - view->n_made : 0); // they count as free ones there
  view_mark_list(view, chain.first, chain.count - n_unmade, "I2: a chain of another length", faults);
  view_mark_theaps(view, waiting, faults);
}

void _mi_view_make(mi_view_t* view, mi_page_t* page, uint64_t waiting, mi_faults_t* faults) {
  view->page = page;
  view->heap = _mi_heap_of(page);
  view->home = NULL;
  view->cls = page->cls;
  view->is_shared = view->has_gaps = false;
  if (view->heap == NULL) view_make_empty(view); // it is being given back (heap.h, Q7)
  else if (_mi_page_kind(page) == MI_PAGE_LARGE) view_make_large(view, page);
  else if (_mi_gaps_is(page)) view_make_gaps(view, page, waiting, faults);
  else view_make_blocks(view, page, waiting, faults);
}

// Others may have given the page back, or let it wait, since the walk found it.
static bool view_has_blocks(const mi_view_t* view) {
  return view->n_blocks > 0 && (view->home != NULL || view->cls == MI_CLASS_NONE);
}

bool _mi_view_next(mi_walk_t* walk, mi_view_t* view) {
  if (!_mi_lock_is_hurried()) _mi_fork_adopt_orphans();
  if (!_mi_idle_look_begin()) return false;
  if (!walk->has_begun) walk->waiting = _mi_waiting_begin(walk->heap);
  walk->has_begun = true;
  mi_page_t* page;
  do {
    page = _mi_walk_next(walk);
    if (page != NULL) _mi_view_make(view, page, walk->waiting, NULL);
  } while (page != NULL && !view_has_blocks(view));
  if (page == NULL) _mi_waiting_end(walk->waiting);
  _mi_idle_look_end();
  return page != NULL;
}

void _mi_view_end(mi_walk_t* walk) {
  if (walk->waiting == 0 || !_mi_idle_look_begin()) return;
  _mi_waiting_end(walk->waiting);
  _mi_idle_look_end();
}
