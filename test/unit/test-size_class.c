// Proves: the tables give each size the smallest class that fits; blocks waste no more than was decided, fill their
// pages, and the numbers derived from their size are what the header says.
#include "../check.h"
#include "../modes/support.h"
#include "arena/region.h"
#include "base/mode.h"
#include "page/page_word.h"
#include "page/size_class.h"

enum { first_class = MI_PADDING }; // with padding no block has the smallest size (page/padding.h, D3)

static size_t naive_class(size_t size, size_t align) {
  for (size_t cls = first_class; cls < MI_CLASS_COUNT; cls++) {
    if (_mi_size_class_block(cls) >= size && _mi_size_class_block(cls) % align == 0) return cls;
  }
  return MI_CLASS_NONE;
}

// By all the ways that there are to look a size up.
static void check_lookup(size_t size, size_t cls) {
  CHECK_FOR(_mi_size_class_of(size) == cls, "size %zu: class %zu, not %zu", size, _mi_size_class_of(size), cls);
  if (size <= MI_SMALL_MAX) CHECK_EQ(_mi_size_class_small[size], cls << MI_BIN_SHIFT);
  else if (size <= MI_MEDIUM_MAX) CHECK_EQ(_mi_size_class_medium[(size - 1) / 128], cls << MI_BIN_SHIFT);
  if (size > 4 * MI_KiB) CHECK_EQ(_mi_size_class_of_big(size), cls);
}

static void check_waste(size_t size, size_t cls) {
  size_t block_size = _mi_size_class_block(cls);
  size_t waste = block_size - size;
  if (size <= 256) CHECK_FOR(waste < 16, "size %zu: block of %zu", size, block_size);
  else if (size <= 4 * MI_KiB) CHECK_FOR(waste * 8 <= size + 8 * 16, "size %zu: block of %zu", size, block_size);
  else CHECK_FOR(waste * 4 <= block_size, "size %zu: block of %zu", size, block_size);
}

static void check_sizes(void) {
  size_t cls = first_class; // the search, with what it knows from the size before
  for (size_t size = 0; size <= MI_CLASS_SIZE_MAX; size++) {
    while (_mi_size_class_block(cls) < size) cls++;
    check_lookup(size, cls);
    if (size > MI_PADDING_SIZE) check_waste(size, cls);
  }
  CHECK_EQ(cls, MI_CLASS_COUNT - 1);
}

static size_t at_most(size_t x, size_t most) {
  return x < most ? x : most;
}

static size_t at_least(size_t x, size_t least) {
  return x > least ? x : least;
}

// As few slices as hold eight blocks, at most eight, and as hold them without a loss.
static void check_slices(size_t cls) {
  size_t size = _mi_size_class_block(cls), n = _mi_size_class_info[cls].n_slices,
         capacity = _mi_size_class_info[cls].capacity;
  size_t wanted = at_most(8, 8 * MI_SLICE_SIZE / size);
  CHECK_FOR(n <= 8 && (size > 8 * MI_KiB || n == 1), "class %zu: %zu slices", cls, n);
  CHECK_FOR(capacity >= wanted, "class %zu: %zu blocks in %zu slices", cls, capacity, n);
  CHECK_FOR((n - 1) * MI_SLICE_SIZE / size < wanted, "class %zu: %zu slices hold as many", cls, n - 1);
}

static void check_class(size_t cls) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  size_t                 size = info->block_size;
  size_t                 page_size = info->n_slices * MI_SLICE_SIZE;
  if (cls > 0) CHECK_FOR(size > _mi_size_class_block(cls - 1), "class %zu", cls);
  CHECK_FOR(size % (size > MI_SMALL_MAX ? 128 : (size > 8 ? 16 : 8)) == 0, "class %zu of %zu", cls, size);
  if (cls > 0 || first_class == 0) CHECK_FOR(naive_class(size, 1) == cls, "class %zu of %zu", cls, size);
  check_slices(cls);
  CHECK_FOR((page_size - info->capacity * size) * 25 <= page_size, "class %zu: over 4 %% of the page is lost", cls);
  CHECK_FOR(info->capacity * size <= page_size, "class %zu does not fit its page", cls);
  CHECK_FOR((info->capacity + 1u) * size > page_size, "class %zu leaves room for a block", cls);
  CHECK_FOR(info->capacity >= (size <= 64 * MI_KiB ? 8 : 1) && info->capacity <= MI_WORD_COUNT_MAX, "class %zu", cls);
  CHECK_EQ(info->outbox_limit, at_least(at_most(32, 4 * MI_KiB / size), 1));
  CHECK_EQ(info->bin_limit, at_least(at_most(64, 16 * MI_KiB / size), 1));
  CHECK_EQ(info->claim_own_at, at_least(info->capacity / 32u, size > 1024 ? at_most((info->capacity + 3u) / 4, 4) : 1));
  size_t others = (size <= 1024 ? info->capacity / 4u : at_most(info->capacity * 3u / 8, 8));
  CHECK_EQ(info->claim_at, at_least(size > 16 * 1024 ? 0 : others, info->claim_own_at));
}

static void check_classes(void) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) check_class(cls);
  for (size_t size = MI_PADDING ? 16 : 8; size <= MI_CLASS_SIZE_MAX; size *= 2) {
    CHECK_FOR(_mi_size_class_block(_mi_size_class_of(size)) == size, "there is no class of %zu", size);
  }
  CHECK_EQ(_mi_size_class_block(MI_CLASS_4K), 4 * MI_KiB);
  CHECK_EQ(_mi_size_class_block(MI_CLASS_COUNT - 1), MI_CLASS_SIZE_MAX);
  CHECK(MI_CLASS_NONE >= MI_CLASS_COUNT);
}

static void check_aligned_at(size_t size) {
  for (size_t align = 1; align <= MI_SLICE_SIZE; align *= 2) {
    size_t cls = _mi_size_class_aligned(size, align);
    CHECK_FOR(cls == naive_class(size, align), "size %zu align %zu: class %zu", size, align, cls);
  }
}

static void check_aligned(void) {
  for (size_t size = 0; size <= MI_CLASS_SIZE_MAX + 1000; size += (size < 2 * MI_KiB ? 1 : 61)) check_aligned_at(size);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    for (size_t d = 0; d < 3; d++) check_aligned_at(_mi_size_class_block(cls) + d - 1);
  }
  CHECK_EQ(_mi_size_class_aligned(SIZE_MAX, 1), MI_CLASS_NONE);
  CHECK_EQ(_mi_size_class_aligned(SIZE_MAX, MI_SLICE_SIZE), MI_CLASS_NONE);
}

int main(void) {
  check_classes();
  check_sizes();
  check_aligned();
  return check_result();
}
