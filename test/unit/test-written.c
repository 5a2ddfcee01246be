// Proves: whether a word of the program's memory is written is told without reading it, whatever access it has; the pages of a class are
// taken for filled if its blocks are written all over, and not if little of them is used; it is the page before the last of zeros that
// tells, or the only one; and the same for large blocks (written.h).
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "base/mode.h"
#include "heap/theap.h"
#include "mimalloc.h"
#include "page/size_class.h"
#include "page/written.h"

enum { size = 65536, n_blocks = 24 }; // three pages

static size_t        page_size, cls;
static uint8_t*      blocks[n_blocks];
static mi_written_t* written; // of this thread

static bool can_ask(void) {
  static const uint32_t one = 1;
  return _mi_prim_is_written(&one);
}

static void check_words(void) {
  uint8_t* p = (uint8_t*)mmap(NULL, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED);
  errno = 7;
  CHECK(!_mi_prim_is_written(p)); // it is not backed
  for (size_t i = 4; i < 8; i++) {
    p[i] = 1;
    CHECK(!_mi_prim_is_written(p) && _mi_prim_is_written(p + 4) && !_mi_prim_is_written(p + 8));
    p[i] = 0;
    CHECK(!_mi_prim_is_written(p + 4));
  }
  p[0] = 1;
  mprotect(p, page_size, PROT_READ);
  CHECK(_mi_prim_is_written(p));
  mprotect(p, page_size, PROT_NONE);
  CHECK(!_mi_prim_is_written(p));
  munmap(p, page_size);
  CHECK(!_mi_prim_is_written(p) && !_mi_prim_is_written(NULL));
  CHECK_EQ(errno, 7);
}

// ---- pages of a class -------------------------------------------------------------------------------------------------

// The number of the page, of those three, that has block i.
static size_t page_of(size_t i) {
  size_t number = 0;
  for (size_t k = 1; k <= i; k++) number += (_mi_page_of(blocks[k]) != _mi_page_of(blocks[k - 1]));
  return number;
}

// Of the blocks of a page: writes a byte in each of their first OS pages.
static void write_page(size_t number, size_t n_os_pages) {
  for (size_t i = 0; i < n_blocks; i++) {
    if (page_of(i) != number) continue;
    memset(blocks[i], 0, size - MI_PADDING_SIZE);
    for (size_t k = 0; k < n_os_pages; k++) blocks[i][k * page_size] = 1;
  }
}

// How many of so many new looks say that they are filled.
static size_t n_filled(size_t n) {
  size_t n_yes = 0;
  for (size_t i = 0; i < n; i++) {
    written->classes[cls - MI_CLASS_SEVERAL].look.is_seen = false;
    n_yes += _mi_written_is(written, cls);
  }
  return n_yes;
}

// WN1: a page is looked at once.
static void check_once(void) {
  write_page(1, size / page_size);
  CHECK_EQ(n_filled(1), 1);
  write_page(1, 0);
  CHECK(_mi_written_is(written, cls));
  CHECK_EQ(n_filled(1), 0);
  write_page(1, size / page_size);
  CHECK(!_mi_written_is(written, cls));
  CHECK_EQ(n_filled(1), 1);
}

static void check_contents(void) {
  size_t all = size / page_size;
  write_page(1, all);
  CHECK_EQ(n_filled(8), 8);
  write_page(1, all / 8); // of half of them, the places may be those that are written
  CHECK_EQ(n_filled(4), 0);
  write_page(1, all); // now only each sixteenth is looked at (WN3)
  CHECK_EQ(n_filled(12), 0);
  CHECK_EQ(n_filled(8), 8);
  write_page(1, 1);
  CHECK_EQ(n_filled(4), 0);
  CHECK_EQ(n_filled(12), 0);
  CHECK_EQ(n_filled(1), 0);
  CHECK_EQ(n_filled(15), 0);
  write_page(1, all);
  CHECK_EQ(n_filled(8), 8);
}

// WN2: of as many blocks as there are places one may be empty.
static void check_empty(void) {
  size_t n = 0;
  write_page(1, size / page_size);
  for (size_t i = 0; i < n_blocks && n < 2; i++) {
    if (page_of(i) != 1) continue;
    memset(blocks[i], 0, size - MI_PADDING_SIZE);
    CHECK_EQ(n_filled(1), ++n == 1);
  }
}

// WN1
static void check_which(void) {
  const mi_page_t* pages[3];
  size_t           all = size / page_size;
  for (size_t i = 0; i < n_blocks; i++) pages[page_of(i)] = _mi_page_of(blocks[i]);
  write_page(0, all);
  write_page(1, all);
  write_page(2, 0);
  CHECK_EQ(n_filled(1), 1);
  _mi_written_note(written, pages[2], false); // of memory that was used before
  CHECK_EQ(n_filled(1), 1);
  _mi_written_note(written, pages[0], true); // the one before is now the third
  CHECK_EQ(n_filled(1), 0);
  _mi_written_note(written, pages[0], true);
  CHECK_EQ(n_filled(1), 1);
  write_page(0, 0);
  CHECK_EQ(n_filled(1), 0);
}

// WN1: a class with one page.
static void check_only(void) {
  static mi_written_t other;
  mi_written_t*       before = written;
  const mi_page_t*    page = _mi_page_of(blocks[0]);
  written = &other;
  _mi_written_note(written, page, true);
  write_page(0, size / page_size);
  CHECK_EQ(n_filled(2), 2);
  write_page(0, 1);
  CHECK_EQ(n_filled(2), 0);
  written = before;
}

// WN5: of two blocks the first is looked at, once; a block asks if as much was written all over, and three times as much after one that holds
// less.
static mi_written_t others;

static bool next_asks(const void* block) {
  _mi_written_note_block(&others, block, MI_WRITTEN_BLOCK_MIN);
  _mi_written_note_block(&others, NULL, MI_WRITTEN_BLOCK_MIN);
  return _mi_written_block_is(&others, MI_WRITTEN_BLOCK_MIN);
}

static size_t n_asking(const void* block, size_t n) {
  size_t n_yes = 0;
  for (size_t i = 0; i < n; i++) n_yes += next_asks(block);
  return n_yes;
}

static void write_block(uint8_t* p, size_t n) {
  memset(p, 0, MI_WRITTEN_BLOCK_MIN);
  for (size_t i = 0; i < n; i++) p[i * page_size] = 1;
}

static void check_blocks(void) {
  size_t   all = MI_WRITTEN_BLOCK_MIN / page_size;
  uint8_t* p = (uint8_t*)mmap(NULL, MI_WRITTEN_BLOCK_MIN, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED && !_mi_written_block_is(&others, MI_WRITTEN_BLOCK_MIN));
  write_block(p, all);
  _mi_written_note_block(&others, p, MI_WRITTEN_BLOCK_MIN);
  CHECK(!_mi_written_block_is(&others, MI_WRITTEN_BLOCK_MIN));
  CHECK_EQ(n_asking(p, 8), 8);
  CHECK(_mi_written_block_is(&others, 8 * MI_WRITTEN_BLOCK_MIN) &&
        !_mi_written_block_is(&others, 9 * MI_WRITTEN_BLOCK_MIN));
  write_block(p, all / 2);
  CHECK(_mi_written_block_is(&others, MI_WRITTEN_BLOCK_MIN));
  CHECK_EQ(n_asking(p, 1), 0);
  write_block(p, all);
  CHECK(!_mi_written_block_is(&others, MI_WRITTEN_BLOCK_MIN));
  CHECK_EQ(n_asking(p, 2), 0);
  CHECK_EQ(n_asking(p, 2), 2);
  write_block(p, 1);
  CHECK_EQ(n_asking(p, 4), 0);
  write_block(p, all); // now only each sixteenth is looked at (WN3)
  CHECK_EQ(n_asking(p, 12 + 2), 0);
  CHECK_EQ(n_asking(p, 1), 1);
  munmap(p, MI_WRITTEN_BLOCK_MIN);
}

// Those whose pages have several slices are looked at.
static void check_classes(void) {
  for (size_t i = 0; i < MI_CLASS_COUNT; i++) {
    CHECK_FOR((_mi_size_class_info[i].n_slices > 1) == (i >= MI_CLASS_SEVERAL), "class %zu", i);
    for (int k = 0; k < 8 && i >= MI_CLASS_SEVERAL; k++) CHECK(!_mi_written_is(written, i)); // nothing was made yet
  }
}

int main(int argc, char** argv) {
  watchdog(60);
  test_seed(argc, argv);
  page_size = (size_t)sysconf(_SC_PAGESIZE);
  if (MI_TRACK || MI_HARDENED || !can_ask() || page_size > size / 4) {
    test_skip("pages that fill", "in this build, or on this system, nothing tells");
    return skip_code;
  }
  check_words();
  mi_free(mi_malloc(1));
  written = &_mi_theap_default->written;
  check_classes();
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = (uint8_t*)mi_malloc(size - MI_PADDING_SIZE);
  cls = _mi_page_of(blocks[0])->cls;
  CHECK_EQ(page_of(n_blocks - 1), 2);
  check_contents();
  check_once();
  check_empty();
  check_which();
  check_only();
  check_blocks();
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  return check_result();
}
