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
#define WRITTEN_OWED     4 // WN5

// The first word, which who touches memory to back it touches, and others at random.
static bool written_holds(uintptr_t start, size_t size, uint64_t random) {
  for (int k = 0; k < WRITTEN_WORDS; k++) {
    size_t offset = (k == 0 ? 0 : (size_t)(random >> 16 * k) % (size / sizeof(uint32_t)) * sizeof(uint32_t));
    if (_mi_prim_is_written((const void*)(start + offset))) return true;
  }
  return false;
}

static bool written_is(uintptr_t page, size_t cls) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  size_t                 step = mi_min(_mi_prim_os_page_size(), info->block_size), n_empty = 0;
  uint64_t               random = page;
  for (size_t i = 0; i < WRITTEN_PLACES && n_empty <= WRITTEN_EMPTY_MAX; i++) {
    random = mi_mix64(random);
    uintptr_t block = page + i * info->capacity / WRITTEN_PLACES * info->block_size;
    if (!written_holds(block + (size_t)(random & 0xFFFF) % (info->block_size / step) * step, step, random)) n_empty++;
  }
  return n_empty <= WRITTEN_EMPTY_MAX;
}

// WN3
static bool written_may_look(uint32_t n_thin) {
  return (n_thin < WRITTEN_PATIENCE || n_thin % WRITTEN_PERIOD == 0) && _mi_region_may_be_huge();
}

bool _mi_written_is(mi_written_t* written, size_t cls) {
  mi_written_class_t* of = &written->classes[cls - MI_CLASS_SEVERAL];
  uint32_t            at = (of->before != 0 ? of->before : of->last);
  if (MI_TRACK || MI_HARDENED || at == 0) return false;
  bool is = (written_may_look(of->n_thin) && written_is((uintptr_t)at << MI_SLICE_SHIFT, cls));
  of->n_thin = (is ? 0 : of->n_thin + 1);
  return is;
}

static bool written_block_is(uintptr_t start, size_t size) {
  size_t   step = _mi_prim_os_page_size(), piece = size / WRITTEN_PLACES, n_empty = 0;
  uint64_t random = start;
  for (size_t i = 0; i < WRITTEN_PLACES && n_empty <= WRITTEN_EMPTY_MAX; i++) {
    random = mi_mix64(random);
    size_t offset = i * piece + (size_t)(random & 0xFFFF) % (piece / step) * step;
    if (!written_holds(start + offset, step, random)) n_empty++;
  }
  return n_empty <= WRITTEN_EMPTY_MAX;
}

bool _mi_written_block_is(mi_written_t* written) {
  mi_written_blocks_t* of = &written->blocks;
  if (MI_TRACK || MI_HARDENED || of->before == 0) return false;
  if (of->is_seen) return of->asks;
  bool is = (written_may_look(of->n_thin) && written_block_is(of->before, of->before_size));
  of->n_thin = (is ? 0 : of->n_thin + 1);
  of->n_owed = (is ? of->n_owed - (of->n_owed > 0) : WRITTEN_OWED);
  of->is_seen = true;
  return of->asks = (of->n_owed == 0);
}
