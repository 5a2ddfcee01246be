// A block's life: the rare parts.  Layer: api.
#include "life.h"

#include <errno.h>
#include <string.h>

#include "../base/probe.h"
#include "../heap/guard.h"
#include "../support/message.h"

size_t _mi_life_size(const mi_page_t* page, const void* p) {
  if (!MI_PADDING) return _mi_life_room(page, p);
  size_t size = _mi_padding_read_any(page, p);
  return size != SIZE_MAX ? size : _mi_life_room(page, p) - MI_PADDING_SIZE; // it was overwritten, and that reported
}

// ---- issue ----------------------------------------------------------------------------------------------------------

// Debug builds fill new blocks, but of one over 16 MiB only both ends: to fill all of it would back all of it, and take
// longer than anything else that is done to it.  (Ten times malloc and free of 1 GiB: 1.6 s, with ends of 1 MiB 3 ms.)
// The thread sanitizer looks at what each of these bytes had been through, and takes thirty times as long.
#define LIFE_FILL_MAX  (MI_TSAN ? 256 * MI_KiB : 16 * MI_MiB)
#define LIFE_FILL_ENDS (LIFE_FILL_MAX / 16)

static void life_fill_large(char* p, size_t size) {
  if (size > LIFE_FILL_MAX) {
    memset(p + size - LIFE_FILL_ENDS, MI_FILL_UNINIT, LIFE_FILL_ENDS);
    size = LIFE_FILL_ENDS;
  }
  memset(p, MI_FILL_UNINIT, size);
}

void* _mi_life_issue_zero_any(void* p, size_t size, size_t cls, bool is_zero) {
  life_reuse(p, cls, _mi_life_is_marked(_mi_size_class_block(cls)));
  if (is_zero) memset(p, 0, sizeof(mi_block_t));
  else if (!MI_HARDENED) memset(p, 0, MI_PADDING ? size : _mi_size_class_block(cls));
  return life_hand_out(p, size, cls, true);
}

void* _mi_life_issue_large(void* p, size_t size, bool is_zero) {
  MI_PROBE2(large_malloc, p, size);
  if (MI_FILL_NEW && !is_zero) life_fill_large((char*)p, size);
  if (MI_PADDING) _mi_padding_write_large(_mi_page_of_made(p), size);
  if (MI_TRACK) {
    mi_track_closed(_mi_page_large_start(_mi_page_of(p)), (size_t)((char*)p - _mi_page_large_start(_mi_page_of(p))));
    mi_track_closed((char*)p + size, _mi_page_large_size(_mi_page_of(p)) - size);
    mi_track_block(p, size, is_zero);
  }
  _mi_trace_allocated(p);
  return p;
}

// ---- resize ---------------------------------------------------------------------------------------------------------

void _mi_life_populate(void* p, size_t n) {
  if (MI_HARDENED && n >= MI_LIFE_GUARDED_MIN) _mi_guard_populate(p, n);
}

void _mi_life_resize(mi_page_t* page, void* p, size_t old_size, size_t new_size, size_t room, bool zero) {
  if (!MI_PADDING) return;
  if (MI_TRACK) {
    // Only what changes: growing a block byte by byte would cost quadratic time.  Behind old_size it is closed already.
    mi_track_resize(p, old_size, new_size);
    if (new_size < old_size) mi_track_closed((char*)p + new_size, old_size - new_size);
  }
  if (zero && new_size > old_size) memset((char*)p + old_size, 0, mi_min(new_size, room) - old_size);
  if (_mi_page_kind(page) == MI_PAGE_LARGE) _mi_padding_clear_large(page, old_size);
  _mi_padding_write_any(page, p, new_size);
}

bool _mi_life_resize_guarded(mi_page_t* page, size_t old_size, size_t new_size) {
  if (!MI_HARDENED || old_size < MI_LIFE_GUARDED_MIN || new_size < MI_LIFE_GUARDED_MIN) return false;
  return _mi_guard_resize(page, new_size);
}

// ---- take back ------------------------------------------------------------------------------------------------------

// What is no block of a class has no tag, and is looked at by others.
bool _mi_life_untag(void** p) {
  void*            plain = _mi_prim_tag_strip(*p);
  const mi_page_t* page = (plain == NULL ? NULL : _mi_page_of(plain));
  if (page == NULL || !_mi_prim_has_tags || _mi_page_kind(page) != MI_PAGE_BLOCKS) return true;
  size_t block_size = _mi_page_block_size(page);
  if ((size_t)((char*)plain - _mi_page_start(page)) % block_size != 0) {
    _mi_message_error(EINVAL, "free of an invalid pointer: %p lies within a block of %zu bytes\n", *p, block_size);
    return false;
  }
  void* current = _mi_prim_tag_pointer(plain);
  if (current != *p) {
    bool is_free = (current == plain);
    _mi_message_error(is_free ? EAGAIN : EINVAL,
                      is_free ? "double free of the block %p of %zu bytes\n"
                              : "free of an invalid pointer: %p has not the tag of its block of %zu bytes\n",
                      *p, block_size);
    return false;
  }
  _mi_prim_tag_clear(plain, block_size);
  *p = plain;
  return true;
}

// Most slices of a large block say nothing of it: only the one in which it begins is looked up by those who free it.
static const mi_page_t* life_find_large(const void* p) {
  const mi_page_t* slice = _mi_page_at(p);
  if (slice == NULL) return NULL;
  size_t n = ((uintptr_t)p - _mi_region_all[0].base) >> MI_SLICE_SHIFT;
  if (n >= mi_load_growing(&_mi_region_all[0].n_slices)) return NULL;
  for (size_t i = 1; i <= n; i++) {
    const mi_page_t* page = slice - i;
    if (_mi_page_kind(page) == MI_PAGE_NONE || _mi_page_kind(page) == MI_PAGE_INTERIOR) continue;
    return _mi_page_kind(page) == MI_PAGE_LARGE && page->n_slices > i ? page : NULL;
  }
  return NULL;
}

// `page` is NULL, or that of a large block.
static mi_cold void life_report(const char* what, const mi_page_t* page, const void* p) {
  if (page == NULL) {
    _mi_message_error(EINVAL, "%s of an invalid pointer: %p is no block of this allocator\n", what, p);
    return;
  }
  const void* block = _mi_page_large_block(page);
  size_t      size = _mi_page_large_size(page);
  if (p != block) {
    _mi_message_error(EINVAL, "%s of an invalid pointer: %p lies within the block %p of %zu bytes\n", what, p, block,
                      size);
  }
  else if (strcmp(what, "free") == 0) {
    _mi_message_error(EAGAIN, "double free of the block %p of %zu bytes\n", p, size);
  }
  else {
    _mi_verify_report_freed(p, size, what);
  }
}

mi_cold void _mi_life_free_failed(const mi_page_t* page, const void* p) {
  if (p == NULL) return; // it came before the first block (arena/region.h, R1)
  if (page == NULL) page = life_find_large(p);
  else if (_mi_page_has(page, MI_PAGE_GUARDED)) _mi_guard_explain(page);
  life_report("free", page, p);
}

// Is p a large block in use?  One that is free may be kept for the next request (heap/kept.h), and nobody else may change it.  Of a guarded
// one the fault says more.
static bool life_is_large(const mi_page_t* page, const void* p) {
  bool is_free = (_mi_page_word_state(mi_load_relaxed(&((mi_page_t*)page)->word)) == MI_PAGE_CLAIMED);
  return p == _mi_page_large_block(page) && (!is_free || _mi_page_has(page, MI_PAGE_GUARDED));
}

mi_page_t* _mi_life_find(const void* p, const char* what) {
  mi_page_t* page = _mi_page_of(p);
  bool       is_block = (page != NULL);
  if (is_block && MI_CHECKED) is_block = _mi_verify_block(page, p, what);
  else if (is_block && page->cls == MI_CLASS_NONE) is_block = life_is_large(page, p);
  if (mi_likely(is_block)) return page;
  _mi_life_give_up(p); // tools report it too
  if (page == NULL || !MI_CHECKED) life_report(what, page == NULL ? life_find_large(p) : page, p);
  errno = EINVAL;
  return NULL;
}

// Is the padding behind p, which may be no block, as it was written?
static bool life_is_whole(const mi_page_t* page, const void* p) {
  bool is_readable = (_mi_page_kind(page) == MI_PAGE_LARGE || _mi_verify_is_within(page, p));
  return is_readable && _mi_padding_read_any(page, p) != SIZE_MAX;
}

bool _mi_life_is_right(const void* p, size_t size, size_t alignment) {
  mi_page_t* page = _mi_page_of(p);
  if (!MI_CHECKED || page == NULL) return true; // mi_free knows what to say
  bool has_padding = life_is_whole(page, p);
  if (!_mi_verify_block(page, p, "free")) return false;
  if (!mi_is_aligned(p, alignment)) {
    _mi_message_error(EINVAL, "free of the block %p with the wrong alignment: it is no multiple of %zu\n", p,
                      alignment);
    return false;
  }
  size_t asked = _mi_padding_read_any(page, p);
  if (size == SIZE_MAX || !has_padding || size == asked) return true; // the size was overwritten, and that reported
  _mi_verify_wrong_size(p, size, asked);
  return false;
}

// ---- release --------------------------------------------------------------------------------------------------------

mi_noinline void _mi_life_release_first(mi_page_t* page, void* p) {
  if (p == NULL) return; // as above
  mi_theap_t* thread = _mi_thread_for_frees();
  if (MI_HARDENED) _mi_quarantine_free(page, p);
  else _mi_free_any(thread, page, p);
}
