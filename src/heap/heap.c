// Lists of heaps and of their pages.  Layer: heap.  heap.h has the invariants.
#include "heap.h"

#include <string.h>

#include "../base/probe.h"
#include "../arena/space.h"
#include "../support/stat.h"
#include "meta.h"

mi_heap_t    _mi_heap_main;
mi_subproc_t _mi_heap_subproc_main;

static mi_atomic(uint64_t) heap_last_id;

static mi_heap_list_t heaps; // all but the main one; under the registry lock, as all that follows
static mi_heap_t*     heaps_unused;
static mi_slab_t      heap_slab;

// ---- pages ----------------------------------------------------------------------------------------------------------

static size_t heap_page_size(const mi_page_t* page) {
  return page->n_slices * MI_SLICE_SIZE;
}

// Of the pages in its list.
static void heap_count_guarded(mi_heap_t* heap, const mi_page_t* page, size_t n) {
  if (_mi_page_has(page, MI_PAGE_GUARDED)) mi_store_relaxed(&heap->n_guarded, mi_load_relaxed(&heap->n_guarded) + n);
}

// The caller has counted it.
static void heap_link(mi_heap_t* heap, mi_page_t* page) {
  mi_page_heap_link_t* link = _mi_page_heap_link(page);
  link->next = heap->pages;
  link->prev = NULL;
  if (heap->pages != NULL) _mi_page_heap_link(heap->pages)->prev = page;
  heap->pages = page;
  heap->n_pages++;
  heap_count_guarded(heap, page, 1);
  mi_store_release(&link->heap, heap);
}

// The caller says whose it is from now on (Q7).
static void heap_unlink(mi_heap_t* heap, mi_page_t* page) {
  mi_page_heap_link_t* link = _mi_page_heap_link(page);
  if (link->prev != NULL) _mi_page_heap_link(link->prev)->next = link->next;
  else heap->pages = link->next;
  if (link->next != NULL) _mi_page_heap_link(link->next)->prev = link->prev;
  heap->n_pages--;
  heap_count_guarded(heap, page, (size_t)-1);
  _mi_limit_remove(&heap->limit, heap_page_size(page));
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
  bool is_within = !is_live || _mi_limit_add(&heap->limit, heap_page_size(page), 0);
  if (is_live && is_within) heap_link(heap, page);
  _mi_lock_release(&heap->lock);
  if (is_live && is_within) _mi_page_set(page, MI_PAGE_IN_HEAP);
  return is_within;
}

bool _mi_heap_add_page_beside(const mi_page_t* other, mi_page_t* page) {
  if (!_mi_space_open_heap_links(_mi_page_region(page))) return false;
  for (mi_heap_t* heap; (heap = _mi_heap_of(other)) != &_mi_heap_main;) {
    _mi_lock_acquire(&heap->lock);
    bool is_still = (_mi_heap_of(other) == heap); // Q2
    if (is_still) {
      _mi_limit_force(&heap->limit, heap_page_size(page));
      heap_link(heap, page);
    }
    _mi_lock_release(&heap->lock);
    if (!is_still) continue;
    _mi_page_set(page, MI_PAGE_IN_HEAP);
    break;
  }
  return true;
}

bool _mi_heap_ask_limit(mi_heap_t* heap, size_t n) {
  return _mi_limit_ask(&heap->limit, n * MI_SLICE_SIZE); // it is counted when it is there
}

bool _mi_heap_may_grow(const mi_page_t* page, size_t n) {
  return _mi_heap_may_take(_mi_heap_of(page), n - mi_min(n, page->n_slices));
}

void _mi_heap_resize_page(mi_page_t* page, size_t n) {
  for (mi_heap_t* heap; (heap = _mi_heap_of(page)) != &_mi_heap_main;) {
    _mi_lock_acquire(&heap->lock);
    bool is_still = (_mi_heap_of(page) == heap); // Q2
    if (is_still) {
      _mi_limit_force(&heap->limit, n * MI_SLICE_SIZE);
      _mi_limit_remove(&heap->limit, heap_page_size(page));
      page->n_slices = (uint32_t)n;
    }
    _mi_lock_release(&heap->lock);
    if (is_still) return;
  }
  page->n_slices = (uint32_t)n;
}

size_t _mi_heap_arena_of(const mi_page_t* page) {
  if (!_mi_page_has(page, MI_PAGE_IN_HEAP)) return MI_ARENA_ANY;
  _mi_lock_acquire(&_mi_registry_lock); // so its heap does not end
  size_t arena = mi_load_relaxed(&_mi_heap_of(page)->arena);
  _mi_lock_release(&_mi_registry_lock);
  return arena;
}

void _mi_heap_remove_page(mi_page_t* page) {
  mi_heap_t* heap = _mi_heap_of(page);
  while (heap != &_mi_heap_main) {
    _mi_lock_acquire(&heap->lock);
    mi_heap_t* now = _mi_heap_of(page); // Q2
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

static uint64_t heap_new_id(void) {
  return mi_fetch_add_relaxed(&heap_last_id, 1) + 1;
}

void _mi_heap_init(void) {
  _mi_heap_subproc_main.main = &_mi_heap_main;
  _mi_heap_main.subproc = &_mi_heap_subproc_main;
  _mi_limit_init(&_mi_heap_main.limit);
  mi_store_release(&_mi_heap_main.id, heap_new_id()); // MI_HEAP_MAIN_ID
  _mi_stat_increase(&_mi_stat_live.heaps, 1);
}

// Memory for a heap, all zero; caller holds the registry lock.
static mi_heap_t* heap_make(void) {
  mi_heap_t* heap = heaps_unused;
  if (heap == NULL) return (mi_heap_t*)_mi_meta_carve(&heap_slab, sizeof(mi_heap_t));
  heaps_unused = heap->links[0].next;
  heap->links[0].next = NULL;
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

mi_heap_t* _mi_heap_new(mi_subproc_t* subproc, int tag, bool allow_destroy, size_t arena) {
  mi_heap_t* heap = heap_make();
  if (heap == NULL) return NULL;
  heap->tag = tag;
  heap->allow_destroy = allow_destroy;
  mi_store_relaxed(&heap->arena, arena);
  heap->subproc = subproc;
  _mi_limit_init(&heap->limit);
  _mi_lock_begin(&heap->lock);
  mi_store_release(&heap->id, heap_new_id());
  heap_enlist(heap);
  _mi_stat_increase(&_mi_stat_live.heaps, 1);
  MI_PROBE2(heap_new, heap, tag);
  return heap;
}

// ---- ending ---------------------------------------------------------------------------------------------------------

static void heap_visits_skip(const mi_heap_t* heap);

bool _mi_heap_retire(mi_heap_t* heap) {
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

void _mi_heap_hand_over_page(mi_heap_t* heap, mi_page_t* page) {
  heap_unlink(heap, page);
  mi_store_release(&_mi_page_heap_link(page)->heap, &_mi_heap_main);
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

static bool heap_visit_begin(heap_visit_t* visit, mi_subproc_t* subproc) {
  visit->order = (subproc == NULL ? MI_HEAP_OF_ALL : MI_HEAP_OF_SUBPROC);
  visit->subproc = subproc;
  visit->last_id = 0;
  visit->cursor = &heap_cursors[0];
  if (!_mi_lock_look(&_mi_registry_lock)) return false;
  visit->number = ++heap_n_visits;
  for (size_t i = 1; i < HEAP_CURSORS; i++) {
    if (heap_cursors[i].visit < visit->cursor->visit) visit->cursor = &heap_cursors[i];
  }
  visit->cursor->visit = visit->number;
  visit->cursor->order = visit->order;
  visit->cursor->next = heap_list(subproc, visit->order)->first;
  _mi_lock_release(&_mi_registry_lock);
  return true;
}

// The oldest heap that is younger than the last one.
static mi_heap_t* heap_visit_search(const heap_visit_t* visit) {
  mi_heap_t* heap = heap_list(visit->subproc, visit->order)->first;
  while (heap != NULL && mi_load_relaxed(&heap->id) <= visit->last_id) heap = heap->links[visit->order].next;
  return heap;
}

static mi_heap_t* heap_visit_next(heap_visit_t* visit) {
  if (!_mi_lock_look(&_mi_registry_lock)) return NULL;
  heap_cursor_t* cursor = (visit->cursor->visit == visit->number ? visit->cursor : NULL);
  mi_heap_t*     heap = (cursor != NULL ? cursor->next : heap_visit_search(visit));
  if (heap != NULL) visit->last_id = mi_load_relaxed(&heap->id);
  if (cursor != NULL && heap != NULL) cursor->next = heap->links[visit->order].next;
  _mi_lock_release(&_mi_registry_lock);
  return heap;
}

static void heap_visit_end(const heap_visit_t* visit) {
  if (!_mi_lock_look(&_mi_registry_lock)) return;
  if (visit->cursor->visit == visit->number) memset(visit->cursor, 0, sizeof(*visit->cursor));
  _mi_lock_release(&_mi_registry_lock);
}

bool _mi_heap_visit(mi_subproc_t* subproc, bool (*visit)(mi_heap_t* heap, void* arg), void* arg) {
  heap_visit_t v;
  bool         goes_on = (subproc != NULL && subproc != &_mi_heap_subproc_main) || visit(&_mi_heap_main, arg);
  if (!goes_on) return false;
  if (!heap_visit_begin(&v, subproc)) return true; // at the end of the process (prim/lock.h)
  for (mi_heap_t* heap; goes_on && (heap = heap_visit_next(&v)) != NULL;) goes_on = visit(heap, arg);
  heap_visit_end(&v);
  return goes_on;
}

mi_heap_t* _mi_heap_next(const mi_heap_t* heap) {
  return heap == NULL ? heaps.first : heap->links[MI_HEAP_OF_ALL].next;
}

void _mi_heap_lock_all(void) {
  for (mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) _mi_lock_acquire(&heap->lock);
}

void _mi_heap_unlock_all(void) {
  for (mi_heap_t* heap = NULL; (heap = _mi_heap_next(heap)) != NULL;) _mi_lock_release(&heap->lock);
}

// ---- subprocesses ---------------------------------------------------------------------------------------------------
