// Gap pages.  Layer: heap.  gaps.h has the invariants.
#include "gaps.h"

#include <errno.h>
#include <string.h>

#include "../support/message.h"
#include "meta.h"
#include "pool.h"

// A request of eight blocks makes the gaps of so many pages whole, so that with a free for each it joins four at a time (GP8).
#define GAPS_JOIN_PAGES 2

static mi_slab_t gaps_slab; // under the lock of the maps

// ---- runs -----------------------------------------------------------------------------------------------------------

static mi_gap_map_t* gaps_map(const mi_page_t* page) {
  return _mi_gap_map_at(page->gap_map);
}

// The same for those who do not own the page, which may become an ordinary one meanwhile; NULL if it has.
static mi_may_race const mi_gap_map_t* gaps_seen_map(const mi_page_t* page) {
  size_t i = page->gap_map;
  return _mi_gap_map_is(i) ? _mi_gap_map_at(i) : NULL;
}

size_t _mi_gaps_size(const mi_page_t* page, const void* p) {
  const mi_gap_map_t* map = gaps_seen_map(page);
  size_t              i = _mi_gap_map_unit(p);
  if (map == NULL || (uintptr_t)p % MI_GAP_UNIT != 0) return 0;
  bool is_block = (_mi_gap_map_has(map->starts, i) && _mi_gap_map_has(map->blocks, i));
  return is_block ? _mi_gap_map_length(map, i) * MI_GAP_UNIT : 0;
}

bool _mi_gaps_next(const mi_page_t* page, size_t* at, size_t* size) {
  const mi_gap_map_t* map = gaps_seen_map(page);
  *at = (map == NULL ? MI_GAP_UNITS : _mi_gap_map_find(map->blocks, *at));
  if (*at >= MI_GAP_UNITS) return false;
  *size = _mi_gap_map_length(map, *at) * MI_GAP_UNIT;
  return true;
}

mi_chain_t _mi_gaps_chain(const mi_page_t* page) {
  uint64_t   word = mi_load_acquire(&((mi_page_t*)page)->word);
  mi_chain_t chain = _mi_page_word_chain(word);
  bool       is_shared = (_mi_page_word_state(word) == MI_PAGE_SHARED);
  if (is_shared) chain.count -= MI_GAP_CAPACITY - _mi_page_used(page); // GP4
  return chain;
}

bool _mi_gaps_is_valid(const mi_page_t* page) {
  size_t n = 0, size;
  bool   is_shared = (_mi_page_word_state(mi_load_relaxed(&((mi_page_t*)page)->word)) == MI_PAGE_SHARED);
  if (!_mi_gap_map_is(page->gap_map) || gaps_map(page)->page != page) return false;
  for (size_t at = 0; _mi_gaps_next(page, &at, &size); at++) n++;
  return (page->free == NULL || is_shared) && _mi_page_block_size(page) == 0 &&
         _mi_gap_map_has(gaps_map(page)->starts, 0) && n == _mi_page_used(page);
}

static mi_gaps_t* gaps_of(mi_theap_t* theap) {
  if (mi_likely(theap->gaps != NULL)) return theap->gaps;
  _mi_lock_acquire(&_mi_gap_map_lock);
  theap->gaps = (mi_gaps_t*)_mi_meta_carve(&gaps_slab, sizeof(mi_gaps_t));
  _mi_lock_release(&_mi_gap_map_lock);
  return theap->gaps;
}

// ---- frees --------------------------------------------------------------------------------------------------------------

// It is of no class.
static void gaps_delete(mi_theap_t* theap, mi_page_t* page) {
  _mi_gaps_unmake(page);
  if (theap != NULL) theap->has_deleted = true;
  _mi_heap_delete_page(page);
}

static void gaps_leave(mi_theap_t* theap, mi_page_t* page) {
  _mi_gap_list_leave_page(theap->gaps, gaps_map(page));
  gaps_delete(theap, page);
}

static void gaps_note_wrong_free(mi_theap_t* theap, const mi_block_t* block) {
  theap->wrong_free = block;
  theap->has_deleted = true; // so that the next slow free looks
}

// False if the page is not there any more, or the free was wrong: then what else is linked to the block may be linked to itself.
static bool gaps_free(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  size_t used = _mi_page_used(page);
  if (mi_unlikely(!_mi_gap_list_loosen(theap->gaps, gaps_map(page), block))) {
    gaps_note_wrong_free(theap, block);
    return false;
  }
  _mi_page_set_used(page, used - 1);
  if (mi_unlikely(used == 1)) gaps_leave(theap, page);
  return used > 1;
}

void _mi_gaps_free(mi_theap_t* theap, mi_page_t* page, mi_block_t* block) {
  gaps_free(theap, page, block);
}

const void* _mi_gaps_wrong_free(mi_theap_t* theap) {
  const void* p = theap->wrong_free;
  theap->wrong_free = NULL;
  return p;
}

mi_cold void _mi_gaps_report(const void* wrong_free) {
  _mi_message_error(EAGAIN, "double free, or free of an invalid pointer: there is no block at %p\n", wrong_free);
}

static bool gaps_has_chain(const mi_page_t* page) {
  return _mi_page_word_chain(mi_load_relaxed(&((mi_page_t*)page)->word)).first != NULL;
}

// Each page has its turn: there may be more than are looked at in one go, for as long as the thread is busy.
void _mi_gaps_collect(mi_theap_t* theap, size_t n) {
  mi_gaps_t* gaps = theap->gaps;
  if (gaps == NULL) return;
  for (n = mi_min(n, gaps->n_pages); n > 0 && gaps->n_pages > 0; n--) {
    mi_page_t* page = (gaps->turn != NULL ? gaps->turn : gaps->first)->page;
    gaps->turn = gaps_map(page)->next;
    if (!gaps_has_chain(page)) continue;
    mi_block_t* block = _mi_page_word_take(&page->word, MI_PAGE_OWNED).first;
    for (mi_block_t* after; block != NULL; block = after) {
      after = _mi_page_next_block(block);
      if (!gaps_free(theap, page, block)) break;
    }
  }
}

// `kind` first: a page of blocks without a block size goes back in the child of a fork.
void _mi_gaps_lose(mi_page_t* page) {
  mi_store_relaxed(&page->kind, (uint8_t)MI_PAGE_BLOCKS);
  page->free = NULL;
  page->extended = page->capacity = 0;
  _mi_page_set_used(page, 0);
}

void _mi_gaps_unmake(mi_page_t* page) {
  size_t i = page->gap_map;
  _mi_gaps_lose(page);
  _mi_gap_map_free(i);
}

// ---- making pages and blocks --------------------------------------------------------------------------------------------

// Either tells that a drain has blocks of the page: what _mi_drain_take_all left in it is of a page that names its bin again.
static bool gaps_is_drained(const mi_theap_t* theap, mi_page_t* page) {
  return _mi_theap_drain(theap, page->cls)->page == page || mi_load_relaxed(&page->bin_offset) >= MI_DRAINS_OFFSET;
}

bool _mi_gaps_can_make(const mi_theap_t* theap, mi_page_t* page) {
  return _mi_gaps_fits(page->cls) && page->extended == page->capacity && _mi_page_used(page) > 0 &&
         page->free != NULL && !_mi_page_has(page, MI_PAGE_IN_HEAP | MI_PAGE_HAS_GUARD | MI_PAGE_IS_FULL) &&
         !gaps_is_drained(theap, page);
}

static void gaps_mark(mi_gap_map_t* map, const mi_page_t* page) {
  size_t size = _mi_page_block_size(page) / MI_GAP_UNIT, end = page->capacity * size;
  for (size_t w = 0; w < MI_GAP_WORDS; w++) {
    mi_store_relaxed(&map->starts[w], (uint64_t)0);
    mi_store_relaxed(&map->blocks[w], (uint64_t)0);
    map->loose[w] = 0;
  }
  map->loose_words = map->n_hollow = 0;
  for (size_t i = 0; i < end; i += size) _mi_gap_map_set(map->blocks, i, true);
  for (size_t k = page->extended, first = _mi_page_first_made(page); k < page->capacity; k++)
    _mi_gap_map_set(map->blocks, (first + k) % page->capacity * size, false);
  for (const mi_block_t* b = page->free; b != NULL; b = _mi_page_next_block(b))
    _mi_gap_map_set(map->blocks, _mi_gap_map_unit(b), false);
  bool is_gap = false;
  for (size_t i = 0; i < end; i += size) {
    bool is_block = _mi_gap_map_has(map->blocks, i);
    if (is_block || !is_gap) _mi_gap_map_set(map->starts, i, true);
    is_gap = !is_block;
  }
  if (end < MI_GAP_UNITS && !is_gap) _mi_gap_map_set(map->starts, end, true);
}

// A page in no list, whose blocks the map of that number is to have.
static void gaps_make(mi_page_t* page, size_t i) {
  mi_gap_map_t* map = _mi_gap_map_at(i);
  map->page = page;
  gaps_mark(map, page);
  page->free = NULL;
  page->gap_map = (uint16_t)i;
  _mi_page_clear(page, MI_PAGE_IS_ZERO);
  _mi_page_set_bin(page, MI_NO_SLOTS_OFFSET);
  mi_store_release(&page->kind, (uint8_t)MI_PAGE_GAPS);
  mi_store_release(&page->block_size, 0u);                       // release: who sees it sees the map and the kind
  mi_store_relaxed(_mi_page_capacity_of(page), MI_GAP_CAPACITY); // read by those only who see the page SHARED
}

bool _mi_gaps_make(mi_theap_t* theap, mi_page_t* page) {
  mi_gaps_t* gaps = gaps_of(theap);
  size_t     i;
  if (gaps == NULL || !_mi_gaps_can_make(theap, page) || !_mi_gap_map_new(&i)) return false;
  _mi_queue_remove(theap, page);
  gaps_make(page, i);
  _mi_gap_list_enter_page(gaps, _mi_gap_map_at(i));
  return true;
}

// Makes blocks of n units there, next to each other, and puts them in front of the chain while that has room; what is left of the gap
// in front of them and behind them stays free.
static void gaps_cut(mi_gaps_t* gaps, const mi_gap_place_t* place, size_t n, mi_chain_t* chain) {
  mi_gap_map_t* map = place->map;
  size_t        at = place->at, end = place->first + place->n, used = _mi_page_used(map->page);
  _mi_gap_list_pull(gaps, place->gap, place->n);
  if (place->first < at) _mi_gap_list_put(gaps, place->gap, at - place->first);
  for (; at + n <= end && chain->count < MI_GAP_CHAIN; at += n, chain->count++, used++) {
    mi_block_t* block = (mi_block_t*)(void*)_mi_gap_list_at(map, at);
    _mi_gap_map_set(map->starts, at, true);
    _mi_gap_map_set(map->blocks, at, true);
    _mi_block_set_next(block, chain->first);
    chain->first = block;
  }
  _mi_page_set_used(map->page, used);
  if (at == end) return;
  _mi_gap_map_set(map->starts, at, true);
  _mi_gap_list_put(gaps, _mi_gap_list_at(map, at), end - at);
}

// As many blocks of n units as the chain has room for, out of the gaps that are in lists.
static void gaps_fill(mi_gaps_t* gaps, size_t n, mi_chain_t* chain) {
  size_t         align = n & (~n + 1);
  mi_gap_place_t place;
  while (chain->count < MI_GAP_CHAIN && _mi_gap_list_search(gaps, n, align, &place)) gaps_cut(gaps, &place, n, chain);
}

mi_chain_t _mi_gaps_take(mi_theap_t* theap, size_t cls) {
  mi_gaps_t* gaps = theap->gaps;
  mi_chain_t chain = {NULL, 0};
  size_t     n = _mi_size_class_block(cls) / MI_GAP_UNIT, n_joins = 0, n_more = 0;
  for (int i = 0; i < GAPS_JOIN_PAGES; i++) n_joins += _mi_gap_list_join_oldest(gaps);
  gaps_fill(gaps, n, &chain);
  while (chain.count == 0 && n_joins < MI_GAP_JOINS && (n_more = _mi_gap_list_join_oldest(gaps)) > 0) {
    n_joins += n_more;
    gaps_fill(gaps, n, &chain);
  }
  return chain;
}

// ---- letting go, and taking over ----------------------------------------------------------------------------------------

// What is no block is one gap with what lies next to it, and none is loose.  Returns how many blocks there are.
static size_t gaps_recount(mi_gap_map_t* map) {
  size_t n_blocks = 0;
  bool   was_gap = false;
  for (size_t n, i = 0; i < MI_GAP_UNITS; i += n) {
    n = _mi_gap_map_length(map, i);
    bool is_block = _mi_gap_map_has(map->blocks, i);
    if (is_block) n_blocks++;
    else if (was_gap) _mi_gap_map_set(map->starts, i, false);
    was_gap = !is_block;
  }
  memset(map->loose, 0, sizeof(map->loose));
  map->loose_words = map->n_hollow = 0;
  return n_blocks;
}

// Blocks of a page whose gaps are in no list are free; `used` does not count them any more.  None is loose then.  Returns the block that was
// freed wrongly, if there is one: then those linked to it stay, and `used` counts what the bits say.
static const mi_block_t* gaps_mark_free(mi_page_t* page, mi_block_t* block) {
  mi_gap_map_t* map = gaps_map(page);
  for (mi_block_t* next; block != NULL; block = next) {
    next = _mi_page_next_block(block);
    if (mi_unlikely(!_mi_gap_list_loosen(NULL, map, block))) break;
  }
  _mi_gap_list_join(NULL, map);
  if (mi_unlikely(block != NULL)) _mi_page_set_used(page, gaps_recount(map));
  return block;
}

// Its gaps are in no list, nor is it; `held` is OWNED or CLAIMED.  False if it has no blocks.
static bool gaps_share(mi_page_t* page, mi_page_state_t held) {
  do {
    mi_chain_t chain = _mi_page_word_take(&page->word, held);
    _mi_page_set_used(page, _mi_page_used(page) - chain.count);
    gaps_mark_free(page, chain.first);
    if (_mi_page_used(page) == 0) return false;
  } while (!_mi_pool_share(page, held));
  return true;
}

// Shares a page that the caller holds, or deletes it if it has no blocks.  `theap` NULL: a round holds it.
static void gaps_let_go(mi_theap_t* theap, mi_page_t* page, mi_page_state_t held) {
  if (!gaps_share(page, held)) gaps_delete(theap, page);
}

bool _mi_gaps_adopt(mi_theap_t* theap, mi_page_t* page) {
  mi_gaps_t*        gaps = gaps_of(theap);
  const mi_block_t* wrong = gaps_mark_free(page, page->free);
  if (mi_unlikely(wrong != NULL)) gaps_note_wrong_free(theap, wrong);
  page->free = NULL;
  page->next = page->prev = NULL;
  gaps_map(page)->n_hollow = 0;
  if (gaps == NULL) gaps_let_go(theap, page, MI_PAGE_OWNED);
  else _mi_gap_list_enter_page(gaps, gaps_map(page));
  return gaps != NULL;
}

mi_gap_map_t* _mi_gaps_claimed(mi_page_t* page) {
  size_t i;
  if (_mi_gaps_is(page)) {
    gaps_mark_free(page, page->free);
    page->free = NULL;
    return gaps_map(page);
  }
  if (!_mi_gap_map_new(&i)) return NULL;
  _mi_queue_leave_home(NULL, page);
  gaps_make(page, i);
  return _mi_gap_map_at(i);
}

void _mi_gaps_share_claimed(mi_page_t* page) {
  gaps_let_go(NULL, page, MI_PAGE_CLAIMED);
}

void _mi_gaps_forget(mi_theap_t* theap) {
  if (theap->gaps != NULL) memset(theap->gaps, 0, sizeof(*theap->gaps));
}

void _mi_gaps_release(mi_theap_t* theap) {
  if (theap->gaps == NULL) return;
  mi_gap_map_t* map = theap->gaps->first;
  _mi_gaps_forget(theap);
  for (mi_gap_map_t* next; map != NULL; map = next) {
    next = map->next;
    gaps_let_go(theap, map->page, MI_PAGE_OWNED);
  }
}

// Its owner may have been making, adopting, cutting or joining: only the bits are sure.
bool _mi_gaps_orphan(mi_page_t* page) {
  page->next = page->prev = NULL;
  page->free = NULL;
  page->capacity = MI_GAP_CAPACITY;
  mi_store_relaxed(&page->block_size, 0u);
  _mi_page_set_used(page, gaps_recount(gaps_map(page)));
  return gaps_share(page, MI_PAGE_OWNED);
}
