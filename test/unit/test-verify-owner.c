// Proves: a free of a block that nobody has is reported and ignored, whatever its memory holds: one that was never made, one that was
// made and not handed out yet, and one that went with its heap.  Nobody gets a block that another has afterwards.  An overflow of a block
// that goes with its heap is reported, and nothing else is.  Checked builds.
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"
#include "page/fill.h"
#include "page/verify.h"
#include "reports.h"

// A block that was never made is none, and goes to nobody twice.
static void check_never_made(size_t size) {
  enum { n = 200 };
  char*      blocks[n];
  mi_heap_t* heap = mi_heap_new();
  blocks[0] = (char*)mi_heap_malloc(heap, size);
  mi_page_t* page = _mi_page_of(blocks[0]);
  size_t     made = page->extended;
  for (size_t i = made; i < page->capacity; i++) {
    free_wrongly(_mi_page_block(page, (_mi_page_first_made(page) + i) % page->capacity));
    CHECK_FOR(was_reported(EINVAL, "never allocated"), "%zu of %zu, %zu bytes", i, made, size);
  }
  for (size_t i = 1; i < n; i++) {
    blocks[i] = (char*)mi_heap_malloc(heap, size);
    for (size_t k = 0; k < i; k++) CHECK(blocks[i] != blocks[k]);
  }
  mi_heap_destroy(heap);
  CHECK_FOR(was_reported(0, ""), "%zu", size);
}

// Nor is one that was made and not handed out yet.  How many there were.
static size_t check_never_used(size_t size) {
  enum { n = 100 };
  static char* blocks[4 * n];
  size_t       n_tried = 0;
  mi_heap_t*   heap = mi_heap_new();
  for (size_t i = 0; i < n; i++) blocks[i] = (char*)mi_heap_malloc(heap, size);
  for (size_t i = 0; i < n; i++) {
    mi_page_t* page = _mi_page_of(blocks[i]);
    for (size_t k = 0; k < page->extended; k++) {
      char* made = _mi_page_block(page, (_mi_page_first_made(page) + k) % page->capacity);
      bool  is_ours = false;
      for (size_t j = 0; j < n; j++) is_ours = is_ours || blocks[j] == made;
      if (is_ours) continue;
      n_tried++;
      free_wrongly(made);
      CHECK_FOR(n_codes == 1 && (codes[0] == EINVAL || codes[0] == EAGAIN), "%zu bytes: %s", size, sink.text);
      n_codes = 0;
      sink_clear(&sink);
    }
  }
  for (size_t i = n; i < 4 * n; i++) {
    blocks[i] = (char*)mi_heap_malloc(heap, size);
    for (size_t k = 0; k < i; k++) CHECK(blocks[i] != blocks[k]);
  }
  mi_heap_destroy(heap);
  CHECK_FOR(was_reported(0, ""), "%zu", size);
  return n_tried;
}

static void* aligned_plain(size_t size) {
  return mi_malloc_aligned(100, size);
}

static void* aligned_zero(size_t size) {
  return mi_zalloc_aligned(100, size);
}

static void* heap_zero(size_t size) {
  return mi_heap_zalloc(mi_heap_main(), size);
}

// What said that a block was never used is gone when somebody has it, although nothing was written to it: then the overflow of it is
// one, and not a free of what nobody has.
static void check_used(const char* name, void* (*make)(size_t size), size_t size, bool is_zeroed) {
  enum { n = 40 };
  char* blocks[n];
  for (size_t i = 0; i < n; i++) {
    blocks[i] = (char*)make(size);
    CHECK_FOR(!is_zeroed || is_zero(blocks[i], 0, mi_usable_size(blocks[i])), "%s of %zu", name, size);
  }
  for (size_t i = 0; i < n; i++) {
    char* behind = (char*)hidden_pointer(blocks[i]) + mi_usable_size(blocks[i]);
    *behind = (char)(*behind + 1);
    memset(behind + 8, 0, _mi_page_block_size(_mi_page_of(blocks[i])) - (size_t)(behind + 8 - blocks[i]));
    mi_free(blocks[i]);
    CHECK_FOR(was_reported(EFAULT, "buffer overflow"), "%s of %zu: %s", name, size, sink.text);
  }
}

// Blocks that went with their heap are no blocks of the one that gets its memory.
static void check_destroyed(size_t size) {
  enum { n = 60 };
  void*      blocks[n];
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 0; i < n; i++) blocks[i] = mi_heap_malloc(heap, size);
  mi_heap_destroy(heap);
  heap = mi_heap_new();
  void* first = mi_heap_malloc(heap, size);
  for (size_t i = 0; i < n; i++) {
    if (blocks[i] == first) continue;
    free_wrongly(blocks[i]);
    CHECK_FOR(n_codes == 1, "block %zu of %zu bytes: %zu reports", i, size, n_codes);
    n_codes = 0;
  }
  mi_heap_destroy(heap);
  sink_clear(&sink);
}

// `overflown`: which one is; n for none.
static void check_overflown(size_t size, size_t overflown) {
  enum { n = 40 };
  char*      blocks[n];
  mi_heap_t* heap = mi_heap_new();
  for (size_t i = 0; i < n; i++) blocks[i] = (char*)mi_heap_malloc(heap, size);
  for (size_t i = 0; i < n; i += 3) mi_free(blocks[i]);
  if (overflown < n) memset((char*)hidden_pointer(blocks[overflown]) + size, 'x', 3);
  mi_heap_destroy(heap);
  bool is_right = (overflown < n ? was_reported(EFAULT, "when its heap was destroyed") : was_reported(0, ""));
  CHECK_FOR(is_right, "%zu bytes, block %zu: %s", size, overflown, sink.text);
}

int main(void) {
  watchdog(60);
  if (!MI_CHECKED || MI_TRACK) {
    test_skip("the checks of blocks", "this build has none, or leaves them to a tool");
    return skip_code;
  }
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  reports_begin();
  check_never_made(4000);
  check_never_made(20000);
  size_t n_small = 0, n_medium = 0;
  for (size_t size = 16; size <= 7 * KiB; size *= 2) n_small += check_never_used(size);
  for (size_t size = 9 * KiB; size < 100 * KiB; size *= 2) n_medium += check_never_used(size);
  CHECK(n_small > 0 && n_medium > 0);
  for (size_t size = 9 * KiB; size < 100 * KiB; size *= 2) {
    check_used("malloc", &mi_malloc, size, false);
    check_used("zalloc", &mi_zalloc, size, true);
    check_used("zalloc of a heap", &heap_zero, size, true);
  }
  for (size_t align = 16 * KiB; align <= 64 * KiB; align *= 2) {
    check_used("malloc_aligned", &aligned_plain, align, false);
    check_used("zalloc_aligned", &aligned_zero, align, true);
  }
  for (size_t size = 40; size < 40 * KiB; size *= 3) check_destroyed(size);
  for (size_t size = 1; size < (MI_HARDENED ? 200 * KiB : 4 * MiB); size = 3 * size + 5) {
    for (size_t i = 1; i < 50; i += 9) check_overflown(size, i);
  }
  CHECK(mi_heap_check(NULL));
  mi_register_output(NULL, NULL);
  return check_result();
}
