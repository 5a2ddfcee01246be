// Proves: a large block is looked at in places that are spread over it, are in it, and are the same each time; it is dense if it was
// written all over or up to its half at least, and then as many bytes may ask for huge pages; zeros are thin if hardly any of
// them was used.
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/dense.h"
#include "base/mode.h"
#include "mimalloc.h"
#include "page/page.h"

enum { n_marks = 4096 };

static uint8_t* memory; // with a page without access before and behind
static size_t   page_size;
static uint8_t  marks[2][n_marks]; // of a piece: which OS pages were looked at

static uint8_t* map(size_t size) {
  uint8_t* p = (uint8_t*)mmap(NULL, size + 2 * page_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(p != MAP_FAILED && mprotect(p + page_size, size, PROT_READ | PROT_WRITE) == 0);
  madvise(p, size + 2 * page_size, MADV_NOHUGEPAGE); // each page is there by itself; some systems have none
  return p + page_size;
}

static void unmap(uint8_t* p, size_t size) {
  munmap(p - page_size, size + 2 * page_size);
}

static void write_pages(uint8_t* p, size_t size) {
  for (size_t at = 0; at < size; at += page_size) p[at + page_size / 2] = 1;
}

// Whatever was freed before, the next four blocks are looked at.
static void start_anew(void) {
  uint8_t* empty = map(8 * MiB);
  write_pages(memory, 8 * MiB);
  for (int i = 0; i < 10 && _mi_dense_freed(empty, 8 * MiB); i++) {
  }
  for (int i = 0; i < 40 && !_mi_dense_freed(memory, 8 * MiB); i++) {
  }
  _mi_dense_freed(empty, 8 * MiB);
  CHECK(!_mi_dense_take(1));
  unmap(empty, 8 * MiB);
}

// Marks the OS pages that are looked at in [from, to), of which nothing is there before: what is read is.  How many there are.
static size_t find_places(uint8_t* p, size_t size, size_t from, size_t to, uint8_t* found) {
  size_t n = 0;
  start_anew();
  write_pages(p, size);
  CHECK_EQ(madvise(p + from * page_size, (to - from) * page_size, MADV_DONTNEED), 0);
  _mi_dense_freed(p, size);
  CHECK_EQ(mincore(p + from * page_size, (to - from) * page_size, found), 0);
  for (size_t i = 0; i < to - from; i++) n += found[i] & 1;
  return n;
}

// DE1: of the first piece one page is enough, as it is empty.
static void check_places(size_t size) {
  uint8_t* p = map(size);
  size_t   n_pieces = (size < 32 * MiB ? 8 : 16), n_pages = size / page_size / n_pieces;
  for (size_t k = 0; k < n_pieces; k++) {
    size_t n = find_places(p, size, k * n_pages, (k + 1) * n_pages, marks[0]);
    CHECK_FOR(n == 1 || (n == 2 && k > 0), "%zu in piece %zu of %zu", n, k, n_pieces);
    CHECK_EQ(find_places(p, size, k * n_pages, (k + 1) * n_pages, marks[1]), n);
    CHECK(memcmp(marks[0], marks[1], n_pages) == 0);
  }
  unmap(p, size);
}

// DE1
static void check_dense(void) {
  const size_t size = 16 * MiB;
  start_anew();
  CHECK(!_mi_dense_freed(memory, MI_DENSE_MIN - page_size));
  CHECK(_mi_dense_freed(memory, MI_DENSE_MIN));
  CHECK(_mi_dense_take(MI_DENSE_MIN / 2) && !_mi_dense_take(MI_DENSE_MIN / 2 + 1) && _mi_dense_take(MI_DENSE_MIN / 2));
  uint8_t* p = map(size);
  CHECK(!_mi_dense_freed(p, size)); // nothing was written
  start_anew();
  write_pages(p, size / 4);
  CHECK(!_mi_dense_freed(p, size));
  write_pages(p, size * 5 / 8);
  CHECK(_mi_dense_freed(p, size)); // as a buffer that was not filled
  CHECK(_mi_dense_take(size));
  CHECK_EQ(mprotect(p, size, PROT_NONE), 0);
  CHECK(!_mi_dense_freed(p, size));
  unmap(p, size);
}

// DE2, DE3: growth takes what it can, and all of a block that was too small before.
static void check_growth(void) {
  start_anew();
  _mi_dense_grown(0, MI_DENSE_MIN);
  CHECK(!_mi_dense_take(1));
  CHECK(_mi_dense_freed(memory, 8 * MiB));
  _mi_dense_grown(MiB, MI_DENSE_MIN - 1);
  CHECK(_mi_dense_take(8 * MiB) && !_mi_dense_take(1));
  for (int i = 0; i < 3; i++) {
    _mi_dense_grown(MiB, MI_DENSE_MIN);
    _mi_dense_grown(MI_DENSE_MIN, 8 * MiB);
    CHECK(_mi_dense_freed(memory, 8 * MiB));
  }
  CHECK(_mi_dense_take(8 * MiB) && !_mi_dense_take(1));
}

// DE5: after four that were not dense one of each 16 is looked at, and after four that were one of each four.
static void check_seldom(void) {
  start_anew();
  uint8_t* p = map(8 * MiB);
  for (int i = 0; i < 4; i++) CHECK(!_mi_dense_freed(p, 8 * MiB));
  int n = 0;
  while (!_mi_dense_freed(memory, 8 * MiB) && n < 100) n++;
  CHECK_FOR(n > 0 && n < 32, "%d", n);
  for (int i = 1; i < 4; i++) CHECK(_mi_dense_freed(memory, 8 * MiB));
  CHECK(_mi_dense_take(4 * 8 * MiB));
  for (n = 0; n < 100 && _mi_dense_freed(p, 8 * MiB); n++) {
  }
  CHECK_FOR(n > 0 && n < 8, "%d", n);
  CHECK(!_mi_dense_take(1)); // none is left
  unmap(p, 8 * MiB);
}

// DE5: blocks that are dense by turns are looked at each time, so that none of the others counts.
static void check_turns(void) {
  start_anew();
  uint8_t* p = map(8 * MiB);
  for (int i = 0; i < 100; i++) {
    CHECK(_mi_dense_freed(memory, 8 * MiB));
    CHECK(!_mi_dense_freed(p, 8 * MiB) && !_mi_dense_take(1));
  }
  unmap(p, 8 * MiB);
}

// DE4
static void check_thin(void) {
  const size_t size = 16 * MiB;
  uint8_t*     p = map(size);
  _mi_dense_freed_zeros(p, size);
  CHECK(_mi_dense_is_thin(size) && !_mi_dense_is_thin(MI_THIN_MIN - 1));
  write_pages(p, size / 2);
  _mi_dense_freed_zeros(p, size);
  CHECK(!_mi_dense_is_thin(size));
  _mi_dense_freed_zeros(p + size / 2, size / 2);
  CHECK(_mi_dense_is_thin(size));
  _mi_dense_freed_zeros(p, MI_THIN_MIN - page_size); // it has shrunk: nothing is learnt
  CHECK(_mi_dense_is_thin(size));
  unmap(p, size);
}

// DE6
static void check_little(void) {
  const size_t thin_size = 16 * MiB, size = 2 * MiB;
  uint8_t*     p = map(thin_size);
  write_pages(p, thin_size);
  _mi_dense_freed_zeros(p, thin_size);
  CHECK(!_mi_dense_is_cleared_by_system(p + size, size)); // no block of zeros was thin
  memset(p, 0, thin_size);
  _mi_dense_freed_zeros(p, thin_size);
  CHECK(!_mi_dense_is_cleared_by_system(p, MiB / 2 - page_size));
  write_pages(p, size / 16);
  CHECK(_mi_dense_is_cleared_by_system(p, size));
  write_pages(p + size / 2, size / 16); // one more of 16 places
  CHECK(!_mi_dense_is_cleared_by_system(p, size));
  _mi_dense_freed_zeros(p + size, thin_size - size);
  size_t n = 0;
  while (n < 100 && _mi_dense_is_cleared_by_system(p + size, size)) n++;
  CHECK_EQ(n, 4 * (thin_size - size) / size);
  unmap(p, thin_size);
}

// Is a block in a huge-page region after some that were written all over?
static bool comes_huge(long allow_thp) {
  enum { size = 16 * MiB };
  mi_option_set(mi_option_allow_thp, allow_thp);
  for (int i = 0; i < 6; i++) {
    void* p = mi_malloc(size);
    memset(p, 1, size);
    mi_free(p);
    mi_collect(true); // no thread keeps it
  }
  void* p = mi_malloc(size);
  bool  is_huge = _mi_page_region(_mi_page_of(p))->is_huge;
  mi_free(p);
  mi_collect(true);
  return is_huge;
}

static void check_options(void) {
  CHECK(!comes_huge(0));
  CHECK(comes_huge(2));
  CHECK(comes_huge(1));
}

int main(void) {
  watchdog(60);
  mi_free(mi_malloc(1));
  page_size = _mi_prim_os_page_size();
  memory = map(8 * MiB);
  write_pages(memory, 8 * MiB);
  if (MI_TRACK || _mi_prim_populate_read(memory, page_size) != 0) {
    test_skip("which blocks are dense", "the system or a tool does not let us look");
  }
  else {
    for (size_t size = 4 * MiB; size <= 64 * MiB; size *= 2) {
      check_places(size);
      if (size > MI_DENSE_MIN) check_places(size - page_size);
      check_places(size + 3 * page_size);
    }
    check_dense();
    check_growth();
    check_seldom();
    check_turns();
    check_thin();
    check_little();
    // Blocks with guards are not looked at; with pointers of 32 bits there is no region of huge pages.
    if (!MI_HARDENED && sizeof(void*) == 8 && _mi_region_may_be_huge()) check_options();
  }
  unmap(memory, 8 * MiB);
  return check_result();
}
