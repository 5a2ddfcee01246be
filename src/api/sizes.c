// How large blocks are.  Layer: api.
#include <errno.h>

#include "life.h"

// No block is there.  Memory of the library in which there is none was one, or a part of one; in builds that check blocks that is
// reported, and errno stays as it was.
static size_t sizes_no_block(const void* p, const char* what) {
  int saved = errno;
  if (MI_CHECKED && p != NULL && _mi_page_at(p) != NULL) _mi_life_find(p, what);
  errno = saved;
  return 0;
}

static mi_noinline size_t sizes_usable_slow(const void* p, const char* what) {
  mi_page_t* page = _mi_page_of(p);
  if (page == NULL) return sizes_no_block(p, what);
  mi_fence_acquire(); // what made it a gap page before its size was 0
  if (_mi_gaps_is(page)) return _mi_gaps_size(page, p);
  if (!MI_PADDING) return p == _mi_page_large_block(page) ? _mi_page_large_size(page) : 0;
  if (MI_CHECKED && !_mi_verify_block(page, p, what)) return 0;
  size_t size = _mi_padding_read_any(page, p);
  return size == SIZE_MAX ? 0 : size;
}

size_t mi_usable_size(const void* p) mi_attr_noexcept {
  const mi_page_t* page = _mi_page_at(p);
  if (!MI_PADDING && mi_likely(page != NULL)) {
    size_t size = _mi_page_block_size(page);
    if (mi_likely(size != 0)) return size;
  }
  return sizes_usable_slow(p, "usable_size");
}

size_t mi_good_size(size_t size) mi_attr_noexcept {
  if (size <= MI_CLASS_ASKED_MAX) return _mi_size_class_block(_mi_size_class_of(_mi_life_need(size)));
  if (size > (size_t)PTRDIFF_MAX - MI_SLICE_SIZE) return size;
  return mi_align_up(_mi_life_need(size), MI_SLICE_SIZE);
}

void* mi_expand(void* p, size_t newsize) mi_attr_noexcept {
  if (!MI_PADDING) return p != NULL && newsize <= mi_usable_size(p) ? p : NULL;
  sizes_usable_slow(p, "expand"); // a wrong pointer is reported as by mi_usable_size
  return NULL;
}

void* mi__expand(void* p, size_t newsize) mi_attr_noexcept {
  void* q = mi_expand(p, newsize);
  if (q == NULL) errno = ENOMEM;
  return q;
}

// clang-format off
size_t mi_malloc_size(const void* p) mi_attr_noexcept { return mi_usable_size(p); }
size_t mi_malloc_usable_size(const void* p) mi_attr_noexcept { return mi_usable_size(p); }
size_t mi_malloc_good_size(size_t size) mi_attr_noexcept { return mi_good_size(size); }
// clang-format on

// ---- block sizes on the side ----------------------------------------------------------------------------------------

// The size of the block, padding included; 0 for what is none.
static size_t sizes_of(const void* p) {
  const mi_page_t* page = _mi_page_of(p);
  return page == NULL ? 0 : _mi_life_room(page, p);
}

static void* sizes_with(void* p, size_t* size) {
  if (p != NULL && size != NULL) *size = sizes_of(p);
  return p;
}

// clang-format off
void* mi_umalloc(size_t size, size_t* out) mi_attr_noexcept { return sizes_with(mi_malloc(size), out); }
void* mi_umalloc_small(size_t size, size_t* out) mi_attr_noexcept { return sizes_with(mi_malloc_small(size), out); }
void* mi_uzalloc_small(size_t size, size_t* out) mi_attr_noexcept { return sizes_with(mi_zalloc_small(size), out); }
void* mi_ucalloc(size_t n, size_t size, size_t* out) mi_attr_noexcept { return sizes_with(mi_calloc(n, size), out); }
void* mi_umalloc_aligned(size_t size, size_t align, size_t* block_size) mi_attr_noexcept {
  return sizes_with(mi_malloc_aligned(size, align), block_size);
}
void* mi_uzalloc_aligned(size_t size, size_t align, size_t* block_size) mi_attr_noexcept {
  return sizes_with(mi_zalloc_aligned(size, align), block_size);
}
// clang-format on

void mi_ufree(void* p, size_t* block_size) mi_attr_noexcept {
  (void)sizes_with(p, block_size);
  mi_free(p);
}

void* mi_urealloc(void* p, size_t newsize, size_t* block_size_pre, size_t* block_size_post) mi_attr_noexcept {
  size_t before = sizes_of(p);
  void*  q = mi_realloc(p, newsize);
  if (q != NULL && block_size_pre != NULL) *block_size_pre = before;
  return sizes_with(q, block_size_post);
}
