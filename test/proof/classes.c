// Proves of page/size_class.c, for all sizes and alignments: a size gets the smallest class that fits.
#include "proof.h"

#include "page/size_class.c"

#include "base/mode.h"
#include "page/page_word.h"

// The smallest class of a checked build is not used (padding.h, D3).
static size_t any_class(void) {
  size_t cls = nondet_size();
  REQUIRE(cls >= MI_PADDING && cls < MI_CLASS_COUNT);
  return cls;
}

void proof_class_of(void) {
  size_t size = nondet_size(), other = any_class();
  REQUIRE(size <= MI_CLASS_SIZE_MAX);
  size_t cls = _mi_size_class_of(size);
  ENSURE(cls >= MI_PADDING && cls < MI_CLASS_COUNT && _mi_size_class_block(cls) >= size);
  ENSURE(other >= cls || _mi_size_class_block(other) < size);
}

// All blocks lie in the page, and the count of a page word can hold their number.
void proof_page_of_class(void) {
  size_t                 cls = any_class(), i = nondet_size();
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  REQUIRE(i < info->capacity);
  ENSURE((i + 1) * info->block_size <= info->n_slices * MI_SLICE_SIZE);
  ENSURE(info->capacity <= MI_WORD_COUNT_MAX && info->claim_at <= info->capacity && info->claim_at >= 1);
  ENSURE(info->bin_limit >= 1 && info->outbox_limit >= 1);
}

void proof_aligned_long(void) {
  size_t size = nondet_size(), align = any_power(), other = any_class();
  size_t cls = _mi_size_class_aligned(size, align);
  ENSURE(cls == MI_CLASS_NONE || cls < MI_CLASS_COUNT);
  ENSURE(cls == MI_CLASS_NONE || (_mi_size_class_block(cls) >= size && (_mi_size_class_block(cls) & (align - 1)) == 0));
  ENSURE(other >= cls || _mi_size_class_block(other) < size || (_mi_size_class_block(other) & (align - 1)) != 0);
}
