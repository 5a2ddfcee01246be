// Attaching theaps to threads, and detaching them.  Layer: heap.
#include "attach.h"

#include <string.h>

#include "../base/probe.h"
#include "../support/stat.h"
#include "drain.h"
#include "event.h"
#include "gaps.h"
#include "grow.h"
#include "large.h"
#include "quarantine.h"
#include "queue.h"
#include "sampler.h"
#include "spare.h"
#include "vacant.h"

// Adds a theap to those of its thread, or to the retired ones, and takes it out.
static void attach_link(mi_theap_t** list, mi_theap_t* theap) {
  theap->in_thread.next = *list;
  theap->in_thread.at = list;
  if (*list != NULL) (*list)->in_thread.at = &theap->in_thread.next;
  *list = theap;
}

static void attach_unlink(mi_theap_t* theap) {
  *theap->in_thread.at = theap->in_thread.next;
  if (theap->in_thread.next != NULL) theap->in_thread.next->in_thread.at = theap->in_thread.at;
}

// ---- attaching --------------------------------------------------------------------------------------------------------

static mi_theap_t* attach_make(mi_heap_t* heap) {
  mi_theap_t* theap = _mi_registry_new_theap();
  if (theap == NULL) return NULL;
  mi_store_relaxed(&theap->heap, heap);
  _mi_vacant_link(&heap->theaps, theap);
  return theap;
}

mi_theap_t* _mi_attach_new(mi_heap_t* heap, mi_theap_t* backing) {
  mi_theap_t* theap = _mi_vacant_get(heap, false);
  if (theap == NULL) theap = attach_make(heap);
  if (theap == NULL) theap = _mi_vacant_get(heap, true);
  if (theap == NULL) return NULL;
  _mi_theap_init(theap);
  theap->heap_id = mi_load_relaxed(&heap->id);
  theap->has_deleted = false;
  mi_store_relaxed(&theap->thread, backing != NULL ? backing : theap);
  mi_store_release(&theap->is_live,
                   true); // release: a round may look at it from here on, before its thread has entered it
  _mi_stat_increase(&_mi_stat_live.theaps, 1);
  return theap;
}

void _mi_attach_remember(mi_theap_t* backing, uint64_t id, mi_theap_t* theap) {
  mi_theap_cached_t* cached = &backing->cache[id % MI_THEAP_CACHE_SIZE];
  cached->id = id;
  cached->theap = theap;
}

mi_theap_t* _mi_attach_find(mi_theap_t* backing, mi_heap_t* heap) {
  uint64_t    id = mi_load_relaxed(&heap->id);
  mi_theap_t* theap = (id == MI_HEAP_MAIN_ID ? backing : _mi_directory_find(&backing->directory, id));
  if (theap != NULL) _mi_attach_remember(backing, id, theap);
  return theap;
}

mi_theap_t* _mi_attach(mi_theap_t* backing, mi_heap_t* heap) {
  uint64_t id = mi_load_relaxed(&heap->id);
  if (id == 0) return NULL;
  mi_theap_t* theap = _mi_attach_find(backing, heap);
  if (theap != NULL) return theap;
  if (!_mi_directory_reserve(&backing->directory)) return NULL;
  theap = _mi_attach_new(heap, backing);
  if (theap == NULL) return NULL;
  attach_link(&backing->in_thread.next, theap);
  _mi_directory_add(&backing->directory, id, theap);
  _mi_attach_remember(backing, id, theap);
  return theap;
}

// ---- detaching --------------------------------------------------------------------------------------------------------

static void attach_set_vacant(mi_theap_t* theap) {
  mi_store_relaxed(&theap->thread, (mi_theap_t*)NULL);
  theap->in_thread.next = NULL;
  theap->in_thread.at = NULL;
  mi_store_relaxed(&theap->is_live, false);
  mi_store_relaxed(&theap->is_late, false);
  theap->is_orphan = false;
  _mi_vacant_put(theap);
  if (theap->ended != NULL) _mi_heap_drop_user(theap->ended);
  theap->ended = NULL;
}

// What a thread begins with: its theap of the main heap of its subprocess; or without memory for that, its backing theap.
static mi_theap_t* attach_main(mi_theap_t* backing) {
  mi_theap_t* theap = _mi_attach(backing, backing->subproc->main);
  return theap == NULL ? backing : theap;
}

void _mi_attach_end(mi_theap_t* theap) {
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  if (thread != NULL && thread != theap) {
    attach_unlink(theap);
    _mi_directory_remove(&thread->directory, theap->heap_id);
    if (_mi_theap_default == theap) _mi_theap_default = attach_main(thread);
  }
  _mi_stat_decrease(&_mi_stat_live.theaps, 1);
  _mi_sampler_reset(theap);
  attach_set_vacant(theap);
}

void _mi_attach_release(mi_theap_t* theap) {
  if (MI_HARDENED) _mi_quarantine_flush(theap);
  _mi_sampler_disarm(theap);
  _mi_presence_enter(theap);
  _mi_drain_end_all(theap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    if (theap->bins[cls].head != NULL) _mi_outbox_return_bin(theap, cls);
  }
  _mi_outbox_flush(theap);
  _mi_grow_undo_all(theap);
  _mi_queue_release_all(theap);
  _mi_gaps_release(theap);
  _mi_presence_leave(theap);
  _mi_large_drop_kept(theap);
}

// Lets go of a theap of the thread: of a retired one, or (`any`) of any but the backing theap.  False: there is none.
static bool attach_end_one(mi_theap_t* backing, bool any) {
  _mi_lock_acquire(&_mi_registry_lock);
  mi_theap_t* theap = backing->retired;
  if (theap == NULL && any) theap = backing->in_thread.next;
  if (theap != NULL) {
    _mi_attach_release(theap);
    _mi_attach_end(theap);
  }
  _mi_lock_release(&_mi_registry_lock);
  return theap != NULL;
}

void _mi_attach_drop_retired(void) {
  mi_theap_t* backing = _mi_theap_backing();
  if (backing == NULL || !mi_load_relaxed(&backing->has_retired)) return;
  mi_store_relaxed(&backing->has_retired, false); // first: another may be retired meanwhile
  while (attach_end_one(backing, false)) {
  }
  _mi_event_freed();
}

void _mi_attach_end_others(mi_theap_t* backing) {
  while (attach_end_one(backing, true)) {
  }
}

void _mi_attach_detach(mi_theap_t* backing) {
  MI_PROBE1(thread_exit, backing);
  if (backing->subproc != &_mi_heap_subproc_main) mi_fetch_sub_relaxed(&backing->subproc->n_threads, 1);
  _mi_directory_clear(&backing->directory);
  memset(backing->cache, 0, sizeof(backing->cache));
  mi_store_relaxed(&backing->has_retired, false);
}

void _mi_attach_count_ended(void) {
  _mi_stat_decrease(&_mi_stat_live.threads, 1);
  mi_fetch_sub_relaxed(&_mi_registry_n_threads, 1);
}

void _mi_attach_end_thread(mi_theap_t* backing) {
  _mi_attach_release(backing);
  _mi_attach_end_others(backing);
  _mi_lock_acquire(&_mi_registry_lock);
  _mi_attach_detach(backing);
  _mi_attach_end(backing);
  _mi_lock_release(&_mi_registry_lock);
  _mi_attach_count_ended();
}

void _mi_attach_collect(void) {
  mi_theap_t* backing = _mi_theap_backing();
  if (backing == NULL) return;
  _mi_attach_drop_retired();
  _mi_attach_release(backing);
  const mi_directory_t* directory = &backing->directory;
  for (size_t i = 0; directory->n > 0 && i < (size_t)1 << directory->shift; i++) {
    if (directory->entries[i].id == 0) continue;
    _mi_lock_acquire(&_mi_registry_lock); // so that it is not being cleared; but one at a time
    _mi_attach_release(directory->entries[i].theap);
    _mi_lock_release(&_mi_registry_lock);
  }
  _mi_spare_drop_all();
}

// ---- by others --------------------------------------------------------------------------------------------------------

void _mi_attach_retire(mi_theap_t* theap) {
  mi_heap_t* heap = _mi_theap_heap(theap);
  _mi_vacant_unlink(theap);
  _mi_vacant_link(_mi_theap_is_live(theap) || theap->is_orphan ? &_mi_heap_main.theaps : &_mi_heap_main.vacant, theap);
  mi_store_release(&theap->heap, &_mi_heap_main);
  if (!_mi_theap_is_live(theap)) return;
  mi_theap_t* thread = mi_load_relaxed(&theap->thread);
  theap->ended = heap;
  heap->n_users++;
  attach_unlink(theap);
  attach_link(&thread->retired, theap);
  mi_store_relaxed(&thread->has_retired, true);
}

static void attach_lose_bins(mi_theap_t* theap) {
  _mi_sampler_forget(theap); // it may have the bins
  mi_store_relaxed(&theap->is_closed, false);
  _mi_grow_undo_all(theap);
  memset(theap->bins, 0, sizeof(theap->bins));
  memset(theap->classes, 0, sizeof(theap->classes));
  memset(theap->drains, 0, sizeof(theap->drains));
  _mi_gaps_forget(theap);
}

void _mi_attach_clear(mi_theap_t* theap) {
  if (theap->is_orphan) {
    _mi_attach_forget(theap);
    return;
  }
  attach_lose_bins(theap);
  _mi_theap_init(theap);
  if (mi_load_relaxed(&theap->is_late) || mi_load_relaxed(&theap->thread) == _mi_theap_backing()) _mi_attach_end(theap);
  else _mi_attach_retire(theap);
}

void _mi_attach_forget(mi_theap_t* theap) {
  attach_lose_bins(theap);
  memset(theap->outbox, 0, sizeof(theap->outbox));
  _mi_kept_forget(&theap->kept); // lost, as its bins are
  mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_OUTSIDE);
  memset(theap->cache, 0, sizeof(theap->cache));
  _mi_directory_clear(&theap->directory);
  theap->retired = NULL;
  mi_store_relaxed(&theap->has_retired, false);
  attach_set_vacant(theap);
}
