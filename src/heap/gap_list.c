// The gaps that a theap has.  Layer: heap.  gap_list.h has the invariants.
#include "gap_list.h"

// Exact lists for gaps of up to so many units, and four for each doubling above.
#define GAP_LIST_EXACT 32

// So many gaps of a list are looked at for one that is large enough; in the lists of larger gaps each is, but for alignment.
#define GAP_LIST_TRIES 4

// ---- lists by size --------------------------------------------------------------------------------------------------

static size_t gap_list_index(size_t n) {
  if (n <= GAP_LIST_EXACT) return n - 1;
  size_t bit = mi_msb64(n);
  return GAP_LIST_EXACT + (bit - 5) * 4 + ((n >> (bit - 2)) & 3);
}

mi_static_assert(GAP_LIST_EXACT == 32 && MI_GAP_UNITS <= 4096, "a page's largest gap is in list 60");

void _mi_gap_list_put(mi_gaps_t* gaps, mi_gap_t* gap, size_t n) {
  size_t list = gap_list_index(n);
  gap->next = gaps->lists[list];
  gap->prev = NULL;
  if (gap->next != NULL) gap->next->prev = gap;
  gaps->lists[list] = gap;
  gaps->nonempty |= (uint64_t)1 << list;
  gaps->n_free += n;
}

void _mi_gap_list_pull(mi_gaps_t* gaps, mi_gap_t* gap, size_t n) {
  size_t list = gap_list_index(n);
  if (gap->next != NULL) gap->next->prev = gap->prev;
  if (gap->prev != NULL) gap->prev->next = gap->next;
  else gaps->lists[list] = gap->next;
  if (gaps->lists[list] == NULL) gaps->nonempty &= ~((uint64_t)1 << list);
  gaps->n_free -= n;
}

// Does a block of n units fit into the gap where it is aligned?
static bool gap_list_try(mi_gap_place_t* place, mi_gap_t* gap, size_t n, size_t align) {
  place->gap = gap;
  place->map = _mi_gap_map_at(_mi_page_at(gap)->gap_map);
  place->first = _mi_gap_map_unit(gap);
  place->n = _mi_gap_map_length(place->map, place->first);
  place->at = mi_align_up(place->first, align);
  return place->at + n <= place->first + place->n;
}

bool _mi_gap_list_search(const mi_gaps_t* gaps, size_t n, size_t align, mi_gap_place_t* place) {
  size_t first = gap_list_index(n);
  for (uint64_t lists = gaps->nonempty >> first << first; lists != 0; lists &= lists - 1) {
    mi_gap_t* gap = gaps->lists[mi_ctz64(lists)];
    for (int tries = 0; gap != NULL && tries < GAP_LIST_TRIES; gap = gap->next, tries++) {
      if (gap_list_try(place, gap, n, align)) return true;
    }
  }
  return false;
}

// ---- loose gaps -----------------------------------------------------------------------------------------------------

static void gap_list_add_loose(mi_gaps_t* gaps, mi_gap_map_t* map) {
  map->next_loose = NULL;
  map->prev_loose = gaps->last_loose;
  if (map->prev_loose != NULL) map->prev_loose->next_loose = map;
  else gaps->first_loose = map;
  gaps->last_loose = map;
}

static void gap_list_remove_loose(mi_gaps_t* gaps, mi_gap_map_t* map) {
  if (map->next_loose != NULL) map->next_loose->prev_loose = map->prev_loose;
  else gaps->last_loose = map->prev_loose;
  if (map->prev_loose != NULL) map->prev_loose->next_loose = map->next_loose;
  else gaps->first_loose = map->next_loose;
}

bool _mi_gap_list_loosen(mi_gaps_t* gaps, mi_gap_map_t* map, const void* p) {
  size_t i = _mi_gap_map_unit(p);
  if (mi_unlikely((uintptr_t)p % MI_GAP_UNIT != 0 || !_mi_gap_map_has(map->blocks, i))) return false;
  if (map->loose_words == 0 && gaps != NULL) gap_list_add_loose(gaps, map);
  _mi_gap_map_set(map->blocks, i, false);
  map->loose[i / 64] |= (uint64_t)1 << (i % 64);
  map->loose_words |= (uint64_t)1 << (i / 64);
  return true;
}

// True if the gap at unit i was loose.
static bool gap_list_tighten(mi_gap_map_t* map, size_t i) {
  bool was_loose = _mi_gap_map_is_loose(map, i);
  map->loose[i / 64] &= ~((uint64_t)1 << (i % 64));
  return was_loose;
}

// The gap of n units at unit i is to be a part of another.
static void gap_list_absorb(mi_gaps_t* gaps, mi_gap_map_t* map, size_t i, size_t n) {
  if (!gap_list_tighten(map, i) && gaps != NULL) _mi_gap_list_pull(gaps, _mi_gap_list_at(map, i), n);
}

// The first loose gap of a page, at unit i, joins those next to it.
static void gap_list_join(mi_gaps_t* gaps, mi_gap_map_t* map, size_t i) {
  size_t n = _mi_gap_map_length(map, i);
  gap_list_tighten(map, i);
  for (size_t next = i + n, n_next; next < MI_GAP_UNITS && !_mi_gap_map_has(map->blocks, next); next += n_next) {
    n_next = _mi_gap_map_length(map, next);
    gap_list_absorb(gaps, map, next, n_next);
    _mi_gap_map_set(map->starts, next, false);
    n += n_next;
  }
  size_t before = (i == 0 ? 0 : _mi_gap_map_find_before(map->starts, i));
  if (i > 0 && !_mi_gap_map_has(map->blocks, before)) {
    gap_list_absorb(gaps, map, before, i - before);
    _mi_gap_map_set(map->starts, i, false);
    n += i - before;
    i = before;
  }
  if (gaps != NULL) _mi_gap_list_put(gaps, _mi_gap_list_at(map, i), n);
}

size_t _mi_gap_list_join(mi_gaps_t* gaps, mi_gap_map_t* map) {
  size_t n = 0;
  for (; map->loose_words != 0; map->loose_words &= map->loose_words - 1) {
    size_t w = mi_ctz64(map->loose_words);
    for (; map->loose[w] != 0; n++) gap_list_join(gaps, map, w * 64 + mi_ctz64(map->loose[w]));
  }
  return n;
}

size_t _mi_gap_list_join_oldest(mi_gaps_t* gaps) {
  mi_gap_map_t* map = gaps->first_loose;
  if (map == NULL) return 0;
  gap_list_remove_loose(gaps, map);
  return _mi_gap_list_join(gaps, map);
}

// ---- pages ----------------------------------------------------------------------------------------------------------

void _mi_gap_list_enter_page(mi_gaps_t* gaps, mi_gap_map_t* map) {
  for (size_t n, i = 0; i < MI_GAP_UNITS; i += n) {
    n = _mi_gap_map_length(map, i);
    if (!_mi_gap_map_has(map->blocks, i)) _mi_gap_list_put(gaps, _mi_gap_list_at(map, i), n);
  }
  map->prev = NULL;
  map->next = gaps->first;
  if (map->next != NULL) map->next->prev = map;
  gaps->first = map;
  gaps->n_pages++;
}

void _mi_gap_list_leave_page(mi_gaps_t* gaps, mi_gap_map_t* map) {
  if (map->loose_words != 0) gap_list_remove_loose(gaps, map);
  _mi_gap_list_join(gaps, map);
  _mi_gap_list_pull(gaps, _mi_gap_list_at(map, 0), MI_GAP_UNITS);
  if (map->next != NULL) map->next->prev = map->prev;
  if (map->prev != NULL) map->prev->next = map->next;
  else gaps->first = map->next;
  if (gaps->turn == map) gaps->turn = map->next;
  gaps->n_pages--;
}
