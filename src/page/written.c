// Are the blocks of a class written all over?  Layer: page.  written.h has the invariants.
#include "written.h"

#include "../base/bits.h"
#include "../base/mode.h"
#include "../base/track.h"

#define WRITTEN_PLACES    8
#define WRITTEN_EMPTY_MAX 1
#define WRITTEN_WORDS     4

// WN3
#define WRITTEN_PATIENCE 4
#define WRITTEN_PERIOD   16
#define WRITTEN_OWED     2 // WN5: times the size of a block that holds less

// The first word, which who touches memory to back it touches, and others at random.
static bool written_holds(uintptr_t start, size_t size, uint64_t random) {
  for (int k = 0; k < WRITTEN_WORDS; k++) {
    size_t offset = (k == 0 ? 0 : (size_t)(random >> 16 * k) % (size / sizeof(uint32_t)) * sizeof(uint32_t));
    if (_mi_prim_is_written((const void*)(start + offset))) return true;
  }
  return false;
}

// Of `count` blocks, or pieces of a block, of `size` bytes each.
static bool written_is(uintptr_t start, size_t count, size_t size) {
  size_t   step = mi_min(_mi_prim_os_page_size(), size), n_empty = 0;
  uint64_t random = start;
  for (size_t i = 0; i < WRITTEN_PLACES && n_empty <= WRITTEN_EMPTY_MAX; i++) {
    random = mi_mix64(random);
    uintptr_t block = start + i * count / WRITTEN_PLACES * size;
    if (!written_holds(block + (size_t)(random & 0xFFFF) % (size / step) * step, step, random)) n_empty++;
  }
  return n_empty <= WRITTEN_EMPTY_MAX;
}

// WN3
static bool written_may_look(uint32_t n_thin) {
  return (n_thin < WRITTEN_PATIENCE || n_thin % WRITTEN_PERIOD == 0) && _mi_region_may_be_huge();
}

static void written_look(mi_written_look_t* look, uintptr_t start, size_t count, size_t size) {
  look->is_filled = (written_may_look(look->n_thin) && written_is(start, count, size));
  look->n_thin = (uint16_t)(look->is_filled ? 0 : look->n_thin + 1);
  look->is_seen = true;
}

bool _mi_written_is(mi_written_t* written, size_t cls) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  mi_written_class_t*    of = &written->classes[cls - MI_CLASS_SEVERAL];
  uintptr_t              page = (uintptr_t)(of->before != 0 ? of->before : of->last) << MI_SLICE_SHIFT;
  if (MI_TRACK || MI_HARDENED || page == 0) return false;
  if (!of->look.is_seen) written_look(&of->look, page, info->capacity, info->block_size);
  return of->look.is_filled;
}

bool _mi_written_block_is(mi_written_t* written, size_t size) {
  mi_written_blocks_t* of = &written->blocks;
  if (MI_TRACK || MI_HARDENED || of->before == 0) return false;
  if (!of->look.is_seen) {
    int64_t seen = (int64_t)of->before_size;
    written_look(&of->look, of->before, WRITTEN_PLACES, of->before_size / WRITTEN_PLACES);
    of->credit = (of->look.is_filled ? of->credit + seen : -WRITTEN_OWED * seen);
  }
  return of->credit >= (int64_t)size;
}
