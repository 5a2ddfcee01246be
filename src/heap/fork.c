// Fork in a process with threads.  Layer: heap.
//
// F1  The forking thread holds all our locks, so the child finds everything that they guard whole.
// F2  Other threads may have been within a slow path: the plain fields of their pages and their bins cannot be trusted.
//     The child forgets the free blocks that it finds there (its parent still has them; in the child that memory is
//     shared with the parent until written), and takes only the pages: what is freed from then on can be used.
//     A page that another thread had CLAIMED at that moment is lost to the child: at most one per thread.
// F3  Pages are taken over when the child first needs a new page: most children only exec.
#include "fork.h"

#include "../arena/purge.h"
#include "../support/message.h"
#include "../support/stat.h"
#include "guard.h"
#include "heap.h"
#include "pool.h"
#include "thread.h"

mi_atomic(bool) _mi_fork_has_orphans;
bool            _mi_fork_is_child;

static mi_lock_t fork_adopt_lock; // one thread at a time takes over; taken before all other locks

void _mi_fork_lock_all(void) {
  _mi_lock_acquire(&fork_adopt_lock);
  _mi_thread_lock_late();
  _mi_lock_acquire(&_mi_registry_lock);
  _mi_heap_lock_all();
  _mi_lock_acquire(&_mi_guard_lock);
  _mi_lock_acquire(&_mi_purge_lock);
  _mi_lock_acquire(&_mi_arena_lock);
}

void _mi_fork_unlock_all(void) {
  _mi_lock_release(&_mi_arena_lock);
  _mi_lock_release(&_mi_purge_lock);
  _mi_lock_release(&_mi_guard_lock);
  _mi_heap_unlock_all();
  _mi_lock_release(&_mi_registry_lock);
  _mi_thread_unlock_late();
  _mi_lock_release(&fork_adopt_lock);
}

static void fork_orphan(mi_theap_t* theap, void* mine) {
  if (mi_load_relaxed(&theap->thread) == mine || !theap->is_live || theap->is_late) return;
  theap->is_live = false;
  _mi_stat_decrease(&_mi_stats.theaps, 1);
  theap->is_orphan = true;
  mi_store_relaxed(&theap->revoked, 0);
  if (mi_load_relaxed(&_mi_fork_has_orphans)) return;
  mi_store_relaxed(&_mi_fork_has_orphans, true);
  mi_fetch_add_relaxed(&_mi_theap_notices, 1);
}

static void fork_child(void) {
  _mi_fork_is_child = true;
  _mi_purge_after_fork();
  _mi_fork_unlock_all();
  _mi_message_after_fork();
  mi_theap_t* mine = _mi_theap_backing();
  _mi_thread_visit_theaps(&fork_orphan, mine);
  mi_store_relaxed(&_mi_thread_count, mine != NULL ? 1 : 0);
  _mi_subproc_after_fork(mine == NULL ? NULL : mine->subproc);
}

void _mi_fork_init(void) {
  _mi_prim_fork_init(&_mi_fork_lock_all, &_mi_fork_unlock_all, &fork_child);
}

// F2: all blocks count as used, but for those on the chain.
static void fork_adopt_page(mi_page_t* page) {
  page->free = NULL;
  page->next = page->prev = NULL;
  _mi_page_clear(page, MI_PAGE_IS_FULL | MI_PAGE_IS_ZERO);
  page->extended = page->capacity;
  _mi_page_set_used(page, page->capacity);
  for (;;) {
    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_OWNED));
    if (_mi_page_used(page) == 0) {
      _mi_heap_delete_page(page);
      return;
    }
    if (page->free != NULL ? _mi_pool_share(page, MI_PAGE_OWNED) : _mi_page_word_park(&page->word)) return;
  }
}

static void fork_adopt_region(mi_region_t* region) {
  size_t n_slices = region->n_used * MI_CHUNK_SLICES;
  for (size_t i = 0; i < n_slices; i++) {
    mi_page_t* page = (mi_page_t*)_mi_region_descriptor(region, i);
    if (_mi_page_kind(page) != MI_PAGE_BLOCKS) continue;
    mi_theap_t* home = mi_load_relaxed(&page->home); // nobody adopts before we are done, so the order does not matter
    if (home == NULL || !home->is_orphan) continue;
    if (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_OWNED) fork_adopt_page(page);
  }
}

static void fork_reuse(mi_theap_t* theap, void* arg) {
  (void)arg;
  if (theap->is_orphan) _mi_theap_forget(theap);
}

void _mi_fork_adopt_orphans(void) {
  _mi_lock_acquire(&fork_adopt_lock);
  if (mi_load_relaxed(&_mi_fork_has_orphans)) {
    for (size_t i = 0; i < _mi_region_count(); i++) {
      if (_mi_regions[i].base != 0 && !_mi_regions[i].is_single) fork_adopt_region(&_mi_regions[i]);
    }
    _mi_thread_visit_theaps(&fork_reuse, NULL);
    mi_store_relaxed(&_mi_fork_has_orphans, false);
    mi_fetch_sub_relaxed(&_mi_theap_notices, 1);
  }
  _mi_lock_release(&fork_adopt_lock);
}
