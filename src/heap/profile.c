// The heap profile's tables.  Layer: heap.  profile.h has the invariants.
#include "profile.h"

#include <errno.h>
#include <string.h>

#include "../base/track.h"
#include "../prim/prim.h"
#include "../support/chance.h"

#define PROFILE_BUCKETS 65536 // a power of two, of each table
#define PROFILE_NONE    UINT32_MAX

typedef struct profile_address_s {
  uintptr_t address;
  uint32_t  next;
} profile_address_t;

typedef struct profile_tables_s {
  mi_profile_stack_t stacks[MI_PROFILE_STACKS];
  uint32_t           indices[MI_PROFILE_INDICES];
  profile_address_t  addresses[MI_PROFILE_ADDRESSES];
  mi_profile_block_t blocks[MI_PROFILE_BLOCKS];
  // The first of each bucket, and of the unused blocks; one more than its number, 0: none.
  uint32_t           stack_buckets[PROFILE_BUCKETS], address_buckets[PROFILE_BUCKETS], block_buckets[PROFILE_BUCKETS];
} profile_tables_t;

static mi_lock_t                    profile_lock;
static mi_atomic(profile_tables_t*) profile_tables; // never given back
static mi_atomic(uint32_t)          profile_n_stacks, profile_n_addresses;
static uint32_t                     profile_n_indices, profile_n_blocks, profile_unused;
static size_t                       profile_n_made, profile_n_live_max = MI_PROFILE_BLOCKS;
static mi_profile_counts_t          profile_counts;
static uint64_t                     profile_random;
static uintptr_t                    profile_own_start, profile_own_end; // our own code, if it is a library

void _mi_profile_lock(void) {
  _mi_lock_acquire(&profile_lock);
}

void _mi_profile_unlock(void) {
  _mi_lock_release(&profile_lock);
}

// ---- setting up -----------------------------------------------------------------------------------------------------

static bool profile_find_own(const mi_module_t* module, void* arg) {
  uintptr_t self = (uintptr_t)&_mi_profile_add;
  (void)arg;
  if (self < module->start || self >= module->end) return true;
  if (!module->is_program) {
    profile_own_start = module->start;
    profile_own_end = module->end;
  }
  return false;
}

void _mi_profile_prepare(void) {
  static mi_atomic(bool) is_prepared;
  if (MI_TRACK || mi_load_acquire(&is_prepared)) return;
  _mi_prim_stack_init();
  _mi_prim_modules(&profile_find_own, NULL);
  mi_store_release(&is_prepared, true);
}

int _mi_profile_init(void) {
  void*  start;
  size_t size = mi_align_up(sizeof(profile_tables_t), _mi_prim_os_page_size());
  if (MI_TRACK) return ENOTSUP;
  _mi_profile_prepare();
  if (mi_load_acquire(&profile_tables) != NULL) return 0;
  int err = _mi_prim_reserve(size, MI_SLICE_SIZE, &start);
  if (err == 0 && (err = _mi_prim_commit(start, size)) != 0) _mi_prim_release(start, size);
  if (err != 0) return err;
  uint64_t random = _mi_prim_random();
  _mi_profile_lock();
  bool is_first = (mi_load_relaxed(&profile_tables) == NULL);
  if (is_first) {
    profile_random = random;
    mi_store_release(&profile_tables, (profile_tables_t*)start); // whoever sees them has to wait for the lock
    mi_store_release(&profile_n_stacks, 1u);                     // stack 0; whoever sees it sees the tables
  }
  _mi_profile_unlock();
  if (!is_first) _mi_prim_release(start, size);
  return 0;
}

void _mi_profile_limit(size_t n_blocks) {
  profile_n_live_max = mi_min(n_blocks, MI_PROFILE_BLOCKS);
}

// ---- stacks; the lock is held ---------------------------------------------------------------------------------------

static size_t profile_bucket(uint64_t n) {
  return (size_t)(mi_mix64(n) % PROFILE_BUCKETS);
}

// PROFILE_NONE if there are too many.
static uint32_t profile_address(profile_tables_t* t, uintptr_t address) {
  uint32_t* bucket = &t->address_buckets[profile_bucket(address)];
  for (uint32_t i = *bucket; i != 0; i = t->addresses[i - 1].next) {
    if (t->addresses[i - 1].address == address) return i - 1;
  }
  uint32_t n = mi_load_relaxed(&profile_n_addresses);
  if (n == MI_PROFILE_ADDRESSES) return PROFILE_NONE;
  t->addresses[n].address = address;
  t->addresses[n].next = *bucket;
  *bucket = n + 1;
  mi_store_release(&profile_n_addresses, n + 1); // release: whoever reads the number reads the address
  return n;
}

// The stack with these frames, made if need be; 0 if there is no room.
static uint32_t profile_find_stack(profile_tables_t* t, const uint32_t* frames, size_t n) {
  uint64_t hash = n;
  for (size_t i = 0; i < n; i++) hash = mi_mix64(hash + frames[i] * MI_MIX);
  uint32_t* bucket = &t->stack_buckets[profile_bucket(hash)];
  for (uint32_t i = *bucket; i != 0; i = t->stacks[i - 1].next) {
    const mi_profile_stack_t* s = &t->stacks[i - 1];
    if (s->n_frames == n && memcmp(&t->indices[s->first], frames, n * sizeof(*frames)) == 0) return i - 1;
  }
  uint32_t number = mi_load_relaxed(&profile_n_stacks);
  if (number == MI_PROFILE_STACKS || n > MI_PROFILE_INDICES - profile_n_indices) return 0;
  mi_profile_stack_t* stack = &t->stacks[number];
  stack->first = profile_n_indices;
  stack->n_frames = (uint32_t)n;
  stack->next = *bucket;
  *bucket = number + 1;
  memcpy(&t->indices[stack->first], frames, n * sizeof(*frames));
  profile_n_indices += (uint32_t)n;
  mi_store_release(&profile_n_stacks, number + 1); // as above
  return number;
}

static uint32_t profile_stack_of(profile_tables_t* t, void** frames, size_t n) {
  uint32_t indices[MI_PROFILE_FRAMES];
  for (size_t i = 0; i < n; i++) {
    indices[i] = profile_address(t, (uintptr_t)frames[i] - 1); // PF5
    if (indices[i] == PROFILE_NONE) return 0;
  }
  return profile_find_stack(t, indices, n);
}

static int64_t profile_bytes(uint64_t weight, size_t size) {
  return (int64_t)((double)weight * (double)size / ((uint64_t)1 << MI_PROFILE_PLACES));
}

static void profile_count_allocated(mi_profile_stack_t* stack, uint64_t weight, size_t size) {
  uint64_t n = weight + stack->n_allocated_rest;
  stack->n_allocated_rest = (uint32_t)(n % ((uint64_t)1 << MI_PROFILE_PLACES));
  mi_fetch_add_relaxed(&stack->n_allocated, (int64_t)(n >> MI_PROFILE_PLACES));
  mi_fetch_add_relaxed(&stack->allocated, profile_bytes(weight, size));
}

static void profile_count_live(profile_tables_t* t, const mi_profile_block_t* b, int64_t sign) {
  mi_profile_stack_t* stack = &t->stacks[b->stack];
  mi_fetch_add_relaxed(&stack->n_live, sign * (int64_t)b->weight);
  mi_fetch_add_relaxed(&stack->live, sign * profile_bytes(b->weight, b->size));
}

// ---- blocks; the lock is held ---------------------------------------------------------------------------------------

static uint64_t profile_weight(size_t charged, size_t mean) {
  return (uint64_t)((double)((uint64_t)1 << MI_PROFILE_PLACES) / _mi_chance_of_size(charged, mean));
}

static void profile_unlink(profile_tables_t* t, uint32_t* at) {
  uint32_t i = *at;
  profile_count_live(t, &t->blocks[i - 1], -1);
  *at = t->blocks[i - 1].next;
  t->blocks[i - 1].next = profile_unused;
  profile_unused = i;
  profile_n_blocks--;
}

// PF4: true if it stays.
static bool profile_thin_block(profile_tables_t* t, mi_profile_block_t* b, size_t mean) {
  uint64_t weight = profile_weight(b->charged, mean);
  if (weight <= b->weight) return true;
  double share = (double)(mi_mix64(profile_random += MI_MIX) >> 11) / (double)((uint64_t)1 << 53);
  if (share * (double)weight >= (double)b->weight) return false;
  profile_count_live(t, b, -1);
  b->weight = weight;
  profile_count_live(t, b, 1);
  return true;
}

static void profile_thin(profile_tables_t* t) {
  profile_counts.mean = mi_min(profile_counts.mean, SIZE_MAX / 4) * 2;
  for (size_t bucket = 0; bucket < PROFILE_BUCKETS; bucket++) {
    for (uint32_t* at = &t->block_buckets[bucket]; *at != 0;) {
      mi_profile_block_t* b = &t->blocks[*at - 1];
      if (profile_thin_block(t, b, profile_counts.mean)) at = &b->next;
      else profile_unlink(t, at);
    }
  }
}

static void profile_add_block(profile_tables_t* t, const mi_profile_block_t* block) {
  if (profile_n_blocks >= profile_n_live_max && profile_counts.mean > 0) profile_thin(t);
  if (profile_n_blocks >= profile_n_live_max) {
    profile_counts.n_dropped++;
    return;
  }
  uint32_t i = profile_unused;
  if (i != 0) profile_unused = t->blocks[i - 1].next;
  else i = (uint32_t)++profile_n_made;
  mi_profile_block_t* b = &t->blocks[i - 1];
  uint32_t*           bucket = &t->block_buckets[profile_bucket((uintptr_t)block->block)];
  *b = *block;
  b->next = *bucket;
  *bucket = i;
  profile_n_blocks++;
  profile_counts.n_blocks_max = mi_max(profile_counts.n_blocks_max, profile_n_blocks);
  profile_count_live(t, b, 1);
}

// ---- for all --------------------------------------------------------------------------------------------------------

// The stack without our own functions.
static size_t profile_take_stack(void** frames, size_t max, size_t* first) {
  size_t n = _mi_prim_stack(frames, max);
  *first = 0;
  while (*first < n && (uintptr_t)frames[*first] - profile_own_start < profile_own_end - profile_own_start) ++*first;
  return mi_min(n - *first, MI_PROFILE_FRAMES);
}

// A thread that has just begun to give a page back does not find the flag, and forgets nothing: it has another block.
size_t _mi_profile_add(void* p, size_t size, size_t charged, size_t mean) {
  void*              frames[MI_PROFILE_FRAMES + 16];
  size_t             first, n = profile_take_stack(frames, MI_PROFILE_FRAMES + 16, &first);
  mi_page_t*         page = _mi_page_of(p);
  profile_tables_t*  t = mi_load_acquire(&profile_tables);
  mi_profile_block_t block = {p, profile_weight(charged, mean), size, charged, 0, 0};
  if (t == NULL) return mean;
  if (!MI_PADDING) page->asked = _mi_page_large_size(page);
  _mi_page_set(page, MI_PAGE_SAMPLED);
  _mi_profile_lock();
  block.stack = profile_stack_of(t, frames + first, n);
  profile_counts.n_samples++;
  profile_counts.n_other += (block.stack == 0);
  profile_count_allocated(&t->stacks[block.stack], block.weight, size);
  profile_add_block(t, &block);
  mean = (profile_counts.mean > 0 ? profile_counts.mean : mean);
  _mi_profile_unlock();
  return mean;
}

mi_profile_block_t _mi_profile_remove(mi_page_t* page) {
  mi_profile_block_t was = {NULL, 0, 0, 0, 0, 0};
  const void*        p = _mi_page_large_block(page);
  profile_tables_t*  t = mi_load_acquire(&profile_tables);
  _mi_page_clear(page, MI_PAGE_SAMPLED);
  if (t == NULL) return was;
  _mi_profile_lock();
  for (uint32_t* at = &t->block_buckets[profile_bucket((uintptr_t)p)]; *at != 0; at = &t->blocks[*at - 1].next) {
    if (t->blocks[*at - 1].block != p) continue;
    was = t->blocks[*at - 1];
    profile_unlink(t, at);
    break;
  }
  _mi_profile_unlock();
  return was;
}

void _mi_profile_put_back(mi_page_t* page, const mi_profile_block_t* block) {
  _mi_page_set(page, MI_PAGE_SAMPLED);
  if (block->block == NULL) return;
  _mi_profile_lock();
  profile_add_block(mi_load_relaxed(&profile_tables), block);
  _mi_profile_unlock();
}

void _mi_profile_set_mean(size_t mean) {
  _mi_profile_lock();
  profile_counts.mean = mean;
  _mi_profile_unlock();
}

size_t _mi_profile_mean(void) {
  _mi_profile_lock();
  size_t mean = profile_counts.mean;
  _mi_profile_unlock();
  return mean;
}

void _mi_profile_counts(mi_profile_counts_t* counts) {
  bool is_locked = _mi_lock_look(&profile_lock); // else the numbers of no single moment have to do
  *counts = profile_counts;
  counts->n_blocks = profile_n_blocks;
  counts->n_stacks = _mi_profile_n_stacks();
  if (is_locked) _mi_profile_unlock();
}

uint32_t _mi_profile_n_stacks(void) {
  return mi_load_acquire(&profile_n_stacks);
}

uint32_t _mi_profile_n_addresses(void) {
  return mi_load_acquire(&profile_n_addresses);
}

const mi_profile_stack_t* _mi_profile_stack(uint32_t i) {
  profile_tables_t* t = mi_load_acquire(&profile_tables);
  return mi_load_relaxed(&t->stacks[i].n_allocated) == 0 ? NULL : &t->stacks[i];
}

const uint32_t* _mi_profile_frames(const mi_profile_stack_t* stack) {
  return &mi_load_acquire(&profile_tables)->indices[stack->first];
}

uintptr_t _mi_profile_address(uint32_t i) {
  return mi_load_acquire(&profile_tables)->addresses[i].address;
}
