// The chunks of a region, by the free slices that they have.  Layer: arena.
#include "chunk.h"

#include "../support/assert.h"
#include "../support/option.h"
#include "limit.h"
#include "space.h"

static mi_atomic(size_t) chunk_n_purgeable, chunk_n_freed;
static size_t            chunk_low, chunk_high; // of the first, since the last restart

#define GROUP_UNKNOWN UINT8_MAX // a group_room of so many or more free chunks, or of a number that is not known

// Of this many chunks the highest is purged, because low ones are used again first.
#define BACKED_CHOICE 8

// This many chunks of a long bucket are looked at; each chunk of the next bucket suffices.
#define LONG_CHOICE 4

// ---- buckets --------------------------------------------------------------------------------------------------------

// The first buckets are those of a kind, the others those of long runs.
#define BUCKET_LONG (MI_CHUNK_SLICES + 1)

static uint32_t* chunk_head(mi_region_t* region, mi_chunk_list_t list, size_t kind, size_t bucket) {
  return mi_likely(bucket < BUCKET_LONG) ? &region->buckets[list][kind][bucket]
                                         : &region->long_buckets[bucket - BUCKET_LONG];
}

static void chunk_mark_bucket(mi_region_t* region, mi_chunk_list_t list, size_t kind, size_t bucket, bool has_any) {
  if (mi_likely(bucket < BUCKET_LONG)) {
    uint64_t bit = (uint64_t)1 << bucket, others = region->nonempty[list][kind] & ~bit;
    region->nonempty[list][kind] = has_any ? others | bit : others;
  }
  else {
    uint32_t bit = (uint32_t)1 << (bucket - BUCKET_LONG), others = region->nonempty_long & ~bit;
    region->nonempty_long = has_any ? others | bit : others;
  }
}

// From the bucket of a list in which it is to another one; 0: none.
static mi_always_inline void chunk_bucket_move(mi_region_t* region, mi_chunk_t* chunk, mi_chunk_list_t list,
                                               size_t bucket) {
  size_t      from = chunk->bucket[list];
  mi_chunk_t* chunks = region->chunks;
  if (bucket == from) return;
  if (from != 0) {
    uint32_t next = chunk->next[list], prev = chunk->prev[list];
    if (next != 0) chunks[next - 1].prev[list] = prev;
    if (prev != 0) chunks[prev - 1].next[list] = next;
    else *chunk_head(region, list, chunk->kind, from) = next;
    if (prev == 0 && next == 0) chunk_mark_bucket(region, list, chunk->kind, from, false);
  }
  if (bucket != 0) {
    uint32_t* head = chunk_head(region, list, chunk->kind, bucket);
    uint32_t  index = (uint32_t)(chunk - chunks) + 1, next = *head;
    chunk->next[list] = next;
    chunk->prev[list] = 0;
    if (next != 0) chunks[next - 1].prev[list] = index;
    else chunk_mark_bucket(region, list, chunk->kind, bucket, true);
    *head = index;
  }
  chunk->bucket[list] = (uint8_t)bucket;
}

// How much a chunk can give of those slices.
static size_t chunk_room(const mi_chunk_t* chunk, uint32_t bits) {
  bool is_of_slices = (chunk->kind == MI_CHUNK_SMALL || chunk->kind == MI_CHUNK_HUGE);
  return is_of_slices ? mi_popcount32(bits) : mi_longest_run32(bits);
}

static bool chunk_may_have_run(const mi_chunk_t* chunk) {
  return chunk->kind == MI_CHUNK_MIXED || chunk->kind == MI_CHUNK_NONE;
}

// What chunk i has up to its end, and from its start on, for a run of any length.
static size_t chunk_tail(const mi_region_t* region, size_t i) {
  const mi_chunk_t* chunk = &region->chunks[i];
  return chunk_may_have_run(chunk) ? mi_high_ones32(chunk->free_bits) : 0;
}

static size_t chunk_front(const mi_region_t* region, size_t i) {
  const mi_chunk_t* chunk = &region->chunks[i];
  return i < region->n_used && chunk_may_have_run(chunk) ? mi_low_ones64(chunk->free_bits) : 0;
}

// How long a run is that begins in chunk i and goes on after it; 0: none does, or it has only whole chunks, which their bits find.
static size_t chunk_run_across(const mi_region_t* region, size_t i) {
  size_t tail = chunk_tail(region, i), front = (tail == 0 ? 0 : chunk_front(region, i + 1));
  if (front == 0 || (tail == MI_CHUNK_SLICES && front == MI_CHUNK_SLICES)) return 0;
  if (front == MI_CHUNK_SLICES) front += chunk_front(region, i + 2);
  return tail + front;
}

static size_t chunk_bucket_of(size_t room) {
  if (room <= MI_CHUNK_SLICES) return room;
  return BUCKET_LONG + mi_min((room - MI_CHUNK_SLICES - 1) / (MI_CHUNK_SLICES / MI_CHUNK_LONG), MI_CHUNK_LONG - 1);
}

// By its free slices.  A wholly free chunk is found by its bit, unless a longer run begins there.
static void chunk_free_update(mi_region_t* region, mi_chunk_t* chunk, size_t room) {
  bool is_whole = (chunk->kind == MI_CHUNK_NONE);
  if (is_whole) room = 0;
  if (chunk_may_have_run(chunk)) {
    size_t across = chunk_run_across(region, (size_t)(chunk - region->chunks));
    if (across > room && (across > MI_CHUNK_SLICES || !is_whole)) room = across;
  }
  chunk_bucket_move(region, chunk, MI_CHUNK_BY_FREE, chunk_bucket_of(room));
}

static void chunk_bucket_update(mi_region_t* region, mi_chunk_t* chunk) {
  uint32_t free = chunk->free_bits;
  uint32_t backed = free & chunk->dirty_bits;
  size_t   room = chunk_room(chunk, free);
  chunk_bucket_move(region, chunk, MI_CHUNK_BY_BACKED, backed == free ? room : chunk_room(chunk, backed));
  chunk_free_update(region, chunk, room);
}

// Runs that begin in the two chunks before chunk i may go on in it.
static void chunk_update_before(mi_region_t* region, size_t i) {
  for (size_t n = 0; n < 2 && i > 0 && chunk_tail(region, i - 1) > 0; n++) {
    mi_chunk_t* before = &region->chunks[--i];
    chunk_free_update(region, before, chunk_room(before, before->free_bits));
    if (before->kind != MI_CHUNK_NONE) break;
  }
}

static void chunk_set_kind(mi_region_t* region, mi_chunk_t* chunk, mi_chunk_kind_t kind) {
  chunk_bucket_move(region, chunk, MI_CHUNK_BY_FREE, 0);
  chunk_bucket_move(region, chunk, MI_CHUNK_BY_BACKED, 0);
  chunk->kind = (uint8_t)kind;
}

// Of a pinned region nothing is.
static void chunk_count_purgeable(const mi_region_t* region, uint32_t bits, bool add) {
  if (bits == 0 || mi_unlikely(region->is_pinned)) return;
  size_t n = mi_popcount32(bits);
  size_t now = mi_load_relaxed(&chunk_n_purgeable);
  now = add ? now + n : now - n;
  if (add) mi_store_relaxed(&chunk_n_freed, mi_load_relaxed(&chunk_n_freed) + n);
  mi_store_relaxed(&chunk_n_purgeable, now);
  if (now < chunk_low) chunk_low = now;
  if (now > chunk_high) chunk_high = now;
}

size_t _mi_chunk_purgeable(void) {
  return mi_load_relaxed(&chunk_n_purgeable);
}

size_t _mi_chunk_freed(void) {
  return mi_load_relaxed(&chunk_n_freed);
}

void _mi_chunk_set_freed(size_t n) {
  mi_store_relaxed(&chunk_n_freed, n);
}

size_t _mi_chunk_purgeable_low(size_t* swing) {
  _mi_lock_acquire(&_mi_region_lock);
  size_t low = chunk_low;
  *swing = chunk_high - low;
  chunk_low = chunk_high = mi_load_relaxed(&chunk_n_purgeable);
  _mi_lock_release(&_mi_region_lock);
  return low;
}

// ---- whole chunks ---------------------------------------------------------------------------------------------------

bool _mi_chunk_is_free(const mi_region_t* region, size_t i) {
  return i < region->n_used && ((region->free_chunks[i / 64] >> (i % 64)) & 1) != 0;
}

static void chunk_set_free(mi_region_t* region, size_t i) {
  region->free_chunks[i / 64] |= (uint64_t)1 << (i % 64);
  region->group_room[i >> region->group_shift] = GROUP_UNKNOWN;
}

static void chunk_clear_free(mi_region_t* region, size_t i) {
  region->free_chunks[i / 64] &= ~((uint64_t)1 << (i % 64));
}

// What was never handed out may be dirty all the same, if the program brought it.
static void chunk_use_given(mi_region_t* region, size_t i) {
  mi_chunk_t* chunk = &region->chunks[i];
  if (region->uncommitted != NULL && !region->is_committed) region->uncommitted[i] = UINT32_MAX;
  if (!region->is_dirty) return;
  if (!region->is_committed) {
    chunk->stale_bits = UINT32_MAX;
    return;
  }
  chunk->dirty_bits = UINT32_MAX;
  chunk_count_purgeable(region, UINT32_MAX, true);
  chunk_bucket_update(region, chunk);
}

// Not what the system has just refused; and with option disallow_os_alloc memory of our own is not opened for the program's blocks.
static bool chunk_may_open(const mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  if (n - region->n_open >= _mi_space_refused) return false;
  return kind == MI_CHUNK_META || region->origin != MI_REGION_OWN ||
         _mi_option_get_fast(mi_option_disallow_os_alloc) == 0;
}

bool _mi_chunk_use_to(mi_region_t* region, size_t end, mi_chunk_kind_t kind) {
  if (end > region->n_open && !(chunk_may_open(region, end, kind) && _mi_space_open(region, end))) return false;
  for (size_t i = region->n_used; i < end; i++) {
    region->chunks[i].free_bits = UINT32_MAX;
    chunk_set_free(region, i);
    if (mi_unlikely(region->origin == MI_REGION_GIVEN)) chunk_use_given(region, i);
  }
  if (end <= region->n_used) return true;
  size_t begin = region->n_used;
  region->n_used = end;
  chunk_update_before(region, begin);
  return true;
}

// ---- runs of free chunks --------------------------------------------------------------------------------------------

// A search from low to high addresses; `found` free chunks end before `word`.
typedef struct chunk_search_s {
  const uint64_t* words;
  size_t          word, end;
  size_t          found;
} chunk_search_t;

// The lowest run of n that begins before the search or in its words up to `end`; SIZE_MAX: none does.
static size_t chunk_search_words(chunk_search_t* s, size_t n, size_t end) {
  for (; s->word < end; s->word++) {
    uint64_t word = s->words[s->word];
    size_t   low = mi_low_ones64(word);
    if (s->found + low >= n) return s->word * 64 - s->found;
    uint64_t runs = (n <= 64 ? mi_runs64(word, n) : 0);
    if (runs != 0) return s->word * 64 + mi_ctz64(runs);
    s->found = (low == 64 ? s->found + 64 : mi_high_ones64(word));
  }
  return SIZE_MAX;
}

// The same where no run of n lies within the words: only those at both ends can be parts of one.
static size_t chunk_search_ends(chunk_search_t* s, size_t n, size_t end) {
  size_t begin = s->word, low;
  do {
    low = mi_low_ones64(s->words[s->word]);
    if (s->found + low >= n) return s->word * 64 - s->found;
    s->found += low;
  } while (low == 64 && ++s->word < end);
  if (s->word == end) return SIZE_MAX;
  s->found = 0;
  for (s->word = end; s->word > begin; s->word--) {
    size_t high = mi_high_ones64(s->words[s->word - 1]);
    s->found += high;
    if (high < 64) break;
  }
  s->word = end;
  return SIZE_MAX;
}

// How many chunks that end before chunk i are free.
static size_t chunk_free_before(const mi_region_t* region, size_t i) {
  size_t n = 0, in_word, high;
  do {
    in_word = (i - n + 63) % 64 + 1;
    high = (i == n ? 0 : mi_high_ones64(region->free_chunks[(i - n - 1) / 64] << (64 - in_word)));
    n += high;
  } while (high == in_word);
  return n;
}

size_t _mi_chunk_find_there(mi_region_t* region, size_t n) {
  chunk_search_t s = {region->free_chunks, 0, mi_div_up(region->n_used, 64), 0};
  size_t         per_group = ((size_t)1 << region->group_shift) / 64;
  for (size_t group = 0; s.word < s.end; group++) {
    size_t end = mi_min(s.end, s.word + per_group);
    bool   may_have = (region->group_room[group] == GROUP_UNKNOWN || region->group_room[group] >= n);
    size_t i = may_have ? chunk_search_words(&s, n, end) : chunk_search_ends(&s, n, end);
    if (i != SIZE_MAX) return i;
    if (may_have) region->group_room[group] = (uint8_t)mi_min(n - 1, GROUP_UNKNOWN);
  }
  return SIZE_MAX;
}

size_t _mi_chunk_find_free(mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  size_t i = _mi_chunk_find_there(region, n);
  if (i != SIZE_MAX) return i;
  size_t first = region->n_used - chunk_free_before(region, region->n_used); // go on from there
  if (n > region->n_usable - first || !_mi_chunk_use_to(region, first + n, kind)) return SIZE_MAX;
  return first;
}

// ---- finding, taking and putting --------------------------------------------------------------------------------------

size_t _mi_chunk_fullest(const mi_region_t* region, mi_chunk_list_t list, mi_chunk_kind_t kind, size_t n) {
  uint64_t buckets = region->nonempty[list][kind] & ~(((uint64_t)1 << n) - 1);
  return buckets == 0 ? SIZE_MAX : region->buckets[list][kind][mi_ctz64(buckets)] - 1;
}

size_t _mi_chunk_find_long(const mi_region_t* region, size_t n) {
  if (n > 2 * MI_CHUNK_SLICES || region->nonempty_long == 0) return SIZE_MAX;
  size_t first = (n <= MI_CHUNK_SLICES ? 0 : chunk_bucket_of(n) - BUCKET_LONG);
  for (uint32_t buckets = region->nonempty_long >> first << first; buckets != 0; buckets &= buckets - 1) {
    uint32_t at = region->long_buckets[mi_ctz32(buckets)];
    for (int tries = 0; tries < LONG_CHOICE && at != 0; tries++, at = region->chunks[at - 1].next[MI_CHUNK_BY_FREE]) {
      if (chunk_run_across(region, at - 1) >= n) return at * MI_CHUNK_SLICES - chunk_tail(region, at - 1);
    }
  }
  return SIZE_MAX;
}

size_t _mi_chunk_most_backed(const mi_region_t* region, mi_chunk_kind_t kind) {
  uint64_t buckets = region->nonempty[MI_CHUNK_BY_BACKED][kind];
  if (buckets == 0) return SIZE_MAX;
  uint32_t at = region->buckets[MI_CHUNK_BY_BACKED][kind][mi_msb64(buckets)], highest = at;
  for (int n = 0; n < BACKED_CHOICE && at != 0; n++, at = region->chunks[at - 1].next[MI_CHUNK_BY_BACKED])
    highest = (uint32_t)mi_max(highest, at);
  return highest - 1;
}

size_t _mi_chunk_find_slices(mi_region_t* region, size_t n, mi_chunk_kind_t kind) {
  size_t found = 0; // free ones that end before the chunk
  // Nothing was freed since so many were not there: a program that asks again and again is not made to wait each time.
  if (region->refused != 0 && n >= region->refused && region->n_usable == region->refused_end) return SIZE_MAX;
  for (size_t i = 0; i < region->n_used; i++) {
    uint32_t free = region->chunks[i].free_bits;
    size_t   n_low = mi_low_ones64(free);
    if (found + n_low >= n) return i * MI_CHUNK_SLICES - found;
    uint32_t runs = (n <= MI_CHUNK_SLICES ? mi_runs32(free, n) : 0);
    if (runs != 0) return i * MI_CHUNK_SLICES + mi_ctz32(runs);
    found = mi_high_ones32(free) + (free == UINT32_MAX ? found : 0);
  }
  size_t slice = region->n_used * MI_CHUNK_SLICES - found;
  size_t end = mi_div_up(slice + n, MI_CHUNK_SLICES);
  if (end <= region->n_usable) return _mi_chunk_use_to(region, end, kind) ? slice : SIZE_MAX;
  region->refused = n;
  region->refused_end = region->n_usable;
  return SIZE_MAX;
}

void _mi_chunk_take(mi_region_t* region, size_t i, uint32_t bits, mi_chunk_kind_t kind) {
  mi_chunk_t* chunk = &region->chunks[i];
  mi_assert_internal((chunk->free_bits & bits) == bits);
  bool had_run = chunk_may_have_run(chunk);
  if (chunk->kind == MI_CHUNK_NONE) {
    chunk_clear_free(region, i);
    chunk_set_kind(region, chunk, kind);
  }
  chunk->free_bits &= ~bits;
  chunk_bucket_update(region, chunk);
  if (had_run) chunk_update_before(region, i);
  chunk_count_purgeable(region, bits & chunk->dirty_bits, false);
}

static void chunk_mark(mi_chunk_t* chunk, uint32_t bits, mi_contents_t contents) {
  if (mi_likely(contents == MI_CONTENTS_DIRTY)) {
    chunk->dirty_bits |= bits;
  }
  else if (contents != MI_CONTENTS_AS_BEFORE) {
    chunk->dirty_bits &= ~bits;
    chunk->stale_bits = (contents == MI_CONTENTS_STALE ? chunk->stale_bits | bits : chunk->stale_bits & ~bits);
  }
}

void _mi_chunk_put(mi_region_t* region, size_t i, uint32_t bits, mi_contents_t contents) {
  mi_chunk_t* chunk = &region->chunks[i];
  mi_assert_internal((chunk->free_bits & bits) == 0);
  chunk_mark(chunk, bits, contents);
  chunk->free_bits |= bits;
  region->refused = 0;
  chunk_count_purgeable(region, bits & chunk->dirty_bits, true);
  if (chunk->free_bits == UINT32_MAX) {
    chunk_set_kind(region, chunk, MI_CHUNK_NONE);
    chunk_set_free(region, i);
  }
  chunk_bucket_update(region, chunk);
  if (chunk_may_have_run(chunk)) chunk_update_before(region, i);
}

// Slices that are free and backed go with their memory.
static void chunk_forget_backed(const mi_region_t* region, const mi_chunk_t* chunk) {
  chunk_count_purgeable(region, chunk->dirty_bits, false);
  if (_mi_region_is_counted(region))
    _mi_limit_remove(&_mi_limit_process, mi_popcount32(chunk->dirty_bits) * MI_SLICE_SIZE);
}

void _mi_chunk_use_less(mi_region_t* region, size_t end) {
  for (size_t i = end; i < region->n_used; i++) {
    mi_chunk_t* chunk = &region->chunks[i];
    chunk_forget_backed(region, chunk);
    chunk->dirty_bits = chunk->stale_bits = 0;
    chunk_bucket_update(region, chunk);
    chunk_clear_free(region, i);
    chunk->free_bits = 0;
  }
  region->n_used = end;
  chunk_update_before(region, end);
}

void _mi_chunk_forget_all(mi_region_t* region) {
  for (size_t i = 0; i < region->n_used; i++) chunk_forget_backed(region, &region->chunks[i]);
}
