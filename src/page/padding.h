// The end of a block: how much of it the program asked for, whether it wrote beyond that, and whether it is in use.
// Layer: page.
//
//   block of a class   | size bytes for the program | 0xDE, up to eight of them ... | last word |
//   large block        | size bytes for the program | 0xDE | 7 bytes |    its size is in the page's descriptor
//
//   last word     of a block in use   (block_size - size) * odd ^ (k + address)
//                 of a free one       the complement of that with size = block_size - 8
//
// D1  The last word gives the size back when it is decoded.  Whatever is written over any part of it makes that a number
//     which is no possible size, except one time in 2^45.  So do the last word of a free block, and one that is looked for
//     behind a pointer to anything else than the start of a block: overflow, a second free and a free of an invalid
//     pointer are all found by one comparison.  What it was is found out afterwards (verify.c).
// D2  If there is room before the last word, the bytes that follow the program's are filled, so that a write of one byte
//     too many is seen.  With no room the last word itself is next.
//     Behind a large block the other bytes are of a word that depends on key and address: who knows 0xDE does not know them.
// D3  A block has at least 16 bytes: the first word is its link while it is free, and that must not be the last one.
// D4  Hardened builds look at the last word of a block that is anybody's, while its owner changes it.  It is aligned, stored and
//     loaded at once, and always one of these: that of a block in use or of a free one, which it has from the moment when the
//     block counts as made (page.c), but for blocks over MI_BLOCK_ENDED_MAX, where it is 0 until they are used; or one with
//     a byte of the fill in it, for that goes over it before it is stored (D2).
// D5  A block that was made and not used yet has the end of a free one in all builds that check blocks, up to
//     MI_BLOCK_ENDED_MAX: a free of it is one of a block that is free.  A larger one is known by its second word (block.h), which is
//     another one from its first use on.
#pragma once

#include <string.h>

#include "page.h"

// The largest size that a class serves, with the padding: larger blocks are large.
#define MI_CLASS_ASKED_MAX (MI_CLASS_SIZE_MAX - MI_PADDING_SIZE)

#define MI_PADDING_FILLED (0x0101010101010101u * MI_FILL_PADDING)

typedef uint64_t __attribute__((may_alias)) mi_padding_word_t;

static mi_always_inline uint64_t _mi_padding_last(const void* p, size_t block_size) {
  return mi_track_load((const char*)p + block_size - sizeof(uint64_t));
}

static mi_always_inline void padding_set_last(void* p, size_t block_size, uint64_t last) {
  if (MI_HARDENED) memcpy(__builtin_assume_aligned((char*)p + block_size - sizeof(last), 8), &last, sizeof(last)); // D4
  else mi_track_store((char*)p + block_size - sizeof(last), last);
}

// block_size - size; 8 <= the result <= block_size if the block is in use and whole.
static mi_always_inline uint64_t _mi_padding_decode(const void* p, uint64_t last) {
  return (last ^ (_mi_block_keys.padding + (uintptr_t)p)) * MI_MIX_INVERSE;
}

static mi_always_inline bool _mi_padding_is_rest(uint64_t rest, size_t block_size) {
  return rest - MI_PADDING_SIZE <= block_size - MI_PADDING_SIZE;
}

// Writes the padding of the block p of a class, of which the program gets `size` bytes.
static mi_always_inline void _mi_padding_write(void* p, size_t size, size_t block_size) {
  const uint64_t filled = MI_PADDING_FILLED;
  if (!MI_TRACK) memcpy((char*)p + size, &filled, sizeof(filled)); // the last word may go over it
  padding_set_last(p, block_size, ((uint64_t)(block_size - size) * MI_MIX) ^ (_mi_block_keys.padding + (uintptr_t)p));
}

// Are the bytes behind the program's as they were filled, as far as there is room before the last word?
//
// Without a jump on the room: that of successive blocks differs, and a jump that is foreseen wrongly costs more than all
// the rest (the churn benchmark took 0.71 s with one, 0.52 s without).
static mi_always_inline bool padding_is_filled(const void* p, uint64_t rest, size_t block_size) {
  uint64_t differ;
  if (MI_TRACK) return true; // the tool watches it
  memcpy(&differ, (const char*)p + (block_size - (size_t)rest), sizeof(differ));
  differ ^= MI_PADDING_FILLED;
  // What belongs to the last word is behind the bytes of the fill, and shifted out, half at a time.
  int half = 64 - 4 * (int)rest;
  half = half > 0 ? half : 0;
  return (MI_BIG_ENDIAN ? (differ >> half) >> half : (differ << half) << half) == 0;
}

// Is p a block in use, with its padding as it was?
static mi_always_inline bool _mi_padding_is_whole(const void* p, size_t block_size) {
  uint64_t rest = _mi_padding_decode(p, _mi_padding_last(p, block_size));
  return mi_likely(_mi_padding_is_rest(rest, block_size)) && mi_likely(padding_is_filled(p, rest, block_size));
}

// The last word of p, which others may be changing (D4).
static mi_always_inline uint64_t _mi_padding_last_of_others(const void* p, size_t block_size) {
  return *(const volatile mi_padding_word_t*)((const char*)p + block_size - sizeof(uint64_t));
}

// Can it be that of a block in use, of a free one, or of one that was never used?  Without jumps on which of them, for successive
// blocks differ in that.
static mi_always_inline bool _mi_padding_is_plausible(const void* p, uint64_t last, size_t block_size) {
  return (int)_mi_padding_is_rest(_mi_padding_decode(p, last), block_size) | (int)(last == _mi_block_free_end(p)) |
         ((int)(last == 0) & (int)(block_size > MI_BLOCK_ENDED_MAX));
}

// Has it a byte of the fill?  Then somebody may be about to store it.
static inline bool _mi_padding_has_fill(uint64_t last) {
  uint64_t differ = last ^ MI_PADDING_FILLED;
  return ((differ - 0x0101010101010101u) & ~differ & 0x8080808080808080u) != 0;
}

// How much of the block the program got; SIZE_MAX if it is none, or its padding was written to.
static inline size_t _mi_padding_read(const void* p, size_t block_size) {
  if (!_mi_padding_is_whole(p, block_size)) return SIZE_MAX;
  return block_size - (size_t)_mi_padding_decode(p, _mi_padding_last(p, block_size));
}

// The block is free from now on; it was in use.
static mi_always_inline void _mi_padding_retire(void* p, size_t block_size) {
  padding_set_last(p, block_size, _mi_block_free_end(p));
}

// Is the end of a free block as it was?
static mi_always_inline bool _mi_padding_is_free(const void* p, size_t block_size) {
  return _mi_padding_last(p, block_size) == _mi_block_free_end(p);
}

// ---- large blocks ---------------------------------------------------------------------------------------------------

void   _mi_padding_write_large(mi_page_t* page, size_t size);
size_t _mi_padding_read_large(const mi_page_t* page);

// What followed the block when it had that size is gone: as a part of the block it would tell the program of the keys.
void _mi_padding_clear_large(mi_page_t* page, size_t size);

// ---- any block, by its page -----------------------------------------------------------------------------------------

static inline void _mi_padding_write_any(mi_page_t* page, void* p, size_t size) {
  if (_mi_page_kind(page) == MI_PAGE_LARGE) _mi_padding_write_large(page, size);
  else _mi_padding_write(p, size, _mi_page_block_size(page));
}

static inline size_t _mi_padding_read_any(const mi_page_t* page, const void* p) {
  if (_mi_page_kind(page) == MI_PAGE_LARGE) return _mi_padding_read_large(page);
  return _mi_padding_read(p, _mi_page_block_size(page));
}
