// The life of heaps, and their lists of pages.  Layer: heap.  heap.h has the invariants.
#include "heap.h"

#include <string.h>

#include "../arena/space.h"
#include "../base/probe.h"
#include "../base/track.h"
#include "../page/padding.h"
#include "../support/stat.h"
#include "background.h"
#include "idle.h"
#include "large.h"
#include "pool.h"
#include "thread.h"

static mi_atomic(uint64_t) heap_last_id;

// How many pages change hands while locks are held.
#define HEAP_BATCH 64

static mi_heap_list_t heaps; // all but the main one; under the registry lock, as all that follows
static mi_heap_t*     heaps_unused;
static mi_subproc_t*  subprocs;        // all but the main one
static mi_subproc_t*  subprocs_unused; // theirs is the memory of a heap
static char*          heap_memory;     // where the next heap is made, and how many fit there
static size_t         heap_memory_left;

// ---- pages ----------------------------------------------------------------------------------------------------------

static void heap_link(mi_heap_t* heap, mi_page_t* page) {
  mi_page_heap_link_t* link = _mi_page_heap_link(page);
  link->next = heap->pages;
  link->prev = NULL;
  if (heap->pages != NULL) _mi_page_heap_link(heap->pages)->prev = page;
  heap->pages = page;
  heap->n_pages++;
  mi_store_release(&link->heap, heap);
}

// The caller says whose it is from now on (Q7).
static void heap_unlink(mi_heap_t* heap, mi_page_t* page) {
  mi_page_heap_link_t* link = _mi_page_heap_link(page);
  if (link->prev != NULL) _mi_page_heap_link(link->prev)->next = link->next;
  else heap->pages = link->next;
  if (link->next != NULL) _mi_page_heap_link(link->next)->prev = link->prev;
  heap->n_pages--;
}

static void heap_remove(mi_heap_t* heap, mi_page_t* page) {
  heap_unlink(heap, page);
  mi_store_relaxed(&_mi_page_heap_link(page)->heap, (mi_heap_t*)NULL);
}

bool _mi_heap_add_page(mi_heap_t* heap, mi_page_t* page) {
  if (heap == &_mi_heap_main) return true;
  if (!_mi_space_open_heap_links(_mi_page_region(page))) return false;
  _mi_lock_acquire(&heap->lock);
  bool is_live = _mi_heap_is_live(heap); // if it is, whoever ends it waits for this lock before he looks at its pages
  if (is_live) heap_link(heap, page);
  _mi_lock_release(&heap->lock);
  if (is_live) _mi_page_set(page, MI_PAGE_IN_HEAP);
  return true;
}

bool _mi_heap_add_page_beside(const mi_page_t* other, mi_page_t* page) {
  if (!_mi_space_open_heap_links(_mi_page_region(page))) return false;
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
  if (!_mi_page_is_mapped(page) && _mi_page_slice(page) >= _mi_page_region(page)->n_heap_links * MI_CHUNK_SLICES)
    return;
  mi_heap_t* heap = mi_load_relaxed(&_mi_page_heap_link(page)->heap);
  if (heap == NULL || heap == &_mi_heap_main) return;
  if (_mi_heap_is_live(heap)) heap_remove(heap, page);
  else mi_store_relaxed(&_mi_page_heap_link(page)->heap, (mi_heap_t*)NULL); // its neighbours may be other heaps' by now
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
  _mi_stat_increase(&_mi_stat_live.heaps, 1);
}

// Memory for a heap, all zero; caller holds the registry lock.
static mi_heap_t* heap_make(void) {
  mi_heap_t* heap = heaps_unused;
  if (heap != NULL) {
    heaps_unused = heap->links[0].next;
    heap->links[0].next = NULL;
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

static mi_heap_list_t* heap_list(mi_subproc_t* subproc, size_t order) {
  return order == MI_HEAP_OF_ALL ? &heaps : &subproc->heaps;
}

// At the end of its lists: it is the youngest.
static void heap_enlist(mi_heap_t* heap) {
  for (size_t i = 0; i < MI_HEAP_ORDERS; i++) {
    mi_heap_list_t* list = heap_list(heap->subproc, i);
    heap->links[i].next = NULL;
    heap->links[i].prev = list->last;
    if (list->last != NULL) list->last->links[i].next = heap;
    else list->first = heap;
    list->last = heap;
  }
}

static void heap_unlist(mi_heap_t* heap) {
  for (size_t i = 0; i < MI_HEAP_ORDERS; i++) {
    mi_heap_list_t* list = heap_list(heap->subproc, i);
    mi_heap_t *     next = heap->links[i].next, *prev = heap->links[i].prev;
    if (prev != NULL) prev->links[i].next = next;
    else list->first = next;
    if (next != NULL) next->links[i].prev = prev;
    else list->last = prev;
    heap->links[i].next = heap->links[i].prev = NULL;
  }
}

// Caller holds the registry lock.
static mi_heap_t* heap_make_in(mi_subproc_t* subproc, int tag, bool allow_destroy, size_t arena) {
  mi_heap_t* heap = heap_make();
  if (heap == NULL) return NULL;
  heap->tag = tag;
  heap->allow_destroy = allow_destroy;
  mi_store_relaxed(&heap->arena, arena);
  heap->subproc = subproc;
  mi_store_release(&heap->id, heap_new_id());
  heap_enlist(heap);
  _mi_stat_increase(&_mi_stat_live.heaps, 1);
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

static void heap_visits_skip(const mi_heap_t* heap);

// False when it is not in use: somebody was faster.  From then on no handle to it is valid.  Caller holds the registry
// lock.
static bool heap_end(mi_heap_t* heap) {
  if (!_mi_heap_is_live(heap)) return false;
  heap_visits_skip(heap);
  heap_unlist(heap);
  heap->n_users = 1;
  mi_store_release(&heap->id, (uint64_t)0);
  _mi_stat_decrease(&_mi_stat_live.heaps, 1);
  return true;
}

void _mi_heap_drop_user(mi_heap_t* heap) {
  if (--heap->n_users > 0) return;
  mi_assert_internal(heap->pages == NULL && heap->theaps == NULL && heap->vacant == NULL);
  heap->links[0].next = heaps_unused;
  heaps_unused = heap;
}

// The main heap's from then on: another thread may give it back at once.
static void heap_hand_over_page(mi_heap_t* heap, mi_page_t* page) {
  heap_unlink(heap, page);
  mi_store_release(&_mi_page_heap_link(page)->heap, &_mi_heap_main);
}

// Some of its pages; false when there are none left.  First those in the pools, each together with its place: whoever looks
// for a page in the pool of its heap must find it there.
static bool heap_hand_over_pages(mi_heap_t* heap) {
  size_t n = HEAP_BATCH;
  _mi_lock_acquire(&heap->lock);
  _mi_pool_hand_over(heap, &heap_hand_over_page, &n);
  for (; n > 0 && heap->pages != NULL; n--) heap_hand_over_page(heap, heap->pages);
  _mi_lock_release(&heap->lock);
  return n == 0;
}

// Calls `act` until it returns false, and lets others have the registry lock in between.
static void heap_do(bool (*act)(mi_heap_t* heap), mi_heap_t* heap) {
  bool goes_on;
  do {
    _mi_lock_acquire(&_mi_registry_lock);
    goes_on = act(heap);
    _mi_lock_release(&_mi_registry_lock);
  } while (goes_on);
}

static bool heap_drop_user(mi_heap_t* heap) {
  _mi_heap_drop_user(heap);
  return false;
}

// With the late lock, which keeps forks away: the child would take a heap that is half deleted for one that is half destroyed.
static bool heap_end_late(mi_heap_t* heap) {
  _mi_thread_lock_late(); // and the late theap
  _mi_lock_acquire(&_mi_registry_lock);
  bool ok = heap_end(heap);
  _mi_lock_release(&_mi_registry_lock);
  if (!ok) _mi_thread_unlock_late();
  return ok;
}

// A handler of a fork may have ended it, while all locks are held; those of heaps that are not listed are not given back later.
static void heap_unlock_ended(mi_heap_t* heap) {
  if (_mi_lock_is_forker()) _mi_lock_give_back(&heap->lock);
}

void _mi_heap_delete(mi_heap_t* heap) {
  MI_PROBE1(heap_delete, heap);
  _mi_lock_acquire(&_mi_idle_lock); // so that nobody takes from its theaps
  if (!heap_end_late(heap)) {
    _mi_lock_release(&_mi_idle_lock);
    return;
  }
  heap_do(&_mi_thread_retire_theaps, heap);
  while (heap_hand_over_pages(heap)) {
  }
  heap_do(&heap_drop_user, heap);
  _mi_thread_unlock_late();
  _mi_lock_release(&_mi_idle_lock);
  _mi_thread_drop_retired(); // our own
  heap_unlock_ended(heap);
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
    _mi_stat_decrease(&_mi_stat_live.pages_abandoned, 1);
  if (MI_TRACK) heap_untrack_page(page);
  mi_store_relaxed(&_mi_page_heap_link(page)->heap, (mi_heap_t*)NULL); // Q7
  _mi_page_set_used(page, 0);
  _mi_page_delete(page);
}

void _mi_heap_destroy(mi_heap_t* heap) {
  MI_PROBE1(heap_destroy, heap);
  _mi_lock_acquire(&_mi_idle_lock);
  if (!heap_end_late(heap)) {
    _mi_lock_release(&_mi_idle_lock);
    return;
  }
  heap_do(&_mi_thread_clear_theaps, heap);
  _mi_thread_unlock_late();
  _mi_lock_release(&_mi_idle_lock);
  _mi_lock_acquire(&heap->lock);
  mi_page_t* page = heap->pages;
  heap->pages = NULL;
  heap->n_pages = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) mi_store_relaxed(&heap->pools[cls].first, (mi_page_t*)NULL);
  _mi_lock_release(&heap->lock);
  while (page != NULL) {
    mi_page_t* next = _mi_page_heap_link(page)->next;
    heap_destroy_page(page);
    page = next;
  }
  heap_do(&_mi_thread_free_theaps, heap); // Q3: no page knows them any more
  heap_do(&heap_drop_user, heap);
  heap_unlock_ended(heap);
  _mi_background_freed();
}

// ---- all heaps ------------------------------------------------------------------------------------------------------

// Where visits go on: heaps may end meanwhile, and a visit may be left without notice, by longjmp.  So there is a fixed number of
// cursors, and when all are taken the oldest visit loses its own: it looks for each next heap from the first one.
#define HEAP_CURSORS 16

typedef struct heap_cursor_s {
  uint64_t        visit; // its number; 0: free
  mi_heap_t*      next;
  mi_heap_order_t order;
} heap_cursor_t;

static heap_cursor_t heap_cursors[HEAP_CURSORS];
static uint64_t      heap_n_visits;

typedef struct heap_visit_s {
  uint64_t        number;
  heap_cursor_t*  cursor; // its own as long as that has its number
  mi_subproc_t*   subproc;
  uint64_t        last_id; // of the last heap that was visited
  mi_heap_order_t order;
} heap_visit_t;

static void heap_visits_skip(const mi_heap_t* heap) {
  for (size_t i = 0; i < HEAP_CURSORS; i++) {
    heap_cursor_t* cursor = &heap_cursors[i];
    if (cursor->next == heap) cursor->next = heap->links[cursor->order].next;
  }
}

static void heap_visit_begin(heap_visit_t* visit, mi_subproc_t* subproc) {
  visit->order = (subproc == NULL ? MI_HEAP_OF_ALL : MI_HEAP_OF_SUBPROC);
  visit->subproc = subproc;
  visit->last_id = 0;
  visit->cursor = &heap_cursors[0];
  _mi_lock_acquire(&_mi_registry_lock);
  visit->number = ++heap_n_visits;
  for (size_t i = 1; i < HEAP_CURSORS; i++) {
    if (heap_cursors[i].visit < visit->cursor->visit) visit->cursor = &heap_cursors[i];
  }
  visit->cursor->visit = visit->number;
  visit->cursor->order = visit->order;
  visit->cursor->next = heap_list(subproc, visit->order)->first;
  _mi_lock_release(&_mi_registry_lock);
}

// The oldest heap that is younger than the last one.
static mi_heap_t* heap_visit_search(const heap_visit_t* visit) {
  mi_heap_t* heap = heap_list(visit->subproc, visit->order)->first;
  while (heap != NULL && mi_load_relaxed(&heap->id) <= visit->last_id) heap = heap->links[visit->order].next;
  return heap;
}

static mi_heap_t* heap_visit_next(heap_visit_t* visit) {
  _mi_lock_acquire(&_mi_registry_lock);
  heap_cursor_t* cursor = (visit->cursor->visit == visit->number ? visit->cursor : NULL);
  mi_heap_t*     heap = (cursor != NULL ? cursor->next : heap_visit_search(visit));
  if (heap != NULL) visit->last_id = mi_load_relaxed(&heap->id);
  if (cursor != NULL && heap != NULL) cursor->next = heap->links[visit->order].next;
  _mi_lock_release(&_mi_registry_lock);
  return heap;
}

static void heap_visit_end(const heap_visit_t* visit) {
  _mi_lock_acquire(&_mi_registry_lock);
  if (visit->cursor->visit == visit->number) memset(visit->cursor, 0, sizeof(*visit->cursor));
  _mi_lock_release(&_mi_registry_lock);
}

bool _mi_heap_visit(mi_subproc_t* subproc, bool (*visit)(mi_heap_t* heap, void* arg), void* arg) {
  heap_visit_t v;
  bool         goes_on = (subproc != NULL && subproc != &_mi_subproc_main) || visit(&_mi_heap_main, arg);
  if (!goes_on) return false;
  heap_visit_begin(&v, subproc);
  for (mi_heap_t* heap; goes_on && (heap = heap_visit_next(&v)) != NULL;) goes_on = visit(heap, arg);
  heap_visit_end(&v);
  return goes_on;
}

mi_heap_t* _mi_heap_next(const mi_heap_t* heap) {
  return heap == NULL ? heaps.first : heap->links[MI_HEAP_OF_ALL].next;
}

void _mi_heap_lock_all(void) {
  for (mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) _mi_lock_acquire(&heap->lock);
  _mi_pool_lock_main();
}

void _mi_heap_unlock_all(void) {
  _mi_pool_unlock_main();
  for (mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) _mi_lock_release(&heap->lock);
}

// ---- subprocesses ---------------------------------------------------------------------------------------------------

mi_subproc_t* _mi_subproc_current(void) {
  mi_theap_t* theap = _mi_theap_backing();
  if (theap == NULL && _mi_thread_theap() != NULL) theap = _mi_theap_backing();
  return theap == NULL ? &_mi_subproc_main : theap->subproc;
}

static void subproc_enlist(mi_subproc_t* subproc) {
  subproc->is_listed = true;
  subproc->prev = NULL;
  subproc->next = subprocs;
  if (subprocs != NULL) subprocs->prev = subproc;
  subprocs = subproc;
}

static void subproc_unlist(mi_subproc_t* subproc) {
  subproc->is_listed = false;
  if (subproc->prev != NULL) subproc->prev->next = subproc->next;
  else subprocs = subproc->next;
  if (subproc->next != NULL) subproc->next->prev = subproc->prev;
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
    if (subproc->main != NULL) {
      subproc_enlist(subproc);
    }
    else {
      subproc->next = subprocs_unused;
      subprocs_unused = subproc;
      subproc = NULL;
    }
  }
  _mi_lock_release(&_mi_registry_lock);
  return subproc;
}

// What is free has gone back when its threads ended, but for what threads past their exit have freed.
static bool subproc_is_empty(const mi_subproc_t* subproc) {
  for (const mi_heap_t* heap = subproc->heaps.first; heap != NULL; heap = heap->links[MI_HEAP_OF_SUBPROC].next) {
    if (heap->late != NULL) _mi_theap_release(heap->late);
    if (heap->n_pages > 0) return false;
  }
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
  bool ok = subproc->is_listed && subproc->n_threads == 0 && (destroy || subproc_is_empty(subproc));
  if (ok) subproc_unlist(subproc);
  _mi_lock_release(&_mi_registry_lock);
  _mi_thread_unlock_late();
  if (!ok) return false;
  while (subproc->heaps.first != NULL) {
    if (destroy) _mi_heap_destroy(subproc->heaps.first);
    else _mi_heap_delete(subproc->heaps.first);
  }
  _mi_lock_acquire(&_mi_registry_lock);
  subproc->main = NULL;
  subproc->next = subprocs_unused;
  subprocs_unused = subproc;
  _mi_lock_release(&_mi_registry_lock);
  return true;
}
