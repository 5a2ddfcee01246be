// realloc and its relatives.  Layer: api.
//
// A block stays where it is while at least half of it is used; a large one also grows into free memory behind it, and is
// moved by the system's page tables before it is copied (heap/large_resize.h).  A smaller one that grows by less than a quarter gets
// a quarter more than it had: who appends to a list or to a text does so again, and each step would copy it
// (docs/decisions/047).
//
// At level 3 of the interface a block that is resized is afterwards in the heap that it would be allocated from: who is
// going to destroy the other one may count on that.
#include "realloc.h"

#include "../base/probe.h"
#include "../heap/guard.h"
#include "../heap/large_resize.h"
#include "../heap/profile.h"
#include "life.h"
#include "malloc.h"

void* _mi_realloc_copy_to(void* q, void* p, size_t old_size, size_t new_size, bool zero) {
  if (mi_unlikely(q == NULL)) return NULL;
  size_t n = mi_min(old_size, new_size);
  if (zero || new_size == 0) {
    size_t size = _mi_life_size(_mi_page_of_made(q), q);
    if (zero) memset((char*)q + n, 0, size - n);  // to the end of the block, for when it grows in place
    if (new_size == 0 && size > 0) *(char*)q = 0; // some programs read it
  }
  _mi_life_populate(q, n);
  memcpy(q, p, n);
  mi_free(p);
  return q;
}

static mi_noinline void* realloc_copy(mi_heap_t* heap, void* p, size_t old_size, size_t new_size, bool zero) {
  size_t growth = _mi_life_growth(old_size, new_size);
  void*  q = (growth > 0 ? _mi_alloc_growing(heap, new_size, growth) : _mi_malloc_in(heap, new_size, false));
  return _mi_realloc_copy_to(q, p, old_size, new_size, zero);
}

static bool realloc_is_in(mi_heap_t* heap, const mi_page_t* page) {
  if (heap == NULL && MI_API_LEVEL < 3) return true;
  return _mi_heap_of(page) == (heap != NULL ? heap : mi_heap_get_default());
}

void* _mi_realloc_stay(mi_heap_t* heap, mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero) {
  if (!realloc_is_in(heap, page)) return NULL;
  size_t room = _mi_life_room(page, p), need = _mi_life_need(new_size);
  if (_mi_page_has(page, MI_PAGE_GUARDED)) {
    if (!_mi_life_resize_guarded(page, old_size, new_size)) return NULL;
    room = new_size;
  }
  else if (need > room || need < room / 2 || new_size == 0 ||
           (_mi_life_is_guarded(new_size) && !_mi_life_is_guarded(old_size))) {
    return NULL;
  }
  _mi_life_resize(page, p, old_size, new_size, room, zero);
  return p;
}

// For a sampled block, which leaves the profile unless that is refused.  It was less than its run: the rest was not the program's, and may
// be dirty.
static mi_cold void* realloc_sampled(mi_page_t* page, void* p, size_t need, bool clears) {
  size_t             room = _mi_life_room(page, p);
  mi_profile_block_t sample = _mi_profile_remove(page);
  if (clears) memset((char*)p + room, 0, _mi_page_large_size(page) - room);
  void* q = _mi_large_resize(page, need, clears);
  if (q == NULL) _mi_profile_put_back(page, &sample);
  return q;
}

void* _mi_realloc_large(mi_heap_t* heap, mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero) {
  size_t room = _mi_life_room(page, p);
  bool   is_large = (page->cls == MI_CLASS_NONE && new_size > MI_CLASS_ASKED_MAX && new_size <= PTRDIFF_MAX);
  if (!is_large || !MI_LIFE_CAN_REMAP || _mi_page_has(page, MI_PAGE_GUARDED) || !realloc_is_in(heap, page)) return NULL;
  bool   clears = _mi_life_is_cleared(zero); // what it adds is zero
  size_t need = _mi_life_need(new_size);
  bool   is_sampled = mi_unlikely(_mi_page_has(page, MI_PAGE_SAMPLED));
  void*  q = is_sampled ? realloc_sampled(page, p, need, clears) : _mi_large_resize(page, need, clears);
  MI_PROBE3(large_realloc, p, q, new_size);
  if (q == NULL) return NULL;
  if (q != p) {
    _mi_trace_freed(p);
    _mi_trace_allocated(q);
  }
  _mi_life_resize(_mi_page_of(q), q, old_size, new_size, room, zero);
  _mi_alloc_resized(q, new_size);
  return q;
}

// A mapping that the system does not resize is copied.  Where there is no room for both, what we hold may be what is missing, and
// then there is for one.
static void* realloc_mapped(mi_heap_t* heap, mi_page_t* page, void* p, size_t old_size, size_t new_size, bool zero) {
  if (!_mi_page_has(page, MI_PAGE_MAPPED) || new_size <= old_size || new_size > PTRDIFF_MAX) return NULL;
  void* q = _mi_alloc_quietly(heap, new_size, _mi_life_growth(old_size, new_size));
  if (q != NULL) return _mi_realloc_copy_to(q, p, old_size, new_size, zero);
  mi_collect(true);
  return _mi_realloc_large(heap, page, p, old_size, new_size, zero);
}

static mi_noinline void* realloc_slow(void* p, size_t new_size, bool zero, mi_heap_t* heap) mi_attr_noexcept {
  if (p == NULL) return _mi_malloc_in(heap, new_size, zero);
  mi_page_t* page = _mi_life_find(p, "realloc");
  if (mi_unlikely(page == NULL)) return NULL;
  size_t old_size = _mi_life_size(page, p);
  void*  q = _mi_realloc_stay(heap, page, p, old_size, new_size, zero);
  if (q == NULL) q = _mi_realloc_large(heap, page, p, old_size, new_size, zero);
  if (q == NULL) q = realloc_mapped(heap, page, p, old_size, new_size, zero);
  return q != NULL ? q : realloc_copy(heap, p, old_size, new_size, zero);
}

static size_t realloc_ahead(size_t old_size, size_t new_size) {
  size_t quarter = old_size / 4;
  return new_size > old_size && new_size - old_size < quarter ? old_size + quarter : new_size;
}

// A block that does not fit as it is; `slice` as in realloc_any.
static mi_noinline void* realloc_move(const mi_page_t* slice, void* p, size_t new_size) mi_attr_noexcept {
  size_t old_size = (slice == NULL || p == NULL ? 0 : _mi_life_plain_size(slice)); // NULL: arena/region.h, R1
  if (mi_unlikely(old_size == 0 || new_size == 0)) return realloc_slow(p, new_size, false, NULL);
  size_t ahead = realloc_ahead(old_size, new_size);
  void*  q = (ahead > new_size ? _mi_malloc_quietly(ahead) : NULL);
  if (q == NULL) q = mi_malloc(new_size);
  if (mi_unlikely(q == NULL)) return NULL;
  memcpy(q, p, mi_min(old_size, new_size));
  mi_free(p);
  return q;
}

// The descriptor of the slice in region 0, where nearly all blocks are.
static mi_always_inline const mi_page_t* realloc_slice(const void* p) {
  const mi_region_t* region = &_mi_region_all[0];
  size_t             slice = ((uintptr_t)p - mi_load_growing_relaxed(&region->base)) >> MI_SLICE_SHIFT;
  return mi_likely(slice < mi_load_growing(&region->n_slices)) ? (const mi_page_t*)_mi_region_descriptor(region, slice)
                                                               : NULL;
}

static mi_always_inline void* realloc_any(mi_heap_t* heap, void* p, size_t new_size, bool zero) {
  const mi_page_t* slice = (heap == NULL && !MI_TAGS ? realloc_slice(p) : NULL);
  if (mi_likely(slice != NULL) && _mi_life_fits(slice, new_size)) {
    if (MI_API_LEVEL < 3 || mi_likely(mi_load_relaxed(&slice->home) == _mi_theap_default)) return p;
  }
  if (heap == NULL && !zero && MI_API_LEVEL < 3) return realloc_move(slice, p, new_size);
  return realloc_slow(p, new_size, zero, heap);
}

void* _mi_realloc(mi_heap_t* heap, void* p, size_t new_size, bool zero) {
  return realloc_any(heap, p, new_size, zero);
}

// ---- functions of the interface -------------------------------------------------------------------------------------

static void* realloc_array(mi_heap_t* heap, void* p, size_t count, size_t size, bool zero) {
  size_t total;
  return _mi_alloc_count(count, size, &total) ? _mi_realloc(heap, p, total, zero) : NULL;
}

static void* realloc_or_free(mi_heap_t* heap, void* p, size_t new_size) {
  void* q = _mi_realloc(heap, p, new_size, false);
  if (q == NULL) mi_free(p);
  return q;
}

// clang-format off
MI_ALLOC_BOTH(void*, realloc,  MI_ALLOC_P(void* p, size_t size),           , realloc_any(heap, p, size, false))
MI_ALLOC_BOTH(void*, rezalloc, MI_ALLOC_P(void* p, size_t size),           , realloc_any(heap, p, size, true))
MI_ALLOC_BOTH(void*, reallocn, MI_ALLOC_P(void* p, size_t n, size_t size), , realloc_array(heap, p, n, size, false))
MI_ALLOC_BOTH(void*, recalloc, MI_ALLOC_P(void* p, size_t n, size_t size), , realloc_array(heap, p, n, size, true))
MI_ALLOC_BOTH(void*, reallocf, MI_ALLOC_P(void* p, size_t size),           , realloc_or_free(heap, p, size))
// clang-format on

void* mi_theap_realloc(mi_theap_t* theap, void* p, size_t newsize) mi_attr_noexcept {
  return _mi_realloc(_mi_alloc_heap_of(theap), p, newsize, false);
}
