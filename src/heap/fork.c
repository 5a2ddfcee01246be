// Fork in a process with threads.  Layer: heap.
//
// F1  The forking thread holds all locks of the library, so the data that they guard is consistent in the child.  Fork handlers of the
//     program that were registered before ours run while the thread holds the locks, in parent and child, and may allocate: the locks let
//     that thread pass (prim/lock.h).
// F2  Other threads may have been within a slow path: the plain fields of their pages and their bins cannot be trusted.
//     The child forgets the free blocks there, and takes over only the pages: blocks that are freed from then on can be used.  (The parent
//     still has the free blocks, and in the child their memory is shared with the parent until it is written.)  Of `used` only this can
//     be trusted: it is never less than the number of blocks that the program has, so 0 means that a page is empty.  Of a gap page
//     the bits of a block can be trusted: they were set before the program had the block, and stay until it is freed (gaps.h, GP2).
// F3  Pages are taken over when the child first needs a new page: most children only exec.
// F4  A page that another thread was just making or giving back, or had CLAIMED, is completed or given up at once, before the child can
//     have threads that do the same.  There often is such a page, because threads wait at these points for the very locks that the
//     forking thread has taken.  At most the memory of one page for each thread is lost.
// F5  The kernel copies memory an OS page at a time while other threads run, and after F2 blocks count as made that were not.  So while a
//     thread forks, and in a child that lacks threads, no thread looks at the end of a block that is not its own (page/verify.h).
// F6  The only thread of a process takes no locks: the handler of a signal may fork, and the code that it has interrupted may hold a lock.
//     The child is in the same state as its parent, and goes on with that.
#include "fork.h"

#include "../arena/mapped.h"
#include "../arena/purge.h"
#include "../page/verify.h"
#include "../support/message.h"
#include "../support/stat.h"
#include "attach.h"
#include "background.h"
#include "ended.h"
#include "event.h"
#include "gaps.h"
#include "guard.h"
#include "idle.h"
#include "large.h"
#include "late.h"
#include "pool.h"
#include "profile.h"
#include "sampler.h"
#include "spare.h"
#include "subproc.h"
#include "vacant.h"
#include "warm.h"

#define FORK_SLICES_MAX 8 // of a page of blocks

mi_atomic(bool) _mi_fork_has_orphans;
mi_atomic(bool) _mi_fork_has_lost;

static mi_lock_t fork_adopt_lock; // one thread at a time takes over the pages of orphans
static uint32_t  fork_depth;      // forks by handlers of a fork; the forking thread's
static uint32_t  fork_n_lone;     // forks by the only thread, one within the other

static void fork_lock(void) {
  _mi_background_lock();
  _mi_lock_acquire(&fork_adopt_lock);
  _mi_lock_acquire(&_mi_idle_lock);
  _mi_ended_lock();
  _mi_late_lock();
  _mi_lock_acquire(&_mi_registry_lock);
  _mi_heap_lock_all();
  _mi_pool_lock_main();
  _mi_lock_acquire(&_mi_guard_lock);
  _mi_lock_acquire(&_mi_spare_lock);
  _mi_lock_acquire(&_mi_gap_map_lock);
  _mi_lock_acquire(&_mi_region_purge_lock);
  _mi_lock_acquire(&_mi_region_lock);
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  _mi_profile_lock();
  mi_store_relaxed(&_mi_verify_skips_others, true);
}

static void fork_unlock(void) {
  mi_store_relaxed(&_mi_verify_skips_others, mi_load_relaxed(&_mi_fork_has_lost));
  _mi_profile_unlock();
  _mi_lock_release(&_mi_mapped_slot_lock);
  _mi_lock_release(&_mi_region_lock);
  _mi_lock_release(&_mi_region_purge_lock);
  _mi_lock_release(&_mi_gap_map_lock);
  _mi_lock_release(&_mi_spare_lock);
  _mi_lock_release(&_mi_guard_lock);
  _mi_pool_unlock_main();
  _mi_heap_unlock_all();
  _mi_lock_release(&_mi_registry_lock);
  _mi_late_unlock();
  _mi_ended_unlock();
  _mi_lock_release(&_mi_idle_lock);
  _mi_lock_release(&fork_adopt_lock);
  _mi_background_unlock();
}

void _mi_fork_lock_all(void) {
  if (_mi_lock_is_forker()) {
    fork_depth++;
    return;
  }
  fork_lock();
  mi_store_relaxed(&_mi_lock_forker, _mi_lock_self());
}

void _mi_fork_unlock_all(void) {
  if (fork_depth > 0) {
    fork_depth--;
    return;
  }
  mi_store_relaxed(&_mi_lock_forker, (uintptr_t)0);
  fork_unlock();
}

// A pulse has ended while its thread forks (E3), which takes a lock.
static bool fork_is_lone(void) {
  const mi_theap_t* mine = _mi_theap_backing();
  return fork_n_lone > 0 || (_mi_prim_thread_is_alone() && (mine == NULL || !mine->watch.is_watched));
}

static void fork_prepare(void) {
  if (fork_is_lone()) fork_n_lone++;
  else _mi_fork_lock_all();
}

static void fork_parent(void) {
  if (fork_n_lone > 0) fork_n_lone--;
  else _mi_fork_unlock_all();
}

// Nobody knows how many slices it was to have, or whether they were given back already.
static void fork_lose_page(mi_page_t* page) {
  for (uint32_t i = 1; i < FORK_SLICES_MAX; i++) {
    if (_mi_page_kind(page + i) != MI_PAGE_INTERIOR || page[i].to_first != i) break;
    mi_store_relaxed(&page[i].kind, (uint8_t)MI_PAGE_NONE);
  }
  mi_store_relaxed(&page->kind, (uint8_t)MI_PAGE_NONE);
}

static void fork_delete_page(mi_page_t* page) {
  _mi_heap_forget_page(page);
  _mi_page_clear(page, MI_PAGE_IN_HEAP);
  _mi_page_set_used(page, 0);
  if (MI_TAGS) _mi_prim_tag_clear(_mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
  _mi_page_delete(page);
}

// F2: all blocks count as used, except those on the chain.
static void fork_adopt_page(mi_page_t* page) {
  page->free = NULL;
  page->next = page->prev = NULL;
  _mi_page_set_bin(page, (size_t)page->cls << MI_BIN_SHIFT); // it may have been in the middle of being drained
  _mi_page_clear(page, MI_PAGE_IS_FULL | MI_PAGE_IS_ZERO);
  page->extended = page->capacity;
  _mi_page_set_used(page, page->capacity);
  for (;;) {
    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_OWNED));
    if (_mi_page_used(page) == 0) {
      fork_delete_page(page);
      return;
    }
    if (page->free != NULL ? _mi_pool_share(page, MI_PAGE_OWNED) : _mi_page_word_park(&page->word)) return;
  }
}

// ---- at once --------------------------------------------------------------------------------------------------------

static void fork_settle_page(mi_page_t* page) {
  bool has_home = (mi_load_relaxed(&page->home) != NULL);
  bool has_size = (_mi_page_block_size(page) != 0);
  bool is_claimed = (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_CLAIMED);
  if (has_home && has_size && !is_claimed) return;
  if (!has_home && !has_size) {
    fork_lose_page(page); // in the middle of being made
  }
  else if (!has_home || !has_size || _mi_page_used(page) == 0) {
    fork_delete_page(page); // just made, or being given back
  }
  else {
    _mi_pool_forget(page);
    fork_adopt_page(page);
  }
}

// CLAIMED: its last block was freed.
static void fork_settle_gaps(mi_page_t* page) {
  if (_mi_page_word_state(mi_load_relaxed(&page->word)) != MI_PAGE_CLAIMED) return;
  _mi_pool_forget(page);
  _mi_gaps_lose(page);
  fork_delete_page(page);
}

static void fork_adopt_gaps(mi_page_t* page) {
  if (_mi_gaps_orphan(page)) return;
  _mi_gaps_unmake(page);
  fork_delete_page(page);
}

static void fork_for_page(mi_page_t* page, void (*act)(mi_page_t* page)) {
  if (_mi_page_kind(page) != MI_PAGE_NONE && _mi_page_kind(page) != MI_PAGE_INTERIOR) act(page);
}

static void fork_for_pages(void (*act)(mi_page_t* page)) {
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    size_t             n_slices = (region->base == 0 ? 0 : region->n_used * MI_CHUNK_SLICES);
    for (size_t slice = 0; slice < n_slices; slice++)
      fork_for_page((mi_page_t*)_mi_region_descriptor(region, slice), act);
  }
  for (void* page = NULL; (page = _mi_mapped_slot_next(page)) != NULL;) fork_for_page((mi_page_t*)page, act);
}

// CLAIMED: just made, being given back, or kept by its thread for its next request.
static void fork_settle_large(mi_page_t* page) {
  mi_theap_t* mine = _mi_theap_backing();
  bool        is_claimed = (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_CLAIMED);
  if (!is_claimed || (mine != NULL && _mi_kept_has(&mine->kept, page))) return;
  if (_mi_page_has(page, MI_PAGE_GUARDED)) {
    // It stays CLAIMED when it is free, and its run has a record; if it was between two states that is lost.
    _mi_heap_forget_page(page);
    _mi_page_clear(page, MI_PAGE_IN_HEAP);
  }
  else {
    _mi_large_forget(page);
  }
}

static void fork_settle(mi_page_t* page) {
  if (_mi_page_kind(page) == MI_PAGE_BLOCKS) fork_settle_page(page);
  else if (_mi_page_kind(page) == MI_PAGE_LARGE) fork_settle_large(page);
  else if (_mi_gaps_is(page)) fork_settle_gaps(page);
}

// ---- numbers --------------------------------------------------------------------------------------------------------

static void fork_count_page(mi_page_t* page) {
  mi_page_state_t state = _mi_page_word_state(mi_load_relaxed(&page->word));
  int64_t         bytes = (int64_t)(page->n_slices * MI_SLICE_SIZE);
  if (_mi_page_kind(page) == MI_PAGE_LARGE) {
    if (state != MI_PAGE_CLAIMED) _mi_stat_restore(&_mi_stat_live.malloc_huge, bytes);
    return;
  }
  const mi_heap_t* heap = _mi_heap_of(page);
  bool             is_others = (heap != NULL && heap != &_mi_heap_main && _mi_heap_is_live(heap)); // pool.c: pool_count
  _mi_stat_restore(&_mi_stat_live.pages, 1);
  _mi_stat_restore(&_mi_stat_live.page_committed, bytes);
  if (state == MI_PAGE_SHARED && is_others) _mi_stat_restore(&_mi_stat_live.pages_abandoned, 1);
}

// Lost threads have counted what they had not made or given back yet, and the other way round: what there is is counted anew.
static void fork_count_pages(void) {
  mi_store_relaxed(&_mi_stat_live.malloc_huge.current, (int64_t)0);
  mi_store_relaxed(&_mi_stat_live.pages.current, (int64_t)0);
  mi_store_relaxed(&_mi_stat_live.page_committed.current, (int64_t)0);
  mi_store_relaxed(&_mi_stat_live.pages_abandoned.current, (int64_t)0);
  fork_for_pages(&fork_count_page);
}

// The same for what counts towards limits.  Where memory only grows it is counted under a lock that the forking thread had.
static void fork_count_used(void) {
  mi_mapped_sum_t mapped;
  _mi_mapped_get_sum(&mapped);
  if (MI_PRIM_VIRTUAL) _mi_limit_set_used(&_mi_limit_process, _mi_slices_n_counted() * MI_SLICE_SIZE + mapped.size);
}

// What was kept has been given back.  By a theap that nobody has, too: others may have pushed to it as its thread ended.
static void fork_forget_kept(mi_theap_t* theap, void* mine) {
  if (theap != mine) _mi_kept_forget(&theap->kept);
}

static void fork_add_kept(mi_theap_t* theap, void* sum) {
  *(size_t*)sum += mi_load_relaxed(&theap->kept.n_allowed) + theap->grown.n_slices;
}

// Threads that are lost may have been changing these numbers.
static void fork_count_kept(const mi_theap_t* mine) {
  size_t n = 0;
  _mi_registry_visit(&fork_add_kept, &n);
  _mi_purge_set_kept(n, mine == NULL ? 0 : mine->kept.n_room);
}

static void fork_orphan(mi_theap_t* theap, void* mine) {
  if (mi_load_relaxed(&theap->thread) == mine || !_mi_theap_is_live(theap) || mi_load_relaxed(&theap->is_late)) return;
  mi_store_relaxed(&theap->is_live, false);
  _mi_stat_decrease(&_mi_stat_live.theaps, 1);
  theap->is_orphan = true;
  mi_store_relaxed(&theap->revoked, (uint32_t)MI_THEAP_FREE);
  if (mi_load_relaxed(&_mi_fork_has_orphans)) return;
  mi_store_relaxed(&_mi_fork_has_orphans, true);
  mi_fetch_add_relaxed(&_mi_event_pending, MI_EVENT_ORPHANS);
}

// Did a thread that the child does not have touch pages?  Some only free, without a theap: before their first allocation, or past their
// exit.  And if the forking thread has no theap, the first one that has is another one.
static bool fork_had_others(const mi_theap_t* mine) {
  return mi_load_relaxed(&_mi_registry_has_others) || mi_load_relaxed(&_mi_registry_n_threads) > (mine != NULL ? 1 : 0);
}

// Of all threads the child has one.
static void fork_count_threads(const mi_theap_t* mine) {
  size_t n = (mine != NULL ? 1 : 0);
  mi_store_relaxed(&_mi_registry_n_threads, n);
  _mi_stat_decrease(&_mi_stat_live.threads, mi_load_relaxed(&_mi_stat_live.threads.current) - (int64_t)n);
}

static void fork_child_lone(void) {
  fork_n_lone--;
  _mi_background_after_lone_fork();
  _mi_trace_after_fork();
}

static void fork_child_of_many(void) {
  mi_theap_t* mine = _mi_theap_backing();
  bool        had_others = fork_had_others(mine);
  bool        has_to_settle = (had_others || _mi_prim_thread_watched() > 0);
  if (had_others) mi_store_relaxed(&_mi_fork_has_lost, true);
  fork_depth = 0;
  _mi_background_after_fork();
  _mi_fork_unlock_all();
  _mi_message_after_fork();
  _mi_trace_after_fork();
  if (mine != NULL && mi_load_relaxed(&mine->kept.is_taken) != 0)
    _mi_kept_forget(&mine->kept); // by a thread that is lost
  if (has_to_settle) {
    _mi_spare_forget();
    fork_for_pages(&fork_settle);
    fork_count_pages();
    fork_count_used();
    _mi_registry_visit(&fork_forget_kept, mine);
    fork_count_kept(mine);
  }
  _mi_warm_forget();
  _mi_registry_visit(&fork_orphan, mine);
  _mi_event_after_fork(_mi_sampler_reasons(), mi_load_relaxed(&_mi_fork_has_orphans));
  fork_count_threads(mine);
  _mi_ended_after_fork(mine);
  _mi_subproc_after_fork(mine == NULL ? NULL : mine->subproc);
}

static void fork_child(void) {
  if (fork_n_lone > 0) fork_child_lone();
  else fork_child_of_many();
  _mi_stat_after_fork();
}

int _mi_fork_init(void) {
  return _mi_prim_fork_init(&fork_prepare, &fork_parent, &fork_child);
}

// ---- when memory is needed ------------------------------------------------------------------------------------------

// Pages of orphans, and those of heaps that another thread was destroying.  Nobody adopts before we are done, so the order
// of home and word does not matter.
static void fork_adopt(mi_page_t* page) {
  mi_heap_t* heap = _mi_heap_of(page);
  bool       is_dead = (heap == NULL || !_mi_heap_is_live(heap));
  if (_mi_page_kind(page) == MI_PAGE_LARGE) {
    if (is_dead) _mi_large_discard(page);
    return;
  }
  const mi_theap_t* home = mi_load_relaxed(&page->home);
  bool              is_owned = (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_OWNED);
  bool              is_orphan = (home != NULL && home->is_orphan && is_owned);
  if (_mi_gaps_is(page)) {
    if (is_orphan) fork_adopt_gaps(page);
    return;
  }
  if (is_dead || (is_orphan && _mi_page_used(page) == 0)) fork_delete_page(page);
  else if (is_orphan) fork_adopt_page(page);
}

static void fork_reuse(mi_theap_t* theap, void* arg) {
  (void)arg;
  if (theap->is_orphan) _mi_attach_forget(theap);
  if (theap->heap != NULL && !_mi_heap_is_live(theap->heap)) _mi_vacant_set_unused(theap);
}

mi_cold void _mi_fork_adopt_all(void) {
  _mi_lock_acquire(&fork_adopt_lock);
  if (mi_load_relaxed(&_mi_fork_has_orphans)) {
    fork_for_pages(&fork_adopt);
    _mi_registry_visit(&fork_reuse, NULL);
    mi_store_relaxed(&_mi_fork_has_orphans, false);
    mi_fetch_sub_relaxed(&_mi_event_pending, MI_EVENT_ORPHANS);
  }
  _mi_lock_release(&fork_adopt_lock);
}
