// Blocks over 32 MiB that come again soon.  Layer: arena.  recur.h has the invariants.
#include "recur.h"

#include "../base/bits.h"
#include "../base/mode.h"
#include "../prim/prim.h"
#include "../support/option.h"
#include "recall.h"
#include "space.h"

#define RECUR_SOON_MS 200 // CA1
#define RECUR_MS_MIB  10  // CA1, decision 46
#define RECUR_LARGER  2   // CA2

static mi_recur_t recur_blocks;

// Is there a limit of address space, which counts what waits?  As it was at the start: a sandbox may forbid the call later.
static mi_atomic(bool) recur_is_limited;

void _mi_recur_init(void) {
  mi_store_relaxed(&recur_is_limited, _mi_prim_address_space_limit() != SIZE_MAX);
}

static bool recur_is_soon(const mi_recur_t* recur, int64_t now) {
  return mi_load_relaxed(&recur->freed) > 0 && now - mi_load_relaxed(&recur->last_freed) < RECUR_SOON_MS;
}

static bool recur_is_held(const mi_recur_t* recur, int64_t now) {
  return now < mi_load_relaxed(&recur->until);
}

void _mi_recur_note(mi_recur_t* recur, size_t size, int64_t now) {
  bool   is_soon = recur_is_soon(recur, now);
  size_t largest = (is_soon || recur_is_held(recur, now) ? mi_load_relaxed(&recur->largest) : 0);
  mi_store_relaxed(&recur->largest, mi_max(largest, size));
  mi_store_relaxed(&recur->freed, (is_soon ? mi_load_relaxed(&recur->freed) : 0) + size);
  mi_store_relaxed(&recur->last_freed, now);
}

bool _mi_recur_holds(mi_recur_t* recur, size_t size, int64_t now) {
  if (recur_is_soon(recur, now)) {
    size_t  freed = mi_load_relaxed(&recur->freed), n = mi_min(size, freed);
    int64_t from = (recur_is_held(recur, now) ? mi_load_relaxed(&recur->until) : now);
    mi_store_relaxed(&recur->freed, freed - n);
    mi_store_relaxed(&recur->until, _mi_recall_until(from, now, n / MI_SLICE_SIZE, RECUR_MS_MIB));
  }
  return recur_is_held(recur, now) && size / RECUR_LARGER <= mi_load_relaxed(&recur->largest);
}

bool _mi_recur_may(void) {
  return MI_SECURE == 0 && _mi_option_get_fast(mi_option_purge_delay) != 0 && !mi_load_relaxed(&recur_is_limited) &&
         !mi_load_relaxed(&_mi_space_is_short);
}

void _mi_recur_freed(size_t size) {
  if (_mi_recur_may()) _mi_recur_note(&recur_blocks, size, _mi_prim_clock_ms());
}

bool _mi_recur_takes_slices(size_t size) {
  return _mi_recur_may() && _mi_recur_holds(&recur_blocks, size, _mi_prim_clock_ms());
}

size_t _mi_recur_largest(void) {
  return mi_load_relaxed(&recur_blocks.largest);
}
