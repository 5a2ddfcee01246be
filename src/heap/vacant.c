// Getting theaps from those that nobody has, and finding out which of them are no home.  Layer: heap.
#include "vacant.h"

#include <string.h>

#include "walk.h"

// A round begins when there are so many theaps (1 MiB), and at each theap goes on by so many slices, in about 20 us, or
// theaps.
#define VACANT_ROUND_MIN 128
#define VACANT_SLICES    4096
#define VACANT_THEAPS    64

typedef enum vacant_phase_e { VACANT_AT_REST, VACANT_MARKS, VACANT_SORTS } vacant_phase_t;

static mi_theap_t* vacant_unused; // those that serve no heap

static uint64_t vacant_n_put; // how often a theap became vacant

static vacant_phase_t vacant_phase;
static uint64_t       vacant_round = 1;                 // of a theap that was never seen it is 0
static size_t         vacant_wanted = VACANT_ROUND_MIN; // so many theaps before the next one begins
static mi_walk_t      vacant_walk;                      // while it marks
static mi_theap_t*    vacant_next;                      // while it sorts
static size_t         vacant_n_found;

// ---- lists ----------------------------------------------------------------------------------------------------------

void _mi_vacant_link(mi_theap_t** list, mi_theap_t* theap) {
  theap->in_heap.next = *list;
  theap->in_heap.at = list;
  if (*list != NULL) (*list)->in_heap.at = &theap->in_heap.next;
  *list = theap;
}

void _mi_vacant_unlink(mi_theap_t* theap) {
  *theap->in_heap.at = theap->in_heap.next;
  if (theap->in_heap.next != NULL) theap->in_heap.next->in_heap.at = theap->in_heap.at;
  theap->in_heap.next = NULL;
  theap->in_heap.at = NULL;
}

void _mi_vacant_put(mi_theap_t* theap) {
  mi_heap_t* heap = _mi_theap_heap(theap);
  theap->vacant.seen_round = vacant_round;
  theap->vacant.since = ++vacant_n_put;
  _mi_vacant_unlink(theap);
  _mi_vacant_link(&heap->vacant, theap);
}

void _mi_vacant_set_unused(mi_theap_t* theap) {
  _mi_vacant_unlink(theap);
  mi_store_relaxed(&theap->heap, (mi_heap_t*)NULL);
  _mi_vacant_link(&vacant_unused, theap);
}

// ---- rounds ---------------------------------------------------------------------------------------------------------

static void vacant_begin(void) {
  vacant_phase = VACANT_MARKS;
  vacant_round++;
  vacant_n_found = 0;
  memset(&vacant_walk, 0, sizeof(vacant_walk));
}

static void vacant_mark(void) {
  size_t n_steps = VACANT_SLICES;
  _mi_lock_acquire(&_mi_region_lock);
  for (mi_page_t* page; (page = _mi_walk_some(&vacant_walk, &n_steps)) != NULL;) {
    mi_theap_t* home = mi_load_relaxed(&page->home);
    if (home != NULL) home->vacant.seen_round = vacant_round; // NULL: a large block
  }
  _mi_lock_release(&_mi_region_lock);
  if (n_steps == 0) return;
  vacant_phase = VACANT_SORTS;
  vacant_next = _mi_registry_first();
}

static void vacant_sort(void) {
  for (size_t i = 0; i < VACANT_THEAPS && vacant_next != NULL; i++) {
    mi_theap_t* theap = vacant_next;
    vacant_next = theap->next;
    if (_mi_theap_is_live(theap) || theap->is_orphan || theap->vacant.seen_round == vacant_round) continue;
    if (_mi_theap_heap(theap) == NULL) continue;
    _mi_vacant_set_unused(theap);
    vacant_n_found++;
  }
  if (vacant_next != NULL) return;
  vacant_phase = VACANT_AT_REST;
  vacant_wanted = mi_max(VACANT_ROUND_MIN, 2 * (_mi_registry_count() - vacant_n_found));
}

static void vacant_go_on(void) {
  if (vacant_phase == VACANT_AT_REST && _mi_registry_count() >= vacant_wanted) vacant_begin();
  if (vacant_phase == VACANT_MARKS) vacant_mark();
  if (vacant_phase == VACANT_SORTS) vacant_sort();
}

// At most MI_VACANT_REST theaps have to be passed.
static mi_theap_t* vacant_rested(mi_heap_t* heap) {
  mi_theap_t* theap = heap->vacant;
  while (theap != NULL && vacant_n_put - theap->vacant.since < MI_VACANT_REST) theap = theap->in_heap.next;
  return theap;
}

mi_theap_t* _mi_vacant_get(mi_heap_t* heap, bool may_rest) {
  mi_theap_t* theap = (may_rest ? heap->vacant : vacant_rested(heap));
  if (theap == NULL && vacant_unused == NULL) vacant_go_on();
  if (theap == NULL) theap = vacant_unused;
  if (theap == NULL) return NULL;
  _mi_vacant_unlink(theap);
  mi_store_relaxed(&theap->heap, heap);
  _mi_vacant_link(&heap->theaps, theap);
  return theap;
}
