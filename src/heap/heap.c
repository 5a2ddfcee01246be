// The life of heaps, and their lists of pages.  Layer: heap.  heap.h has the invariants.
#include "heap.h"

#include <string.h>

#include "../arena/purge.h"
#include "../base/probe.h"
#include "../base/track.h"
#include "../page/padding.h"
#include "../support/stat.h"
#include "large.h"
#include "pool.h"
#include "thread.h"

static mi_atomic(uint64_t) heap_last_id;

static mi_heap_t*    heaps_unused;    // under the registry lock, as all that follows
static mi_subproc_t* subprocs_unused; // theirs is the memory of a heap
static char*         heap_memory;     // where the next heap is made, and how many fit there
static size_t        heap_memory_left;

// ---- pages ----------------------------------------------------------------------------------------------------------

static void heap_link(mi_heap_t* heap, mi_page_t* page) {
  mi_page_owner_t* owner = _mi_page_owner(page);
  owner->next = heap->pages;
  owner->prev = NULL;
  if (heap->pages != NULL) _mi_page_owner(heap->pages)->prev = page;
  heap->pages = page;
  heap->n_pages++;
  mi_store_release(&owner->heap, heap);
}

// The caller says whose it is from now on (Q7).
static void heap_unlink(mi_heap_t* heap, mi_page_t* page) {
  mi_page_owner_t* owner = _mi_page_owner(page);
  if (owner->prev != NULL) _mi_page_owner(owner->prev)->next = owner->next;
  else heap->pages = owner->next;
  if (owner->next != NULL) _mi_page_owner(owner->next)->prev = owner->prev;
  heap->n_pages--;
}

static void heap_remove(mi_heap_t* heap, mi_page_t* page) {
  heap_unlink(heap, page);
  mi_store_relaxed(&_mi_page_owner(page)->heap, (mi_heap_t*)NULL);
}

bool _mi_heap_add_page(mi_heap_t* heap, mi_page_t* page) {
  if (heap == &_mi_heap_main) return true;
  if (!_mi_region_open_owners(_mi_page_region(page))) return false;
  _mi_lock_acquire(&heap->lock);
  heap_link(heap, page);
  _mi_lock_release(&heap->lock);
  _mi_page_set(page, MI_PAGE_IN_HEAP);
  return true;
}

bool _mi_heap_add_page_beside(const mi_page_t* other, mi_page_t* page) {
  if (!_mi_region_open_owners(_mi_page_region(page))) return false;
  for (mi_heap_t* heap; (heap = _mi_page_heap(other)) != &_mi_heap_main;) {
    _mi_lock_acquire(&heap->lock);
    bool is_still = (_mi_page_heap(other) == heap); // Q2
    if (is_still) heap_link(heap, page);
    _mi_lock_release(&heap->lock);
    if (!is_still) continue;
    _mi_page_set(page, MI_PAGE_IN_HEAP);
    break;
  }
  return true;
}

size_t _mi_page_arena(const mi_page_t* page) {
  if (!_mi_page_has(page, MI_PAGE_IN_HEAP)) return MI_ARENA_ANY;
  _mi_lock_acquire(&_mi_registry_lock); // so its heap does not end
  size_t arena = mi_load_relaxed(&_mi_page_heap(page)->arena);
  _mi_lock_release(&_mi_registry_lock);
  return arena;
}

void _mi_heap_remove_page(mi_page_t* page) {
  mi_heap_t* heap = _mi_page_heap(page);
  while (heap != &_mi_heap_main) {
    _mi_lock_acquire(&heap->lock);
    mi_heap_t* now = _mi_page_heap(page); // Q2
    if (now == heap) heap_remove(heap, page);
    _mi_lock_release(&heap->lock);
    if (now == heap) return;
    heap = now;
  }
}

void _mi_heap_forget_page(mi_page_t* page) {
  const mi_region_t* region = _mi_page_region(page);
  if (!region->is_single && _mi_page_slice(page) >= region->n_owned * MI_CHUNK_SLICES) return;
  mi_heap_t* heap = mi_load_relaxed(&_mi_page_owner(page)->heap);
  if (heap == NULL || heap == &_mi_heap_main) return;
  if (_mi_heap_is_live(heap)) heap_remove(heap, page);
  else mi_store_relaxed(&_mi_page_owner(page)->heap, (mi_heap_t*)NULL); // its neighbours may be other heaps' by now
}

// ---- making ---------------------------------------------------------------------------------------------------------

mi_heap_t    _mi_heap_main;
mi_subproc_t _mi_subproc_main;

static uint64_t heap_new_id(void) {
  return mi_fetch_add_relaxed(&heap_last_id, 1) + 1;
}

void _mi_heap_init(void) {
  _mi_subproc_main.main = &_mi_heap_main;
  _mi_heap_main.subproc = &_mi_subproc_main;
  mi_store_release(&_mi_heap_main.id, heap_new_id()); // MI_HEAP_MAIN_ID
  _mi_stat_increase(&_mi_stats.heaps, 1);
}

// Memory for a heap, all zero; caller holds the registry lock.
static mi_heap_t* heap_make(void) {
  mi_heap_t* heap = heaps_unused;
  if (heap != NULL) {
    heaps_unused = heap->next;
    heap->next = NULL;
    return heap;
  }
  if (heap_memory_left == 0) {
    mi_run_t run = _mi_slices_alloc(1, 1, MI_CHUNK_META, MI_ARENA_ANY);
    if (run.region == NULL) return NULL;
    heap_memory = _mi_region_slice_start(run.region, run.slice);
    heap_memory_left = MI_SLICE_SIZE / sizeof(mi_heap_t);
    if (MI_TRACK) mi_track_readable(heap_memory, MI_SLICE_SIZE);
    if (!run.is_zero) memset(heap_memory, 0, MI_SLICE_SIZE);
  }
  heap = (mi_heap_t*)(void*)heap_memory;
  heap_memory += sizeof(mi_heap_t);
  heap_memory_left--;
  return heap;
}

// Caller holds the registry lock.
static mi_heap_t* heap_make_in(mi_subproc_t* subproc, int tag, bool allow_destroy, size_t arena) {
  mi_heap_t* heap = heap_make();
  if (heap == NULL) return NULL;
  heap->tag = tag;
  heap->allow_destroy = allow_destroy;
  mi_store_relaxed(&heap->arena, arena);
  heap->subproc = subproc;
  heap->next = subproc->heaps;
  subproc->heaps = heap;
  mi_store_release(&heap->id, heap_new_id());
  _mi_stat_increase(&_mi_stats.heaps, 1);
  return heap;
}

mi_heap_t* _mi_heap_new(int tag, bool allow_destroy, size_t arena) {
  mi_subproc_t* subproc = _mi_subproc_current(); // first: it may have to set up the process
  _mi_lock_acquire(&_mi_registry_lock);
  mi_heap_t* heap = heap_make_in(subproc, tag, allow_destroy, arena);
  _mi_lock_release(&_mi_registry_lock);
  MI_PROBE2(heap_new, heap, tag);
  return heap;
}

// ---- ending ---------------------------------------------------------------------------------------------------------

// False when it is not in use: somebody was faster.  From then on no handle to it is valid.  Caller holds the registry
// lock.
static bool heap_end(mi_heap_t* heap) {
  if (!_mi_heap_is_live(heap)) return false;
  mi_heap_t** at = &heap->subproc->heaps;
  while (*at != heap) at = &(*at)->next;
  *at = heap->next;
  heap->next = NULL;
  mi_store_release(&heap->id, (uint64_t)0);
  _mi_stat_decrease(&_mi_stats.heaps, 1);
  return true;
}

// Caller holds the registry lock.
static void heap_recycle(mi_heap_t* heap) {
  mi_assert_internal(heap->pages == NULL && heap->theaps == NULL);
  heap->next = heaps_unused;
  heaps_unused = heap;
}

// The main heap's from then on: another thread may give it back at once.
static void heap_hand_over_page(mi_heap_t* heap, mi_page_t* page) {
  heap_unlink(heap, page);
  mi_store_release(&_mi_page_owner(page)->heap, &_mi_heap_main);
}

// First those in the pools, each together with its place: whoever looks for a page in the pool of its heap must find it
// there.
static void heap_hand_over_pages(mi_heap_t* heap) {
  _mi_lock_acquire(&heap->lock);
  _mi_pool_hand_over(heap, &heap_hand_over_page);
  while (heap->pages != NULL) heap_hand_over_page(heap, heap->pages);
  _mi_lock_release(&heap->lock);
}

void _mi_heap_delete(mi_heap_t* heap) {
  MI_PROBE1(heap_delete, heap);
  _mi_thread_lock_late(); // releases the late theap, and keeps it away
  _mi_lock_acquire(&_mi_registry_lock);
  if (heap_end(heap)) {
    _mi_thread_retire_theaps(heap);
    heap_hand_over_pages(heap);
    heap_recycle(heap);
  }
  _mi_lock_release(&_mi_registry_lock);
  _mi_thread_unlock_late();
  _mi_thread_drop_retired(); // our own
}

// Tools are told of each block that goes with its heap.
static void heap_untrack_page(mi_page_t* page) {
  size_t size = _mi_page_block_size(page);
  for (size_t i = 0; i < page->capacity; i++) {
    void* p = _mi_page_block(page, i);
    if (_mi_padding_is_whole(p, size)) mi_track_unblock(p);
    if (_mi_padding_is_whole(p, size)) _mi_padding_retire(p, size);
  }
  mi_track_closed(_mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
}

// Nobody else has rights on the page any more.
static void heap_destroy_page(mi_page_t* page) {
  if (_mi_page_kind(page) == MI_PAGE_LARGE) {
    _mi_large_discard(page);
    return;
  }
  if (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_SHARED)
    _mi_stat_decrease(&_mi_stats.pages_abandoned, 1);
  if (MI_TRACK) heap_untrack_page(page);
  mi_store_relaxed(&_mi_page_owner(page)->heap, (mi_heap_t*)NULL); // Q7
  _mi_page_set_used(page, 0);
  _mi_page_delete(page);
}

void _mi_heap_destroy(mi_heap_t* heap) {
  MI_PROBE1(heap_destroy, heap);
  _mi_thread_lock_late();
  _mi_lock_acquire(&_mi_registry_lock);
  bool ok = heap_end(heap);
  if (ok) _mi_thread_clear_theaps(heap);
  _mi_lock_release(&_mi_registry_lock);
  _mi_thread_unlock_late();
  if (!ok) return;
  _mi_lock_acquire(&heap->lock);
  mi_page_t* page = heap->pages;
  heap->pages = NULL;
  heap->n_pages = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) mi_store_relaxed(&heap->pools[cls].first, (mi_page_t*)NULL);
  _mi_lock_release(&heap->lock);
  while (page != NULL) {
    mi_page_t* next = _mi_page_owner(page)->next;
    heap_destroy_page(page);
    page = next;
  }
  _mi_lock_acquire(&_mi_registry_lock);
  _mi_thread_free_theaps(heap); // Q3: no page knows them any more
  heap_recycle(heap);
  _mi_lock_release(&_mi_registry_lock);
  _mi_purge_schedule(false);
}

// ---- all heaps ------------------------------------------------------------------------------------------------------

static mi_subproc_t* subprocs; // all but the main one; under the registry lock

// The oldest heap of the subprocess (NULL: of any) that is younger than `id`, which becomes its id.  Ids begin with that of
// the main heap; the main heap of a subprocess is older than its others.
static mi_heap_t* heap_younger(const mi_subproc_t* subproc, uint64_t* id) {
  mi_heap_t* found = NULL;
  uint64_t   found_id = UINT64_MAX;
  if (*id < MI_HEAP_MAIN_ID && (subproc == NULL || subproc == &_mi_subproc_main)) {
    *id = MI_HEAP_MAIN_ID;
    return &_mi_heap_main;
  }
  _mi_lock_acquire(&_mi_registry_lock);
  for (const mi_subproc_t* s = &_mi_subproc_main; s != NULL; s = (s == &_mi_subproc_main ? subprocs : s->next)) {
    if (subproc != NULL && s != subproc) continue;
    for (mi_heap_t* heap = s->heaps; heap != NULL; heap = heap->next) {
      uint64_t heap_id = mi_load_relaxed(&heap->id);
      if (heap_id <= *id || heap_id >= found_id) continue;
      found = heap;
      found_id = heap_id;
    }
  }
  _mi_lock_release(&_mi_registry_lock);
  *id = found_id;
  return found;
}

bool _mi_heap_visit(const mi_subproc_t* subproc, bool (*visit)(mi_heap_t* heap, void* arg), void* arg) {
  uint64_t id = 0;
  for (mi_heap_t* heap; (heap = heap_younger(subproc, &id)) != NULL;) {
    if (!visit(heap, arg)) return false;
  }
  return true;
}

// The first heap of this or a later subprocess.
static mi_heap_t* heap_first_from(const mi_subproc_t* subproc) {
  for (; subproc != NULL; subproc = (subproc == &_mi_subproc_main ? subprocs : subproc->next)) {
    if (subproc->heaps != NULL) return subproc->heaps;
  }
  return NULL;
}

mi_heap_t* _mi_heap_next(const mi_heap_t* heap) {
  if (heap == NULL) return heap_first_from(&_mi_subproc_main);
  if (heap->next != NULL) return heap->next;
  return heap_first_from(heap->subproc == &_mi_subproc_main ? subprocs : heap->subproc->next);
}

static void heap_lock_in(mi_subproc_t* subproc, bool lock) {
  for (mi_heap_t* heap = subproc->heaps; heap != NULL; heap = heap->next) {
    if (lock) _mi_lock_acquire(&heap->lock);
    else _mi_lock_release(&heap->lock);
  }
}

void _mi_heap_lock_all(void) {
  heap_lock_in(&_mi_subproc_main, true);
  for (mi_subproc_t* s = subprocs; s != NULL; s = s->next) heap_lock_in(s, true);
  _mi_pool_lock_main();
}

void _mi_heap_unlock_all(void) {
  _mi_pool_unlock_main();
  for (mi_subproc_t* s = subprocs; s != NULL; s = s->next) heap_lock_in(s, false);
  heap_lock_in(&_mi_subproc_main, false);
}

// ---- subprocesses ---------------------------------------------------------------------------------------------------

mi_subproc_t* _mi_subproc_current(void) {
  mi_theap_t* theap = _mi_theap_backing();
  if (theap == NULL && _mi_thread_theap() != NULL) theap = _mi_theap_backing();
  return theap == NULL ? &_mi_subproc_main : theap->subproc;
}

mi_subproc_t* _mi_subproc_new(void) {
  if (_mi_subproc_current() == NULL) return NULL;
  _mi_lock_acquire(&_mi_registry_lock);
  mi_subproc_t* subproc = subprocs_unused;
  if (subproc != NULL) subprocs_unused = subproc->next;
  else subproc = (mi_subproc_t*)(void*)heap_make();
  mi_static_assert(sizeof(mi_subproc_t) <= sizeof(mi_heap_t), "a subprocess takes the memory of a heap");
  if (subproc != NULL) {
    memset((void*)subproc, 0, sizeof(*subproc));
    subproc->main = heap_make_in(subproc, 0, true, MI_ARENA_ANY);
    mi_subproc_t** list = (subproc->main == NULL ? &subprocs_unused : &subprocs);
    subproc->next = *list;
    *list = subproc;
    if (subproc->main == NULL) subproc = NULL;
  }
  _mi_lock_release(&_mi_registry_lock);
  return subproc;
}

// What is free has gone back when its threads ended, but for what threads past their exit have freed.
static bool subproc_is_empty(const mi_subproc_t* subproc) {
  for (const mi_heap_t* heap = subproc->heaps; heap != NULL; heap = heap->next) {
    if (heap->late != NULL) _mi_theap_release(heap->late);
    if (heap->n_pages > 0) return false;
  }
  return true;
}

// Caller holds the late lock and the registry lock.
static bool subproc_unlist(mi_subproc_t* subproc, bool destroy) {
  mi_subproc_t** at = &subprocs;
  while (*at != NULL && *at != subproc) at = &(*at)->next;
  if (*at == NULL || subproc->n_threads > 0 || (!destroy && !subproc_is_empty(subproc))) return false;
  *at = subproc->next;
  return true;
}

void _mi_subproc_after_fork(mi_subproc_t* mine) {
  for (mi_subproc_t* subproc = subprocs; subproc != NULL; subproc = subproc->next) {
    subproc->n_threads = (subproc == mine);
  }
}

bool _mi_subproc_end(mi_subproc_t* subproc, bool destroy) {
  _mi_thread_lock_late();
  _mi_lock_acquire(&_mi_registry_lock);
  bool ok = subproc_unlist(subproc, destroy);
  _mi_lock_release(&_mi_registry_lock);
  _mi_thread_unlock_late();
  if (!ok) return false;
  while (subproc->heaps != NULL) {
    if (destroy) _mi_heap_destroy(subproc->heaps);
    else _mi_heap_delete(subproc->heaps);
  }
  _mi_lock_acquire(&_mi_registry_lock);
  subproc->main = NULL;
  subproc->next = subprocs_unused;
  subprocs_unused = subproc;
  _mi_lock_release(&_mi_registry_lock);
  return true;
}
