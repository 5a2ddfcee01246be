// Slots of mapped blocks.  Layer: arena.
#include "mapped_slot.h"

#include <string.h>

#include "../base/track.h"
#include "slices.h"

// Takes the place of the first slot of a slice; never given back.
typedef struct slot_slab_s {
  mi_atomic(struct slot_slab_s*) next;
} slot_slab_t;

#define SLOT_COUNT (MI_SLICE_SIZE / sizeof(mi_mapped_slot_t)) // of a slab, with that of the slab itself

mi_lock_t _mi_mapped_slot_lock;

static mi_atomic(slot_slab_t*) slot_slabs; // written under the lock, as what follows
static mi_range_t*             slot_unused;

static mi_mapped_slot_t* slot_slab_slots(const slot_slab_t* slab) {
  return (mi_mapped_slot_t*)(uintptr_t)slab;
}

// Caller holds the lock.
static void slot_add_slab(slot_slab_t* slab) {
  mi_mapped_slot_t* slots = slot_slab_slots(slab);
  for (size_t i = SLOT_COUNT - 1; i > 0; i--) {
    slots[i].range.left = &slots[i].range;
    slots[i].range.right = slot_unused;
    slot_unused = &slots[i].range;
  }
  mi_store_relaxed(&slab->next, mi_load_relaxed(&slot_slabs));
  mi_store_release(&slot_slabs, slab);
}

static slot_slab_t* slot_new_slab(void) {
  mi_run_t run = _mi_slices_alloc(1, 1, MI_REQUEST_META, MI_ARENA_ANY);
  if (run.region == NULL) return NULL;
  slot_slab_t* slab = (slot_slab_t*)(void*)_mi_region_slice_start(run.region, run.slice);
  if (MI_TRACK) mi_track_readable(slab, MI_SLICE_SIZE);
  if (!run.is_zero) memset((void*)slab, 0, MI_SLICE_SIZE);
  if (MI_TRACK) _mi_prim_hide(slab, MI_SLICE_SIZE);
  return slab;
}

mi_mapped_slot_t* _mi_mapped_slot_take(void) {
  for (slot_slab_t* slab = NULL;;) {
    _mi_lock_acquire(&_mi_mapped_slot_lock);
    if (slab != NULL) slot_add_slab(slab);
    mi_range_t* range = slot_unused;
    if (range != NULL) slot_unused = range->right;
    _mi_lock_release(&_mi_mapped_slot_lock);
    if (range != NULL) return _mi_mapped_slot_of_range(range);
    if ((slab = slot_new_slab()) == NULL) return NULL;
  }
}

void _mi_mapped_slot_put(mi_mapped_slot_t* slot) {
  _mi_lock_acquire(&_mi_mapped_slot_lock);
  slot->range.right = slot_unused;
  slot_unused = &slot->range;
  _mi_lock_release(&_mi_mapped_slot_lock);
}

void* _mi_mapped_slot_next(const void* descriptor) {
  const slot_slab_t* slab = (const slot_slab_t*)mi_align_down((uintptr_t)descriptor, MI_SLICE_SIZE);
  size_t i = (slab == NULL ? SLOT_COUNT : (size_t)(_mi_mapped_slot_of(descriptor) - slot_slab_slots(slab)) + 1);
  if (i == SLOT_COUNT) {
    slab = mi_load_acquire(slab == NULL ? &slot_slabs : &((slot_slab_t*)(uintptr_t)slab)->next);
    i = 1;
  }
  return slab == NULL ? NULL : slot_slab_slots(slab)[i].descriptor;
}

bool _mi_mapped_slot_is_descriptor(const void* p) {
  for (slot_slab_t* slab = mi_load_acquire(&slot_slabs); slab != NULL; slab = mi_load_acquire(&slab->next)) {
    size_t offset = (uintptr_t)p - (uintptr_t)slab;
    if (offset < MI_SLICE_SIZE) return offset >= sizeof(mi_mapped_slot_t) && offset % sizeof(mi_mapped_slot_t) == 0;
  }
  return false;
}
