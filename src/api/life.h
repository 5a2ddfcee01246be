// A block's life: all that a build does to a block on its way to the program and back.  Layer: api.
//
//   need        the bytes of a block that serves a request
//   issue       a free block goes to the program
//   resize      it stays where it is, and has another size from then on
//   take back   the program frees it: is it a block in use?  What is not is reported, and stays as it is
//   release     it waits, or goes to a bin
//
// A release build does nothing but clear blocks that are to read as zero: need is the size itself, issue hands out the
// block, every block can be taken back, and a block that is released goes to its bin.  base/mode.h says what others do.
#pragma once

#include "../heap/free.h"
#include "../heap/gaps.h"
#include "../heap/large.h"
#include "../heap/quarantine.h"
#include "../heap/thread.h"
#include "../page/verify.h"
#include "../support/trace.h"

// ---- need -----------------------------------------------------------------------------------------------------------

static mi_always_inline size_t _mi_life_need(size_t size) {
  if (MI_TAGS && size < MI_TAG_GRANULE) return MI_TAG_GRANULE; // a block has tags of its own
  return size + MI_PADDING_SIZE;
}

// The largest requests that the two tables of bins serve.
#define MI_LIFE_SMALL_MAX  (MI_SMALL_MAX - MI_PADDING_SIZE)
#define MI_LIFE_MEDIUM_MAX (MI_MEDIUM_MAX - MI_PADDING_SIZE)

// From this size on hardened builds guard blocks: they cost system calls and page faults, and less to clear and to look at than
// they would in a page of their class (docs/decisions/039).
#define MI_LIFE_GUARDED_MIN (256 * MI_KiB)

// Does the build guard blocks of this size, as far as there can be so many (heap/guard.h)?
static mi_always_inline bool _mi_life_is_guarded(size_t size) {
  return MI_HARDENED && size - 1 >= MI_LIFE_GUARDED_MIN - 1; // 0 as well
}

// The bytes of the block p, with what the build needs for itself; by the first descriptor of its page.
static inline size_t _mi_life_room(const mi_page_t* page, const void* p) {
  if (page->cls == MI_CLASS_NONE) return _mi_page_large_size(page);
  size_t size = _mi_page_block_size(page);
  mi_fence_acquire(); // what made it a gap page before its size was 0
  return mi_unlikely(MI_GAPS && size == 0) ? _mi_gaps_size(page, p) : size;
}

// Of that, the program's.
size_t _mi_life_size(const mi_page_t* page, const void* p);

// ---- issue ----------------------------------------------------------------------------------------------------------

// Does a block that serves so many bytes, with what the build needs for itself, say in its second word that it was never used
// (page/block.h)?  Where blocks are filled that word is checked with the others.
static mi_always_inline bool _mi_life_is_marked(size_t need) {
  return MI_CHECKED && !MI_FILL && need > MI_BLOCK_ENDED_MAX;
}

// The free block p of a class is going to be used again: has somebody written to it?  In hardened builds it is all zero
// afterwards.
static mi_always_inline void life_reuse(void* p, size_t cls, bool is_marked) {
  if (MI_TRACK) mi_track_writable(p, _mi_size_class_block(cls));
  if (MI_FILL && mi_unlikely(!_mi_verify_freed(p, _mi_size_class_block(cls))))
    _mi_fill_freed(p, _mi_size_class_block(cls));
  if (MI_HARDENED) memset(p, 0, sizeof(mi_block_t));
  if (is_marked) memset((mi_block_t*)p + 1, 0, sizeof(mi_block_t));
}

static mi_always_inline void* life_hand_out(void* p, size_t size, size_t cls, bool is_zero) {
  if (MI_FILL_NEW && !is_zero) memset(p, MI_FILL_UNINIT, size);
  if (MI_PADDING) _mi_padding_write(p, size, _mi_size_class_block(cls));
  if (MI_TRACK) {
    mi_track_closed((char*)p + size, _mi_size_class_block(cls) - size);
    mi_track_block(p, size, is_zero);
  }
  _mi_trace_allocated(p);
  return MI_TAGS ? _mi_prim_tag_block(p, _mi_size_class_block(cls)) : p;
}

// The block p of a class, for `size` bytes.
static mi_always_inline void* _mi_life_issue(void* p, size_t size, size_t cls, bool is_marked) {
  life_reuse(p, cls, is_marked);
  return life_hand_out(p, size, cls, false);
}

// Up to 128 bytes `size` is rounded up to 16: the class has that many.
static mi_always_inline void life_clear(void* p, size_t size, size_t cls) {
  if (MI_MIN_ALIGN_8 || size > 128) memset(p, 0, MI_PADDING ? size : _mi_size_class_block(cls));
  else if (size > 8 || MI_TAGS) _mi_fill_small(p, mi_align_up(mi_max(size, 1), 16), 0);
  else memset(p, 0, 8);
}

// The same, to read as zero, if it is of the class of `size`.  Without padding all of the block is cleared: mi_rezalloc
// counts on it when it grows in place.
static mi_always_inline void* _mi_life_issue_zero(void* p, size_t size, size_t cls) {
  life_reuse(p, cls, _mi_life_is_marked(_mi_life_need(size)));
  if (!MI_HARDENED) life_clear(p, size, cls);
  return life_hand_out(p, size, cls, true);
}

// The same, of any class.  `is_zero`: all but its first word is zero already.
void* _mi_life_issue_zero_any(void* p, size_t size, size_t cls, bool is_zero);

// Is the memory of a large block, or what it grows by, to be cleared?  In hardened builds nothing of an earlier owner is left;
// guarded blocks read as zero anyway.
static mi_always_inline bool _mi_life_is_cleared(bool zero) {
  return MI_HARDENED || zero;
}

// A large block.  `is_zero`: it was asked to be zero, and is.
void* _mi_life_issue_large(void* p, size_t size, bool is_zero);

// ---- resize ---------------------------------------------------------------------------------------------------------

// Can it stay with nothing written anew, and at least half of it used?  By the descriptor of its slice.
static mi_always_inline bool _mi_life_fits(const mi_page_t* slice, size_t new_size) {
  size_t size = _mi_page_block_size(slice);
  return !MI_PADDING && mi_likely(new_size <= size && new_size >= size / 2 && new_size > 0);
}

// The size of a block of a class all of which may be read, without more to be known of it; else 0.  It is read once: another
// thread may make the page a gap page at any time, and then it is 0.
static mi_always_inline size_t _mi_life_plain_size(const mi_page_t* slice) {
  return MI_CHECKED || MI_PADDING || MI_TRACK || MI_TAGS ? 0 : _mi_page_block_size(slice);
}

// Tools do not know that contents move with page tables: for them they are copied.
#define MI_LIFE_CAN_REMAP (!MI_TRACK)

// Bytes by which a block of new_size bytes shall be able to grow where it is, because it has grown; 0 where that is
// nothing special.
static inline size_t _mi_life_growth(size_t old_size, size_t new_size) {
  return MI_HARDENED && old_size >= MI_LIFE_GUARDED_MIN && new_size > old_size ? new_size / 4 : 0;
}

// The first n bytes of a block that has just been made are about to be written.
void _mi_life_populate(void* p, size_t n);

// The block stays where it is and has new_size bytes from now on, contents up to old_size.  `zero`: what is added, up to
// `room`, is cleared.
void _mi_life_resize(mi_page_t* page, void* p, size_t old_size, size_t new_size, size_t room, bool zero);

// May a guarded block stay where it is?
bool _mi_life_resize_guarded(mi_page_t* page, size_t old_size, size_t new_size);

// ---- take back ------------------------------------------------------------------------------------------------------

// Reports that p is not to be freed.  `page` is NULL, or that of the large block which it is, or in which it lies.
mi_cold void _mi_life_free_failed(const mi_page_t* page, const void* p);

// Takes the tag off a pointer and off its block, which is free then (prim/tag.h, TG1).  False after a report: it is no pointer to
// a block in use.
bool _mi_life_untag(void** p);

// The program gives p up.  Tools hear of it first: they report what they do not know as a block.
static mi_always_inline void _mi_life_give_up(const void* p) {
  if (MI_TRACK && p != NULL) mi_track_unblock(p);
}

static mi_always_inline void life_retire(void* p, size_t block_size) {
  _mi_trace_freed(p);
  if (MI_TRACK) {
    mi_track_freed(p, _mi_padding_read(p, block_size));
    mi_track_closed(p, block_size);
  }
  _mi_padding_retire(p, block_size);
  if (MI_FILL) _mi_fill_freed(p, block_size);
}

// The block of a class, by the descriptor of its slice.  False: _mi_life_take_back looks closer.
static mi_always_inline bool _mi_life_take_back_fast(mi_page_t* slice, void* p) {
  if (!MI_CHECKED) return true;
  size_t block_size = _mi_page_block_size(slice);
  if (mi_unlikely(!_mi_verify_is_readable(slice, p) || !_mi_padding_is_whole(p, block_size))) return false;
  _mi_verify_before(slice, p, block_size);
  life_retire(p, block_size);
  return true;
}

// The same by the first descriptor of its page; false after a report.
static inline bool _mi_life_take_back(mi_page_t* page, void* p) {
  if (!MI_CHECKED) return true;
  if (p == NULL || !_mi_verify_block(page, p, "free")) return false; // NULL: arena/region.h, R1
  _mi_verify_before(page, p, _mi_page_block_size(page));
  life_retire(p, _mi_page_block_size(page));
  return true;
}

// A large block: that it is in use is found when it is released.
static inline bool _mi_life_take_back_large(mi_page_t* page, void* p) {
  if (MI_CHECKED && !_mi_page_has(page, MI_PAGE_GUARDED)) { // guarded blocks are checked when they are released
    if (!_mi_verify_block(page, p, "free")) return false;
    _mi_trace_freed(p);
  }
  if (mi_likely(p == _mi_page_large_block(page))) return true;
  _mi_life_free_failed(page, p);
  return false;
}

// The page of the block p, with which the program wants to do `what`; NULL, with errno EINVAL and a report, if it is no
// block.
mi_page_t* _mi_life_find(const void* p, const char* what);

// Does the program name the right alignment, and the right size (SIZE_MAX: none), for what it frees?  False after a
// report.
bool _mi_life_is_right(const void* p, size_t size, size_t alignment);

// ---- release --------------------------------------------------------------------------------------------------------

// What is read of a slice before its home (page.h, P6).  Where blocks wait it is read when their time has come.
static mi_always_inline size_t _mi_life_bin_offset(mi_page_t* slice) {
  return MI_HARDENED ? 0 : _mi_page_bin_offset(slice);
}

// A block that was taken back, of a page whose home is `theap`, of the calling thread.
static mi_always_inline void _mi_life_release(mi_theap_t* theap, size_t bin_offset, mi_page_t* slice, void* p) {
  if (MI_HARDENED) _mi_quarantine_free_local(theap, slice, p);
  else _mi_free_local(theap, bin_offset, slice, p);
}

// The same, of any page by its first descriptor, on a thread that has no theap: it gets one if it frees much, and with it a
// quarantine.
void _mi_life_release_first(mi_page_t* page, void* p);

// The same on any thread.
static inline void _mi_life_release_any(mi_page_t* page, void* p) {
  mi_theap_t* thread = _mi_theap_backing();
  if (mi_unlikely(thread == NULL)) _mi_life_release_first(page, p);
  else if (MI_HARDENED) _mi_quarantine_free(page, p);
  else _mi_free_any(thread, page, p);
}

// A large block.
static inline void _mi_life_release_large(mi_page_t* page, void* p) {
  if (mi_unlikely(!_mi_large_free(_mi_theap_backing(), page))) _mi_life_free_failed(page, p);
}
