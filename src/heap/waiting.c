// Free blocks that wait, sorted by their addresses.  Layer: heap.  See waiting.h.
#include "waiting.h"

#include "bin.h"
#include "gaps.h"
#include "sampler.h"

// With fewer theaps it is quicker to look through all of them.
#define WAITING_THEAPS 8

static uintptr_t* waiting_blocks; // under the registry lock, as what follows
static size_t     waiting_n, waiting_max;
static uint64_t   waiting_number; // of the table; 0: there is none
static uint64_t   waiting_last_number;

void _mi_waiting_lists(const mi_theap_t* theap, size_t cls, const mi_block_t* lists[MI_WAITING_LISTS]) {
  const mi_drain_t* drain = _mi_theap_drain(theap, cls);
  lists[0] = theap->bins[cls].head;
  lists[1] = _mi_bin_taken(theap, &theap->bins[cls], &theap->classes[cls].book);
  lists[2] = theap->returns[cls].head;
  lists[3] = (theap->sampler == NULL ? NULL : theap->sampler->bins[cls].head); // sampler.h, SA1
  lists[4] = drain->bin.head;
  lists[5] = _mi_bin_taken(theap, &drain->bin, &drain->book);
}

// ---- collecting -----------------------------------------------------------------------------------------------------

static void waiting_add(const mi_block_t* block) {
  if (waiting_n < waiting_max) waiting_blocks[waiting_n] = (uintptr_t)block;
  waiting_n++;
}

// A link is followed only to where a block of the class can be (view.h, VW2).
static mi_may_race void waiting_add_bin(size_t cls, const mi_block_t* block) {
  for (size_t n = 0; block != NULL && n < MI_PAGE_BLOCKS_MAX; n++, block = _mi_block_peek(block)) {
    if (_mi_bin_page_of(block, cls) == NULL) return;
    waiting_add(block);
  }
}

static mi_may_race void waiting_add_batch(const mi_batch_t* batch) {
  const mi_block_t* block = batch->first;
  for (size_t n = batch->count; batch->page != NULL && block != NULL && n > 0; n--, block = _mi_block_peek(block)) {
    const mi_page_t* slice = _mi_page_at(block);
    if (slice == NULL || slice - slice->to_first != batch->page) return;
    waiting_add(block);
  }
}

static mi_may_race void waiting_add_theap(const mi_theap_t* theap) {
  const mi_block_t* lists[MI_WAITING_LISTS];
  if (theap->is_orphan) return; // fork.c, F2
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    _mi_waiting_lists(theap, cls, lists);
    for (int i = 0; i < MI_WAITING_LISTS; i++) waiting_add_bin(cls, lists[i]);
  }
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) waiting_add_batch(&theap->outbox[i]);
}

static void waiting_add_quarantines(void) {
  for (const mi_theap_t* theap = _mi_registry_first(); theap != NULL; theap = theap->next) {
    for (size_t i = 0; i < MI_QUARANTINE_SIZE && !theap->is_orphan; i++) {
      if (theap->quarantine.blocks[i] != NULL) waiting_add(theap->quarantine.blocks[i]);
    }
  }
}

static void waiting_collect_of(const mi_heap_t* heap) {
  for (const mi_theap_t* theap = heap->theaps; theap != NULL; theap = theap->in_heap.next) waiting_add_theap(theap);
  if (MI_HARDENED && heap == &_mi_heap_main) waiting_add_quarantines();
}

static void waiting_collect(const mi_heap_t* heap) {
  waiting_n = 0;
  waiting_collect_of(heap == NULL ? &_mi_heap_main : heap);
  for (const mi_heap_t* other = NULL; heap == NULL && (other = _mi_heap_next(other)) != NULL;)
    waiting_collect_of(other);
}

// Blocks of the main heap wait in the quarantines of all theaps.
static bool waiting_is_worth(const mi_heap_t* heap) {
  if (heap == NULL) heap = &_mi_heap_main;
  size_t n = (MI_HARDENED && heap == &_mi_heap_main ? mi_load_relaxed(&_mi_registry_n_theaps) : 0);
  for (const mi_theap_t* theap = heap->theaps; theap != NULL && n <= WAITING_THEAPS; theap = theap->in_heap.next) n++;
  return MI_PRIM_VIRTUAL && !MI_TRACK && n > WAITING_THEAPS;
}

// ---- sorting --------------------------------------------------------------------------------------------------------

// Below place i of a heap of n everything is in order, but for what is at i.
static void waiting_sift(uintptr_t* blocks, size_t i, size_t n) {
  uintptr_t block = blocks[i];
  for (size_t below; (below = 2 * i + 1) < n; i = below) {
    if (below + 1 < n && blocks[below + 1] > blocks[below]) below++;
    if (blocks[below] <= block) break;
    blocks[i] = blocks[below];
  }
  blocks[i] = block;
}

static void waiting_sort(uintptr_t* blocks, size_t n) {
  for (size_t i = n / 2; i > 0; i--) waiting_sift(blocks, i - 1, n);
  for (size_t last = n; last > 1; last--) {
    uintptr_t highest = blocks[0];
    blocks[0] = blocks[last - 1];
    blocks[last - 1] = highest;
    waiting_sift(blocks, 0, last - 1);
  }
}

// How many are below.
static size_t waiting_below(uintptr_t address) {
  size_t low = 0, high = waiting_n;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (waiting_blocks[middle] < address) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ---- the table ------------------------------------------------------------------------------------------------------

static size_t waiting_size(void) {
  return mi_align_up(waiting_max * sizeof(*waiting_blocks), _mi_prim_os_page_size());
}

static void waiting_drop(void) {
  bool is_stuck = (waiting_number != 0 && _mi_prim_release(waiting_blocks, waiting_size()) != 0);
  if (is_stuck) _mi_prim_give_up(waiting_blocks, waiting_size()); // address space only
  waiting_blocks = NULL;
  waiting_n = waiting_max = 0;
  waiting_number = 0;
}

uint64_t _mi_waiting_begin(const mi_heap_t* heap) {
  void* start;
  if (!waiting_is_worth(heap)) return 0;
  waiting_drop();
  waiting_collect(heap); // counts only
  size_t n = waiting_n + 1;
  if (_mi_prim_map(mi_align_up(n * sizeof(*waiting_blocks), _mi_prim_os_page_size()), &start) != 0) return 0;
  waiting_blocks = (uintptr_t*)start;
  waiting_max = n;
  waiting_collect(heap);
  waiting_n = mi_min(waiting_n, waiting_max); // threads may be at work
  waiting_sort(waiting_blocks, waiting_n);
  return waiting_number = ++waiting_last_number;
}

const uintptr_t* _mi_waiting_find(uint64_t number, const char* start, const char* end, size_t* n) {
  if (number == 0 || number != waiting_number) return NULL;
  size_t first = waiting_below((uintptr_t)start);
  *n = waiting_below((uintptr_t)end) - first;
  return &waiting_blocks[first];
}

void _mi_waiting_end(uint64_t number) {
  if (number != 0 && number == waiting_number) waiting_drop();
}
