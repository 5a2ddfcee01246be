// The maps of gap pages (gaps.h): which units are blocks, and which are gaps.  Layer: heap.
//
// GM1  A map has a number of 16 bits, so there are 4 GiB of gap pages at most.  One that no page has is used again; their memory is never
//      given back.
#pragma once

#include "../page/page.h"

#define MI_GAP_UNIT  ((size_t)16)
#define MI_GAP_UNITS (MI_SLICE_SIZE / MI_GAP_UNIT)
#define MI_GAP_WORDS (MI_GAP_UNITS / 64)

typedef struct mi_gap_map_s {
  mi_page_t*           page;
  struct mi_gap_map_s* next; // among those of its theap, or that are unused
  struct mi_gap_map_s* prev;
  struct mi_gap_map_s* next_loose; // among those of its theap with loose gaps
  struct mi_gap_map_s* prev_loose;
  uint64_t             loose_words; // bit i: loose[i] is not zero
  size_t n_hollow; // how many blocks it had when what it does not use went back (hollow.h); 0: it is backed
  mi_atomic(uint64_t) starts[MI_GAP_WORDS]; // gaps.h, GP1
  mi_atomic(uint64_t) blocks[MI_GAP_WORDS];
  uint64_t            loose[MI_GAP_WORDS]; // gap_list.h, GL1
} mi_gap_map_t;

mi_static_assert(MI_GAP_WORDS <= 64, "a bit for each word");

extern mi_lock_t _mi_gap_map_lock; // of all maps' numbers; taken after the pools' locks

// The unit that begins there, or in which that is.
static inline size_t _mi_gap_map_unit(const void* p) {
  return (uintptr_t)p % MI_SLICE_SIZE / MI_GAP_UNIT;
}

static inline bool _mi_gap_map_has(const mi_atomic(uint64_t)* words, size_t i) {
  return ((mi_load_relaxed((mi_atomic(uint64_t)*)&words[i / 64]) >> (i % 64)) & 1) != 0;
}

static inline void _mi_gap_map_set(mi_atomic(uint64_t)* words, size_t i, bool is_set) {
  uint64_t bit = (uint64_t)1 << (i % 64), old = mi_load_relaxed(&words[i / 64]);
  mi_store_relaxed(&words[i / 64], is_set ? old | bit : old & ~bit);
}

// Is the gap at unit i loose?  For the owner of the page.
static inline bool _mi_gap_map_is_loose(const mi_gap_map_t* map, size_t i) {
  return ((map->loose[i / 64] >> (i % 64)) & 1) != 0;
}

// The first bit in the words after that of i; MI_GAP_UNITS if there is none.
size_t _mi_gap_map_find_after(const mi_atomic(uint64_t)* words, size_t i);

// The same from i on.
static inline size_t _mi_gap_map_find(const mi_atomic(uint64_t)* words, size_t i) {
  if (mi_unlikely(i >= MI_GAP_UNITS)) return MI_GAP_UNITS;
  uint64_t bits = mi_load_relaxed((mi_atomic(uint64_t)*)&words[i / 64]) >> (i % 64);
  return mi_likely(bits != 0) ? i + mi_ctz64(bits) : _mi_gap_map_find_after(words, i);
}

// The last bit before i, which is not the first one.
size_t _mi_gap_map_find_before(const mi_atomic(uint64_t)* words, size_t i);

// Of the run that begins at unit i.
static inline size_t _mi_gap_map_length(const mi_gap_map_t* map, size_t i) {
  return _mi_gap_map_find(map->starts, i + 1) - i;
}

// The map of that number, and whether there ever was one.
mi_gap_map_t* _mi_gap_map_at(size_t i);
bool          _mi_gap_map_is(size_t i);

// The number of a map that no page has; false if there is none, or no memory.
bool _mi_gap_map_new(size_t* i);
void _mi_gap_map_free(size_t i);

// Was there no number left for the last page that wanted one?  Until one is given back no page can become a gap page.
bool _mi_gap_map_none_left(void);
