// Blocks with a mapping of their own.  Layer: arena.  mapped.h has the invariants.
#include "mapped.h"

#include <string.h>

#include "../base/track.h"
#include "../support/option.h"
#include "../support/stat.h"
#include "dense.h"
#include "limit.h"
#include "mapped_slot.h"
#include "range.h"
#include "recur.h"
#include "subregion.h"

// Of what is stuck, so much is tried again with each block: enough for the list to become shorter.
#define MAPPED_RETRIES 2

// So many holes of regions are closed for one block (MB5).
#define MAPPED_HOLES 8

static mi_range_t*       mapped_index;
static mi_range_t *      mapped_stuck_first, *mapped_stuck_last;
static mi_mapped_sum_t   mapped_sum;
static mi_atomic(size_t) mapped_n_stuck; // anybody may read it

// No block was ever outside of these bounds: so for NULL, and most that is not ours, the lock is not taken.
static mi_atomic(uintptr_t) mapped_low, mapped_high;

// ---- the index ------------------------------------------------------------------------------------------------------

// The process has n bytes more from now on, or less.
static void mapped_count(int64_t n) {
  _mi_stat_change(&_mi_stat_live.reserved, n);
  _mi_stat_change(&_mi_stat_live.committed, n);
}

static void mapped_widen_bounds(const mi_range_t* range) {
  uintptr_t low = mi_load_relaxed(&mapped_low);
  if (low == 0 || range->start < low) mi_store_relaxed(&mapped_low, range->start);
  if (range->start + range->size > mi_load_relaxed(&mapped_high))
    mi_store_relaxed(&mapped_high, range->start + range->size);
}

// n: as above.  For who looks at the numbers a block that is resized was never out.
static void mapped_put_in(mi_mapped_slot_t* slot, int64_t n) {
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  _mi_range_insert(&mapped_index, &slot->range);
  mapped_widen_bounds(&slot->range);
  mapped_sum.n_blocks++;
  mapped_sum.size += slot->range.size;
  mapped_count(n);
  _mi_lock_release(&_mi_mapped_slot_lock);
}

static bool mapped_take_out(mi_mapped_slot_t* slot, int64_t n) {
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  bool is_in = _mi_range_is_in_index(&slot->range);
  if (is_in) {
    _mi_range_remove(&mapped_index, &slot->range);
    mapped_sum.n_blocks--;
    mapped_sum.size -= slot->range.size;
    mapped_count(n);
  }
  _mi_lock_release(&_mi_mapped_slot_lock);
  return is_in;
}

bool _mi_mapped_take_out(void* descriptor) {
  mi_mapped_slot_t* slot = _mi_mapped_slot_of(descriptor);
  return mapped_take_out(slot, -(int64_t)slot->range.size);
}

static mi_range_t* mapped_find(uintptr_t start, size_t size) {
  if (start + size <= mi_load_relaxed(&mapped_low) || start >= mi_load_relaxed(&mapped_high)) return NULL;
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  mi_range_t* range = _mi_range_find(mapped_index, start, size);
  _mi_lock_release(&_mi_mapped_slot_lock);
  return range;
}

void* _mi_mapped_find(const void* p) {
  mi_range_t* range = mapped_find((uintptr_t)p, 1);
  return range == NULL ? NULL : _mi_mapped_slot_of_range(range)->descriptor;
}

bool _mi_mapped_overlaps(const void* start, size_t size) {
  return mapped_find((uintptr_t)start, size) != NULL;
}

// ---- what the system does not take back -----------------------------------------------------------------------------

static void mapped_keep_stuck(mi_mapped_slot_t* slot) {
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  slot->range.right = NULL;
  if (mapped_stuck_last != NULL) mapped_stuck_last->right = &slot->range;
  else mapped_stuck_first = &slot->range;
  mapped_stuck_last = &slot->range;
  mi_fetch_add_relaxed(&mapped_n_stuck, 1);
  mapped_sum.stuck_size += slot->range.size;
  _mi_lock_release(&_mi_mapped_slot_lock);
}

static mi_mapped_slot_t* mapped_take_stuck(void) {
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  mi_range_t* range = mapped_stuck_first;
  if (range != NULL) {
    mapped_stuck_first = range->right;
    if (mapped_stuck_first == NULL) mapped_stuck_last = NULL;
    mi_fetch_sub_relaxed(&mapped_n_stuck, 1);
    mapped_sum.stuck_size -= range->size;
  }
  _mi_lock_release(&_mi_mapped_slot_lock);
  return range == NULL ? NULL : _mi_mapped_slot_of_range(range);
}

// Gives the mapping of a slot that is out back, and the slot, or keeps both (MB3).
static void mapped_unmap(mi_mapped_slot_t* slot) {
  void*  start = (void*)slot->range.start;
  size_t size = slot->range.size;
  if (size == 0 || _mi_prim_release(start, size) == 0) {
    _mi_mapped_slot_put(slot);
    return;
  }
  _mi_prim_give_up(start, size);
  mapped_keep_stuck(slot);
}

void _mi_mapped_retry(size_t n) {
  mi_mapped_slot_t* slot;
  for (n = mi_min(n, mi_load_relaxed(&mapped_n_stuck)); n > 0 && (slot = mapped_take_stuck()) != NULL; n--)
    mapped_unmap(slot);
}

// ---- mappings -------------------------------------------------------------------------------------------------------

// As regions do (space.c), and for blocks that are going to be dense.
static void mapped_advise(void* start, size_t size) {
  long allow = _mi_option_get_fast(mi_option_allow_thp);
  bool is_wanted = (allow >= 2 || _mi_option_get_fast(mi_option_allow_large_os_pages) != 0);
  if (!_mi_region_fits_huge(_mi_prim_os_page_size())) is_wanted = false;
  if (_mi_dense_is_asked() && _mi_dense_take(size)) is_wanted = true;
  if (allow != 1 || is_wanted) _mi_prim_advise_huge(start, size, is_wanted && allow != 0);
}

// Only the aligned part of what is reserved is made usable: the rest is never charged.  On failure the range is what is
// still mapped.
static bool mapped_map_aligned(mi_range_t* range, size_t size, size_t align) {
  void* p;
  if (!MI_PRIM_HAS_PARTS) {
    if (_mi_prim_reserve(size, align, &p) != 0) return false;
    range->start = (uintptr_t)p;
    range->size = size;
    return _mi_prim_commit(p, size) == 0;
  }
  if (size > SIZE_MAX - align || _mi_prim_reserve(size + align, 1, &p) != 0) return false;
  range->start = mi_align_up((uintptr_t)p, align);
  size_t before = range->start - (uintptr_t)p;
  range->size = size + align - before;
  if (before > 0 && _mi_prim_release(p, before) != 0) {
    range->start = (uintptr_t)p;
    range->size = size + align;
    return false;
  }
  if (align > before && _mi_prim_release((char*)range->start + size, align - before) != 0) return false;
  range->size = size;
  return _mi_prim_commit((void*)range->start, size) == 0;
}

// `from`: contents to be moved there, or NULL.
static bool mapped_map(mi_range_t* range, size_t size, size_t align, char* from, size_t old_size) {
  void* p;
  range->size = 0;
  if (align > _mi_prim_os_page_size()) return mapped_map_aligned(range, size, align);
  int err = (from == NULL ? _mi_prim_map(size, &p) : _mi_prim_move_out(from, old_size, size, &p));
  if (err != 0) return false;
  range->start = (uintptr_t)p;
  range->size = size;
  return true;
}

// ---- blocks ---------------------------------------------------------------------------------------------------------

// Of what is counted, `moved` bytes go as soon as it is there.
static bool mapped_count_in(size_t size, size_t moved) {
  int tries = 0;
  while (mi_unlikely(!_mi_limit_add(&_mi_limit_process, size, moved))) {
    if (!_mi_limit_make_room(size, moved, &tries)) return false;
  }
  return true;
}

// MB5: does any of it lie in a region?  Then that lacks the slices, and the mapping begins and ends among them.
static bool mapped_is_in_hole(const mi_range_t* range) {
  const char* start = (const char*)range->start;
  return mi_unlikely(_mi_region_search(start) != NULL || _mi_region_search(start + range->size - 1) != NULL);
}

// A new mapping is made again.  False if there is none.
static bool mapped_map_apart(mi_range_t* range, size_t size, size_t align) {
  for (int tries = MAPPED_HOLES; mapped_map(range, size, align, NULL, 0); tries--) {
    if (mi_unlikely(_mi_subregion_overlaps((void*)range->start, range->size))) return false; // R4
    if (!mapped_is_in_hole(range)) return true;
    if (tries == 0) return false;
    _mi_prim_give_up((void*)range->start, range->size);
  }
  return false;
}

// Contents move once more.  False if the system refuses.
static bool mapped_leave_hole(mi_range_t* range) {
  for (int tries = MAPPED_HOLES; mapped_is_in_hole(range); tries--) {
    char*  start = (char*)range->start;
    size_t size = range->size;
    void*  p;
    if (tries == 0 || _mi_prim_move_out(start, size, size, &p) != 0) return false;
    _mi_prim_give_up(start, size);
    range->start = (uintptr_t)p;
  }
  return true;
}

static bool mapped_map_from(mi_range_t* range, size_t size, char* from, size_t old_size) {
  if (!mapped_map(range, size, 1, from, old_size)) return false;
  if (mi_likely(mapped_leave_hole(range))) return true;
  memcpy(from, (const char*)range->start, old_size);
  return false;
}

// A slot with a new mapping, which is out.
static mi_mapped_slot_t* mapped_map_new(size_t size, size_t align, char* from, size_t old_size) {
  mi_mapped_slot_t* slot = _mi_mapped_slot_take();
  if (slot == NULL) return NULL;
  mi_range_t* range = &slot->range;
  bool        ok = (from == NULL ? mapped_map_apart(range, size, align) : mapped_map_from(range, size, from, old_size));
  if (ok) return slot;
  mapped_unmap(slot);
  return NULL;
}

static void* mapped_new_counted(size_t size, size_t align, char* from, size_t old_size) {
  mi_mapped_slot_t* slot = mapped_map_new(size, align, from, old_size);
  if (slot == NULL) return NULL;
  mapped_advise((void*)slot->range.start, size);
  if (MI_TRACK) {
    mi_track_reserved((void*)slot->range.start, size);
    mi_track_closed((void*)slot->range.start, size);
  }
  mapped_put_in(slot, (int64_t)size);
  return slot->descriptor;
}

static void* mapped_new(size_t size, size_t align, char* from, size_t old_size) {
  if (_mi_option_get_fast(mi_option_disallow_os_alloc) != 0) return NULL;
  _mi_mapped_retry(MAPPED_RETRIES);
  if (!mapped_count_in(size, old_size)) return NULL;
  void* descriptor = mapped_new_counted(size, align, from, old_size);
  if (descriptor == NULL) _mi_limit_remove(&_mi_limit_process, size);
  return descriptor;
}

void* _mi_mapped_new(size_t size, size_t align) {
  return mapped_new(size, align, NULL, 0);
}

void* _mi_mapped_new_from(char* from, size_t old_size, size_t size) {
  return mapped_new(size, 1, from, old_size);
}

void _mi_mapped_free(void* descriptor, bool was_in) {
  mi_mapped_slot_t* slot = _mi_mapped_slot_of(descriptor);
  if (!was_in) {
    _mi_mapped_slot_put(slot);
    return;
  }
  if (MI_TRACK) {
    mi_track_writable((void*)slot->range.start, slot->range.size);
    mi_track_released((void*)slot->range.start, slot->range.size);
  }
  size_t size = slot->range.size;
  bool   is_looked_at = _mi_recur_may() || _mi_dense_is_asked();
  if (is_looked_at && _mi_dense_freed((const void*)slot->range.start, size)) _mi_recur_freed(size);
  mapped_unmap(slot);
  _mi_limit_remove(&_mi_limit_process, size); // if it is stuck, its contents went back
  _mi_mapped_retry(MAPPED_RETRIES);
}

bool _mi_mapped_resize(void* descriptor, size_t size) {
  mi_mapped_slot_t* slot = _mi_mapped_slot_of(descriptor);
  void*             start = (void*)slot->range.start;
  size_t            old_size = slot->range.size;
  size_t            n_more = size - mi_min(size, old_size), n_less = old_size - mi_min(size, old_size);
  if (n_more > 0 && !mapped_count_in(n_more, 0)) return false;
  mapped_take_out(slot, 0);
  if (n_more > 0) _mi_dense_grown(old_size, size);
  int err = _mi_prim_resize(&start, old_size, size);
  if (err == 0) {
    slot->range.start = (uintptr_t)start;
    slot->range.size = size;
    mapped_leave_hole(&slot->range); // if that is refused the block stays, and its free will find nothing
  }
  mapped_put_in(slot, (int64_t)slot->range.size - (int64_t)old_size);
  _mi_limit_remove(&_mi_limit_process, err == 0 ? n_less : n_more);
  // A block that shrinks keeps its place then, but not its memory.
  if (err != 0 && size < old_size) _mi_prim_purge((char*)start + size, old_size - size);
  return err == 0;
}

char* _mi_mapped_start(const void* descriptor) {
  return (char*)_mi_mapped_slot_of(descriptor)->range.start;
}

void* _mi_mapped_heap_link(const void* descriptor) {
  return _mi_mapped_slot_of(descriptor)->heap_link;
}

// ---- all of them ----------------------------------------------------------------------------------------------------

void _mi_mapped_get_sum(mi_mapped_sum_t* sum) {
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  *sum = mapped_sum;
  sum->n_stuck = mi_load_relaxed(&mapped_n_stuck);
  _mi_lock_release(&_mi_mapped_slot_lock);
}
