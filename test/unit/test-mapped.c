// Proves: blocks with a mapping of their own are found by any address in them and by none outside, grow, shrink and move
// with their contents, and are gone when they are freed; their heap has them, and a walk, a check, and the child of a fork see
// them; what the system refuses, for each call in turn, loses nothing and is handed out once; none stays in a hole of a region.
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/mapped.h"
#include "mimalloc.h"
#include "page/page.h"
#include "support/stat.h"

static mi_mapped_sum_t sum(void) {
  mi_mapped_sum_t s;
  _mi_mapped_get_sum(&s);
  return s;
}

// Builds that guard large blocks, and tools, which want those copied, leave nothing to look at for some checks.
static bool const may_move = !MI_TRACK;

static const size_t huge_align = 64 * MiB;

static void check_found(void) {
  mi_mapped_sum_t before = sum();
  char*           p = (char*)mi_malloc_aligned(100, huge_align);
  CHECK(p != NULL && is_aligned(p, huge_align));
  CHECK_EQ(sum().n_blocks, before.n_blocks + 1);
  CHECK_EQ(sum().size, before.size + MI_SLICE_SIZE);
  const mi_page_t* page = _mi_page_of(p);
  CHECK(page != NULL && _mi_page_is_mapped(page) && _mi_mapped_slot_is_descriptor(page));
  CHECK(_mi_page_of(p + MI_SLICE_SIZE - 1) == page);
  CHECK(_mi_page_of(p - 1) == NULL && _mi_page_of(p + MI_SLICE_SIZE) == NULL);
  CHECK(mi_is_in_heap_region(p) && mi_check_owned(p) && !mi_check_owned(p + MI_SLICE_SIZE));
  CHECK(_mi_mapped_overlaps(p - 1, 2) && !_mi_mapped_overlaps(p - 1, 1));
  CHECK(mi_usable_size(p) >= 100);
  memset(p, 1, 100);
  mi_free(p);
  CHECK(_mi_page_of(p) == NULL && !mi_check_owned(p));
  CHECK_EQ(sum().n_blocks, before.n_blocks);
}

// Of the block and its parts, with what lies between.
static void check_resize(rng_t* r) {
  size_t   size = 40 * MiB;
  uint8_t* p = (uint8_t*)mi_malloc(size);
  pattern_fill(p, 0, 64 * KiB, 1);
  for (int i = 0; i < 200; i++) {
    size_t   new_size = 33 * MiB + rng_below(r, 32 * MiB);
    uint8_t* q = (uint8_t*)mi_realloc(p, new_size);
    CHECK(q != NULL && pattern_check(q, 64 * KiB, 1) == 64 * KiB);
    if (q == NULL) break;
    if (i > 0) CHECK_EQ(q[32 * MiB], (uint8_t)(i - 1));
    q[32 * MiB] = (uint8_t)i;
    p = q;
    CHECK(mi_usable_size(p) >= new_size && mi_check_owned(p + new_size - 1));
  }
  p = (uint8_t*)mi_realloc(p, 100);
  CHECK(p != NULL && pattern_check(p, 100, 1) == 100);
  mi_free(p);
}

// A block of slices that becomes too large for them, next to one that is in its way.
static void check_move_out(void) {
  for (int has_moved = 0; has_moved <= 1; has_moved++) {
    mi_mapped_sum_t before = sum();
    uint8_t*        p = (uint8_t*)mi_malloc((has_moved ? 2 : 20) * MiB);
    void*           barrier = mi_malloc(600 * KiB);
    pattern_fill(p, 0, MiB, 7);
    if (has_moved) p = (uint8_t*)mi_realloc(p, 20 * MiB);
    p[20 * MiB - 1] = 5;
    p = (uint8_t*)mi_rezalloc(p, 50 * MiB);
    CHECK(pattern_check(p, MiB, 7) == MiB && p[20 * MiB - 1] == 5 && is_zero(p, 21 * MiB, 50 * MiB));
    CHECK_EQ(sum().n_blocks, before.n_blocks + 1);
    mi_free(p);
    mi_free(barrier);
    CHECK_EQ(sum().n_blocks, before.n_blocks);
  }
  // What was left is zero where that is said.
  uint8_t* q = (uint8_t*)mi_calloc(1, 20 * MiB);
  CHECK(is_zero(q, 0, 20 * MiB));
  mi_free(q);
}

static bool count_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  (void)heap, (void)area, (void)size;
  if (block != NULL) ++*(size_t*)arg;
  return true;
}

static void check_heaps(void) {
  enum { n_blocks = (sizeof(void*) > 4 ? 1200 : 600) }; // more than a slab has slots
  static void*    blocks[n_blocks];
  mi_mapped_sum_t before = sum();
  mi_heap_t*      heap = mi_heap_new();
  size_t          n = 0;
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_heap_malloc_aligned(heap, 8, 4 * MiB);
  CHECK_EQ(sum().n_blocks, before.n_blocks + n_blocks);
  CHECK(mi_heap_visit_blocks(heap, true, &count_block, &n));
  CHECK_EQ(n, n_blocks);
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_blocks; i++) CHECK(mi_heap_contains(heap, blocks[i]));
  for (size_t i = 0; i < n_blocks; i += 2) mi_free(blocks[i]);
  CHECK_EQ(sum().n_blocks, before.n_blocks + n_blocks / 2);
  CHECK(mi_heap_check(NULL));
  mi_heap_destroy(heap);
  CHECK_EQ(sum().n_blocks, before.n_blocks);
  // Slots are used again.
  heap = mi_heap_new();
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_heap_malloc_aligned(heap, 8, 4 * MiB);
  mi_heap_delete(heap);
  CHECK(mi_heap_of(blocks[5]) == mi_heap_main() && mi_heap_check(NULL));
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  CHECK_EQ(sum().n_blocks, before.n_blocks);
}

static void check_fork(void) {
  char* p = (char*)mi_malloc_aligned(1000, huge_align);
  char* q = (char*)mi_malloc_aligned(1000, 2 * huge_align);
  memset(p, 3, 1000);
  pid_t child = fork();
  if (child == 0) {
    bool ok = (p[999] == 3 && mi_usable_size(p) >= 1000);
    mi_free(p);
    char* more = (char*)mi_malloc_aligned(1000, huge_align);
    ok = ok && more != NULL && mi_check_owned(q) && !mi_check_owned(p == more ? p + MI_SLICE_SIZE : p);
    mi_free(q);
    mi_free(more);
    _exit(ok && check_n_failed == 0 ? 0 : 1);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(p[999] == 3);
  mi_free(p);
  mi_free(q);
}

// What another thread had out at a fork is no block any more; its mapping stays as it is, and its slot is used again.
static void check_out(void) {
  char*      p = (char*)mi_malloc_aligned(1000, huge_align);
  mi_page_t* page = _mi_page_of(p);
  CHECK(_mi_mapped_take_out(page) && !_mi_mapped_take_out(page));
  CHECK(_mi_page_of(p) == NULL);
  _mi_page_delete_mapped(page);
  _mi_mapped_free(page, false);
  if (!MI_TRACK) memset(p, 1, 1000);
  char* q = (char*)mi_malloc_aligned(1000, huge_align);
  CHECK(q != p && _mi_page_of(q) == page);
  mi_free(q);
  _mi_prim_release(p, MI_SLICE_SIZE);
}

static int last_error;

static void on_error(int err, void* arg) {
  (void)arg;
  last_error = err;
}

static int error_of_free(void* p) {
  last_error = 0;
  mi_free(p);
  return last_error;
}

// Misuse is reported, and does nothing.
static void check_misuse(void) {
  mi_register_error(&on_error, NULL);
  char* p = (char*)mi_malloc_aligned(300 * KiB, huge_align);
  CHECK_EQ(error_of_free(p + 16), EINVAL);
  CHECK_EQ(error_of_free(p + 299 * KiB), EINVAL);
  last_error = 0;
  CHECK(mi_realloc(p + 64 * KiB, 100) == NULL && last_error == EINVAL);
  CHECK(mi_usable_size(p) >= 300 * KiB);
  CHECK_EQ(error_of_free(p), 0);
  CHECK_EQ(error_of_free(p), EINVAL); // nothing is known of it any more
  CHECK(!mi_manage_os_memory(p = (char*)mi_malloc_aligned(4 * MiB, huge_align), 4 * MiB, true, false, false, -1));
  CHECK_EQ(error_of_free(p), 0);
  mi_register_error(NULL, NULL);
}

// ---- the system refuses ---------------------------------------------------------------------------------------------

// One that is not taken back is not in use, holds nothing, and goes back as soon as that is possible.
static void check_stuck(void) {
  mi_mapped_sum_t before = sum();
  char*           p = (char*)mi_malloc_aligned(200 * KiB, huge_align);
  memset(p, 1, 200 * KiB);
  _mi_prim_fail_nth(1, false);
  mi_free(p);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(sum().n_blocks, before.n_blocks);
  CHECK_EQ(sum().n_stuck, before.n_stuck); // a free tries again itself
  char* blocks[4];
  for (int i = 0; i < 4; i++) blocks[i] = (char*)mi_malloc_aligned(200 * KiB, huge_align);
  _mi_prim_fail_nth(1, true);
  for (int i = 0; i < 4; i++) mi_free(blocks[i]);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(sum().n_stuck, before.n_stuck + 4);
  CHECK_EQ(sum().stuck_size, before.stuck_size + 4 * mi_align_up(200 * KiB, MI_SLICE_SIZE));
  for (int i = 0; i < 4; i++) CHECK(!mi_check_owned(blocks[i]));
  for (int i = 0; i < 4; i++) {
    char* q = (char*)mi_zalloc_aligned(200 * KiB, huge_align);
    CHECK(q != NULL && is_zero(q, 0, 200 * KiB));
    memset(q, 2, 200 * KiB);
    mi_free(q);
  }
  CHECK_EQ(sum().n_stuck, before.n_stuck);
  for (int i = 0; i < 4; i++) blocks[i] = (char*)mi_malloc_aligned(200 * KiB, huge_align);
  _mi_prim_fail_nth(1, true);
  for (int i = 0; i < 4; i++) mi_free(blocks[i]);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(sum().n_stuck, before.n_stuck + 4);
  mi_collect(true); // tries all of them again
  CHECK(sum().n_stuck == before.n_stuck && sum().stuck_size == before.stuck_size);
}

// A block that is not made takes nothing with it of what lies where one was before.
static void check_not_made(void) {
  char* p = (char*)mi_malloc_aligned(200 * KiB, huge_align);
  mi_free(p);
  char* other = (char*)mmap(p, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (other != p) {
    test_skip("a block that is not made", "the system maps elsewhere");
    munmap(other, MiB);
    return;
  }
  memset(other, 1, MiB);
  _mi_prim_fail_nth(1, false);
  char* q = (char*)mi_malloc_aligned(200 * KiB, huge_align);
  _mi_prim_fail_nth(0, false);
  unsigned char is_there = 0;
  CHECK(mincore(other, 1, (void*)&is_there) == 0 && other[0] == 1);
  mi_free(q);
  munmap(other, MiB);
}

// A block that cannot shrink keeps its place, but what it does not need goes back; and what is counted is the same afterwards.
static void check_not_shrunk(void) {
  int64_t reserved = mi_load_relaxed(&_mi_stat_live.reserved.current);
  char*   p = (char*)mi_malloc(128 * MiB);
  memset(p, 1, 128 * MiB);
  _mi_prim_fail_nth(1, false);
  char* q = (char*)mi_realloc(p, 40 * MiB);
  _mi_prim_fail_nth(0, false);
  CHECK(q == p && q[0] == 1 && q[40 * MiB - 1] == 1 && is_zero(q, 44 * MiB, 120 * MiB));
  mi_free(q);
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.reserved.current), reserved);
}

// Each call fails once while blocks are made, resized and freed.
static void check_failures(size_t align, bool repeat) {
  mi_mapped_sum_t before = sum();
  size_t          mappings = mapping_count(), n = 0, n_calls = SIZE_MAX;
  while (n < n_calls && n < 100) {
    size_t size = 40 * MiB;
    _mi_prim_fail_nth(++n, repeat);
    char* p = (char*)(align == 1 ? mi_malloc(size) : mi_malloc_aligned(size, align));
    if (p != NULL) {
      p[0] = p[size - 1] = 9;
      char* q = (char*)mi_realloc(p, 2 * size);
      if (q != NULL) CHECK(q[0] == 9 && q[size - 1] == 9);
      else CHECK(p[0] == 9 && p[size - 1] == 9);
      p = (q != NULL ? q : p);
      q = (char*)mi_realloc(p, 34 * MiB);
      if (q != NULL) p = q;
      CHECK(p[0] == 9);
      mi_free(p);
    }
    n_calls = _mi_prim_fail_nth(0, false);
    _mi_mapped_retry(SIZE_MAX);
    CHECK_EQ(sum().n_blocks, before.n_blocks);
    CHECK_EQ(sum().n_stuck, before.n_stuck);
    if (repeat && n > 20) break;
  }
  CHECK(n > 2);
  if (!TEST_TSAN) CHECK(mapping_count() <= mappings + 6); // it maps the shadow of what was touched in parts of its own
}

enum { region_size = 512 * MiB, hole_at = 64 * MiB, hole_size = 384 * MiB };

static char* map(size_t size) {
  return (char*)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static bool is_in(const char* hole, const void* p) {
  return (uintptr_t)p - (uintptr_t)hole < hole_size;
}

// Nothing is mapped in the hole.  Does the system map there next?
static bool open_hole(char* hole) {
  munmap(hole, hole_size);
  char* probe = map(hole_size / 2);
  munmap(probe, hole_size / 2);
  return is_in(hole, probe);
}

// MB5
static void check_hole(void) {
  mi_arena_id_t id;
  char*         block = (char*)mi_malloc(40 * MiB);
  char*         region = map(region_size);
  char*         hole = region + hole_at;
  block[0] = 1;
  CHECK(mi_manage_os_memory_ex(region, region_size, true, false, true, -1, true, &id));
  if (open_hole(hole)) {
    char* aligned = (char*)mi_malloc_aligned(1, huge_align);
    CHECK(!is_in(hole, aligned) && _mi_page_of(aligned) != NULL && mi_usable_size(aligned) > 0);
    mi_free(aligned);
  }
  if (open_hole(hole)) { // it was closed
    block = (char*)mi_realloc(block, hole_size / 2);
    CHECK(!is_in(hole, block) && _mi_page_of(block) != NULL && mi_usable_size(block) >= hole_size / 2 && block[0] == 1);
  }
  else {
    test_skip("mappings in a hole of a region", "the system makes them elsewhere");
  }
  mi_free(block);
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // no calls to the system but ours
  mi_free(mi_malloc(1));
  mi_free(mi_malloc_aligned(1, huge_align));
  check_found();
  if (!MI_HARDENED) check_resize(&r);
  if (!MI_HARDENED && may_move) check_move_out();
  check_heaps();
  check_fork();
  check_out();
  if (!TEST_SANITIZED && !MI_TRACK) check_misuse(); // tools report it too, and end the program
  check_stuck();
  check_not_made();
  if (!MI_HARDENED && may_move) check_not_shrunk();
  check_failures(huge_align, false);
  check_failures(huge_align, true);
  if (!MI_HARDENED && may_move) {
    check_failures(1, false);
    check_failures(1, true);
  }
  check_hole();
  mi_collect(true);
  return check_result();
}
