// Pools: pages with room that nobody owns, by heap and size class.  A thread that needs a page looks here first.  Layer: heap.
//
// PO1  A page is in a pool of its heap, in the list of its class, while its word says SHARED, and until its claimer has taken it
//      out.
// PO2  `first` of a list may be read without the lock, as a hint whether the list is empty.
// PO3  The last list is that of gap pages (gaps.h), whatever their classes were.  They are adopted in the order in which they were
//      shared: one that had no room for its last owner is looked at again when all others were.
// PO4  The main heap has as many pools as theaps were made, up to MI_POOLS.  A page is shared in the pool of its home, gap pages in
//      the first.  A theap looks for a page in its own pool first, then in all others: threads that have enough pages of their
//      own do not meet.  A theap that is made while its thread forks uses the first pool, which that thread has locked with all others.
#pragma once

#include "heap.h"

#define MI_POOLS 32 // so many cache lines are looked at before a page is made; more theaps share them

// The pools of a heap: *n of them, which follow one another.
mi_pool_t* _mi_pool_all(mi_heap_t* heap, size_t* n);

// In which list of a pool the page is when it is shared.
static inline size_t _mi_pool_list_of(const mi_page_t* page) {
  return _mi_page_kind(page) == MI_PAGE_GAPS ? MI_POOL_GAPS : page->cls;
}

// Shares a page that the caller holds in state `held`.  False when others freed into it meanwhile: take the chain first.
bool _mi_pool_share(mi_page_t* page, mi_page_state_t held);

// Takes a page of the heap of `home` out of list i of a pool.  It is OWNED from now on, with that home, and its free blocks are in its
// plain fields.  NULL: there is none.
mi_page_t* _mi_pool_adopt(size_t i, mi_theap_t* home);

// Claims up to *n pages in the lists of that number of pool k of the main heap, of those that `wants` wants, which is told how many
// of their blocks are free; *n is less those.  They are linked by `next`, their free blocks counted.  NULL: none.
mi_page_t* _mi_pool_claim(size_t k, size_t i, bool (*wants)(const mi_page_t* page, size_t n_free), size_t* n);

// Takes out a page that the caller has claimed from SHARED.
void _mi_pool_remove(mi_page_t* page);

// The same, if the page is in a pool: for the child of a fork, when a thread that the child does not have had claimed the page.
void _mi_pool_forget(mi_page_t* page);

// Moves pages of the pool of a heap, whose lock the caller holds, to those of the main heap; `change` is called for each while
// nobody can find it.  At most *n_max pages, which is reduced by their number: if it is not 0 afterwards, the pool is empty.
void _mi_pool_hand_over(mi_heap_t* from, void (*change)(mi_heap_t* from, mi_page_t* page), size_t* n_max);

// How many pages are shared; the peak is the sum of the pools' own.  Neither takes the locks of the pools, as statistics
// take none elsewhere: a pool that counts at the moment of a reset may keep its total.
mi_stat_count_t _mi_pool_count(void);
void            _mi_pool_count_reset(void);

// Empties the pool of a heap, whose lock the caller holds, and leaves its pages to the caller.
void _mi_pool_clear(mi_heap_t* heap);

// All pools of the main heap.  Under the registry lock: no pool is added meanwhile.
void _mi_pool_lock_main(void);
void _mi_pool_unlock_main(void);
