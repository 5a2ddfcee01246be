// The large blocks that a thread keeps.  Layer: heap.  See kept.h.
#include "kept.h"

#include <string.h>

#include "../arena/purge.h"
#include "../arena/purge_keep.h"
#include "../arena/space.h"
#include "../prim/lock.h"

static mi_always_inline bool kept_try_take(mi_kept_t* kept) {
  return mi_likely(mi_exchange_acquire(&kept->is_taken, 1u) == 0);
}

static mi_always_inline void kept_let_go(mi_kept_t* kept) {
  mi_store_release(&kept->is_taken, 0u);
}

// ---- lists ------------------------------------------------------------------------------------------------------------

// KE2: n >= MI_KEPT_SLICES_MIN
static mi_always_inline size_t kept_list(size_t n) {
  size_t shift = mi_msb64(n) - 3;
  return shift * 8 + (n >> shift) - 8;
}

static mi_always_inline void kept_link(mi_kept_t* kept, mi_page_t* page, size_t i) {
  page->was_seen_kept = false;
  page->next = kept->lists[i];
  kept->lists[i] = page;
  mi_store_relaxed(&kept->nonempty, mi_load_relaxed(&kept->nonempty) | (uint64_t)1 << i);
}

static mi_always_inline void kept_set_empty(mi_kept_t* kept, size_t i) {
  mi_store_relaxed(&kept->nonempty, mi_load_relaxed(&kept->nonempty) & ~((uint64_t)1 << i));
}

static mi_always_inline void kept_unlink_first(mi_kept_t* kept, mi_page_t* page, size_t i) {
  kept->lists[i] = page->next;
  if (page->next == NULL) kept_set_empty(kept, i);
}

// ---- room -------------------------------------------------------------------------------------------------------------

// KE3: n slices have left the set, and come into it.
static mi_always_inline void kept_add_room(mi_kept_t* kept, size_t n) {
  kept->n_room += n;
  _mi_purge_lend(n);
}

static mi_always_inline void kept_fill_room(mi_kept_t* kept, size_t n) {
  kept->n_room -= n;
  _mi_purge_unlend(n);
}

// It may keep so much less; there is room for that.
static void kept_unallow(mi_kept_t* kept, size_t n) {
  kept_fill_room(kept, n);
  mi_store_relaxed(&kept->n_allowed, mi_load_relaxed(&kept->n_allowed) - n);
  _mi_purge_unkeep(n);
}

// ---- keeping ----------------------------------------------------------------------------------------------------------

// KE4.  What the thread may keep is asked for once: it does not change as long as it takes and frees blocks of about the same size.
static bool kept_allow(mi_kept_t* kept, size_t n) {
  size_t allowed = mi_load_relaxed(&kept->n_allowed), credit = mi_load_relaxed(&kept->n_credit);
  size_t n_more = n - kept->n_room;
  bool   is_first = (allowed == kept->n_room);
  if (!is_first && (n_more > credit || allowed + n_more > MI_KEPT_SLICES)) return false;
  if (mi_load_relaxed(&_mi_space_is_short) || !_mi_purge_keep(n_more)) return false;
  mi_store_relaxed(&kept->n_credit, credit - mi_min(credit, n_more));
  mi_store_relaxed(&kept->n_allowed, allowed + n_more);
  kept_add_room(kept, n_more);
  return true;
}

// There is no room: it is made, or a size of which nothing is kept takes the place of the largest.
static mi_noinline mi_page_t* kept_push_more(mi_kept_t* kept, mi_page_t* page, size_t n, size_t i) {
  mi_page_t* other = NULL;
  if (!kept_allow(kept, n)) {
    uint64_t lists = (kept->lists[i] != NULL ? 0 : mi_load_relaxed(&kept->nonempty));
    if (lists == 0) return page;
    size_t largest = mi_msb64(lists);
    other = kept->lists[largest];
    if (kept->n_room + other->n_slices < n) return page;
    kept_unlink_first(kept, other, largest);
    kept_add_room(kept, other->n_slices);
  }
  kept_link(kept, page, i);
  kept_fill_room(kept, n);
  return other;
}

mi_page_t* _mi_kept_push(mi_kept_t* kept, mi_page_t* page) {
  size_t n = page->n_slices, i = kept_list(n);
  if (!kept_try_take(kept)) return page;
  if (mi_unlikely(kept->n_room < n)) {
    page = kept_push_more(kept, page, n, i);
    kept_let_go(kept);
    return page;
  }
  kept_fill_room(kept, n);
  kept_link(kept, page, i);
  kept_let_go(kept);
  return NULL;
}

// ---- using again ------------------------------------------------------------------------------------------------------

static mi_always_inline mi_page_t* kept_use(mi_kept_t* kept, mi_page_t* page, size_t i) {
  kept_unlink_first(kept, page, i);
  kept_add_room(kept, page->n_slices);
  return page;
}

// From another list than that of its size.
static mi_noinline mi_page_t* kept_pop_other(mi_kept_t* kept, size_t n, size_t i) {
  uint64_t lists = mi_load_relaxed(&kept->nonempty) >> i & ~(uint64_t)1;
  if (lists == 0) return NULL;
  i += mi_ctz64(lists);
  mi_page_t* page = kept->lists[i];
  return page->n_slices <= n + n / 4 ? kept_use(kept, page, i) : NULL;
}

mi_page_t* _mi_kept_pop(mi_kept_t* kept, size_t n) {
  if (mi_unlikely(n - MI_KEPT_SLICES_MIN > MI_KEPT_SLICES_MAX - MI_KEPT_SLICES_MIN)) return NULL;
  size_t i = kept_list(n);
  if (mi_load_relaxed(&kept->nonempty) >> i == 0 || !kept_try_take(kept)) return NULL;
  mi_page_t* page = kept->lists[i]; // others may have taken what was there
  page = (mi_likely(page != NULL && page->n_slices >= n) ? kept_use(kept, page, i) : kept_pop_other(kept, n, i));
  kept_let_go(kept);
  return page;
}

// The smallest that is larger than n slices, or else the largest.
static mi_page_t* kept_take_for(mi_kept_t* kept, size_t n) {
  uint64_t all = mi_load_relaxed(&kept->nonempty), larger = 0;
  if (n <= MI_KEPT_SLICES_MAX) larger = all & ~(uint64_t)0 << kept_list(mi_max(n, MI_KEPT_SLICES_MIN)) << 1;
  size_t i = (larger != 0 ? mi_ctz64(larger) : mi_msb64(all));
  return kept_use(kept, kept->lists[i], i);
}

mi_page_t* _mi_kept_missed(mi_kept_t* kept, size_t n) {
  mi_page_t* pages = NULL;
  size_t     credit = mi_load_relaxed(&kept->n_credit) + n, n_taken = 0;
  // A round that takes all credit at this moment may take none.
  if (n <= MI_KEPT_SLICES_MAX) mi_store_relaxed(&kept->n_credit, mi_min(credit, (size_t)MI_KEPT_SLICES));
  if (mi_load_relaxed(&kept->nonempty) == 0 || !kept_try_take(kept)) return NULL;
  while (n_taken < n && mi_load_relaxed(&kept->nonempty) != 0) {
    mi_page_t* page = kept_take_for(kept, n - n_taken);
    n_taken += page->n_slices;
    page->next = pages;
    pages = page;
  }
  if (n > MI_KEPT_SLICES_MAX && n_taken > 0) kept_unallow(kept, n_taken); // KE6
  kept_let_go(kept);
  return pages;
}

// ---- giving back ------------------------------------------------------------------------------------------------------

// Takes from a list what is to go, and puts it in front of `pages`.
static mi_page_t* kept_take_list(mi_kept_t* kept, size_t i, bool any, mi_page_t* pages) {
  for (mi_page_t **at = &kept->lists[i], *page; (page = *at) != NULL;) {
    if (any || page->was_seen_kept) {
      *at = page->next;
      page->next = pages;
      pages = page;
      kept_add_room(kept, page->n_slices);
    }
    else {
      page->was_seen_kept = true;
      at = &page->next;
    }
  }
  if (kept->lists[i] == NULL) kept_set_empty(kept, i);
  return pages;
}

static mi_page_t* kept_take_lists(mi_kept_t* kept, bool any) {
  mi_page_t* pages = NULL;
  for (uint64_t lists = mi_load_relaxed(&kept->nonempty); lists != 0; lists &= lists - 1)
    pages = kept_take_list(kept, mi_ctz64(lists), any, pages);
  return pages;
}

mi_page_t* _mi_kept_take_all(mi_kept_t* kept, bool is_own) {
  for (int n_spins = 0; !kept_try_take(kept);) {
    // Whoever has it is no more, or waits for a lock that this thread holds until it has forked.
    if (!is_own || _mi_prim_is_ending() || _mi_lock_is_forker()) return NULL;
    _mi_lock_pause(&kept->is_taken, 1, &n_spins);
  }
  mi_page_t* pages = kept_take_lists(kept, true);
  mi_store_relaxed(&kept->n_credit, (size_t)0);
  kept_unallow(kept, kept->n_room);
  kept_let_go(kept);
  return pages;
}

mi_page_t* _mi_kept_take_unused(mi_kept_t* kept, uint64_t n_reused) {
  if (!kept_try_take(kept)) return NULL;
  size_t     n_room = kept->n_room;
  bool       is_used = (n_reused != kept->n_reused_seen);
  mi_page_t* pages = kept_take_lists(kept, false);
  if (!is_used) mi_store_relaxed(&kept->n_credit, (size_t)0);
  kept_unallow(kept, is_used ? kept->n_room - n_room : kept->n_room);
  kept->n_reused_seen = n_reused;
  kept_let_go(kept);
  return pages;
}

// ---- after a fork -----------------------------------------------------------------------------------------------------

bool _mi_kept_has(const mi_kept_t* kept, const mi_page_t* page) {
  if (page->n_slices < MI_KEPT_SLICES_MIN || page->n_slices > MI_KEPT_SLICES_MAX) return false;
  const mi_page_t* at = kept->lists[kept_list(page->n_slices)];
  while (at != NULL && at != page) at = at->next;
  return at != NULL;
}

void _mi_kept_forget(mi_kept_t* kept) {
  _mi_purge_unlend(kept->n_room);
  _mi_purge_unkeep(mi_load_relaxed(&kept->n_allowed));
  memset((void*)kept, 0, sizeof(*kept));
}
