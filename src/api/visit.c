// Visiting the blocks of heaps.  Layer: api.
//
// The visitor is called with a copy of what was found (heap/walk.h), without a lock: even if it allocates or frees, which
// it must not, nothing hangs and no list is lost.
#include <errno.h>

#include "../heap/free.h"
#include "../heap/view.h"
#include "../heap/check.h"
#include "../heap/heap_stats.h"
#include "../heap/thread.h"
#include "../heap/walk.h"
#include "../heap/warm.h"
#include "../support/message.h"
#include "../support/options.h"
#include "alloc.h"
#include "subproc.h"

// Which pages of those of a walk.
typedef enum visit_kind_e { VISIT_ALL, VISIT_THEAP, VISIT_ABANDONED } visit_kind_t;

typedef struct visit_s {
  visit_kind_t        kind;
  const mi_theap_t*   theap; // VISIT_THEAP
  int                 tag;   // of the heaps; -1: any
  bool                blocks;
  mi_block_visit_fun* visitor;
  void*               arg;
} visit_t;

static bool visit_is_abandoned(const mi_view_t* view) {
  return view->cls == MI_CLASS_NONE || view->is_shared || mi_load_relaxed(&view->home->thread) == NULL;
}

static bool visit_wants(const visit_t* v, const mi_view_t* view) {
  if (v->kind == VISIT_ALL) return true;
  if (v->kind == VISIT_ABANDONED) return visit_is_abandoned(view);
  return view->home == v->theap && !view->is_shared;
}

static mi_heap_area_t visit_area(const mi_view_t* view) {
  mi_heap_area_t area;
  size_t         block_size = mi_max(view->block_size, 1); // programs divide by it; a guarded block may have no bytes
  area.blocks = view->start;
  area.reserved = view->n_blocks * block_size;
  area.committed = view->n_made * block_size;
  area.used = view->n_live;
  area.block_size = view->usable_size;
  area.full_block_size = block_size;
#if MI_API_LEVEL < 3
  area.heap_tag = view->heap->tag;
#else
  area.reserved1 = NULL;
#endif
  return area;
}

// Each block of a gap page is an area of its own: there are blocks of several sizes.
static bool visit_gaps(const visit_t* v, const mi_view_t* view) {
  mi_heap_area_t area = visit_area(view);
  area.used = 1;
  for (size_t i = 0; i < view->n_blocks; i++) {
    if (!_mi_view_is_live(view, i)) continue;
    size_t size = _mi_view_block_size(view, i);
    area.blocks = view->start + i * view->block_size;
    area.reserved = area.committed = area.block_size = area.full_block_size = size;
    if (!v->visitor(view->heap, &area, NULL, size, v->arg)) return false;
    if (v->blocks && !v->visitor(view->heap, &area, area.blocks, size, v->arg)) return false;
  }
  return true;
}

static bool visit_page(const visit_t* v, const mi_view_t* view) {
  if (view->has_gaps) return visit_gaps(v, view);
  mi_heap_area_t area = visit_area(view);
  if (!v->visitor(view->heap, &area, NULL, area.block_size, v->arg)) return false;
  if (!v->blocks) return true;
  for (size_t i = 0; i < view->n_blocks; i++) {
    if (!_mi_view_is_live(view, i)) continue;
    void* block = view->start + i * view->block_size;
    if (MI_TAGS) block = _mi_prim_tag_pointer(block);
    if (!v->visitor(view->heap, &area, block, area.block_size, v->arg)) return false;
  }
  return true;
}

static bool visit_heap(mi_heap_t* heap, void* visit) {
  const visit_t* v = (const visit_t*)visit;
  mi_walk_t      walk = {heap, NULL, 0, 0, false, 0};
  mi_view_t      view;
  if (v->tag >= 0 && heap->tag != v->tag) return true;
  while (_mi_view_next(&walk, &view)) {
    if (!visit_wants(v, &view) || visit_page(v, &view)) continue;
    _mi_view_end(&walk);
    return false;
  }
  return true;
}

bool mi_heap_visit_blocks(mi_visited_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) {
  visit_t v = {VISIT_ALL, NULL, -1, visit_blocks, visitor, arg};
  return visitor != NULL && visit_heap(_mi_alloc_heap((mi_heap_t*)heap), &v);
}

bool mi_theap_visit_blocks(const mi_theap_t* theap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) {
  if (theap == NULL) theap = _mi_thread_theap();
  visit_t v = {VISIT_THEAP, theap, -1, visit_blocks, visitor, arg};
  return visitor != NULL && theap != NULL && visit_heap(_mi_theap_heap(theap), &v);
}

bool mi_heap_visit_abandoned_blocks(mi_heap_t* heap, bool visit_blocks, mi_block_visit_fun* visitor, void* arg) {
  visit_t v = {VISIT_ABANDONED, NULL, -1, visit_blocks, visitor, arg};
  _mi_warm_end_all();
  return visitor != NULL && visit_heap(_mi_alloc_heap(heap), &v);
}

bool mi_abandoned_visit_blocks(mi_subproc_id_t subproc_id, int heap_tag, bool visit_blocks, mi_block_visit_fun* visitor,
                               void* arg) {
  visit_t v = {VISIT_ABANDONED, NULL, heap_tag, visit_blocks, visitor, arg};
  if (!mi_option_is_enabled(mi_option_visit_abandoned)) {
    _mi_message_error(EFAULT, "blocks of threads that are gone can be visited with option visit_abandoned only\n");
    return false;
  }
  _mi_warm_end_all();
  return visitor != NULL && _mi_heap_visit(_mi_subproc_of_id(subproc_id), &visit_heap, &v);
}

// ---- moving data together -------------------------------------------------------------------------------------------

// The page that the class of the theap takes blocks from next; only for its own thread.
static const mi_page_t* visit_current_page(const mi_theap_t* theap, size_t cls) {
  return theap->classes[cls].queue.first;
}

// A gap page, which serves all classes, is not.
static bool visit_is_under_utilized(const mi_page_t* page, size_t perc_threshold) {
  if (_mi_page_kind(page) != MI_PAGE_BLOCKS) return false;
  size_t used = _mi_heap_stats_page_used(page);
  size_t capacity = page->capacity;
  return used < capacity && used * 100 <= mi_min(perc_threshold, 100) * capacity;
}

// What the program has just moved away from such pages lies in the bin: the next block would be one of those.
static void visit_drop_from_bin(mi_theap_t* theap, size_t cls, size_t perc_threshold) {
  mi_bin_t* bin = &theap->bins[cls];
  for (;;) {
    _mi_presence_enter(theap); // nobody takes the bin away meanwhile
    mi_page_t* page = (bin->head == NULL ? NULL : _mi_page_of(bin->head));
    if (page == NULL || page == visit_current_page(theap, cls) || !visit_is_under_utilized(page, perc_threshold)) break;
    _mi_free_slow(theap, page, _mi_theap_pop(theap, cls));
  }
  _mi_presence_leave(theap);
}

bool mi_unsafe_heap_page_is_under_utilized(mi_heap_t* heap, void* p, size_t perc_threshold) mi_attr_noexcept {
  mi_page_t* page = _mi_page_of(p);
  if (page == NULL || (heap != NULL && heap != _mi_heap_of(page))) return false;
  if (!visit_is_under_utilized(page, perc_threshold)) return false;
  mi_theap_t* home = mi_load_relaxed(&page->home);
  mi_theap_t* thread = _mi_theap_backing();
  if (home == NULL || thread == NULL || mi_load_relaxed(&home->thread) != thread) return true; // another thread's
  if (page == visit_current_page(home, page->cls)) return false;
  visit_drop_from_bin(home, page->cls, perc_threshold);
  return true;
}

bool mi_heap_check(mi_heap_t* heap) mi_attr_noexcept {
  return _mi_check(heap);
}
