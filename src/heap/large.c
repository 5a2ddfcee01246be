// Blocks that have a page of their own.  Layer: heap.
#include "large.h"

#include <errno.h>
#include <string.h>

#include "../arena/dense.h"
#include "../arena/purge_at_peak.h"
#include "../arena/recur.h"
#include "../arena/shrink.h"
#include "../base/probe.h"
#include "../page/verify.h"
#include "../support/options.h"
#include "../support/stat.h"
#include "event.h"
#include "guard.h"
#include "lost.h"
#include "profile.h"
#include "spare.h"
#include "trim.h"

mi_atomic(size_t) _mi_large_n_remapped;

bool _mi_large_wants_mapping(size_t n, size_t align, size_t arena) {
  bool is_large = (n > MI_LARGE_MAPPED_MIN / MI_SLICE_SIZE || align > MI_CHUNK_SIZE);
  return MI_PRIM_VIRTUAL && is_large && !_mi_region_is_bound(arena);
}

void* _mi_large_map(size_t n, size_t align) {
  if (n > UINT32_MAX) return NULL;
  void* descriptor = _mi_mapped_new(n * MI_SLICE_SIZE, align);
  if (descriptor != NULL) return descriptor;
  // Address space that nothing lies in is what may be missing.
  _mi_lock_acquire(&_mi_region_lock);
  bool any = _mi_shrink_regions();
  _mi_lock_release(&_mi_region_lock);
  return any ? _mi_mapped_new(n * MI_SLICE_SIZE, align) : NULL;
}

// What this thread knows about blocks of n slices (page/written.h, WN5).  NULL: of others it knows nothing.
static mi_written_t* large_written(size_t n) {
  bool        is_looked_at = (n * MI_SLICE_SIZE >= MI_WRITTEN_BLOCK_MIN && n * MI_SLICE_SIZE < MI_DENSE_MIN);
  mi_theap_t* theap = (is_looked_at ? _mi_theap_backing() : NULL);
  return theap != NULL ? &theap->written : NULL;
}

// What a block of n slices is going to be.
static mi_request_t large_request(size_t n, bool zero) {
  size_t size = n * MI_SLICE_SIZE;
  if (zero && _mi_dense_is_thin(size)) return MI_REQUEST_THIN;
  mi_written_t* written = large_written(n);
  if (written != NULL) {
    // Under a limit huge pages end where blocks do: what is behind is resident, but does not count before it is handed out.
    bool is_dense = !_mi_limit_is_set(&_mi_limit_process) && _mi_written_block_is(written, size);
    return is_dense ? MI_REQUEST_DENSE : MI_REQUEST_MIXED;
  }
  return size >= MI_DENSE_MIN && _mi_dense_is_asked() && _mi_dense_take(size) ? MI_REQUEST_DENSE : MI_REQUEST_MIXED;
}

static const mi_run_t large_none = {NULL, 0, 0, false};

static mi_run_t large_slices(size_t n, size_t align, size_t arena, bool zero) {
  return _mi_slices_alloc(n, mi_max(1, align >> MI_SLICE_SHIFT), large_request(n, zero), arena);
}

// When a mapping was wanted and is not to be had (there may be too many), slices will do for what fits well into a region.
static mi_run_t large_run(size_t n, size_t align, size_t arena, bool zero) {
  bool fits = !_mi_large_wants_mapping(n, align, arena) || n <= _mi_region_all[0].n_chunks * MI_CHUNK_SLICES / 2;
  return fits ? large_slices(n, align, arena, zero) : large_none;
}

// For a block that would have a mapping of its own: slices of arenas that serve all heaps, which are paid for already, or any slices if
// such blocks come again soon.  No region: it has a mapping.
static mi_run_t large_run_unmapped(size_t n, size_t align, size_t arena, bool zero) {
  mi_run_t run = _mi_slices_alloc_shared(n, mi_max(1, align >> MI_SLICE_SHIFT), arena);
  if (run.region != NULL || align > MI_CHUNK_SIZE) return run;
  return _mi_recur_takes_slices(n * MI_SLICE_SIZE) ? large_slices(n, align, arena, zero) : large_none;
}

static mi_noinline void large_clear(const mi_region_t* region, char* start, size_t size) {
  bool by_system = _mi_region_purges_to_zero(region) && _mi_dense_is_cleared_by_system(start, size);
  if (!by_system || _mi_prim_purge(start, size) != 0) memset(start, 0, size);
}

void _mi_large_clear(const mi_run_t* run) {
  for (size_t i = 0, n_zero; i < run->n_slices; i += n_zero) {
    size_t n_dirty = _mi_slices_skip_dirty(run->region, run->slice + i, run->n_slices - i, &n_zero);
    char*  start = _mi_region_slice_start(run->region, run->slice + i);
    size_t size = n_dirty * MI_SLICE_SIZE;
    if (MI_TRACK) mi_track_writable(start, size);
    large_clear(run->region, start, size);
    i += n_dirty;
  }
}

// The program may have left a part of a block without access.  With a mapping of its own, here and in other allocators, that does no harm;
// so it must do none for a block of that size that has slices.  False if the system refuses.
static bool large_make_usable(const mi_page_t* page) {
  size_t size = page->n_slices * MI_SLICE_SIZE;
  bool   is_large = (size > MI_LARGE_MAPPED_MIN && _mi_page_region(page)->origin == MI_REGION_OWN);
  if (!MI_PRIM_VIRTUAL || !is_large || _mi_prim_commit(_mi_page_start(page), size) == 0) return true;
  _mi_prim_purge(_mi_page_start(page), size);
  return false;
}

// Gives back the slices of a page that is CLAIMED, and in no list of a heap any more, as the system has left them.
static void large_give_back_slices(mi_page_t* page, mi_remap_t remap) {
  mi_region_t* region = _mi_page_region(page);
  size_t       slice = _mi_page_slice(page);
  size_t       n = page->n_slices;
  bool         is_ours = (remap != MI_REMAP_LOST && remap != MI_REMAP_RESERVED);
  if (is_ours && !large_make_usable(page)) remap = MI_REMAP_RESERVED;
  _mi_page_delete_large(page);
  if (remap == MI_REMAP_DONE || remap == MI_REMAP_REFUSED) _mi_slices_free(region, slice, n, remap == MI_REMAP_DONE);
  else _mi_lost_add(page, remap);
}

// A block that moves counts once: so it has grown or shrunk, as if it had stayed in place.
static void large_count_moved(const mi_page_t* from, const mi_page_t* to) {
  _mi_stat_change(&_mi_stat_live.malloc_huge,
                  ((int64_t)to->n_slices - (int64_t)from->n_slices) * (int64_t)MI_SLICE_SIZE);
}

void _mi_large_lose(mi_page_t* page, const mi_page_t* from, mi_remap_t remap) {
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL));
  large_count_moved(page, from);
  if (_mi_page_has(page, MI_PAGE_IN_HEAP)) _mi_heap_remove_page(page);
  large_give_back_slices(page, remap);
}

// For a guarded or sampled block.  True if it was guarded, and is given back.
static mi_noinline bool large_give_back_special(mi_page_t* page) {
  if (_mi_page_has(page, MI_PAGE_SAMPLED)) _mi_profile_remove(page);
  if (!_mi_page_has(page, MI_PAGE_GUARDED)) return false;
  _mi_guard_free(page);
  return true;
}

// Gives back the memory of any CLAIMED page.
static void large_give_back_memory(mi_page_t* page) {
  mi_remap_t remap = (_mi_page_has(page, MI_PAGE_IS_ZERO) ? MI_REMAP_DONE : MI_REMAP_REFUSED);
  if (_mi_page_has(page, MI_PAGE_GUARDED | MI_PAGE_SAMPLED) && large_give_back_special(page)) return;
  if (_mi_page_is_mapped(page)) {
    bool was_in = _mi_mapped_take_out(page);
    _mi_page_delete_mapped(page);
    _mi_mapped_free(page, was_in);
    return;
  }
  if (_mi_page_has(page, MI_PAGE_REMAPPED)) {
    remap = _mi_prim_unremap(_mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
    _mi_page_clear(page, MI_PAGE_REMAPPED);
    mi_fetch_sub_relaxed(&_mi_large_n_remapped, 1);
  }
  if (MI_TRACK) mi_track_closed(_mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
  large_give_back_slices(page, remap);
}

// The page is CLAIMED: gives it back to the arena, or the system.
static void large_give_back(mi_page_t* page) {
  bool is_guarded = _mi_page_has(page, MI_PAGE_GUARDED);
  if (_mi_page_has(page, MI_PAGE_IN_HEAP)) _mi_heap_remove_page(page);
  large_give_back_memory(page);
  if (!is_guarded) _mi_event_freed(); // after a mapping, too: what was held may be due
}

void _mi_large_forget(mi_page_t* page) {
  _mi_heap_forget_page(page);
  large_give_back_memory(page);
}

mi_page_t* _mi_large_add(mi_heap_t* heap, const mi_page_t* other, mi_page_t* page) {
  if (heap != NULL ? !_mi_heap_add_page(heap, page) : !_mi_heap_add_page_beside(other, page)) {
    large_give_back(page);
    return NULL;
  }
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_OWNED, 0, NULL));
  if (other != NULL) large_count_moved(other, page);
  else _mi_stat_increase(&_mi_stat_live.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  return page;
}

// Memory that waits for other requests gives way.
static void large_make_room(size_t n) {
  mi_theap_t* theap = (n > MI_KEPT_SLICES_MAX ? _mi_theap_backing() : NULL);
  if (theap != NULL) _mi_trim_for_run(theap);
  _mi_spare_relieve(n);
}

// A page for a block at an offset, CLAIMED; NULL when out of memory.
static mi_page_t* large_new(size_t n, size_t align, size_t arena, size_t offset, bool zero) {
  mi_run_t run = large_none;
  _mi_lost_retry();
  large_make_room(n);
  if (_mi_large_wants_mapping(n, align, arena)) {
    run = large_run_unmapped(n, align, arena, zero);
    void* descriptor = (run.region == NULL ? _mi_large_map(n, align) : NULL);
    if (descriptor != NULL) return _mi_page_new_mapped(descriptor, n, offset);
  }
  if (run.region == NULL) run = large_run(n, align, arena, zero);
  if (run.region == NULL) return NULL;
  _mi_purge_at_peak();
  if (zero && !run.is_zero) _mi_large_clear(&run);
  mi_page_t*    page = _mi_page_new_large(run, offset, 0);
  mi_written_t* written = (run.is_zero ? large_written(n) : NULL);
  if (written != NULL) _mi_written_note_block(written, _mi_page_start(page), n * MI_SLICE_SIZE);
  if (zero && n * MI_SLICE_SIZE >= MI_THIN_MIN) _mi_page_set(page, MI_PAGE_ZEROED);
  return page;
}

// Pages start at multiples of `align`: the distance from there at which a block starts so that (block + offset) is a multiple again.
static size_t large_adjust(size_t align, size_t offset) {
  return (align - (offset & (align - 1))) & (align - 1);
}

void* _mi_large_malloc(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero) {
  size_t adjust = large_adjust(align, offset);
  if (size > (size_t)PTRDIFF_MAX - adjust - MI_SLICE_SIZE) return NULL;
  size_t n = mi_div_up(mi_max(size, 1) + adjust, MI_SLICE_SIZE);
  if (!_mi_heap_may_take(heap, n)) return NULL;
  mi_page_t* page = large_new(n, align, mi_load_relaxed(&heap->arena), adjust, zero);
  if (page == NULL || _mi_large_add(heap, NULL, page) == NULL) return NULL;
  page->keeper = _mi_theap_backing();
  _mi_stat_count(&_mi_stat_live.malloc_huge_count, 1);
  return _mi_page_large_block(page);
}

// Only the OS pages of the block are to be backed.  If the block is to be zero, all of the run is cleared: the block may grow there.
static void large_prepare_alone(const mi_run_t* run, size_t size, bool zero) {
  if (run->is_zero) return;
  char*  start = _mi_region_slice_start(run->region, run->slice);
  size_t all = run->n_slices * MI_SLICE_SIZE, kept = mi_align_up(size, _mi_prim_os_page_size());
  bool   is_purged =
      (kept < all && _mi_region_purges_to_zero(run->region) && _mi_prim_purge(start + kept, all - kept) == 0);
  if (!is_purged) kept = all;
  if (zero) memset(start, 0, kept);
}

void* _mi_large_malloc_alone(mi_heap_t* heap, size_t size, size_t align, size_t offset, bool zero) {
  size_t   adjust = large_adjust(align, offset);
  size_t   n = mi_div_up(size + adjust, MI_SLICE_SIZE);
  mi_run_t run =
      _mi_slices_alloc(n, mi_max(1, align >> MI_SLICE_SHIFT), MI_REQUEST_MIXED, mi_load_relaxed(&heap->arena));
  if (run.region == NULL) return NULL;
  _mi_purge_at_peak();
  large_prepare_alone(&run, size + adjust, zero);
  mi_page_t* page = _mi_large_add(heap, NULL, _mi_page_new_large(run, adjust, 0));
  if (page == NULL) return NULL;
  if (!MI_PADDING) {
    page->asked = size;
    _mi_page_set(page, MI_PAGE_SAMPLED);
  }
  _mi_stat_count(&_mi_stat_live.malloc_huge_count, 1);
  return _mi_page_large_block(page);
}

static bool large_may_keep(const mi_page_t* page) {
  return !MI_TRACK && page->n_slices >= MI_KEPT_SLICES_MIN && page->n_slices <= MI_KEPT_SLICES_MAX && page->is_plain &&
         !_mi_page_has(page, MI_PAGE_REMAPPED | MI_PAGE_IN_HEAP | MI_PAGE_GUARDED | MI_PAGE_MAPPED | MI_PAGE_SAMPLED);
}

// Who keeps a freed block: the thread that has allocated it, if it is still there, because it may request such a block again; otherwise
// `theap`.  NULL: nobody.
static mi_always_inline mi_theap_t* large_keeper(mi_theap_t* theap, const mi_page_t* page) {
  if (!large_may_keep(page)) return NULL;
  mi_theap_t* keeper = page->keeper;
  if (mi_likely(keeper == theap) || keeper == NULL) return theap;
  return mi_load_relaxed(&keeper->thread) == keeper ? keeper : theap;
}

// False when the block is not in use.  The caller counts it.
static mi_always_inline bool large_claim_uncounted(mi_page_t* page) {
  // acq_rel: of two frees at the same time one wins, and what the other threads wrote to the block is over.
  uint64_t claimed = _mi_page_word_make(MI_PAGE_CLAIMED, 0, NULL);
  if (_mi_page_kind(page) != MI_PAGE_LARGE || mi_exchange_acq_rel(&page->word, claimed) == claimed) return false;
  MI_PROBE2(large_free, page->block, page->n_slices);
  if (MI_TRACK) mi_track_freed(_mi_page_large_block(page), _mi_padding_read_large(page));
  return true;
}

static mi_always_inline bool large_claim(mi_page_t* page) {
  if (!large_claim_uncounted(page)) return false;
  _mi_stat_decrease(&_mi_stat_live.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  return true;
}

// A block over 32 MiB goes back at once, as if it had a mapping, if little of it was written: what is free and backed is for those that
// come again.
static void large_look_recurring(mi_page_t* page, size_t size) {
  char* start = _mi_page_start(page);
  if (_mi_dense_freed(start, size)) _mi_recur_freed(size);
  else if (_mi_region_purges_to_zero(_mi_page_region(page)) && _mi_prim_purge(start, size) == 0)
    _mi_page_set(page, MI_PAGE_IS_ZERO);
}

// How much of a block was written is looked at before it goes; mappings are looked at by those that unmap them, and memory of arenas
// of the program asks for nothing.
static void large_look(mi_page_t* page, size_t size) {
  bool is_mapped = _mi_page_has(page, MI_PAGE_MAPPED | MI_PAGE_GUARDED | MI_PAGE_REMAPPED);
  if (is_mapped || _mi_page_region(page)->origin != MI_REGION_OWN) return;
  if (size > MI_LARGE_MAPPED_MIN && _mi_recur_may()) large_look_recurring(page, size);
  else if (_mi_dense_is_asked()) _mi_dense_freed(_mi_page_start(page), size);
}

static mi_noinline void large_not_kept(mi_page_t* page) {
  size_t size = page->n_slices * MI_SLICE_SIZE;
  if (_mi_page_has(page, MI_PAGE_ZEROED)) _mi_dense_freed_zeros(_mi_page_start(page), size);
  large_look(page, size);
  large_give_back(page);
}

bool _mi_large_free(mi_theap_t* theap, mi_page_t* page) {
  if (mi_unlikely(theap == NULL)) mi_store_relaxed(&_mi_registry_has_others, true); // for a fork at this moment
  if (!large_claim(page)) return false;
  mi_theap_t* keeper = large_keeper(theap, page);
  if (keeper != NULL) {
    page = _mi_kept_push(&keeper->kept, page);
    _mi_event_note();
  }
  if (page != NULL) large_not_kept(page);
  return true;
}

void _mi_large_free_moved(mi_page_t* page) {
  if (large_claim_uncounted(page)) large_give_back(page); // large_count_moved
}

void _mi_large_discard(mi_page_t* page) {
  if (MI_TRACK) {
    mi_track_unblock(_mi_page_large_block(page));
    mi_track_freed(_mi_page_large_block(page), _mi_padding_read_large(page));
  }
  else if (MI_CHECKED) {
    _mi_verify_destroyed(page, _mi_page_large_block(page));
  }
  _mi_stat_decrease(&_mi_stat_live.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  mi_store_relaxed(&_mi_page_heap_link(page)->heap, (mi_heap_t*)NULL); // heap.h, Q7
  large_give_back_memory(page);
}

// A page that was kept is in use again.
static mi_always_inline void* large_reuse(mi_theap_t* theap, mi_page_t* page, bool zero) {
  void* p = _mi_page_large_block(page);
  if (zero) large_clear(_mi_page_region(page), _mi_page_start(page), page->n_slices * MI_SLICE_SIZE);
  page->keeper = theap;
  _mi_page_clear(page, MI_PAGE_IS_ZERO | MI_PAGE_ZEROED);
  _mi_theap_count(theap, MI_COUNT_LARGE_REUSED, 1);
  _mi_stat_increase(&_mi_stat_live.malloc_huge, (int64_t)(page->n_slices * MI_SLICE_SIZE));
  mi_store_release(&page->word, _mi_page_word_make(MI_PAGE_OWNED, 0, NULL));
  return p;
}

void* _mi_large_malloc_kept(mi_theap_t* theap, size_t size, bool zero) {
  mi_page_t* page = _mi_kept_pop(&theap->kept, mi_div_up(size, MI_SLICE_SIZE));
  return page == NULL ? NULL : large_reuse(theap, page, zero);
}

// Pages that were kept.  The caller may hold locks, so nobody is told (event.h).
static void large_give_back_all(mi_page_t* pages) {
  for (mi_page_t *page = pages, *next; page != NULL; page = next) {
    next = page->next;
    large_give_back_memory(page);
  }
}

// Nobody has the page: gives back what is behind n slices.
static void large_trim(mi_page_t* page, size_t n) {
  size_t n_old = page->n_slices;
  page->n_slices = (uint32_t)n;
  _mi_slices_free(_mi_page_region(page), _mi_page_slice(page) + n, n_old - n, false);
}

void* _mi_large_malloc_missed(mi_theap_t* theap, size_t size, bool zero) {
  size_t     n = mi_div_up(size, MI_SLICE_SIZE);
  mi_page_t* page = _mi_kept_missed(&theap->kept, n);
  bool       fits = (page != NULL && page->n_slices >= n);
  large_give_back_all(fits ? page->next : page);
  if (!fits) return NULL;
  if (page->n_slices > n) large_trim(page, n);
  return large_reuse(theap, page, zero);
}

bool _mi_large_drop_kept(mi_theap_t* theap) {
  if (!_mi_kept_any(&theap->kept)) return false;
  bool is_own = (mi_load_relaxed(&theap->thread) == _mi_theap_backing());
  large_give_back_all(_mi_kept_take_all(&theap->kept, is_own));
  return true;
}

void _mi_large_drop_unused(mi_theap_t* theap) {
  if (_mi_kept_any(&theap->kept))
    large_give_back_all(_mi_kept_take_unused(&theap->kept, mi_load_relaxed(&theap->counts[MI_COUNT_LARGE_REUSED])));
}
