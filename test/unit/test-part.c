// Proves: an arena that we reserve lies in region 0, where the fast paths find it, aligned as asked, beside no other; what
// does not fit there has address space of its own; giving arenas back leaves nothing behind, in whatever order; there are
// as many as descriptors can tell apart, and the next is refused.
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/arena.h"
#include "base/track.h"
#include "mimalloc.h"
#include "page/page.h"
#include "support/stat.h"

static mi_region_t* const whole = &_mi_regions[0];

static size_t reserve(size_t size, bool commit) {
  size_t index = 0;
  int    err = _mi_arena_reserve(size, commit, false, true, &index);
  CHECK_EQ(err, index == 0 ? ENOMEM : 0);
  return index;
}

static bool is_part(size_t index) {
  const mi_region_t* region = &_mi_regions[index];
  return region->origin == MI_REGION_PART && region->base - whole->base < whole->n_chunks * MI_CHUNK_SIZE;
}

static size_t first_chunk(size_t index) {
  return (_mi_regions[index].base - whole->base) / MI_CHUNK_SIZE;
}

// All of it can be used, is zero, and is found by the fast path's arithmetic.
static void use(size_t index, size_t n_chunks) {
  mi_region_t* region = &_mi_regions[index];
  mi_run_t     run = _mi_slices_alloc(n_chunks * MI_CHUNK_SLICES, 1, MI_CHUNK_MIXED, index);
  CHECK(run.region == region && run.slice == 0 && run.is_zero);
  CHECK(_mi_slices_alloc(1, 1, MI_CHUNK_SMALL, index).region == NULL);
  char* start = _mi_region_slice_start(region, 0);
  mi_track_readable(start, n_chunks * MI_CHUNK_SIZE); // slices without blocks are out of bounds to tools
  for (size_t i = 0; i < n_chunks * MI_CHUNK_SIZE; i += MI_SLICE_SIZE / 2) {
    CHECK_FOR(start[i] == 0, "byte %zu", i);
    start[i] = (char)0xA5;
    CHECK(_mi_page_at(start + i) == (mi_page_t*)_mi_region_descriptor(region, i / MI_SLICE_SIZE));
  }
  CHECK(_mi_region_open_owners(region));
  char* owner = (char*)_mi_region_owner(region, n_chunks * MI_CHUNK_SLICES - 1);
  CHECK(is_zero(_mi_region_owner(region, 0), 0, MI_OWNER_SIZE) && is_zero(owner, 0, MI_OWNER_SIZE));
  memset(_mi_region_owner(region, 0), 1, MI_OWNER_SIZE);
  memset(owner, 1, MI_OWNER_SIZE);
  _mi_slices_free(region, 0, run.n_slices, false);
}

static void check_limit(void) {
  size_t lowest = whole->n_chunks;
  for (size_t i = MI_REGION_DENSE + 1; i < _mi_region_count(); i++) {
    if (_mi_regions[i].base != 0 && is_part(i) && first_chunk(i) / 64 * 64 < lowest) lowest = first_chunk(i) / 64 * 64;
  }
  CHECK_EQ(whole->n_usable, lowest);
  CHECK(whole->n_open <= whole->n_usable);
}

static void check_one(void) {
  int64_t committed = _mi_stats.committed.current;
  size_t  index = reserve(10 * MiB + 1, false);
  CHECK(is_part(index));
  CHECK_EQ(_mi_regions[index].n_usable, 6);
  CHECK_EQ(_mi_regions[index].n_open, 0);
  check_limit();
  use(index, 6);
  CHECK_EQ(_mi_stats.committed.current - committed, (int64_t)(12 * MiB));
  CHECK(_mi_arena_unload(index));
  CHECK_EQ(_mi_stats.committed.current, committed);
  check_limit();
  // Committed at once, in the same place, and again zero.
  size_t again = reserve(12 * MiB, true);
  CHECK_EQ(again, index);
  CHECK_EQ(_mi_regions[index].n_open, 6);
  CHECK_EQ(_mi_stats.committed.current - committed, (int64_t)(12 * MiB));
  use(again, 6);
  CHECK(_mi_arena_unload(again));
  CHECK_EQ(_mi_stats.committed.current, committed);
  CHECK_EQ(whole->n_usable, whole->n_chunks);
}

// Reserved and given back in any order: no two meet, and holes are used again.
static void check_many(rng_t* r) {
  enum { n_max = 40 };
  size_t index[n_max], size[n_max], n = 0, lowest = whole->n_chunks;
  for (size_t i = 0; i < 1000 * test_scale(); i++) {
    if (n < n_max && rng_below(r, 5) < 3) {
      size[n] = 1 + rng_below(r, rng_below(r, 4) == 0 ? 300 : 20);
      index[n] = reserve(size[n] * MI_CHUNK_SIZE, false);
      CHECK(is_part(index[n]));
      for (size_t k = 0; k < n; k++) {
        size_t a = first_chunk(index[n]), b = first_chunk(index[k]);
        CHECK_FOR(a / 64 > (b + size[k] - 1) / 64 || b / 64 > (a + size[n] - 1) / 64, "%zu and %zu", a, b);
      }
      if (size[n] <= 20 && i % 8 == 0) use(index[n], size[n]);
      if (first_chunk(index[n]) < lowest) lowest = first_chunk(index[n]);
      n++;
    }
    else if (n > 0) {
      size_t k = rng_below(r, n);
      CHECK(_mi_arena_unload(index[k]));
      index[k] = index[--n];
      size[k] = size[n];
    }
    check_limit();
  }
  CHECK_FOR(whole->n_chunks - lowest <= n_max * 320 * 2, "%zu chunks", whole->n_chunks - lowest);
  while (n > 0) CHECK(_mi_arena_unload(index[--n]));
  check_limit();
  CHECK_EQ(whole->n_usable, whole->n_chunks);
}

static void check_alignment(void) {
  size_t index[3];
  for (size_t i = 0; i < COUNT_OF(index); i++) {
    _mi_lock_acquire(&_mi_arena_lock);
    mi_region_t* region = _mi_region_add_reserved(GiB + i * 20 * MiB, GiB);
    CHECK(region != NULL && region->base % GiB == 0);
    _mi_region_start(region, region->n_chunks);
    _mi_lock_release(&_mi_arena_lock);
    index[i] = _mi_region_index(region);
    CHECK(is_part(index[i]));
    check_limit();
    mi_run_t run = _mi_slices_alloc(1, 1, MI_CHUNK_SMALL, index[i]); // its bits are its own
    CHECK(run.region == region && run.slice == 0);
    _mi_slices_free(region, 0, 1, false);
  }
  for (size_t i = 0; i < COUNT_OF(index); i++) CHECK(_mi_arena_unload(index[i]));
  CHECK_EQ(whole->n_usable, whole->n_chunks);
}

// More than half of what region 0 hands out is not taken from it.
static void check_outside(void) {
  size_t mappings = mapping_count();
  size_t size = whole->n_chunks / 2 * MI_CHUNK_SIZE + MI_CHUNK_SIZE;
  size_t index = reserve(size, false);
  CHECK(index != 0 && _mi_regions[index].origin == MI_REGION_RESERVED);
  CHECK_EQ(whole->n_usable, whole->n_chunks);
  mi_run_t run = _mi_slices_alloc(MI_CHUNK_SLICES, 1, MI_CHUNK_MIXED, index);
  char*    p = _mi_region_slice_start(run.region, run.slice);
  mi_track_readable(p, MI_CHUNK_SIZE);
  CHECK(_mi_region_search(p) == &_mi_regions[index] && _mi_region_search(p + size) != &_mi_regions[index]);
  memset(p, 1, MI_CHUNK_SIZE);
  CHECK(!_mi_arena_unload(index));
  _mi_slices_free(run.region, run.slice, run.n_slices, false);
  CHECK(_mi_arena_unload(index));
  CHECK(_mi_region_search(p) == NULL);
  if (!TEST_TSAN) CHECK(mapping_count() <= mappings + 1); // it keeps the shadow of what was touched
  CHECK_EQ(reserve((size_t)1 << 47, false), 0);
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
    mi_page_t* page = _mi_page_at((void*)_mi_regions[index[n - 1]].base);
    CHECK(page == (mi_page_t*)(void*)_mi_regions[index[n - 1]].table);
    mi_run_t run = _mi_slices_alloc(20, 1, MI_CHUNK_MIXED, index[n - 1]);
    page = _mi_page_new_large(run, 0, 0);
    CHECK(_mi_page_region(page) == run.region && _mi_page_start(page) == (char*)run.region->base);
    _mi_page_delete_large(page);
    _mi_slices_free(run.region, run.slice, run.n_slices, false);
    while (n > 0) CHECK(_mi_arena_unload(index[--n]));
    check_limit();
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
      mi_run_t run = _mi_slices_alloc(1, 1, MI_CHUNK_SMALL, index[n]);
      CHECK(_mi_region_search(_mi_region_slice_start(run.region, run.slice)) == run.region);
      _mi_slices_free(run.region, run.slice, 1, false);
      n++;
    }
    if (round == 0) n_first = n;
    CHECK(n == n_first && n >= 250);
    for (size_t i = 0; i < n; i++) CHECK(_mi_region_search(memory + i * MI_CHUNK_SIZE) == &_mi_regions[index[i]]);
    while (n > 0) CHECK(_mi_arena_unload(index[--n]));
    if (round == 0) mappings = mapping_count();
  }
  CHECK(mapping_count() <= mappings);
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // nobody but we
  CHECK(mi_malloc(1) != NULL);
  check_one();
  check_many(&r);
  check_alignment();
  check_outside();
  check_as_many();
  check_as_many_given();
  return check_result();
}
