// Guarded blocks: making and freeing them.  Layer: heap.  guard.h has the invariants.
#include "guard.h"

#include <errno.h>
#include <string.h>

#include "../arena/purge_at_peak.h"
#include "../support/message.h"
#include "../support/stat.h"

// The bytes next to a block (GU3): not zero, which is what programs write by mistake most often.
#define GUARD_FILL     0xE5
#define GUARD_FILL_MAX 128 // on each side

// A run that slices can have.
#define GUARD_SLICES_MAX (MI_GiB / MI_SLICE_SIZE + 2)
#define GUARD_ALIGN_MAX  MI_CHUNK_SIZE

#define GUARD_PER_SLAB (MI_SLICE_SIZE / sizeof(mi_guard_t))
#define GUARD_SLABS    ((MI_GUARD_LIVE_MAX + MI_GUARD_FREED_MAX) / GUARD_PER_SLAB + 2)

mi_lock_t _mi_guard_lock;

static mi_atomic(mi_guard_t*) guard_slabs[GUARD_SLABS]; // written under the lock
static mi_guard_t*            guard_unused;
static mi_guard_t*            guard_stuck; // runs without a page that could not be given back yet
static mi_guard_t *           guard_freed_first, *guard_freed_last;
static size_t                 guard_n_freed, guard_n_freed_slices;
static size_t                 guard_n_live; // and those that are being made

// ---- where a block lies ---------------------------------------------------------------------------------------------

bool _mi_guard_place(const mi_guard_request_t* r, mi_guard_place_t* place) {
  size_t page = _mi_prim_os_page_size();
  size_t align = (r->align > 1 || r->is_precise ? r->align : 16);
  if (r->size + r->room > GUARD_SLICES_MAX * MI_SLICE_SIZE - MI_SLICE_SIZE || align > GUARD_ALIGN_MAX) return false;
  size_t shift = r->offset & (align - 1);
  size_t size = mi_max(r->size, 1);
  // The lowest place behind the first inaccessible page.
  place->block = mi_align_up(page + shift, align) - shift;
  if (!r->is_before && align <= page) {
    // From there up to where the block ends with an OS page, or as near to that as its alignment allows.
    place->block = mi_align_down(mi_align_up(place->block + size, page) - size + shift, align) - shift;
  }
  place->data = mi_align_down(place->block, page);
  place->data_end = mi_align_up(place->block + size, page);
  place->n_slices = mi_div_up(place->data_end + mi_align_up(r->room, page) + page, MI_SLICE_SIZE);
  place->align = mi_max(1, align >> MI_SLICE_SHIFT);
  return true;
}

// ---- records --------------------------------------------------------------------------------------------------------

// Caller holds the lock, as for all that follow.
static mi_guard_t* guard_new_slab(void) {
  for (size_t i = 0; i < GUARD_SLABS; i++) {
    if (mi_load_relaxed(&guard_slabs[i]) != NULL) continue;
    mi_run_t run = _mi_slices_alloc(1, 1, MI_REQUEST_META, MI_ARENA_ANY);
    if (run.region == NULL) return NULL;
    mi_guard_t* slab = (mi_guard_t*)(void*)_mi_region_slice_start(run.region, run.slice);
    if (!run.is_zero) memset((void*)slab, 0, MI_SLICE_SIZE);
    for (size_t k = 0; k + 1 < GUARD_PER_SLAB; k++) slab[k].next = &slab[k + 1];
    mi_store_release(&guard_slabs[i], slab);
    return slab;
  }
  return NULL;
}

static mi_guard_t* guard_new_record(void) {
  if (guard_unused == NULL) guard_unused = guard_new_slab();
  mi_guard_t* guard = guard_unused;
  if (guard != NULL) guard_unused = guard->next;
  return guard;
}

// The oldest; its run has no page any more.
static mi_guard_t* guard_take_freed(void) {
  mi_guard_t* guard = guard_freed_first;
  guard_freed_first = guard->next;
  if (guard_freed_first == NULL) guard_freed_last = NULL;
  guard_n_freed--;
  guard_n_freed_slices -= guard->n_slices;
  mi_store_release(&guard->state, (uint32_t)MI_GUARD_NONE);
  _mi_page_delete_large(guard->page);
  return guard;
}

static void guard_put_freed(mi_guard_t* guard) {
  guard->next = NULL;
  if (guard_freed_last != NULL) guard_freed_last->next = guard;
  else guard_freed_first = guard;
  guard_freed_last = guard;
  guard_n_freed++;
  guard_n_freed_slices += guard->n_slices;
}

const mi_guard_t* _mi_guard_find(uintptr_t address) {
  for (size_t i = 0; i < GUARD_SLABS; i++) {
    mi_guard_t* slab = mi_load_acquire(&guard_slabs[i]);
    for (size_t k = 0; slab != NULL && k < GUARD_PER_SLAB; k++) {
      if (mi_load_acquire(&slab[k].state) == MI_GUARD_NONE) continue;
      if (address - (uintptr_t)slab[k].start < (uintptr_t)(slab[k].end - slab[k].start)) return &slab[k];
    }
  }
  return NULL;
}

size_t _mi_guard_count(mi_guard_state_t state) {
  _mi_lock_acquire(&_mi_guard_lock);
  size_t n = (state == MI_GUARD_FREED ? guard_n_freed : guard_n_live);
  _mi_lock_release(&_mi_guard_lock);
  return n;
}

// ---- runs -----------------------------------------------------------------------------------------------------------

static void guard_put_record(mi_guard_t* guard, mi_guard_t** list, bool was_live) {
  _mi_lock_acquire(&_mi_guard_lock);
  guard->next = *list;
  *list = guard;
  if (was_live) guard_n_live--;
  _mi_lock_release(&_mi_guard_lock);
}

// The record's run, which has no page, goes back to the arena.  If it cannot be made accessible nobody could use it: then
// it waits until it can (false).
static bool guard_release_run(mi_guard_t* guard, bool was_live) {
  bool can = (_mi_prim_commit(guard->start, (size_t)(guard->end - guard->start)) == 0);
  if (can) _mi_slices_free(_mi_page_region(guard->page), _mi_page_slice(guard->page), guard->n_slices, guard->is_zero);
  guard_put_record(guard, can ? &guard_unused : &guard_stuck, was_live);
  return can;
}

// A new run for a record that counts as live, all of it inaccessible and unbacked.  Without one the record is put back.
static bool guard_new_run(mi_guard_t* guard, const mi_guard_place_t* place) {
  mi_run_t run = _mi_slices_alloc(place->n_slices, place->align, MI_REQUEST_META, MI_ARENA_ANY);
  if (run.region == NULL) {
    guard_put_record(guard, &guard_unused, true);
    return false;
  }
  _mi_purge_at_peak();
  size_t size = run.n_slices * MI_SLICE_SIZE;
  guard->start = _mi_region_slice_start(run.region, run.slice);
  guard->end = guard->start + size;
  guard->n_slices = run.n_slices;
  guard->is_zero = (run.is_zero || _mi_prim_purge(guard->start, size) == 0);
  guard->page = (mi_page_t*)_mi_region_descriptor(run.region, run.slice);
  guard->page->region = (uint8_t)_mi_region_index(run.region);
  if (_mi_prim_protect(guard->start, size) == 0) return true;
  guard_release_run(guard, true); // a part of it may be inaccessible
  return false;
}

// A record with a run that fits: that of the block which has been free for longest, when there are enough of those.
static mi_guard_t* guard_take(const mi_guard_place_t* place) {
  mi_guard_t* guard = NULL;
  bool        has_run = false;
  _mi_lock_acquire(&_mi_guard_lock);
  if (guard_n_live < MI_GUARD_LIVE_MAX) {
    bool is_full =
        (guard_n_freed >= MI_GUARD_FREED_MAX || guard_n_freed_slices + place->n_slices > MI_GUARD_FREED_SLICES);
    has_run = (is_full && guard_n_freed > 1 && guard_freed_first->n_slices == place->n_slices && place->align == 1);
    guard = has_run ? guard_take_freed() : guard_new_record();
    if (guard != NULL) guard_n_live++;
  }
  _mi_lock_release(&_mi_guard_lock);
  return guard == NULL || has_run || guard_new_run(guard, place) ? guard : NULL;
}

// When too many, or too large ones, are free, the oldest goes back to the arena; else one that could not before.  False: there
// is nothing more to do, or that one still cannot.  The one that was freed last stays, however large (GU2).
static bool guard_trim(void) {
  _mi_lock_acquire(&_mi_guard_lock);
  bool        is_many = (guard_n_freed > MI_GUARD_FREED_MAX || guard_n_freed_slices > MI_GUARD_FREED_SLICES);
  bool        is_over = (is_many && guard_n_freed > 1);
  mi_guard_t* guard = (is_over ? guard_take_freed() : guard_stuck);
  if (!is_over && guard != NULL) guard_stuck = guard->next;
  _mi_lock_release(&_mi_guard_lock);
  return guard != NULL && (guard_release_run(guard, false) || is_over);
}

bool _mi_guard_drop_freed(void) {
  bool any = false;
  for (mi_guard_t* guard = NULL;; any |= guard_release_run(guard, false)) {
    _mi_lock_acquire(&_mi_guard_lock);
    guard = (guard_n_freed > 0 ? guard_take_freed() : NULL);
    _mi_lock_release(&_mi_guard_lock);
    if (guard == NULL) return any;
  }
}

void _mi_guard_explain(const mi_page_t* page) {
  const mi_guard_t* guard = page->guard;
  _mi_trace_warn("allocated", guard->block, &guard->allocated);
  if (guard->freed.thread != 0) _mi_trace_warn("freed", guard->block, &guard->freed);
}

// ---- what lies next to a block --------------------------------------------------------------------------------------

static char* guard_fill_start(const mi_guard_t* guard) {
  return guard->block - mi_min((size_t)(guard->block - guard->data), GUARD_FILL_MAX);
}

static char* guard_fill_end(const mi_guard_t* guard) {
  char* block_end = guard->block + guard->size;
  return block_end + mi_min((size_t)(guard->data_end - block_end), GUARD_FILL_MAX);
}

static void guard_fill(const mi_guard_t* guard) {
  char* start = guard_fill_start(guard);
  char* block_end = guard->block + guard->size;
  memset(start, GUARD_FILL, (size_t)(guard->block - start));
  memset(block_end, GUARD_FILL, (size_t)(guard_fill_end(guard) - block_end));
}

static bool guard_is_filled(const char* from, const char* to) {
  while (from < to && (unsigned char)*from == GUARD_FILL) from++;
  return from == to;
}

bool _mi_guard_is_whole(const mi_guard_t* guard) {
  return guard->size == 0 || (guard_is_filled(guard_fill_start(guard), guard->block) &&
                              guard_is_filled(guard->block + guard->size, guard_fill_end(guard)));
}

static void guard_check_fill(const mi_page_t* page, const mi_guard_t* guard) {
  const unsigned char* block = (const unsigned char*)guard->block;
  const unsigned char* start = (const unsigned char*)guard_fill_start(guard);
  const unsigned char* end = (const unsigned char*)guard_fill_end(guard);
  const unsigned char* below = block;
  const unsigned char* above = block + guard->size;
  if (_mi_guard_is_whole(guard)) return;
  while (below > start && below[-1] == GUARD_FILL) below--;
  while (above < end && *above == GUARD_FILL) above++;
  _mi_guard_explain(page);
  if (above < end) {
    _mi_message_error(EFAULT, "buffer overflow: something was written %zu bytes past the block %p of %zu bytes\n",
                      (size_t)(above - block) - guard->size, (const void*)block, guard->size);
  }
  if (below > start) {
    _mi_message_error(EFAULT, "buffer underflow: something was written %zu bytes before the block %p of %zu bytes\n",
                      (size_t)(block - below) + 1, (const void*)block, guard->size);
  }
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

static mi_page_t* guard_new_page(mi_heap_t* heap, mi_guard_t* guard) {
  mi_run_t run;
  run.region = _mi_page_region(guard->page);
  run.slice = _mi_page_slice(guard->page);
  run.n_slices = guard->n_slices;
  run.is_zero = true;
  mi_page_t* page = _mi_page_new_large(run, (size_t)(guard->block - guard->start), MI_PAGE_GUARDED);
  page->guard = guard;
  page->asked = guard->size;
  if (!_mi_heap_add_page(heap, page)) {
    _mi_page_delete_large(page);
    return NULL;
  }
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_OWNED, 0, NULL));
  return page;
}

// All of the block that has memory is made before the page is seen by others: at a fork it is whole, or not there.
static bool guard_open_data(mi_guard_t* guard) {
  if (guard->size == 0) return true; // GU6
  if (_mi_prim_commit(guard->data, (size_t)(guard->data_end - guard->data)) != 0) return false;
  if (!guard->is_zero) memset(guard->data, 0, (size_t)(guard->data_end - guard->data));
  guard_fill(guard);
  return true;
}

void* _mi_guard_malloc(mi_heap_t* heap, const mi_guard_request_t* request) {
  mi_guard_place_t place;
  bool             is_bound = _mi_region_is_bound(mi_load_relaxed(&heap->arena)); // GU5
  if (is_bound || !_mi_guard_place(request, &place)) return NULL;
  mi_guard_t* guard = (_mi_heap_may_take(heap, place.n_slices) ? guard_take(&place) : NULL);
  if (guard == NULL) return NULL;
  guard->data = guard->start + place.data;
  guard->data_end = guard->start + place.data_end;
  guard->block = guard->start + place.block;
  guard->size = (MI_PADDING ? request->size : mi_max(request->size, 1));
  guard->freed.n_frames = guard->freed.thread = 0;
  _mi_trace_take(&guard->allocated);
  if (!guard_open_data(guard) || guard_new_page(heap, guard) == NULL) {
    guard->is_zero = false; // it may be filled
    guard_release_run(guard, true);
    return NULL;
  }
  mi_store_release(&guard->state, (uint32_t)MI_GUARD_LIVE);
  _mi_stat_increase(&_mi_stat_live.malloc_huge, (int64_t)(guard->n_slices * MI_SLICE_SIZE));
  _mi_stat_count(&_mi_stat_live.malloc_huge_count, 1);
  _mi_stat_count(&_mi_stat_live.malloc_guarded_count, 1);
  return guard->block;
}

void _mi_guard_populate(void* p, size_t size) {
  const mi_guard_t* guard = _mi_guard_at(p);
  if (guard == NULL) return;
  _mi_prim_populate(guard->data, mi_align_up((size_t)((char*)p - guard->data) + size, _mi_prim_os_page_size()));
}

// Makes the OS pages up to `end` those of the block.
static bool guard_move_end(mi_guard_t* guard, char* end) {
  if (end > guard->data_end) {
    size_t n = (size_t)(end - guard->data_end);
    if (_mi_prim_commit(guard->data_end, n) != 0) return false;
    if (!guard->is_zero) memset(guard->data_end, 0, n);
  }
  if (end < guard->data_end) {
    size_t n = (size_t)(guard->data_end - end);
    if (_mi_prim_purge(end, n) != 0) memset(end, 0, n);        // it is zero when the block grows again
    if (_mi_prim_protect(end, n) != 0) guard->is_zero = false; // as when it is freed
  }
  guard->data_end = end;
  return true;
}

// Bytes of the fill that become the block's are zero then.  Caller holds the lock: the child of a fork finds an old end, or a
// new one.
static bool guard_set_size(mi_page_t* page, size_t size) {
  mi_guard_t* guard = page->guard;
  char*       end = (char*)mi_align_up((uintptr_t)guard->block + size, _mi_prim_os_page_size());
  char*       old_end = guard->block + guard->size;
  char*       old_fill_end = guard_fill_end(guard);
  if (end != guard->data_end && !guard_move_end(guard, end)) return false;
  if (size > guard->size) memset(old_end, 0, mi_min(size - guard->size, (size_t)(old_fill_end - old_end)));
  bool keeps_fill = (size > guard->size && old_fill_end > guard->block + size);
  guard->size = page->asked = size;
  char* fill_start = (keeps_fill ? old_fill_end : guard->block + size);
  char* fill_end = guard_fill_end(guard);
  if (fill_end > fill_start) memset(fill_start, GUARD_FILL, (size_t)(fill_end - fill_start));
  return true;
}

bool _mi_guard_resize(mi_page_t* page, size_t size) {
  const mi_guard_t* guard = page->guard;
  size_t            os_page = _mi_prim_os_page_size();
  if (size < guard->size / 2 || guard->size == 0 || size > (size_t)(guard->end - guard->block) - os_page) return false;
  if (size > guard->size) {
    size_t      n_filled = (size_t)(guard_fill_end(guard) - guard->block) - guard->size;
    const char* end = guard->block + guard->size;
    if (!guard_is_filled(end, end + mi_min(size - guard->size, n_filled))) guard_check_fill(page, guard);
  }
  _mi_lock_acquire(&_mi_guard_lock);
  bool ok = guard_set_size(page, size);
  _mi_lock_release(&_mi_guard_lock);
  return ok;
}

void _mi_guard_free(mi_page_t* page) {
  mi_guard_t* guard = page->guard;
  size_t      data_size = (size_t)(guard->data_end - guard->data);
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL));
  _mi_page_clear(page, MI_PAGE_IN_HEAP);
  if (guard->size > 0) guard_check_fill(page, guard);
  _mi_trace_take(&guard->freed);
  mi_store_release(&guard->state, (uint32_t)MI_GUARD_FREED); // from here on it may fault
  if (guard->is_zero) guard->is_zero = (_mi_prim_purge(guard->data, data_size) == 0);
  else guard->is_zero = (_mi_prim_purge(guard->start, (size_t)(guard->end - guard->start)) == 0);
  if (_mi_prim_protect(guard->data, data_size) != 0)
    guard->is_zero = false; // a use of it is not noticed, and may leave something there
  _mi_lock_acquire(&_mi_guard_lock);
  guard_n_live--;
  guard_put_freed(guard);
  _mi_lock_release(&_mi_guard_lock);
  while (guard_trim()) {
  }
}
