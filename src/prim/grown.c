// Memory of systems where it only grows: there are no addresses without memory behind them, no protection, and nothing goes
// back.  All of it comes from _mi_prim_memory.  Layer: prim.
//
// GR1  A range of `prim_ranges` is memory that nobody has: what the system gave and was not asked for yet, or what was
//      released.  The ranges are ordered by address, and no two meet that are alike.
// GR2  A range that is_zero reads as zero behind its first words, which link it.
#include "prim.h"

#include <errno.h>
#include <string.h>

#include "../base/bits.h"
#include "inject.h"
#include "lock.h"

#if !MI_PRIM_VIRTUAL

typedef struct prim_range_s {
  struct prim_range_s* next;
  size_t               size;
  bool                 is_zero;
} prim_range_t;

  #define PRIM_GRAIN 32 // what ranges are multiples of: one fits into each

mi_static_assert(sizeof(prim_range_t) <= PRIM_GRAIN, "a range holds its own description");

mi_prim_calls_t      _mi_prim_calls;
static mi_lock_t     prim_ranges_lock; // a leaf
static prim_range_t* prim_ranges;

// ---- ranges ---------------------------------------------------------------------------------------------------------

static bool prim_range_meets(const prim_range_t* range, const prim_range_t* next) {
  return (const char*)range + range->size == (const char*)next && range->is_zero == next->is_zero;
}

static void prim_range_join(prim_range_t* range) {
  prim_range_t* next = range->next;
  if (next == NULL || !prim_range_meets(range, next)) return;
  range->size += next->size;
  range->next = next->next;
  memset((void*)next, 0, sizeof(*next));
}

// What is no multiple of the grain is lost.
static void prim_range_put(uintptr_t start, size_t size, bool is_zero) {
  uintptr_t     from = mi_align_up(start, PRIM_GRAIN), to = mi_align_down(start + size, PRIM_GRAIN);
  prim_range_t *range = (prim_range_t*)from, *before = NULL;
  if (from >= to) return;
  prim_range_t** link = &prim_ranges;
  for (; *link != NULL && *link < range; link = &before->next) before = *link;
  range->next = *link;
  range->size = to - from;
  range->is_zero = is_zero;
  *link = range;
  prim_range_join(range);
  if (before != NULL) prim_range_join(before);
}

// Memory that is new.  What the piece before it had beyond its last whole grain goes with it if it begins there: pieces that are
// aligned to less than a grain would not meet otherwise, and nothing larger than one of them would be had.
static void prim_range_add(uintptr_t start, size_t size) {
  static uintptr_t last_end;
  uintptr_t        from = (start == last_end ? mi_align_down(start, PRIM_GRAIN) : start);
  last_end = start + size;
  prim_range_put(from, last_end - from, true);
}

// Takes [start, start + size) out of a range, zero.
static void prim_range_cut(prim_range_t** link, uintptr_t start, size_t size) {
  prim_range_t* range = *link;
  uintptr_t     from = (uintptr_t)range, end = from + range->size;
  bool          is_zero = range->is_zero;
  *link = range->next;
  memset((void*)range, 0, sizeof(*range));
  if (!is_zero) memset((void*)start, 0, size);
  prim_range_put(from, start - from, is_zero);
  prim_range_put(start + size, end - (start + size), is_zero);
}

// The lowest that has room; NULL: none has.  *missing is what the highest lacks.
static prim_range_t** prim_range_find(size_t size, size_t align, size_t* missing) {
  *missing = size + align;
  for (prim_range_t** link = &prim_ranges; *link != NULL; link = &(*link)->next) {
    uintptr_t start = mi_align_up((uintptr_t)*link, align), end = (uintptr_t)*link + (*link)->size;
    if (start <= end && end - start >= size) return link;
    *missing = (start <= end ? size - (end - start) : size + (start - end));
  }
  return NULL;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// Memory that lies elsewhere than behind the highest range may need more for the alignment.
  #define PRIM_TRIES 3

static int prim_ranges_take(size_t size, size_t align, void** start) {
  size_t         missing, got;
  prim_range_t** link;
  for (int i = 0; (link = prim_range_find(size, align, &missing)) == NULL; i++) {
    void* more;
    mi_fetch_add_relaxed(&_mi_prim_calls.map, 1);
    if (i == PRIM_TRIES || (got = _mi_prim_memory(missing, &more)) == 0) return ENOMEM;
    prim_range_add((uintptr_t)more, got);
  }
  *start = (void*)mi_align_up((uintptr_t)*link, align);
  prim_range_cut(link, (uintptr_t)*start, size);
  return 0;
}

// It is memory at once, and zero.
MI_PRIM_DEFAULT int _mi_prim_reserve(size_t size, size_t align, void** start) {
  align = mi_max(align, PRIM_GRAIN);
  if (_mi_prim_must_fail() || size > PTRDIFF_MAX - align) return ENOMEM;
  _mi_lock_acquire(&prim_ranges_lock);
  int err = prim_ranges_take(mi_align_up(size, PRIM_GRAIN), align, start);
  _mi_lock_release(&prim_ranges_lock);
  return err;
}

MI_PRIM_DEFAULT int _mi_prim_release(void* start, size_t size) {
  _mi_lock_acquire(&prim_ranges_lock);
  prim_range_put((uintptr_t)start, mi_align_up(size, PRIM_GRAIN), false);
  _mi_lock_release(&prim_ranges_lock);
  return 0;
}

// ---- what is done already ---------------------------------------------------------------------------------------------
// clang-format off

MI_PRIM_DEFAULT int _mi_prim_commit(void* start, size_t size)        { (void)start, (void)size; return _mi_prim_must_fail() ? ENOMEM : 0; }
MI_PRIM_DEFAULT int _mi_prim_make_readable(void* start, size_t size) { (void)start, (void)size; return _mi_prim_must_fail() ? ENOMEM : 0; }

// ---- what there is not ------------------------------------------------------------------------------------------------

MI_PRIM_DEFAULT int _mi_prim_reserve_at(void* start, size_t size)          { (void)start, (void)size; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_map_at(void* start, size_t size, bool grows)  { (void)start, (void)size, (void)grows; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_map(size_t size, void** start)                { (void)size, (void)start; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_resize(void** start, size_t size, size_t n)   { (void)start, (void)size, (void)n; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_purge(void* start, size_t size)               { (void)start, (void)size; return ENOTSUP; }
MI_PRIM_DEFAULT bool _mi_prim_unlock(void* start, size_t size)             { (void)start, (void)size; return false; }
MI_PRIM_DEFAULT int _mi_prim_discard(void* start, size_t size)             { (void)start, (void)size; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_decommit(void* start, size_t size)            { (void)start, (void)size; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_protect(void* start, size_t size)             { (void)start, (void)size; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_populate(void* start, size_t size)            { (void)start, (void)size; return EINVAL; }
MI_PRIM_DEFAULT int _mi_prim_populate_read(void* start, size_t size)       { (void)start, (void)size; return EINVAL; }
MI_PRIM_DEFAULT bool _mi_prim_is_written(const void* word)                 { (void)word; return false; }
MI_PRIM_DEFAULT int _mi_prim_advise_huge(void* start, size_t size, bool enable) { (void)start, (void)size, (void)enable; return ENOTSUP; }
MI_PRIM_DEFAULT mi_remap_t _mi_prim_unremap(void* start, size_t size)      { (void)start, (void)size; return MI_REMAP_REFUSED; }
MI_PRIM_DEFAULT mi_remap_t _mi_prim_remap(void* from, void* to, size_t size) { (void)from, (void)to, (void)size; return MI_REMAP_REFUSED; }
MI_PRIM_DEFAULT int _mi_prim_move_out(void* from, size_t size, size_t new_size, void** start) { (void)from, (void)size, (void)new_size, (void)start; return ENOTSUP; }
MI_PRIM_DEFAULT int _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost) { (void)start, (void)size, (void)os_page_size; *is_lost = false; return ENOTSUP; }
MI_PRIM_DEFAULT void   _mi_prim_give_up(void* start, size_t size)                { (void)start, (void)size; }
MI_PRIM_DEFAULT int    _mi_prim_map_large_apart(size_t size, size_t os_page_size, void** start) { (void)size, (void)os_page_size, (void)start; return ENOTSUP; }
MI_PRIM_DEFAULT bool   _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size) { (void)i, (void)start, (void)size; return false; }
MI_PRIM_DEFAULT size_t _mi_prim_address_space_limit(void)                  { return SIZE_MAX; }
MI_PRIM_DEFAULT bool   _mi_prim_overcommits(void)                          { return false; }
MI_PRIM_DEFAULT void   _mi_prim_hide(void* start, size_t size)             { (void)start, (void)size; }

// clang-format on

#endif
