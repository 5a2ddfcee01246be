// Clearing and filling blocks, and looking whether a fill is as it was.  Layer: page.
//
// Most blocks are small, and libc's functions cost more than such a block does.  So up to 128 bytes are written from both
// ends to the middle: the parts overlap, and few jumps do for all sizes.
#pragma once

#include <string.h>

#include "../base/bits.h"
#include "../base/mode.h"

#define MI_FILL_SMALL_MAX 128

typedef struct mi_pair_s {
  uint64_t words[2];
} mi_pair_t;

static mi_always_inline void fill_pair(char* p, uint64_t word) {
  const mi_pair_t pair = {{word, word}};
  memcpy(p, &pair, sizeof(pair));
}

// Writes `size` bytes, a multiple of 8 from 16 to MI_FILL_SMALL_MAX.
static mi_always_inline void _mi_fill_small(void* p, size_t size, uint64_t word) {
  char* first = (char*)p;
  char* last = first + size - sizeof(mi_pair_t);
  fill_pair(first, word);
  fill_pair(last, word);
  if (size <= 32) return;
  fill_pair(first + 16, word);
  fill_pair(last - 16, word);
  if (size <= 64) return;
  fill_pair(first + 32, word);
  fill_pair(first + 48, word);
  fill_pair(last - 32, word);
  fill_pair(last - 48, word);
}

// The bits in which the pair differs.
static mi_always_inline uint64_t fill_differ(const char* p, uint64_t word) {
  mi_pair_t pair;
  memcpy(&pair, p, sizeof(pair));
  return (pair.words[0] ^ word) | (pair.words[1] ^ word);
}

// Are all of them as _mi_fill_small has written them?
static mi_always_inline bool _mi_fill_small_is(const void* p, size_t size, uint64_t word) {
  const char* first = (const char*)p;
  const char* last = first + size - sizeof(mi_pair_t);
  uint64_t    differ = fill_differ(first, word) | fill_differ(last, word);
  if (size > 32) {
    differ |= fill_differ(first + 16, word) | fill_differ(last - 16, word);
    if (size > 64) {
      differ |= fill_differ(first + 32, word) | fill_differ(first + 48, word);
      differ |= fill_differ(last - 32, word) | fill_differ(last - 48, word);
    }
  }
  return differ == 0;
}

// ---- blocks that are not in use (MI_FILL) -----------------------------------------------------------------------------

#define MI_FILL_FREED_WORD (0x0101010101010101u * MI_FILL_FREED)

static mi_always_inline bool _mi_fill_is_small(size_t size) {
  return size >= sizeof(mi_pair_t) && size <= MI_FILL_SMALL_MAX;
}

void _mi_fill_freed_any(void* p, size_t size);

// Fills a block that is no longer in use, up to its last word.
static mi_always_inline void _mi_fill_freed(void* p, size_t block_size) {
  size_t size = block_size - MI_PADDING_SIZE;
  if (mi_likely(_mi_fill_is_small(size))) _mi_fill_small(p, size, MI_FILL_FREED_WORD);
  else _mi_fill_freed_any(p, size);
}
