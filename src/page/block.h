// A free block, and how it is linked.  Layer: page.
//
//   unchecked    | next                               | what the program left there ...
//   checked      | (next ^ (k + address)) * odd       | what the program left there, or a fill (MI_FILL)
//
// B1  A link is decoded, and must then be a multiple of 8 within our memory: 2^43 words of 2^64 are.  The product spreads
//     whatever was changed in its lower bits over all higher ones, so that a link of which any part was overwritten (by
//     who had freed the block, or from the block before it) is found when the block is taken from its list.  It has 64 bits
//     with pointers of 32 bits too, of which our memory may be the half: what is decoded has 32 zeros then.
//
// Programs that corrupt memory by accident are found with near certainty; one that does so on purpose has to know the key,
// which is chosen at the start of the process.
#pragma once

#include <string.h>

#include "../arena/region.h"
#include "../base/track.h"
#include "../prim/tag.h"

typedef struct mi_block_s {
#if MI_CHECKED
  uint64_t coded;
#else
  struct mi_block_s* next;
#endif
} mi_block_t;

typedef struct mi_block_keys_s {
  uint64_t link;
  uint64_t padding;
} mi_block_keys_t;

extern mi_block_keys_t _mi_block_keys;

#define MI_MIX         0x9E3779B97F4A7C15u // odd: the bits of the golden ratio
#define MI_MIX_INVERSE 0xF1DE83E19937733Du // modulo 2^64

// Chooses the keys, before the first block is linked.
void _mi_block_init(void);

// A number that nobody can foresee who does not know the keys.
uint64_t _mi_block_random(const void* where);

// A link from the block to the next one, in builds that check blocks.
static mi_always_inline uint64_t _mi_block_code(const void* block, const void* next) {
  return ((uintptr_t)next ^ (_mi_block_keys.link + (uintptr_t)block)) * MI_MIX;
}

// The last word of blocks of others can be looked at where a word is stored and loaded at once (padding.h, D4).
#define MI_PADDING_OF_OTHERS (MI_HARDENED && UINTPTR_MAX > UINT32_MAX)

// ---- blocks that were never in use ----------------------------------------------------------------------------------

// Up to this size a block has a last word before it is used: to write that of larger ones could cost a page fault each, where they
// are not filled.
#define MI_BLOCK_ENDED_MAX (MI_FILL && !MI_HARDENED ? SIZE_MAX : 8 * MI_KiB)

// The second word of a larger one until it is used: the code of a link that none has, to the block itself.
static mi_always_inline uint64_t _mi_block_unused(const void* block) {
  return _mi_block_code(block, block);
}

// The last word of a free block (padding.h): the complement of that of one of which the program has all.
static mi_always_inline uint64_t _mi_block_free_end(const void* block) {
  return ~((uint64_t)MI_PADDING_SIZE * MI_MIX ^ (_mi_block_keys.padding + (uintptr_t)block));
}

// Of a block that is made: the last word of a free one, or that second word.
static mi_always_inline void _mi_block_set_end(mi_block_t* block, size_t size) {
  bool is_large = (size > MI_BLOCK_ENDED_MAX);
  if (!MI_CHECKED) return;
  uint64_t word = (is_large ? _mi_block_unused(block) : _mi_block_free_end(block));
  char*    at = (char*)block + (is_large ? sizeof(mi_block_t) : size - sizeof(word));
  if (MI_TRACK) mi_track_store(at, word);
  else memcpy(__builtin_assume_aligned(at, 8), &word, sizeof(word));
}

// ---- links ----------------------------------------------------------------------------------------------------------

#if MI_CHECKED

// An address, or what is none if the word was overwritten.
static mi_always_inline uint64_t _mi_block_decode(const mi_block_t* block, uint64_t coded) {
  return (coded * MI_MIX_INVERSE) ^ (_mi_block_keys.link + (uintptr_t)block);
}

static mi_always_inline void _mi_block_set_next(mi_block_t* block, const mi_block_t* next) {
  uint64_t coded = _mi_block_code(block, next);
  if (MI_TRACK) mi_track_store(block, coded);
  else block->coded = coded;
}

// Where the link leads.
static mi_always_inline uint64_t _mi_block_next(const mi_block_t* block) {
  return _mi_block_decode(block, MI_TRACK ? mi_track_load(block) : block->coded);
}

// The block that follows in a list, for fast paths: false if none does, or it cannot be found fast.
static mi_always_inline bool _mi_block_next_fast(const mi_block_t* block, mi_block_t** next) {
  uint64_t found = _mi_block_next(block);
  uint64_t offset = found - _mi_region_all[0].base;
  *next = (mi_block_t*)(uintptr_t)found;
  // What is no multiple of 8 becomes large.
  uint64_t n_slices = mi_load_growing(&_mi_region_all[0].n_slices);
  return ((offset >> 3) | (offset << 61)) < n_slices << (MI_SLICE_SHIFT - 3);
}

// The same for those who only look, at a list that may be changing or damaged: to wherever the link leads.
static inline mi_may_race mi_block_t* _mi_block_peek(const mi_block_t* block) {
  return (mi_block_t*)(uintptr_t)_mi_block_decode(block, MI_TRACK ? mi_track_load(block) : block->coded);
}

#else

static mi_always_inline void _mi_block_set_next(mi_block_t* block, const mi_block_t* next) {
  block->next = (mi_block_t*)next;
}

static mi_always_inline uint64_t _mi_block_next(const mi_block_t* block) {
  return (uintptr_t)block->next;
}

static mi_always_inline bool _mi_block_next_fast(const mi_block_t* block, mi_block_t** next) {
  *next = block->next;
  return true;
}

static inline mi_may_race mi_block_t* _mi_block_peek(const mi_block_t* block) {
  if (MI_TAGS) return (mi_block_t*)_mi_prim_tag_peek((const uintptr_t*)(const void*)block);
  return block->next;
}

#endif
