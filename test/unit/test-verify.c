// Proves: each wrong free is reported with its code and ignored, each overflow and each write to a free block is reported once, and
// what is right never is; afterwards the heap is whole.  Checked builds.
#include <errno.h>
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"
#include "mimalloc-profile.h"
#include "api/life.h"
#include "heap/guard.h"
#include "page/fill.h"
#include "page/verify.h"
#include "reports.h"

// Sizes of which some leave no room before the last word of the block, and some are large.
static const size_t sizes[] = {1,        8,        24,      100,        120,       121,    1000,
                               1024 - 8, 1024 - 7, 8 * KiB, 100 * 1000, 600 * KiB, 5 * MiB};

static void check_right(rng_t* r) {
  for (int i = 0; i < 20000; i++) {
    size_t size = rng_size(r, 2 * MiB);
    char*  p = (char*)mi_malloc(size);
    if (size > 0) p[0] = p[size - 1] = (char)i; // all of it may be written to
    CHECK(mi_usable_size(p) >= size);
    if (rng_below(r, 2) == 0) p = (char*)mi_realloc(p, 2 * size + 1);
    mi_free(p);
  }
  CHECK(was_reported(0, ""));
}

static void check_double_free(size_t size) {
  char* p = (char*)mi_malloc(size);
  char* other = (char*)mi_malloc(size);
  mi_free(p);
  CHECK_FOR(was_reported(0, ""), "%zu", size);
  free_wrongly(p);
  bool is_known = (size <= MI_CLASS_ASKED_MAX || codes[0] == EAGAIN); // a large one may be no block any more
  CHECK_FOR(is_known ? was_reported(EAGAIN, "double free") : was_reported(EINVAL, "invalid pointer"), "%zu", size);
  CHECK(mi_realloc(hidden_pointer(p), 2 * size) == NULL);
  CHECK_FOR(is_known ? was_reported(EAGAIN, "realloc of") : was_reported(EINVAL, "invalid pointer"), "%zu", size);
  char* again = (char*)mi_malloc(size);
  CHECK(again != other); // it is in use once
  mi_free(again);
  mi_free(other);
  CHECK_FOR(was_reported(0, ""), "%zu", size);
}

static void check_invalid(size_t size) {
  char* p = (char*)mi_malloc(size);
  char  words[200];
  memset(p, 3, size);
  for (size_t at = 8; at < size; at += at) {
    free_wrongly(p + at);
    CHECK_FOR(was_reported(EINVAL, "invalid pointer"), "%zu of %zu", at, size);
    CHECK(!_mi_verify_block(_mi_page_of(p), p + at, "realloc"));
    snprintf(words, sizeof(words), "realloc of an invalid pointer: 0x%zX lies %zu bytes into the block 0x%zX of",
             (size_t)(p + at), at, (size_t)p);
    if (size > MI_CLASS_ASKED_MAX) words[strcspn(words, ":")] = 0; // it may be told in other words
    CHECK_FOR(was_reported(EINVAL, words), "%zu of %zu: %s", at, size, words);
  }
  mi_free(p);
  CHECK_FOR(was_reported(0, ""), "%zu", size);
}

// What is left of a page behind its last block is no part of one.
static void check_rest(void) {
  char*            p = (char*)mi_malloc(112 - MI_PADDING_SIZE);
  const mi_page_t* page = _mi_page_of(p);
  char*            rest = _mi_page_start(page) + page->capacity * _mi_page_block_size(page);
  CHECK(_mi_page_of(rest) == page);
  for (size_t at = 0; at < 16; at += 8) {
    free_wrongly(rest + at);
    CHECK_FOR(was_reported(EINVAL, "lies behind the last block of a page of blocks of 112 bytes"), "%zu", at);
  }
  mi_free(p);
  CHECK(was_reported(0, ""));
}

// A byte too many, at each place behind the block that is the allocator's; reported once, and the block is one for all that.
static void check_overflow(size_t size) {
  for (size_t at = 0; at < 8; at++) {
    char* p = (char*)mi_malloc(size);
    char* beyond = (char*)hidden_pointer(p) + size + at;
    *beyond = (char)(*beyond + 1);
    CHECK(mi_usable_size(p) > 0);
    CHECK_FOR(was_reported(EFAULT, "buffer overflow"), "%zu behind %zu", at, size);
    CHECK(mi_usable_size(p) > 0);
    mi_free(p);
    CHECK_FOR(was_reported(0, ""), "%zu behind %zu", at, size);
  }
}

// What follows a large block is not to be had by who knows the program and the library only.
static void check_foreseen_overflow(size_t size) {
  char* p = (char*)mi_malloc(size);
  memset((char*)hidden_pointer(p) + size, MI_FILL_PADDING, 8);
  mi_free(p);
  CHECK_FOR(was_reported(EFAULT, "buffer overflow"), "%zu", size);
}

// Nor is it left in the block when that grows.
static void check_grown(size_t size) {
  uint64_t behind, within;
  char*    p = (char*)mi_malloc(size);
  memcpy(&behind, (char*)hidden_pointer(p) + size, sizeof(behind));
  p = (char*)mi_realloc(p, size + 1000);
  memcpy(&within, p + size, sizeof(within));
  CHECK_FOR(within != behind, "%zu", size);
  mi_free(p);
}

static void check_wrong_size(size_t size) {
  void* p = mi_malloc(size);
  mi_free_size(hidden_pointer(p), size + 1);
  bool is_known = was_reported(EINVAL, "wrong size");
  CHECK_FOR(is_known, "%zu", size);
  p = mi_malloc(size);
  mi_free_size(p, size);
  CHECK_FOR(was_reported(0, ""), "%zu", size);
}

// A write to a free block: to its link, which is seen when that is followed, or to the rest, its end with it, seen when the block
// is used again.
static void check_use_after_free(size_t block_size, size_t at) {
  enum { n = 2000 };
  static void* blocks[2 * n];
  for (size_t i = 0; i < n; i++) blocks[i] = mi_malloc(block_size - MI_PADDING_SIZE);
  mi_free(blocks[n / 2]); // its page has others in use, and stays
  char* written = (char*)hidden_pointer(blocks[n / 2]);
  written[at] = (char)(written[at] ^ 0x55);
  mi_collect(true);
  blocks[n / 2] = NULL;
  for (size_t i = n; i < 2 * n; i++) blocks[i] = mi_malloc(block_size - MI_PADDING_SIZE);
  bool is_link = (at < sizeof(mi_block_t) && !MI_HARDENED);
  CHECK_FOR(!is_link || (sink_has(&sink, "corrupted free block") && sink_has(&sink, " of 256 bytes: ")), "%s",
            sink.text);
  CHECK_FOR(was_reported(EFAULT, is_link ? "after it was freed" : "use after free"), "%zu", at);
  for (size_t i = 0; i < 2 * n; i++) mi_free(blocks[i]);
  CHECK_FOR(was_reported(0, ""), "%zu", at);
}

// The same of a block whose end was overwritten with zeros as well: it is not taken for one that was never in use.
static void check_use_after_free_with_end(size_t size) {
  enum { n = 40 };
  char* blocks[2 * n];
  for (size_t i = 0; i < n; i++) blocks[i] = (char*)mi_malloc(size);
  mi_free(blocks[n / 2]); // its page has others in use, and stays
  char* written = (char*)hidden_pointer(blocks[n / 2]);
  memset(written + size / 2, 0x55, 8);
  memset(written + _mi_page_block_size(_mi_page_of(written)) - 8, 0, 8);
  for (size_t i = n; i < 2 * n; i++) blocks[i] = (char*)mi_malloc(size);
  CHECK_FOR(was_reported(EFAULT, "use after free"), "%zu", size);
  for (size_t i = 0; i < 2 * n; i++) {
    if (i != n / 2) mi_free(blocks[i]);
  }
  CHECK_FOR(was_reported(0, ""), "%zu", size);
}

// Pointers into the last blocks of memory behind which none can be read.
static void check_invalid_at_end(void) {
  enum { n_bytes = 4 * MiB, size = 1024 - 8 };
  static void*  blocks[n_bytes / 1024];
  void*         memory = NULL;
  mi_arena_id_t arena;
  size_t        n = 0, n_wrong = 0;
  if (!MI_PRIM_VIRTUAL || !(MI_HARDENED || MI_DEBUG > 0)) return; // else the process ends there
  CHECK_EQ(_mi_prim_reserve(n_bytes + MI_CHUNK_SIZE, MI_CHUNK_SIZE, &memory), 0);
  CHECK_EQ(_mi_prim_commit(memory, n_bytes), 0);
  CHECK(mi_manage_os_memory_ex(memory, n_bytes, true, false, true, -1, true, &arena));
  mi_heap_t* heap = mi_heap_new_in_arena(arena);
  while (n < COUNT_OF(blocks) && (blocks[n] = mi_heap_malloc(heap, size)) != NULL) n++;
  CHECK(n > COUNT_OF(blocks) / 2);
  was_reported(n_codes == 0 ? 0 : ENOMEM, ""); // the arena is full
  for (size_t i = 0; i < n; i++) {
    free_wrongly((char*)blocks[i] + 8);
    n_wrong += !was_reported(EINVAL, "invalid pointer");
    mi_free_size(hidden_pointer((char*)blocks[i] + 16), size);
    n_wrong += !was_reported(EINVAL, "invalid pointer");
    CHECK(mi_realloc(hidden_pointer((char*)blocks[i] + 24), 2 * size) == NULL);
    n_wrong += !was_reported(EINVAL, "invalid pointer");
  }
  CHECK_EQ(n_wrong, 0);
  mi_heap_destroy(heap);
  CHECK(was_reported(0, ""));
}

// ---- hardened builds ------------------------------------------------------------------------------------------------

// Two blocks of that size that lie side by side in a slice, the first one in *p.
static char* neighbour_of(void* const* blocks, size_t n, char** p) {
  for (size_t i = 0; i < n; i++) {
    char* behind = (char*)blocks[i] + _mi_page_block_size(_mi_page_of(blocks[i]));
    for (size_t k = 0; k < n && (uintptr_t)behind % MI_SLICE_SIZE != 0; k++) {
      if (blocks[k] != behind) continue;
      *p = (char*)blocks[i];
      return behind;
    }
  }
  return NULL;
}

// Frees the neighbour of p when the last word of p is another one, which is then as it was.
static void free_beside(char* p, char* neighbour, uint64_t last) {
  char*    end = (char*)hidden_pointer(p) + _mi_page_block_size(_mi_page_of(p)) - sizeof(last);
  uint64_t was;
  memcpy(&was, end, sizeof(was));
  memcpy(end, &last, sizeof(last));
  mi_free(neighbour);
  memcpy(end, &was, sizeof(was));
}

// What was written behind a block, or before the next one, is seen when that is freed; what may be half of an allocation by
// another thread is not reported.
static void check_before(size_t size) {
  enum { n = 100 };
  const struct {
    uint64_t last;
    bool     is_damage;
  } cases[] = {{0x7878787878787878u, true},
               {0x0000000000007878u, true},
               {MI_PADDING_FILLED, false},
               {MI_PADDING_FILLED >> 40 << 40, false},
               {0x7878787878787800u | MI_FILL_PADDING, false},
               {0, true}};
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    void* blocks[n];
    char* p = NULL;
    for (size_t k = 0; k < n; k++) blocks[k] = mi_malloc(size);
    char* neighbour = neighbour_of(blocks, n, &p);
    CHECK_FOR(neighbour != NULL, "no two of %zu bytes lie side by side", size);
    if (neighbour != NULL) free_beside(p, neighbour, cases[i].last);
    bool is_right = (cases[i].is_damage ? was_reported(EFAULT, "seen at the free of that one") : was_reported(0, ""));
    CHECK_FOR(is_right, "case %zu of %zu bytes", i, size);
    for (size_t k = 0; k < n; k++) {
      if (blocks[k] != neighbour) mi_free(blocks[k]);
    }
    CHECK_FOR(was_reported(0, ""), "case %zu of %zu bytes, afterwards", i, size);
  }
}

// From which size on blocks are guarded; a block that is resized past it keeps its content.
static void check_guarded_sizes(void) {
  static const size_t steps[] = {
      100 * KiB, MI_LIFE_GUARDED_MIN - 1, MI_LIFE_GUARDED_MIN, 300 * KiB, 500 * KiB, 600 * KiB, 280 * KiB, 20 * KiB};
  char* p = NULL;
  for (size_t i = 0; i < COUNT_OF(steps); i++) {
    p = (char*)mi_realloc(p, steps[i]);
    CHECK_FOR(_mi_guard_has(p) == (steps[i] >= MI_LIFE_GUARDED_MIN), "%zu", steps[i]);
    CHECK_FOR(mi_usable_size(p) == steps[i], "%zu", steps[i]);
    CHECK_FOR(i == 0 || memcmp(p, "content", 8) == 0, "%zu", steps[i]);
    memcpy(p, "content", 8);
  }
  mi_free(p);
  CHECK(was_reported(0, ""));
}

// When there are too many guarded blocks, others serve; those grow where they are, as far as their class goes.
static void check_guarded_too_many(void) {
  static void* blocks[MI_GUARD_LIVE_MAX];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_malloc(MI_LIFE_GUARDED_MIN);
  char*  p = (char*)mi_malloc(MI_LIFE_GUARDED_MIN - 100);
  size_t n_moves = 0;
  for (size_t size = MI_LIFE_GUARDED_MIN - 50; size < MI_LIFE_GUARDED_MIN + 100 * KiB; size += 50) {
    char* q = (char*)mi_realloc(p, size);
    CHECK_FOR(q != NULL && !_mi_guard_has(q) && _mi_page_kind(_mi_page_of(q)) == MI_PAGE_BLOCKS, "%zu", size);
    CHECK_FOR(mi_usable_size(q) == size, "%zu", size);
    if (q != p) n_moves++;
    p = q;
  }
  CHECK_FOR(n_moves == 2, "%zu moves", n_moves); // one into a block that might be guarded, one into the next class
  mi_free(p);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  p = (char*)mi_malloc(MI_LIFE_GUARDED_MIN);
  CHECK(_mi_guard_has(p));
  mi_free(p);
  CHECK(was_reported(0, ""));
}

// Has a block that was freed left anything in those which follow?  `use` makes a block, and says how much of it is readable.
static void check_nothing_left(const char* what, char* (*use)(mi_heap_t* heap, size_t* size), mi_heap_t* heap) {
  for (int i = 0; i < 8; i++) {
    size_t size = 0;
    char*  p = use(heap, &size);
    CHECK_FOR(p != NULL && !_mi_guard_has(p) && _mi_page_kind(_mi_page_of(p)) == MI_PAGE_LARGE, "%s", what);
    if (p == NULL) return;
    CHECK_FOR(memchr(p, 'S', size) == NULL, "%s: block %d has what was in an earlier one", what, i);
    memset(p, 'S', size);
    mi_free(p);
  }
}

static char* use_large(mi_heap_t* heap, size_t* size) {
  return (char*)mi_heap_malloc(heap, *size = 600 * KiB);
}

static char* use_grown(mi_heap_t* heap, size_t* size) {
  char* p = (char*)mi_heap_malloc(heap, 600 * KiB);
  return (char*)mi_heap_realloc(heap, p, *size = 900 * KiB);
}

static char* use_aligned(mi_heap_t* heap, size_t* size) {
  return (char*)mi_heap_malloc_aligned(heap, *size = 600 * KiB, 128 * KiB);
}

static char* use_profiled(mi_heap_t* heap, size_t* size) {
  return (char*)mi_heap_malloc(heap, *size = 20000);
}

// Large blocks that are not guarded: those of heaps bound to an arena, which have none, and those of the profile.
static void check_nothing_left_unguarded(void) {
  mi_arena_id_t arena;
  CHECK(mi_reserve_os_memory_ex(32 * MiB, true, false, true, &arena) == 0);
  mi_heap_t* heap = mi_heap_new_in_arena(arena);
  CHECK(heap != NULL);
  check_nothing_left("large", &use_large, heap);
  check_nothing_left("grown", &use_grown, heap);
  check_nothing_left("aligned", &use_aligned, heap);
  mi_heap_destroy(heap);
  CHECK_EQ(mi_profile_start(1), 0);
  check_nothing_left("profiled", &use_profiled, mi_heap_main());
  mi_profile_stop();
  CHECK(was_reported(0, ""));
}

static void check_random(void) {
  uint64_t seen[64];
  for (size_t i = 0; i < COUNT_OF(seen); i++) {
    seen[i] = _mi_block_random(seen);
    for (size_t k = 0; k < i; k++) CHECK(seen[k] != seen[i]);
  }
}

// Blocks that are filled and compared inline: each byte counts, and none beside them.
static void check_small_fill(void) {
  for (size_t size = sizeof(mi_pair_t); size <= MI_FILL_SMALL_MAX; size += 8) {
    uint8_t bytes[8 + MI_FILL_SMALL_MAX + 8], *block = bytes + 8;
    memset(bytes, 3, sizeof(bytes));
    _mi_fill_small(block, size, MI_FILL_FREED_WORD);
    for (size_t i = 0; i < sizeof(bytes); i++) {
      bool is_in = (i >= 8 && i < 8 + size);
      CHECK_FOR(bytes[i] == (is_in ? (uint8_t)MI_FILL_FREED : 3), "%zu of %zu", i, size);
      bytes[i] ^= 64;
      CHECK_FOR(_mi_fill_small_is(block, size, MI_FILL_FREED_WORD) == !is_in, "%zu of %zu", i, size);
      bytes[i] ^= 64;
    }
  }
}

// What links and padding are encoded with is not the same in each process: whoever knows the library cannot forge them.
static void check_keys(void) {
  mi_free(mi_malloc(1));
  CHECK(_mi_block_keys.link != 0 && _mi_block_keys.padding != 0 && _mi_block_keys.link != _mi_block_keys.padding);
}

int main(int argc, char** argv) {
  watchdog(60);
  if (!MI_CHECKED || MI_TRACK) {
    test_skip("the checks of blocks", "this build has none, or leaves them to a tool");
    return skip_code;
  }
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  reports_begin();
  check_keys();
  check_small_fill();
  check_right(&r);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    check_double_free(sizes[i]);
    check_invalid(sizes[i]);
    if (sizes[i] <= MI_CLASS_ASKED_MAX || !MI_HARDENED) check_overflow(sizes[i]); // else memory is inaccessible there
    if (sizes[i] > MI_CLASS_ASKED_MAX && !MI_HARDENED) {
      check_foreseen_overflow(sizes[i]);
      check_grown(sizes[i]);
    }
    check_wrong_size(sizes[i]);
  }
  for (size_t at = sizeof(mi_block_t); MI_FILL && at < 256; at += 7) check_use_after_free(256, at);
  for (size_t size = 16; MI_FILL && size <= 4 * KiB; size *= 4) check_use_after_free(size, size - 1);
  for (size_t size = 9 * KiB; MI_FILL && size < 200 * KiB; size *= 2) check_use_after_free_with_end(size);
  check_invalid_at_end();
  check_rest();
  if (MI_HARDENED) {
    for (size_t size = 8; size <= 8 * KiB; size = 3 * size) check_before(size);
    check_guarded_sizes();
    check_guarded_too_many();
    check_nothing_left_unguarded();
  }
  check_random();
  CHECK(mi_heap_check(NULL));
  for (int i = 0; i < 20; i++) { // what the links led to is lost
    for (size_t at = 0; at < sizeof(mi_block_t); at++) check_use_after_free(256, at);
  }
  mi_register_output(NULL, NULL);
  return check_result();
}
