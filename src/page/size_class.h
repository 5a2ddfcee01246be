// The sizes of blocks: the only place that knows them.  Layer: page.
//
//   8 | 16 32 48 .. 256 | 8 a doubling to 4 KiB | 4 a doubling to 512 KiB      (MI_MIN_ALIGN_8: also 24, 40 and 56)
//
// Up to 4 KiB the mean waste within a block is 4 %; four classes a doubling would waste 8 %, and sixteen gain little
// while each class in use costs half an OS page per thread.  Above, a page holds few blocks: a class whose blocks leave
// a rest at the end of the page is widened until they fill it (5120 -> 5376: still 12 blocks), since that costs nothing.
// Sizes above 1 KiB are multiples of 128, the step of the table.
//
// Pages have one slice for blocks up to 8 KiB; for larger ones as few slices as hold eight blocks, at most eight slices.  So the memory
// that a short-lived thread or a rare size touches lies close together, and the next user of the page uses it again (docs/decisions/007).
#pragma once

#include "../base/bits.h"

// An option of the build: there are also classes of 24, 40 and 56 bytes, whose blocks are aligned to 8 bytes only.
#if !defined(MI_MIN_ALIGN_8)
  #define MI_MIN_ALIGN_8 0
#endif

#define MI_CLASS_COUNT    (77 + 3 * MI_MIN_ALIGN_8)
#define MI_SMALL_MAX      1024           // one entry of _mi_size_class_small per size
#define MI_MEDIUM_MAX     (32 * MI_KiB)  // one entry of _mi_size_class_medium per 128 bytes
#define MI_BIN_SHIFT      4              // a bin is 16 bytes (heap/theap.h)
#define MI_CLASS_SIZE_MAX (512 * MI_KiB) // larger blocks have a page of their own
#define MI_CLASS_NONE     255

// The offset of the bin of a size in any theap, 16 x its class: the fast path has nothing left to compute.
extern const uint16_t _mi_size_class_small[MI_SMALL_MAX + 1];
extern const uint16_t _mi_size_class_medium[MI_MEDIUM_MAX / 128];

typedef struct mi_class_info_s {
  uint32_t block_size;
  uint16_t capacity;     // blocks in a page
  uint8_t  n_slices;     // of a page: 1 to 8
  uint8_t  outbox_limit; // blocks in a batch of an outbox, at most: 32 or 4 KiB, whichever is less
  uint16_t bin_limit;    // blocks that a bin may hold: 64 or 16 KiB, whichever is less, but at least one
  uint16_t claim_own_at; // free blocks at which a parked page is worth having again for its home
  uint16_t claim_at;     // the same for all others, who share it
} mi_class_info_t;

// claim_own_at is 1/32 of the blocks; above 1 KiB a quarter, up to 4.  Sharing a page and adopting it again takes two locks and some cache
// lines of other processors, so claim_at is more: a quarter of the blocks; above 1 KiB 3/8, up to 8; above 16 KiB the same as
// claim_own_at.  Until then nobody can use the free blocks of a parked page (docs/decisions/056).

extern const mi_class_info_t _mi_size_class_info[MI_CLASS_COUNT];

#define MI_CLASS_4K (48 + 3 * MI_MIN_ALIGN_8) // the class of 4096 bytes; from there on four a doubling

// From here on, above 8 KiB, a page has several slices.
#define MI_CLASS_SEVERAL (MI_CLASS_4K + 5)

// From here on, above 16 KiB, a bin holds one block unless it has grown.
#define MI_CLASS_WIDE (MI_CLASS_4K + 9)

// The class of a size with 4 KiB < size <= MI_CLASS_SIZE_MAX.
static mi_always_inline size_t _mi_size_class_of_big(size_t size) {
  // 2^k < size <= 2^(k+1): a quarter of 2^k is the step, and two bits of size - 1 say which.
  size_t k = mi_msb64(size - 1);
  size_t cls = MI_CLASS_4K + 1 + 4 * (k - 12) + (((size - 1) >> (k - 2)) & 3);
  // The class below may have been widened enough.
  return cls - (_mi_size_class_info[cls - 1].block_size >= size ? 1 : 0);
}

// The class of any size up to MI_CLASS_SIZE_MAX.
static inline size_t _mi_size_class_of(size_t size) {
  if (mi_likely(size <= MI_SMALL_MAX)) return _mi_size_class_small[size] >> MI_BIN_SHIFT;
  if (mi_likely(size <= MI_MEDIUM_MAX)) return _mi_size_class_medium[(size - 1) / 128] >> MI_BIN_SHIFT;
  return _mi_size_class_of_big(size);
}

static inline size_t _mi_size_class_block(size_t cls) {
  return _mi_size_class_info[cls].block_size;
}

// The smallest class from `cls` on whose blocks are all aligned to `align`, a power of two up to a slice: pages start at a slice
// boundary, so its block size is a multiple.  MI_CLASS_NONE if there is none.
size_t _mi_size_class_aligned_from(size_t cls, size_t align);

// The smallest one of at least `size` bytes.  Up to 4 KiB each multiple of the step between classes is a block size, so that the
// class of the next multiple of `align` is the one.
static inline size_t _mi_size_class_aligned(size_t size, size_t align) {
  if (mi_unlikely(size > MI_CLASS_SIZE_MAX || align > MI_CLASS_SIZE_MAX)) return MI_CLASS_NONE;
  size_t cls = _mi_size_class_of(mi_align_up(mi_max(size, 1), align));
  bool   is_aligned = ((_mi_size_class_info[cls].block_size & (align - 1)) == 0);
  return mi_likely(is_aligned) ? cls : _mi_size_class_aligned_from(cls + 1, align);
}
