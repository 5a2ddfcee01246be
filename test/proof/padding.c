// Proves of page/padding.h: the size comes back, a byte behind it that was overwritten is found, and what is no block in use is
// taken for one only if its last word decodes to a possible size.
#include "proof.h"

#define MI_SECURE 4
#include "page/padding.h"

enum { block_max = 48 };

mi_block_keys_t _mi_block_keys;

static uint64_t block[block_max / 8];

void* memcpy(void* to, const void* from, size_t n) {
  for (size_t i = 0; i < n; i++) ((uint8_t*)to)[i] = ((const uint8_t*)from)[i];
  return to;
}

static size_t any_block_size(void) {
  size_t block_size = nondet_size();
  REQUIRE(block_size >= 16 && block_size <= block_max && block_size % 16 == 0);
  _mi_block_keys.padding = nondet_u64();
  return block_size;
}

static size_t any_size(size_t block_size) {
  size_t size = nondet_size();
  REQUIRE(size <= block_size - MI_PADDING_SIZE);
  return size;
}

// D1
void proof_padding_size(void) {
  size_t block_size = any_block_size(), size = any_size(block_size);
  _mi_padding_write(block, size, block_size);
  ENSURE(_mi_padding_is_whole(block, block_size));
  ENSURE(_mi_padding_read(block, block_size) == size);
}

// D2
void proof_padding_byte(void) {
  size_t  block_size = any_block_size(), size = any_size(block_size), at = nondet_size();
  uint8_t byte = (uint8_t)nondet_u32(), *bytes = (uint8_t*)block;
  REQUIRE(at >= size && at < size + 8 && at < block_size - 8 && byte != MI_FILL_PADDING);
  _mi_padding_write(block, size, block_size);
  bytes[at] = byte;
  ENSURE(!_mi_padding_is_whole(block, block_size));
}

void proof_padding_rest(void) {
  size_t   block_size = any_block_size();
  uint64_t rest = nondet_u64();
  ENSURE(_mi_padding_is_rest(rest, block_size) == (rest >= MI_PADDING_SIZE && rest <= block_size));
}

// A second free: the complement of a last word decodes to no possible size, whatever the key.
void proof_padding_twice_long(void) {
  size_t block_size = nondet_size(), size = nondet_size();
  REQUIRE(block_size <= MI_CLASS_SIZE_MAX && block_size >= 16 && size <= block_size - MI_PADDING_SIZE);
  uint64_t last = (uint64_t)(block_size - size) * MI_MIX;
  ENSURE(!_mi_padding_is_rest(~last * MI_MIX_INVERSE, block_size));
}
