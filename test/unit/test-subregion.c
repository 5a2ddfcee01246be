// Proves: the span is covered as far as anything of it is open, and what is covered can be read; nothing else of it is mapped.
// Somebody else's mapping that is in the way ends a subregion, or the span, and is left alone, and allocation goes on elsewhere.
// An arena that we reserve lies in the span, where the fast paths find it, aligned as asked, beside no other; what does not
// fit there has address space of its own; giving arenas back leaves nothing behind, in whatever order, also when the system
// does not take them back at once; there are as many as descriptors can tell apart, and the next is refused.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../check.h"
#include "../modes/support.h"
#include "../unload.h"
#include "arena/shrink.h"
#include "arena/space.h"
#include "arena/subregion.h"
#include "base/track.h"
#include "mimalloc.h"
#include "page/page.h"
#include "support/stat.h"

static mi_region_t* const whole = &_mi_region_all[0];

static size_t reserve(size_t size, bool commit) {
  size_t index = 0;
  int    err = _mi_arena_reserve(size, commit, false, true, &index);
  CHECK_EQ(err, index == 0 ? ENOMEM : 0);
  return index;
}

static size_t n_errors;

static void count_error(int err, void* arg) {
  (void)err, (void)arg;
  n_errors++;
}

// As a thread finds it that has not allocated, and reads `base` before it is set, and n_slices afterwards (region.h, R1).
static void* free_before_base(void* arg) {
  uintptr_t base = whole->base;
  mi_store_growing(&whole->base, (uintptr_t)0);
  mi_free(NULL);
  mi_store_growing(&whole->base, base);
  return arg;
}

static void check_free_before_base(void) {
  pthread_t thread;
  mi_register_error(&count_error, NULL);
  CHECK_EQ(pthread_create(&thread, NULL, &free_before_base, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  mi_register_error(NULL, NULL);
  CHECK_EQ(n_errors, 0);
}

static bool is_in_span(size_t index) {
  return _mi_subregion_overlaps((void*)_mi_region_all[index].base, 1);
}

static bool is_subregion(size_t index) {
  return _mi_region_all[index].origin == MI_REGION_RESERVED && is_in_span(index);
}

static size_t first_chunk(size_t index) {
  return (_mi_region_all[index].base - whole->base) / MI_CHUNK_SIZE;
}

// All of it can be used, is zero, and is found by the fast path's arithmetic.
static void use(size_t index, size_t n_chunks) {
  mi_region_t* region = &_mi_region_all[index];
  mi_run_t     run = _mi_slices_alloc(n_chunks * MI_CHUNK_SLICES, 1, MI_REQUEST_MIXED, index);
  CHECK(run.region == region && run.slice == 0 && run.is_zero);
  CHECK(_mi_slices_alloc(1, 1, MI_REQUEST_SMALL, index).region == NULL);
  char* start = _mi_region_slice_start(region, 0);
  mi_track_readable(start, n_chunks * MI_CHUNK_SIZE); // slices without blocks are out of bounds to tools
  for (size_t i = 0; i < n_chunks * MI_CHUNK_SIZE; i += MI_SLICE_SIZE / 2) {
    CHECK_FOR(start[i] == 0, "byte %zu", i);
    start[i] = (char)0xA5;
    CHECK(_mi_page_at(start + i) == (mi_page_t*)_mi_region_descriptor(region, i / MI_SLICE_SIZE));
  }
  CHECK(_mi_space_open_heap_links(region));
  char* owner = (char*)_mi_region_heap_link(region, n_chunks * MI_CHUNK_SLICES - 1);
  CHECK(is_zero(_mi_region_heap_link(region, 0), 0, MI_HEAP_LINK_SIZE) && is_zero(owner, 0, MI_HEAP_LINK_SIZE));
  memset(_mi_region_heap_link(region, 0), 1, MI_HEAP_LINK_SIZE);
  memset(owner, 1, MI_HEAP_LINK_SIZE);
  _mi_slices_free(region, 0, run.n_slices, false);
}

// Subregions have words of bits of their own, and what is open is covered (SR2, SR4).  Returns where the last one ends.
static size_t check_places(void) {
  size_t highest = 0;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    if (region->base == 0 || !is_in_span(i)) continue;
    size_t begin = first_chunk(i) / 64, end = (first_chunk(i) + region->n_chunks + 63) / 64;
    if (end * 64 > highest) highest = end * 64;
    CHECK((first_chunk(i) + region->n_open) * MI_CHUNK_SLICES <= whole->n_slices || region->n_open == 0);
    for (size_t k = 0; k < i; k++) {
      if (_mi_region_all[k].base == 0 || !is_in_span(k)) continue;
      size_t other = first_chunk(k) / 64, other_end = (first_chunk(k) + _mi_region_all[k].n_chunks + 63) / 64;
      CHECK_FOR(end <= other || other_end <= begin, "regions %zu and %zu", i, k);
    }
  }
  return highest;
}

static void check_one(void) {
  int64_t committed = _mi_stat_live.committed.current, reserved = _mi_stat_live.reserved.current;
  size_t  index = reserve(10 * MiB + 1, false);
  CHECK(is_subregion(index));
  CHECK_EQ(_mi_region_all[index].n_usable, 6);
  CHECK_EQ(_mi_region_all[index].n_open, 0);
  CHECK_EQ(_mi_stat_live.reserved.current - reserved, (int64_t)(12 * MiB));
  check_places();
  size_t place = first_chunk(index);
  use(index, 6);
  CHECK_EQ(_mi_stat_live.committed.current - committed, (int64_t)(12 * MiB));
  CHECK(arena_unload(index));
  CHECK_EQ(_mi_stat_live.committed.current, committed);
  CHECK_EQ(_mi_stat_live.reserved.current, reserved);
  // Committed at once, in the same place, and again zero.
  size_t again = reserve(12 * MiB, true);
  CHECK_EQ(again, index);
  CHECK_EQ(first_chunk(again), place);
  CHECK_EQ(_mi_region_all[index].n_open, 6);
  CHECK_EQ(_mi_stat_live.committed.current - committed, (int64_t)(12 * MiB));
  use(again, 6);
  CHECK(arena_unload(again));
  CHECK_EQ(_mi_stat_live.committed.current, committed);
  CHECK_EQ(_mi_stat_live.reserved.current, reserved);
}

// Reserved and given back in any order: no two meet, and holes are used again.
static void check_many(rng_t* r) {
  enum { n_max = 40 };
  size_t index[n_max], size[n_max], n = 0, first = check_places(), highest = first;
  for (size_t i = 0; i < 1000 * test_scale(); i++) {
    if (n < n_max && rng_below(r, 5) < 3) {
      size[n] = 1 + rng_below(r, rng_below(r, 4) == 0 ? 300 : 20);
      index[n] = reserve(size[n] * MI_CHUNK_SIZE, false);
      CHECK(is_subregion(index[n]));
      if (size[n] <= 20 && i % 8 == 0) use(index[n], size[n]);
      n++;
    }
    else if (n > 0) {
      size_t k = rng_below(r, n);
      CHECK(arena_unload(index[k]));
      index[k] = index[--n];
      size[k] = size[n];
    }
    size_t end = check_places();
    if (end > highest) highest = end;
  }
  CHECK_FOR(highest - first <= n_max * 320 * 2, "%zu chunks", highest - first);
  while (n > 0) CHECK(arena_unload(index[--n]));
  CHECK_EQ(check_places(), first);
}

static void check_alignment(void) {
  size_t index[3];
  for (size_t i = 0; i < COUNT_OF(index); i++) {
    _mi_lock_acquire(&_mi_region_lock);
    mi_region_t* region = _mi_space_add_reserved(GiB + i * 20 * MiB, GiB);
    CHECK(region != NULL && region->base % GiB == 0);
    _mi_space_start(region, region->n_chunks);
    _mi_lock_release(&_mi_region_lock);
    index[i] = _mi_region_index(region);
    CHECK(is_subregion(index[i]));
    check_places();
    mi_run_t run = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, index[i]); // its bits are its own
    CHECK(run.region == region && run.slice == 0);
    _mi_slices_free(region, 0, 1, false);
  }
  for (size_t i = 0; i < COUNT_OF(index); i++) CHECK(arena_unload(index[i]));
}

// What is larger than the span.
static void check_outside(void) {
  size_t mappings = mapping_count();
  size_t size = whole->is_planned ? POWER_OF_TWO(40) : GiB;
  size_t index = reserve(size, false);
  if (TEST_TSAN && index == 0) {
    test_skip("an arena outside of the span", "ThreadSanitizer has the addresses");
    return;
  }
  CHECK(index != 0 && _mi_region_all[index].origin == MI_REGION_RESERVED && !is_in_span(index));
  mi_run_t run = _mi_slices_alloc(MI_CHUNK_SLICES, 1, MI_REQUEST_MIXED, index);
  char*    p = _mi_region_slice_start(run.region, run.slice);
  mi_track_readable(p, MI_CHUNK_SIZE);
  CHECK(_mi_region_search(p) == &_mi_region_all[index] && _mi_region_search(p + size) != &_mi_region_all[index]);
  memset(p, 1, MI_CHUNK_SIZE);
  CHECK(!arena_unload(index));
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  CHECK(arena_unload(index));
  CHECK(_mi_region_search(p) == NULL);
  if (!TEST_TSAN) CHECK(mapping_count() <= mappings + 1); // it keeps the shadow of what was touched
  CHECK_EQ(reserve(POWER_OF_TWO(47), false), 0);
  CHECK_EQ(reserve(SIZE_MAX, false), 0);
  CHECK_EQ(reserve(0, false), 0);
}

// Arenas of one chunk until there are no more; then all go back, and it can be done again with no more memory.
static void check_as_many(void) {
  static size_t index[MI_REGION_COUNT];
  size_t        n_first = 0, mappings = 0, rss = 0;
  for (size_t round = 0; round < 4; round++) {
    size_t n = 0;
    while (n < MI_REGION_COUNT && (index[n] = reserve(MI_CHUNK_SIZE, false)) != 0) {
      if (n % 16 == 0) use(index[n], 1);
      n++;
    }
    if (round == 0) n_first = n;
    CHECK(n == n_first && n >= 250);
    // Blocks of the last one, whose index is the highest, are found.
    mi_page_t* page = _mi_page_at((void*)_mi_region_all[index[n - 1]].base);
    CHECK(page == (mi_page_t*)(void*)_mi_region_all[index[n - 1]].table);
    mi_run_t run = _mi_slices_alloc(20, 1, MI_REQUEST_MIXED, index[n - 1]);
    page = _mi_page_new_large(run, 0, 0);
    CHECK(_mi_page_region(page) == run.region && _mi_page_start(page) == (char*)run.region->base);
    _mi_page_delete_large(page);
    _mi_slices_free(run.region, run.slice, run.n_slices, false);
    while (n > 0) CHECK(arena_unload(index[--n]));
    check_places();
    if (round == 0) mappings = mapping_count();
    if (round == 0) rss = rss_now();
  }
  printf("%zu arenas at a time\n", n_first);
  CHECK(mapping_count() <= mappings + 2);
  CHECK(rss_within("growth over three rounds", minus(rss_now(), rss), 256 * KiB));
}

// The same with memory of the program's, whose metadata has mappings of its own.
static void check_as_many_given(void) {
  static size_t   index[MI_REGION_COUNT];
  mi_arena_spec_t spec = {true, false, true, true, -1, NULL, NULL};
  size_t          n_first = 0, mappings = 0, size = (MI_REGION_COUNT + 1) * MI_CHUNK_SIZE;
  char* memory = (char*)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(memory != MAP_FAILED);
  memory = (char*)(((uintptr_t)memory + MI_SLICE_SIZE - 1) & ~(uintptr_t)(MI_SLICE_SIZE - 1));
  for (size_t round = 0; round < 3; round++) {
    size_t n = 0;
    while (n < MI_REGION_COUNT &&
           (index[n] = _mi_arena_manage(memory + n * MI_CHUNK_SIZE, MI_CHUNK_SIZE, &spec)) != 0) {
      mi_run_t run = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, index[n]);
      CHECK(_mi_region_search(_mi_region_slice_start(run.region, run.slice)) == run.region);
      _mi_slices_free(run.region, run.slice, 1, false);
      n++;
    }
    if (round == 0) n_first = n;
    CHECK(n == n_first && n >= 250);
    for (size_t i = 0; i < n; i++) CHECK(_mi_region_search(memory + i * MI_CHUNK_SIZE) == &_mi_region_all[index[i]]);
    while (n > 0) CHECK(arena_unload(index[--n]));
    if (round == 0) mappings = mapping_count();
  }
  CHECK(mapping_count() <= mappings);
}

// ---- the span -------------------------------------------------------------------------------------------------------

// A huge OS page is what one table of the processor maps.
static void check_huge_rule(void) {
  CHECK(_mi_region_fits_huge(4 * KiB));
  CHECK(!_mi_region_fits_huge(8 * KiB));
  CHECK(!_mi_region_fits_huge(16 * KiB));
  CHECK(!_mi_region_fits_huge(64 * KiB));
}

static mi_run_t run_of(size_t n_chunks, mi_request_t request) {
  return _mi_slices_alloc(n_chunks * MI_CHUNK_SLICES, 1, request, MI_ARENA_ANY);
}

static bool is_mapped(uintptr_t at) {
  unsigned char resident;
  return mincore((void*)at, 1, &resident) == 0;
}

// Descriptors can be read as far as the span is covered; chunks are mapped as far as they are open.
static void check_cover(void) {
  static const size_t sizes[] = {1, 7, 40, 200};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    mi_run_t run = run_of(sizes[i], MI_REQUEST_MIXED);
    CHECK(run.region == whole);
    size_t n = whole->n_slices, open = whole->n_open;
    CHECK(n >= open * MI_CHUNK_SLICES && n % MI_CHUNK_SLICES == 0);
    for (size_t slice = open * MI_CHUNK_SLICES; slice < n; slice++)
      CHECK(is_zero(_mi_region_descriptor(whole, slice), 0, MI_DESCRIPTOR_SIZE));
    CHECK_EQ(_mi_page_at(_mi_region_slice_start(whole, n - 1)) != NULL, true);
    CHECK(_mi_page_at(_mi_region_slice_start(whole, n)) == NULL);
    CHECK(is_mapped(whole->base + open * MI_CHUNK_SIZE - 4096));
    CHECK(!is_mapped(whole->base + open * MI_CHUNK_SIZE));
    CHECK_FOR(open <= sizes[i] + sizes[i] / 8 + 20, "%zu chunks are open for %zu", open, sizes[i]);
    _mi_slices_free(run.region, run.slice, run.n_slices, true);
  }
  // What is free at the end can be closed, and is zero when it is opened again.
  mi_run_t run = run_of(100, MI_REQUEST_MIXED);
  size_t   slice = run.slice, open = whole->n_open;
  mi_track_writable(_mi_region_slice_start(whole, slice), MI_SLICE_SIZE);
  memset(_mi_region_slice_start(whole, slice), 1, MI_SLICE_SIZE);
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  size_t purgeable = _mi_chunk_purgeable();
  _mi_lock_acquire(&_mi_region_lock);
  CHECK(_mi_shrink_regions());
  _mi_lock_release(&_mi_region_lock);
  CHECK(whole->n_open < open && !is_mapped(whole->base + whole->n_open * MI_CHUNK_SIZE));
  CHECK(_mi_chunk_purgeable() + 100 * MI_CHUNK_SLICES <= purgeable);
  CHECK_EQ(whole->committed, whole->n_open * MI_CHUNK_SIZE);
  run = run_of(100, MI_REQUEST_MIXED);
  CHECK(run.region == whole && run.slice == slice && run.is_zero);
  mi_track_readable(_mi_region_slice_start(whole, slice), MI_SLICE_SIZE);
  CHECK(is_zero(_mi_region_slice_start(whole, slice), 0, MI_SLICE_SIZE));
  _mi_slices_free(run.region, run.slice, run.n_slices, true);
}

// Where the system refuses to open chunks, what is free at the end goes back, and then it is asked again.
static void check_open_after_shrinking(void) {
  mi_run_t run = run_of(40, MI_REQUEST_MIXED);
  _mi_slices_free(run.region, run.slice, run.n_slices, true);
  size_t n = whole->n_open + 20;
  _mi_prim_fail_nth(1, false);
  run = run_of(n, MI_REQUEST_MIXED);
  CHECK(_mi_prim_fail_nth(0, false) > 1 && run.region == whole);
  if (run.region != NULL) _mi_slices_free(run.region, run.slice, run.n_slices, true);
}

// A request for slices asks once for them, and once to give back what is free at the end.
static void check_asked_once(void) {
  _mi_prim_fail_nth(1, true);
  mi_run_t run = run_of(whole->n_open + 20, MI_REQUEST_MIXED);
  size_t   n_calls = _mi_prim_fail_nth(0, false);
  CHECK_FOR(run.region == NULL && n_calls <= 2, "%zu calls", n_calls);
}

// What follows spoils the span: in a child.
static void in_child(void (*check)(void)) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    _mi_lock_acquire(&_mi_region_lock);
    _mi_shrink_regions(); // what is free and mapped
    _mi_lock_release(&_mi_region_lock);
    check();
    _exit(check_result());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
}

static char* map_foreign(uintptr_t at) {
  char* p =
      (char*)mmap((void*)at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  CHECK((uintptr_t)p == at);
  memset(p, 0x5A, 4096);
  return p;
}

static bool is_untouched(const char* p) {
  for (size_t i = 0; i < 4096; i++) {
    if (p[i] != 0x5A) return false;
  }
  return true;
}

static void fill(mi_run_t run) {
  char* p = _mi_region_slice_start(run.region, run.slice);
  mi_track_writable(p, run.n_slices * MI_SLICE_SIZE);
  for (size_t i = 0; i < run.n_slices; i++) memset(p + i * MI_SLICE_SIZE, 1, 4096);
}

static void check_neighbour(void) {
  size_t open = whole->n_open;
  char*  foreign = map_foreign(whole->base + (open + 3) * MI_CHUNK_SIZE);
  size_t n_here = 0, n_in_span = 0;
  for (size_t i = 0; i < 60; i++) {
    mi_run_t run = run_of(1, MI_REQUEST_MIXED);
    CHECK_FOR(run.region != NULL, "run %zu", i);
    if (run.region == NULL) return;
    n_here += (run.region == whole);
    n_in_span += is_in_span(_mi_region_index(run.region));
    fill(run);
  }
  CHECK(n_here >= 1 && n_in_span == 60);
  CHECK(whole->n_usable == whole->n_open && whole->n_open <= open + 3);
  CHECK_EQ(_mi_region_count(), MI_REGION_HUGE + 2);
  check_places();
  CHECK(is_untouched(foreign));
  if (!_mi_region_may_be_huge()) return;
  // The same where pages in huge-page chunks lie.
  mi_region_t* dense = &_mi_region_all[MI_REGION_HUGE];
  char*        foreign_huge = map_foreign(dense->base + (dense->n_open + 1) * MI_CHUNK_SIZE);
  for (size_t i = 0; i < 40 * MI_CHUNK_SLICES; i++) {
    mi_run_t run = _mi_slices_alloc(1, 1, MI_REQUEST_HUGE, MI_ARENA_ANY);
    CHECK(run.region != NULL);
    if (run.region == NULL) return;
    fill(run);
  }
  CHECK(dense->n_usable == dense->n_open && dense->next != NULL && dense->next->n_open > 0);
  CHECK(is_untouched(foreign) && is_untouched(foreign_huge));
  check_places();
}

// Where whole bands cannot begin.
static void check_blocked(void) {
  char*     foreign[4];
  uintptr_t band = whole->n_chunks * MI_CHUNK_SIZE;
  foreign[0] = map_foreign(whole->base + whole->n_open * MI_CHUNK_SIZE);
  for (size_t i = 1; i < COUNT_OF(foreign); i++) foreign[i] = map_foreign(whole->base + (i + 1) * band);
  for (size_t i = 0; i < 60; i++) {
    mi_run_t run = run_of(10, MI_REQUEST_MIXED);
    CHECK_FOR(run.region != NULL, "run %zu", i);
    if (run.region == NULL) return;
    char* p = _mi_region_slice_start(run.region, run.slice);
    CHECK(_mi_page_at(p) == (mi_page_t*)_mi_region_descriptor(run.region, run.slice));
    fill(run);
  }
  for (size_t i = 0; i < COUNT_OF(foreign); i++) CHECK(is_untouched(foreign[i]));
  CHECK(_mi_region_count() < 10);
  check_places();
}

// Where the table cannot grow, the span ends.
static void check_table_in_the_way(void) {
  size_t covered = whole->n_slices;
  char*  foreign = map_foreign((uintptr_t)_mi_region_descriptor(whole, covered));
  size_t n_outside = 0;
  for (size_t i = 0; i < 40; i++) {
    mi_run_t run = run_of(20, MI_REQUEST_MIXED);
    CHECK_FOR(run.region != NULL, "run %zu", i);
    if (run.region == NULL) return;
    n_outside += !is_in_span(_mi_region_index(run.region));
    fill(run);
  }
  CHECK(n_outside > 10 && whole->n_slices == covered && is_untouched(foreign));
  size_t index = reserve(MI_CHUNK_SIZE, true); // arenas as well
  CHECK(index != 0 && !is_in_span(index));
}

// The same for what describes memory of the program: that is all of it that is ours then.
static void check_unmap_fails_given(void) {
  const size_t    size = 64 * MI_CHUNK_SIZE;
  mi_arena_spec_t spec = {true, false, true, true, -1, NULL, NULL};
  char*           memory = (char*)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  size_t          index = _mi_arena_manage(memory, size, &spec);
  CHECK(index != 0);
  if (index == 0) return;
  mi_region_t* region = &_mi_region_all[index];
  uintptr_t    table = (uintptr_t)region->table;
  size_t       described = region->reserved_size;
  _mi_prim_fail_nth(1, false);
  CHECK(arena_unload(index));
  _mi_prim_fail_nth(0, false);
  CHECK(region->origin == MI_REGION_LOST && region->base == table && region->reserved_size == described);
  _mi_lock_acquire(&_mi_region_lock);
  CHECK(_mi_region_overlaps((void*)table, 1));
  CHECK(region->n_slices << MI_SLICE_SHIFT <= described);
  _mi_lock_release(&_mi_region_lock);
  munmap(memory, size);
  CHECK(arena_unload(reserve(MI_CHUNK_SIZE, false))); // had back with the next one
}

// The system refuses to take address space back (it has too many mappings to split one): the memory goes back all the
// same, the place is not given to another arena, and it is tried again.
static void check_unmap_fails(void) {
  size_t index = reserve(10 * MiB, true), place = first_chunk(index);
  mi_track_writable((void*)_mi_region_all[index].base, 10 * MiB);
  memset((void*)_mi_region_all[index].base, 1, 10 * MiB);
  size_t rss = rss_now();
  _mi_prim_fail_nth(1, false);
  CHECK(arena_unload(index));
  CHECK_EQ(_mi_prim_fail_nth(0, false) > 0, true);
  CHECK(_mi_region_all[index].origin == MI_REGION_LOST && !_mi_arena_exists(index));
  if (rss_is_meaningful()) CHECK(rss_now() + 8 * MiB <= rss);
  _mi_prim_fail_nth(1, false); // again
  size_t other = reserve(10 * MiB, false);
  _mi_prim_fail_nth(0, false);
  CHECK(other != index && first_chunk(other) != place);
  check_places();
  size_t third = reserve(10 * MiB, true);
  CHECK(third == index && first_chunk(third) == place);
  use(third, 5);
  CHECK(arena_unload(third) && arena_unload(other));
  check_places();
}

// The same with a system that has as many mappings as it allows: the middle one of three arenas cannot be cut out.
static void check_unmap_at_the_limit(void) {
  enum { size = 64 * MI_CHUNK_SIZE, n_max = 100000 };
  static void* mappings[n_max];
  size_t       index[3], n = 0;
  for (size_t i = 0; i < COUNT_OF(index); i++) index[i] = reserve(size, true);
  char* middle = (char*)_mi_region_all[index[1]].base;
  CHECK(_mi_region_all[index[1]].base - _mi_region_all[index[0]].base == size);
  CHECK(_mi_region_all[index[2]].base - _mi_region_all[index[1]].base == size);
  mi_track_writable(middle, 20 * MiB);
  memset(middle, 1, 20 * MiB);
  size_t rss = rss_now();
  for (; n < n_max; n++) {
    int protection = (n % 2 == 0 ? PROT_READ : PROT_NONE);
    mappings[n] = mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mappings[n] == MAP_FAILED) break;
  }
  CHECK(arena_unload(index[1]));
  CHECK((n < n_max) == (_mi_region_all[index[1]].origin == MI_REGION_LOST));
  if (rss_is_meaningful()) CHECK(rss_now() + 15 * MiB <= rss);
  for (size_t i = 0; i < n; i++) munmap(mappings[i], 4096);
  size_t again = reserve(size, true);
  CHECK(again == index[1] && (char*)_mi_region_all[again].base == middle);
  use(again, size / MI_CHUNK_SIZE);
}

// Larger OS pages, or what a system says that does not know, are refused with a message, not used.
static void check_os_pages(void) {
  const size_t good[] = {4096, 16384, 65536}, bad[] = {0, 5000, 131072, SIZE_MAX};
  for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) CHECK(_mi_space_fits_pages(good[i]));
  for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) CHECK(!_mi_space_fits_pages(bad[i]));
}

// Its first and its last byte are in the span, and those beside them are not.
static void check_ends(void) {
  char*     from = (char*)whole->free_chunks;
  uintptr_t in = 0, out = (uintptr_t)1 << (sizeof(void*) == 8 ? 47 : 31); // behind `from`
  while (out - in > 1) {
    uintptr_t middle = in + (out - in) / 2;
    if (_mi_subregion_overlaps(from + middle, 1)) in = middle;
    else out = middle;
  }
  CHECK_EQ(((uintptr_t)from + out) % _mi_prim_os_page_size(), 0);
  CHECK(_mi_subregion_overlaps(from, 1) && !_mi_subregion_overlaps(from - 1, 1));
  CHECK(_mi_subregion_overlaps(from - 8, 9) && !_mi_subregion_overlaps(from - 8, 8));
  CHECK(_mi_subregion_overlaps(from + in, 100) && _mi_subregion_overlaps(from - 8, out + 100));
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // nobody but we
  CHECK(mi_malloc(1) != NULL);
  check_huge_rule();
  check_os_pages();
  if (whole->is_planned) {
    check_free_before_base();
    check_ends();
    check_cover();
    check_open_after_shrinking();
    check_asked_once();
    in_child(&check_neighbour);
    in_child(&check_blocked);
    in_child(&check_table_in_the_way);
    check_one();
    check_many(&r);
    check_alignment();
    check_unmap_fails();
    if (!TEST_SANITIZED) in_child(&check_unmap_at_the_limit);
  }
  else {
    test_skip("the span", "this system has no address space to plan one in");
  }
  check_outside();
  check_as_many();
  check_as_many_given();
  check_unmap_fails_given();
  return check_result();
}
