// Checks of blocks, and what is said about those that fail.  Layer: page.
#include "verify.h"

#include <errno.h>

#include "../support/message.h"
#include "../support/trace.h"

mi_atomic(bool) _mi_verify_skips_others;

// Was the block made, and never used?  One over 8 KiB says so (block.h).  What else it holds is not looked at: each of its OS pages would
// be a fault to read it and another one to write it.
static bool verify_is_fresh(const void* p, size_t block_size) {
  return block_size > MI_BLOCK_ENDED_MAX && mi_track_load((const char*)p + sizeof(mi_block_t)) == _mi_block_unused(p);
}

// Is the block free, or made and not used yet?
static bool verify_is_unused(const void* p, size_t block_size) {
  return _mi_padding_is_free(p, block_size) || verify_is_fresh(p, block_size);
}

// Where the first byte of a free block is that is not as it was, behind its link.
static size_t verify_first_written(const void* p, size_t block_size) {
  const uint8_t* bytes = (const uint8_t*)p;
  const uint64_t end = _mi_block_free_end(p);
  size_t         at = sizeof(mi_block_t), last = block_size - sizeof(end);
  while (at < last && bytes[at] == MI_FILL_FREED) at++;
  while (at >= last && at < block_size && bytes[at] == ((const uint8_t*)&end)[at - last]) at++;
  return at;
}

mi_noinline bool _mi_verify_freed_any(void* p, size_t block_size) {
  char*          second = (char*)p + sizeof(mi_block_t);
  size_t         size = block_size - sizeof(mi_block_t) - MI_PADDING_SIZE;
  const uint64_t word = MI_FILL_FREED_WORD;
  if (verify_is_fresh(p, block_size)) {
    memset(second, 0, sizeof(word));
    return true;
  }
  // Each word is the one before it: libc's memcmp is the fastest loop there is.
  bool is_filled = size < sizeof(word) || (memcmp(second, &word, sizeof(word)) == 0 &&
                                           memcmp(second, second + sizeof(word), size - sizeof(word)) == 0);
  if (mi_likely(is_filled) && mi_likely(_mi_padding_is_free(p, block_size))) return true;
  _mi_trace_explain(p);
  _mi_message_error(EFAULT, "use after free: the free block %p of %zu bytes was written to at offset %zu\n", p,
                    block_size, verify_first_written(p, block_size));
  return false;
}

bool _mi_verify_unlinked(const void* p, size_t block_size) {
  uint64_t first;
  memcpy(&first, p, sizeof(first));
  if (mi_likely(first == MI_FILL_FREED_WORD)) return true;
  _mi_trace_explain(p);
  _mi_message_error(EFAULT, "use after free: the free block %p of %zu bytes was written to at its start\n", p,
                    block_size);
  return false;
}

// ---- blocks in use --------------------------------------------------------------------------------------------------

mi_cold void _mi_verify_report_freed(const void* p, size_t size, const char* what) {
  _mi_message_error(EAGAIN, "%s of the block %p of %zu bytes, which is free already\n",
                    strcmp(what, "free") == 0 ? "double free" : what, p, size);
}

static bool verify_is_start(const mi_page_t* page, const void* p, const char* what) {
  size_t size = _mi_page_block_size(page);
  size_t at = (size_t)((const char*)p - _mi_page_start(page));
  if (at % size == 0 && at / size < page->capacity) return true;
  if (at / size >= page->capacity) {
    _mi_message_error(EINVAL,
                      "%s of an invalid pointer: %p lies behind the last block of a page of blocks of %zu bytes\n",
                      what, p, size);
    return false;
  }
  _mi_trace_explain((const char*)p - at % size);
  _mi_message_error(EINVAL, "%s of an invalid pointer: %p lies %zu bytes into the block %p of %zu bytes\n", what, p,
                    at % size, (const void*)((const char*)p - at % size), size);
  return false;
}

// Was the block linked once?  What was not has whatever the memory was used for before.
static bool verify_is_made(const mi_page_t* page, const void* p) {
  size_t extended = mi_load_plain_acquire(&page->extended); // by another thread, perhaps at this moment (D4)
  size_t at = (size_t)((const char*)p - _mi_page_start(page)) / _mi_page_block_size(page);
  size_t first = _mi_page_first_made(page);
  return (at >= first ? at - first : at + page->capacity - first) < extended;
}

// Nobody has a block that was never made, whatever its end is, nor one that was made and not used since.
static bool verify_was_made(const mi_page_t* page, const void* p, const char* what) {
  size_t size = _mi_page_block_size(page);
  if (verify_is_made(page, p) && !verify_is_fresh(p, size)) return true;
  _mi_message_error(EINVAL, "%s of an invalid pointer: the block %p of %zu bytes was never allocated\n", what, p, size);
  return false;
}

static bool verify_is_used(const mi_page_t* page, const void* p, const char* what) {
  size_t size = _mi_page_block_size(page);
  if (!_mi_padding_is_free(p, size)) return true;
  _mi_trace_explain(p);
  _mi_verify_report_freed(p, size, what);
  return false;
}

// Reported once: the padding is whole afterwards, so that a second free of the block is known as one.
static void verify_overflow(const mi_page_t* page, const void* p, const char* what) {
  size_t   size = _mi_page_block_size(page);
  uint64_t rest = _mi_padding_decode(p, _mi_padding_last(p, size));
  _mi_trace_explain(p);
  if (_mi_padding_is_rest(rest, size)) {
    _mi_message_error(
        EFAULT, "buffer overflow: the block %p of %zu bytes was written to beyond its end, seen at its %s (page %p)\n",
        p, size - (size_t)rest, what, (void*)_mi_page_start(page));
  }
  else {
    _mi_message_error(
        EFAULT,
        "buffer overflow: the block %p of at most %zu bytes was written to beyond its end, seen at its %s, or "
        "was never allocated (page %p)\n",
        p, size - MI_PADDING_SIZE, what, (void*)_mi_page_start(page));
    rest = MI_PADDING_SIZE;
  }
  _mi_padding_write((void*)p, size - (size_t)rest, size);
}

static bool verify_large(mi_page_t* page, const void* p, const char* what) {
  const void* block = _mi_page_large_block(page);
  size_t      size = _mi_page_large_size(page);
  if (p != block) {
    _mi_trace_explain(block);
    _mi_message_error(EINVAL, "%s of an invalid pointer: %p lies within the block %p of %zu bytes\n", what, p, block,
                      size);
    return false;
  }
  if (_mi_page_word_state(mi_load_relaxed(&page->word)) == MI_PAGE_CLAIMED) {
    _mi_trace_explain(block);
    _mi_verify_report_freed(p, size, what);
    return false;
  }
  if (MI_PADDING && _mi_padding_read_large(page) == SIZE_MAX) {
    _mi_trace_explain(block);
    _mi_message_error(EFAULT,
                      "buffer overflow: the block %p of %zu bytes was written to beyond its end, seen at its %s\n", p,
                      page->asked, what);
    _mi_padding_write_large(page, page->asked);
  }
  return true;
}

bool _mi_verify_block(mi_page_t* page, const void* p, const char* what) {
  if (_mi_page_kind(page) == MI_PAGE_LARGE) return verify_large(page, p, what);
  if (_mi_verify_is_within(page, p) && _mi_padding_is_whole(p, _mi_page_block_size(page))) return true;
  if (!verify_is_start(page, p, what) || !verify_was_made(page, p, what) || !verify_is_used(page, p, what))
    return false;
  verify_overflow(page, p, what);
  return true;
}

// Not in the child of a fork that lacks threads: there are blocks that count as made and were not (heap/fork.c, F5).
mi_cold void _mi_verify_destroyed(mi_page_t* page, const void* p) {
  bool   is_large = (_mi_page_kind(page) == MI_PAGE_LARGE);
  size_t size = (is_large ? page->asked : _mi_page_block_size(page) - MI_PADDING_SIZE);
  if (mi_load_relaxed(&_mi_verify_skips_others)) return;
  if (is_large ? _mi_padding_read_large(page) != SIZE_MAX : verify_is_unused(p, size + MI_PADDING_SIZE)) return;
  _mi_trace_explain(p);
  _mi_message_error(
      EFAULT,
      "buffer overflow: the block %p of %s%zu bytes was written to beyond its end, seen when its heap was "
      "destroyed\n",
      p, is_large ? "" : "at most ", size);
}

// ---- what lies before a block ---------------------------------------------------------------------------------------

mi_cold void _mi_verify_before_any(mi_page_t* slice, const void* p) {
  const mi_page_t* page = slice - slice->to_first;
  size_t           size = _mi_page_block_size(page);
  const char*      before = (const char*)p - size;
  if (mi_load_relaxed(&_mi_verify_skips_others) || !verify_is_made(page, before)) return;
  uint64_t last = _mi_padding_last_of_others(before, size);
  if (_mi_padding_is_plausible(before, last, size) || _mi_padding_has_fill(last)) return;
  _mi_trace_explain(before);
  _mi_message_error(EFAULT,
                    "buffer overflow: the block %p of at most %zu bytes was written to beyond its end, or before the "
                    "block %p behind it, seen at the free of that one (page %p)\n",
                    (const void*)before, size - MI_PADDING_SIZE, p, (void*)_mi_page_start(page));
}

mi_cold void _mi_verify_wrong_size(const void* p, size_t size, size_t asked) {
  _mi_trace_explain(p);
  _mi_message_error(EINVAL, "free of the block %p with the wrong size: it has %zu bytes, not %zu\n", p, asked, size);
}
