// Counting pages and blocks.  Layer: heap.
#include "heap_stats.h"

#include <string.h>

#include "bin.h"
#include "gaps.h"
#include "grow.h"
#include "idle.h"
#include "sampler.h"
#include "walk.h"

size_t _mi_heap_stats_page_used(const mi_page_t* page) {
  uint64_t        word = mi_load_acquire(&((mi_page_t*)page)->word);
  mi_page_state_t state = _mi_page_word_state(word);
  size_t          count = _mi_page_word_chain(word).count; // of a page without an owner, all free blocks
  size_t          cls = _mi_size_class_of(_mi_page_block_size(page));
  bool            is_owned = (state != MI_PAGE_SHARED && state != MI_PAGE_PARKED);
  size_t          used = (is_owned ? _mi_page_used(page) : _mi_page_capacity(page, &_mi_size_class_info[cls]));
  return used - mi_min(count, used);
}

// Linked blocks of a gap page, which others have freed: its bits call them blocks.
static mi_may_race void stats_take_off_gaps(mi_heap_stats_t* stats, const mi_page_t* page, mi_chain_t frees) {
  const mi_block_t* block = frees.first;
  for (size_t size, n = mi_min(frees.count, MI_GAP_UNITS); block != NULL && n > 0; n--, block = _mi_block_peek(block)) {
    if (_mi_page_at(block) != page || (size = _mi_gaps_size(page, block)) == 0) return;
    mi_class_stat_t* c = &stats->classes[_mi_size_class_of(size)];
    c->n_blocks_used -= mi_min(1, c->n_blocks_used);
  }
}

static void stats_add_gaps(mi_heap_stats_t* stats, const mi_page_t* page) {
  size_t size;
  for (size_t at = 0; _mi_gaps_next(page, &at, &size); at += size / MI_GAP_UNIT)
    stats->classes[_mi_size_class_of(size)].n_blocks_used++;
  stats_take_off_gaps(stats, page, _mi_gaps_chain(page));
  stats->n_pages++;
  stats->n_page_bytes += MI_SLICE_SIZE;
  if (_mi_page_word_state(mi_load_relaxed(&((mi_page_t*)page)->word)) == MI_PAGE_SHARED) stats->n_pages_shared++;
}

static void stats_add_page(mi_heap_stats_t* stats, const mi_page_t* page) {
  size_t block_size = _mi_page_block_size(page);
  if (block_size == 0) return; // it is being given back
  size_t           cls = _mi_size_class_of(block_size);
  mi_class_stat_t* c = &stats->classes[cls];
  c->n_pages++;
  c->n_blocks_used += _mi_heap_stats_page_used(page);
  stats->n_pages++;
  stats->n_page_bytes += _mi_size_class_info[cls].n_slices * MI_SLICE_SIZE;
  if (_mi_page_word_state(mi_load_relaxed(&((mi_page_t*)page)->word)) == MI_PAGE_SHARED) stats->n_pages_shared++;
}

// It may be resized just now.
static mi_may_race size_t stats_large_bytes(const mi_page_t* page) {
  return page->n_slices * MI_SLICE_SIZE;
}

// ---- bins and outboxes ----------------------------------------------------------------------------------------------

// No further than a bin can be long: if its thread runs, a link may be what the program has written there meanwhile.
static size_t stats_bin_max(size_t cls) {
  return mi_max(_mi_size_class_info[cls].capacity, _mi_grow_limit_max(cls));
}

static mi_may_race size_t stats_count_bin(const mi_block_t* block, size_t cls) {
  size_t n = 0;
  for (; block != NULL && n < stats_bin_max(cls) && _mi_bin_page_of(block, cls) != NULL; n++)
    block = _mi_block_peek(block);
  return n;
}

// n blocks of the page of a slice, which may be just being given back, are not used.
static void stats_take_off_page(mi_heap_stats_t* stats, const mi_page_t* slice, size_t n) {
  size_t block_size = (slice == NULL ? 0 : _mi_page_block_size(slice));
  if (block_size == 0) return;
  mi_class_stat_t* c = &stats->classes[_mi_size_class_of(block_size)];
  c->n_blocks_used -= mi_min(n, c->n_blocks_used);
}

// Blocks on their way back to a page.
static mi_may_race void stats_take_off_batch(mi_heap_stats_t* stats, const mi_batch_t* batch) {
  const mi_page_t* page = batch->page;
  mi_chain_t       frees = {batch->first, batch->count};
  if (page != NULL && _mi_gaps_is(page)) stats_take_off_gaps(stats, page, frees);
  else stats_take_off_page(stats, page, frees.count);
}

// What is in a bin, and what a round has taken from it.  The bin's own count (H7) is used where it is one: it is off by no more
// than what its thread does just now.
static mi_may_race size_t stats_in_bin(const mi_theap_t* theap, size_t cls) {
  int32_t           slots = theap->bins[cls].slots;
  int32_t           n_counted = theap->classes[cls].book.total - slots;
  const mi_drain_t* drain = _mi_theap_drain(theap, cls);
  size_t            n = 0;
  if (slots < 0) n = stats_count_bin(theap->bins[cls].head, cls);
  else if (n_counted > 0) n = mi_min((size_t)n_counted, stats_bin_max(cls));
  n += stats_count_bin(theap->returns[cls].head, cls);
  if (theap->sampler != NULL) n += stats_count_bin(theap->sampler->bins[cls].head, cls);
  n += stats_count_bin(drain->bin.head, cls) + stats_count_bin(_mi_bin_taken(theap, &drain->bin, &drain->book), cls);
  return n + stats_count_bin(_mi_bin_taken(theap, &theap->bins[cls], &theap->classes[cls].book), cls);
}

static mi_may_race void stats_take_off_theap(mi_heap_stats_t* stats, const mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    mi_class_stat_t* c = &stats->classes[cls];
    c->n_blocks_used -= mi_min(stats_in_bin(theap, cls), c->n_blocks_used);
  }
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) stats_take_off_batch(stats, &theap->outbox[i]);
}

// Its blocks are of the main heap, whichever heap the thread has that freed them.
static mi_may_race void stats_take_off_quarantine(mi_heap_stats_t* stats, const mi_theap_t* theap) {
  for (size_t i = 0; i < MI_QUARANTINE_SIZE; i++) {
    const mi_block_t* block = theap->quarantine.blocks[i];
    if (block != NULL) stats_take_off_page(stats, _mi_page_at(block), 1);
  }
}

// ---- all of it ------------------------------------------------------------------------------------------------------

bool _mi_heap_stats(mi_heap_stats_t* stats, const mi_heap_t* heap, const mi_subproc_t* subproc) {
  mi_walk_t walk = {heap, subproc, 0, 0, false, 0};
  memset(stats, 0, sizeof(*stats));
  if (!_mi_idle_look_begin()) return false;
  for (mi_page_t* page; (page = _mi_walk_next(&walk)) != NULL;) {
    if (_mi_page_kind(page) == MI_PAGE_LARGE) {
      stats->n_large++;
      stats->n_large_bytes += stats_large_bytes(page);
    }
    else if (_mi_gaps_is(page)) {
      stats_add_gaps(stats, page);
    }
    else {
      stats_add_page(stats, page);
    }
  }
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    if (!_mi_theap_is_live(theap)) continue;
    if (_mi_walk_wants(&walk, _mi_theap_heap(theap))) stats_take_off_theap(stats, theap);
    if (MI_HARDENED && _mi_walk_wants(&walk, &_mi_heap_main)) stats_take_off_quarantine(stats, theap);
  }
  _mi_idle_look_end();
  return true;
}

// ---- what theaps count ----------------------------------------------------------------------------------------------

static mi_atomic(uint64_t) stats_counts_before[MI_THEAP_COUNTS]; // at the last reset

static uint64_t stats_sum(mi_theap_count_t what) {
  uint64_t sum = 0;
  for (mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    sum += mi_load_relaxed(&theap->counts[what]);
  }
  return sum;
}

// A reset by another thread may have seen more than this sum.
int64_t _mi_heap_stats_counted(mi_theap_count_t what) {
  int64_t n = (int64_t)(stats_sum(what) - mi_load_relaxed(&stats_counts_before[what]));
  return n < 0 ? 0 : n;
}

void _mi_heap_stats_reset(void) {
  for (int i = 0; i < MI_THEAP_COUNTS; i++) {
    mi_store_relaxed(&stats_counts_before[i], stats_sum((mi_theap_count_t)i));
  }
}

// ---- heaps and theaps -----------------------------------------------------------------------------------------------

size_t _mi_heap_stats_count(const mi_subproc_t* subproc, const mi_heap_t* heap, size_t* n_theaps) {
  const mi_walk_t walk = {heap, subproc, 0, 0, false, 0};
  size_t          n = (subproc == &_mi_heap_subproc_main);
  *n_theaps = 0;
  _mi_lock_acquire(&_mi_registry_lock);
  for (const mi_heap_t* h = subproc->heaps.first; h != NULL; h = h->links[MI_HEAP_OF_SUBPROC].next) n++;
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    if (_mi_theap_is_live(theap) && _mi_walk_wants(&walk, _mi_theap_heap(theap))) ++*n_theaps;
  }
  _mi_lock_release(&_mi_registry_lock);
  return n;
}
