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

// Classes whose pages have one slice are not looked at.
#define WRITTEN_CLASSES (MI_CLASS_COUNT - MI_CLASS_SEVERAL)

typedef struct written_class_s {
  mi_atomic(uintptr_t) last, before; // where the pages begin; 0: there is none
  mi_atomic(uint32_t)  n_thin;       // so many looks in a row found less
} written_class_t;

static written_class_t written_classes[WRITTEN_CLASSES];

void _mi_written_note(const mi_page_t* page, bool is_zero) {
  if (page->cls < MI_CLASS_SEVERAL || !is_zero) return;
  written_class_t* of = &written_classes[page->cls - MI_CLASS_SEVERAL];
  mi_store_relaxed(&of->before, mi_load_relaxed(&of->last));
  mi_store_relaxed(&of->last, (uintptr_t)_mi_page_start(page));
}

// Any number of words at random, but the first is the first one: who touches memory to back it touches that.
static bool written_holds(uintptr_t start, size_t size, uint64_t random) {
  for (int k = 0; k < WRITTEN_WORDS; k++) {
    size_t offset = (k == 0 ? 0 : (random >> 16 * k) % (size / sizeof(uint32_t)) * sizeof(uint32_t));
    if (_mi_prim_is_written((const void*)(start + offset))) return true;
  }
  return false;
}

static bool written_is(uintptr_t page, size_t cls) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  size_t                 step = mi_min(_mi_prim_os_page_size(), info->block_size), n_empty = 0;
  uint64_t               random = page;
  for (size_t i = 0; i < WRITTEN_PLACES && n_empty <= WRITTEN_EMPTY_MAX; i++) {
    random = mi_mix64(random + 1);
    uintptr_t block = page + i * info->capacity / WRITTEN_PLACES * info->block_size;
    if (!written_holds(block + (random & 0xFFFF) % (info->block_size / step) * step, step, random)) n_empty++;
  }
  return n_empty <= WRITTEN_EMPTY_MAX;
}

bool _mi_written_is(size_t cls) {
  if (MI_TRACK || MI_HARDENED || cls < MI_CLASS_SEVERAL) return cls < MI_CLASS_SEVERAL;
  written_class_t* of = &written_classes[cls - MI_CLASS_SEVERAL];
  uintptr_t        page = mi_load_relaxed(&of->before);
  uint32_t         n_thin = mi_load_relaxed(&of->n_thin);
  bool             is_looked_at = (page != 0 && (n_thin < WRITTEN_PATIENCE || n_thin % WRITTEN_PERIOD == 0));
  bool             is = (is_looked_at && written_is(page, cls));
  mi_store_relaxed(&of->n_thin, is || page == 0 ? 0 : n_thin + 1);
  return is;
}
