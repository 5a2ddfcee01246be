// Proves: a page of any class is made of distinct, aligned blocks within it, all `capacity` of them; its counts hold (P1)
// while blocks are made, taken and put back; any address of it finds it, and none does after it was given back.  In every band it
// has a gap where it should.  The
// same for pages of one block.
#include "../check.h"
#include "../modes/support.h"
#include "arena/place.h"
#include "arena/window.h"
#include "mimalloc.h"
#include "arena/purge.h"
#include "page/page.h"
#include "support/stat.h"

static mi_block_t*       blocks[MI_WORD_COUNT_MAX + 1];           // by index in the page
static mi_theap_t* const some_theap = (mi_theap_t*)(void*)blocks; // an address that is no other's

static size_t index_of(const mi_page_t* page, const void* block) {
  size_t offset = (size_t)((const char*)block - _mi_page_start(page));
  CHECK_EQ(offset % _mi_page_block_size(page), 0);
  return offset / _mi_page_block_size(page);
}

static void check_counts(const mi_page_t* page, size_t used, size_t extended) {
  CHECK_EQ(_mi_page_used(page), used);
  CHECK_EQ(page->extended, extended);
  CHECK(_mi_page_is_valid(page));
  CHECK_EQ(_mi_page_has_room(page), used < page->capacity);
}

// ---- making blocks --------------------------------------------------------------------------------------------------

// A block that is new: nobody else has it, it finds its page, and it is filled as a freed one, or zero where that is said.
static void check_block(const mi_page_t* page, mi_block_t* block, size_t align) {
  size_t size = _mi_page_block_size(page);
  size_t i = index_of(page, block);
  CHECK_FOR(i < page->capacity, "block %zu of %u", i, page->capacity);
  if (i >= page->capacity) return;
  CHECK_FOR(blocks[i] == NULL, "block %zu was made twice", i);
  CHECK((char*)block + size <= _mi_page_start(page) + _mi_page_guard_space(page));
  CHECK(is_aligned(block, align));
  CHECK(_mi_page_of(block) == page && _mi_page_of((char*)block + size - 1) == page);
  CHECK_EQ(_mi_page_block_size(_mi_page_at(block)), size);
  const uint8_t* bytes = (const uint8_t*)block;
  if (MI_TRACK) mi_track_readable(block, size);
  bool   is_unused = (MI_CHECKED && size > MI_BLOCK_ENDED_MAX);
  size_t from = sizeof(mi_block_t) * (is_unused ? 2 : 1), end = size - MI_PADDING_SIZE;
  if (!MI_FILL && _mi_page_has(page, MI_PAGE_IS_ZERO)) CHECK(is_zero(block, from, end));
  if (is_unused) CHECK(mi_track_load((const char*)block + sizeof(mi_block_t)) == _mi_block_unused(block));
  for (size_t k = from; MI_FILL && k + MI_PADDING_SIZE < size; k++) CHECK(bytes[k] == MI_FILL_FREED);
  blocks[i] = block;
}

static const mi_block_t* lowest_of(const mi_block_t* list) {
  const mi_block_t* lowest = list;
  for (const mi_block_t* b = list; b != NULL; b = _mi_page_next_block(b)) lowest = (b < lowest ? b : lowest);
  return lowest;
}

// How many blocks end by the end of an OS page after so many bytes, before the end of the page of blocks.
static size_t naive_extension(const mi_page_t* page, size_t extended, const mi_block_t* first, size_t bytes) {
  size_t    size = _mi_page_block_size(page);
  size_t    i = index_of(page, first);
  size_t    os_page = _mi_prim_os_page_size();
  uintptr_t end = (uintptr_t)first + (size > bytes ? size : bytes);
  size_t    n = 0;
  end = (end + os_page - 1) / os_page * os_page;
  while (i + n < page->capacity && extended + n < page->capacity && (uintptr_t)first + (n + 1) * size <= end) n++;
  return n;
}

static size_t largest_alignment(size_t size) {
  size_t align = size & (0 - size);
  return align > MI_SLICE_SIZE ? MI_SLICE_SIZE : align;
}

static size_t check_extension(mi_page_t* page, size_t bytes) {
  size_t before = page->extended;
  _mi_page_extend(page, bytes);
  size_t n = page->extended - before;
  CHECK_EQ(n, naive_extension(page, before, lowest_of(page->free), bytes));
  check_counts(page, before, before + n);
  mi_chain_t  chain = _mi_page_take_free(page, SIZE_MAX);
  mi_block_t* block = chain.first;
  CHECK_EQ(chain.count, n);
  check_counts(page, before + n, before + n);
  for (size_t i = 0; i < n && block != NULL; i++) {
    mi_block_t* next = _mi_page_next_block(block);
    check_block(page, block, largest_alignment(_mi_page_block_size(page)));
    if (MI_TRACK) mi_track_writable(block, _mi_page_block_size(page));
    memset((char*)block + _mi_page_block_size(page) - 8, 0xA5, 8); // up to its end it is ours
    _mi_block_set_next(block, next);
    block = next;
  }
  CHECK(block == NULL);
  return n;
}

static void check_fresh(const mi_page_t* page, size_t cls, size_t bin_offset) {
  const mi_class_info_t* info = &_mi_size_class_info[cls];
  CHECK_EQ(_mi_page_kind(page), MI_PAGE_BLOCKS);
  CHECK_EQ(page->capacity, MI_HARDENED ? _mi_page_guard_space(page) / info->block_size : info->capacity);
  CHECK_EQ(page->cls, cls);
  CHECK_EQ(page->n_slices, info->n_slices);
  CHECK(is_aligned(_mi_page_start(page), MI_SLICE_SIZE));
  CHECK_EQ(_mi_page_word_state(mi_load_relaxed(&((mi_page_t*)page)->word)), MI_PAGE_OWNED);
  check_counts(page, 0, 0);
  for (size_t i = 0; i < page->n_slices; i++) { // P3
    mi_page_t* slice = (mi_page_t*)page + i;
    CHECK_EQ(_mi_page_kind(slice), i == 0 ? MI_PAGE_BLOCKS : MI_PAGE_INTERIOR);
    CHECK_EQ(slice->to_first, i);
    CHECK_EQ(slice->bin_offset, bin_offset);
    CHECK_EQ(_mi_page_block_size(slice), info->block_size);
    CHECK(mi_load_relaxed(&slice->home) == NULL);
    CHECK(_mi_page_at(_mi_page_start(page) + i * MI_SLICE_SIZE + 5) == slice);
    CHECK(_mi_page_of(_mi_page_start(page) + i * MI_SLICE_SIZE + 5) == page);
  }
}

static void check_home(mi_page_t* page) {
  _mi_page_set_home(page, some_theap);
  for (size_t i = 0; i < page->n_slices; i++) CHECK(mi_load_relaxed(&page[i].home) == some_theap);
}

static void check_gone(mi_page_t* page, const char* start, size_t n_slices) {
  for (size_t i = 0; i < n_slices; i++) {
    CHECK_EQ(_mi_page_kind(page + i), MI_PAGE_NONE);
    CHECK_EQ(_mi_page_block_size(page + i), 0);
    CHECK(mi_load_relaxed(&page[i].home) == NULL);
    CHECK(_mi_page_of(start + i * MI_SLICE_SIZE) == NULL);
  }
}

// ---- taking and putting back ----------------------------------------------------------------------------------------

// Some of the blocks that are out go back as a chain; blocks[] keeps those that are out.
static void put_some(rng_t* r, mi_page_t* page, bool all) {
  mi_chain_t chain = {NULL, 0};
  size_t     used = _mi_page_used(page);
  for (size_t i = 0; i < page->capacity; i++) {
    if (blocks[i] == NULL || (!all && rng_below(r, 3) != 0)) continue;
    _mi_block_set_next(blocks[i], chain.first);
    chain.first = blocks[i];
    chain.count++;
    blocks[i] = NULL;
  }
  _mi_page_put_free(page, chain);
  check_counts(page, used - chain.count, page->capacity);
}

static void take_again(mi_page_t* page) {
  size_t     n_free = page->capacity - _mi_page_used(page);
  mi_chain_t chain = _mi_page_take_free(page, SIZE_MAX);
  CHECK_EQ(chain.count, n_free);
  for (mi_block_t* block = chain.first; block != NULL; block = _mi_page_next_block(block)) {
    size_t i = index_of(page, block);
    CHECK_FOR(i < page->capacity && blocks[i] == NULL, "block %zu", i);
    if (i < page->capacity) blocks[i] = block;
    n_free--;
  }
  CHECK_EQ(n_free, 0);
  check_counts(page, page->capacity, page->capacity);
}

static void check_class(rng_t* r, size_t cls) {
  static const size_t steps[] = {0, 100, 4096, 16 * KiB, 64 * KiB};
  size_t              bin_offset = cls << MI_BIN_SHIFT;
  int64_t             n_pages = mi_load_relaxed(&_mi_stat_live.pages.current);
  mi_page_t*          page = _mi_page_new(cls, bin_offset, false, MI_ARENA_ANY);
  CHECK(page != NULL);
  if (page == NULL) return;
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.pages.current), n_pages + 1);
  check_fresh(page, cls, bin_offset);
  check_home(page);
  memset(blocks, 0, sizeof(blocks));
  size_t n = 0;
  while (page->extended < page->capacity) {
    size_t made = check_extension(page, steps[rng_below(r, COUNT_OF(steps))]);
    CHECK(made > 0);
    if (made == 0) return;
    n += made;
  }
  CHECK_EQ(n, page->capacity);
  for (int i = 0; i < 3; i++) {
    put_some(r, page, false);
    put_some(r, page, false); // onto blocks that are there already
    take_again(page);
  }
  put_some(r, page, true);
  CHECK_EQ(_mi_page_used(page), 0);
  char*  start = _mi_page_start(page);
  size_t n_slices = page->n_slices;
  _mi_page_delete(page);
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.pages.current), n_pages);
  check_gone(page, start, n_slices);
}

// ---- gaps -----------------------------------------------------------------------------------------------------------

enum { n_gap_pages = 300 };

// Every band has gaps, but for pages in huge-page chunks; returns the highest region that had one of the pages.
static size_t check_gaps_of(size_t cls, bool is_huge) {
  static mi_page_t* pages[n_gap_pages];
  size_t            n_slices = _mi_size_class_info[cls].n_slices, highest = 0;
  for (size_t i = 0; i < n_gap_pages; i++) {
    mi_page_t* page = pages[i] = _mi_page_new(cls, 0, is_huge, MI_ARENA_ANY);
    CHECK(page != NULL);
    if (page == NULL) continue;
    bool   has_gap = MI_HARDENED && !(n_slices == 1 && _mi_page_region(page)->is_huge);
    size_t taken = (has_gap && n_slices == 1 ? _mi_prim_os_page_size() : 0);
    CHECK_FOR(_mi_page_has(page, MI_PAGE_HAS_GUARD) == has_gap, "page %zu, region %u", i, page->region);
    CHECK_FOR(_mi_page_guard_space(page) == n_slices * MI_SLICE_SIZE - taken, "page %zu, region %u", i, page->region);
    if (page->region > highest) highest = page->region;
  }
  for (size_t i = 0; i < n_gap_pages; i++) {
    if (pages[i] != NULL) _mi_page_delete(pages[i]);
  }
  return highest;
}

static void check_gaps(void) {
  size_t several = 0;
  while (_mi_size_class_info[several].n_slices == 1) several++;
  if (sizeof(void*) < 8 || !_mi_region_all[0].is_planned) {
    test_skip("gaps in later bands", "there are none");
    return;
  }
  // As if somebody else's mapping were in the way: the first bands end here.
  for (size_t i = 0; i <= MI_REGION_HUGE; i++) _mi_region_all[i].n_usable = _mi_region_all[i].n_open;
  CHECK(check_gaps_of(0, false) > MI_REGION_HUGE);
  CHECK(check_gaps_of(several, false) > MI_REGION_HUGE);
  _mi_purge_slices(SIZE_MAX); // what is backed comes first
  size_t highest = check_gaps_of(0, true);
  if (_mi_region_may_be_huge()) CHECK(highest > MI_REGION_HUGE && _mi_region_all[highest].is_huge);
}

// Pages whose gap the system does not open are tried again when it opens others; meanwhile each costs no more than a call.
static void check_closed_gaps(void) {
  enum { n = 40 };
  static mi_page_t* pages[n];
  size_t            n_gaps = 0;
  for (size_t i = 0; i < n; i++) {
    pages[i] = _mi_page_new(0, 0, false, MI_ARENA_ANY);
    n_gaps += _mi_page_has(pages[i], MI_PAGE_HAS_GUARD);
  }
  CHECK_EQ(n_gaps, MI_HARDENED ? n : 0);
  size_t n_before = _mi_place_n_taken();
  _mi_prim_fail_nth(1, true);
  for (size_t i = 1; i < n; i++) _mi_page_delete(pages[i]);
  size_t n_calls = _mi_prim_fail_nth(0, false);
  CHECK_FOR(n_calls <= 2 * n, "%zu calls for %d pages", n_calls, (int)n);
  if (MI_HARDENED) CHECK_EQ(_mi_place_n_taken(), n_before);
  _mi_page_delete(pages[0]);
  CHECK_EQ(n_before - _mi_place_n_taken(), n);
}

// ---- pages of one block ---------------------------------------------------------------------------------------------

static void check_large(size_t n_slices, size_t offset) {
  mi_run_t run = _mi_slices_alloc(n_slices, 1, MI_REQUEST_MIXED, MI_ARENA_ANY);
  CHECK(run.region != NULL);
  if (run.region == NULL) return;
  mi_page_t* page = _mi_page_new_large(run, offset, 0);
  char*      start = _mi_region_slice_start(run.region, run.slice);
  char*      block = start + offset;
  CHECK(_mi_page_start(page) == start);
  CHECK(_mi_page_large_block(page) == block);
  CHECK_EQ(_mi_page_large_size(page), n_slices * MI_SLICE_SIZE - offset);
  CHECK_EQ(_mi_page_kind(page), MI_PAGE_LARGE);
  CHECK_EQ(page->cls, MI_CLASS_NONE);
  CHECK_EQ(_mi_page_block_size(_mi_page_at(block)), 0);
  CHECK(mi_load_relaxed(&_mi_page_at(block)->home) == NULL);
  CHECK_FOR(_mi_page_of(block) == page, "offset %zu", offset);
  CHECK(_mi_page_of(start) == page);
  _mi_page_delete_large(page);
  CHECK(_mi_page_of(block) == NULL && _mi_page_of(start) == NULL);
  _mi_slices_free(run.region, run.slice, n_slices, false);
}

static void check_larges(void) {
  static const size_t offsets[] = {
      0, 16, 4096, MI_SLICE_SIZE - 8, MI_SLICE_SIZE, 3 * MI_SLICE_SIZE + 64, 9 * MI_SLICE_SIZE};
  static const size_t lengths[] = {1, 10, 32, 33, 100};
  for (size_t i = 0; i < COUNT_OF(lengths); i++) {
    for (size_t k = 0; k < COUNT_OF(offsets); k++) {
      if (offsets[k] < lengths[i] * MI_SLICE_SIZE) check_large(lengths[i], offsets[k]);
    }
  }
}

static void check_elsewhere(void) {
  char local = 0;
  CHECK(_mi_page_of(&local) == NULL && _mi_page_at(&local) == NULL);
  CHECK(_mi_page_of(blocks) == NULL && _mi_page_of(NULL) == NULL);
  CHECK(_mi_page_of((void*)UINTPTR_MAX) == NULL);
  CHECK(_mi_page_of((void*)(_mi_region_all[0].base - 1)) == NULL);
  CHECK(_mi_page_of((void*)(_mi_region_all[0].base + (_mi_region_all[0].n_slices << MI_SLICE_SHIFT))) == NULL);
  // Never opened, not in use (R2).
  CHECK(_mi_page_of((void*)(_mi_region_all[0].base + (_mi_region_all[0].n_slices << MI_SLICE_SHIFT) - 1)) == NULL);
}

int main(int argc, char** argv) {
  watchdog(60);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1);
  CHECK(mi_malloc(1) != NULL);
  if (!MI_PRIM_VIRTUAL) _mi_window_open();  // pages are made here without a request for a block
  check_larges();                           // in descriptors that no page has had
  for (int round = 0; round < 3; round++) { // on fresh memory, and on memory that was used
    for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) check_class(&r, cls);
    check_larges();
    if (round == 1) _mi_purge_slices(SIZE_MAX);
  }
  check_elsewhere();
  check_closed_gaps();
  check_gaps();
  return check_result();
}
