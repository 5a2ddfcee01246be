// The fast path of aligned allocation.  Layer: api.
#pragma once

#include "alloc.h"
#include "life.h"

// `need` is a multiple of the alignment.  If it is not above 8 KiB, neither is the class: that of 8 KiB has each such alignment.
static mi_always_inline void* aligned_pop_class(size_t offset, size_t size, size_t need) {
  void* p = _mi_theap_pop_fast(_mi_theap_default, offset);
  if (mi_unlikely(p == NULL)) return NULL;
  return _mi_life_issue(p, size, offset >> MI_BIN_SHIFT, _mi_life_is_marked(need));
}

// Of a class of more than 1 KiB, which may have been widened (page/size_class.h).  Pages start at slices, so a larger
// alignment is not a matter of the class.
static mi_noinline void* aligned_pop_any(size_t size, size_t need, size_t align) mi_attr_noexcept {
  if (align > MI_SLICE_SIZE) return NULL;
  size_t cls = _mi_size_class_aligned(need, align);
  return cls == MI_CLASS_NONE ? NULL : aligned_pop_class(cls << MI_BIN_SHIFT, size, need);
}

// The first block of the bin of the class of the default heap that has the alignment.  NULL if there is none, or if the
// alignment is no power of two or above a slice; errno stays as it was.
static mi_always_inline void* _mi_aligned_pop(size_t size, size_t align) {
  if (mi_unlikely(!mi_is_pow2(align) || size > MI_CLASS_ASKED_MAX || _mi_life_is_guarded(size))) return NULL;
  size_t need = mi_align_up(mi_max(_mi_life_need(size), 1), align);
  if (mi_likely(need <= MI_SMALL_MAX))
    return aligned_pop_class(_mi_size_class_small[need], size, need); // so small a class fits
  if (mi_unlikely(need > MI_MEDIUM_MAX)) return aligned_pop_any(size, need, align);
  size_t offset = _mi_size_class_medium[(need - 1) / 128];
  bool   is_aligned = (_mi_size_class_block(offset >> MI_BIN_SHIFT) & (align - 1)) == 0;
  return mi_likely(is_aligned) ? aligned_pop_class(offset, size, need) : aligned_pop_any(size, need, align);
}
