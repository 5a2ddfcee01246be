// Proves: an arena of the program's memory, whatever it is said to be, hands out its slices as any region does (against a
// map of our own), and never touches what is not its own, not committed, or pinned; at chunk bounds; it is used before our
// own memory, or only by those who name it; near nodes come first; it can be forgotten when nothing in it is used; and what
// overlaps or is too small is refused.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <pthread.h>
#include <sys/wait.h>

#include "../unload.h"
#include "given_memory.h"
#include "slice_model.h"
#include "arena/numa.h"
#include "page/page.h"
#include "prim/prim.h"
#include "support/stat.h"

static const mi_arena_spec_t plain = {true, false, true, true, -1, NULL, NULL};
static const mi_arena_spec_t plain_uncommitted = {false, false, true, true, -1, NULL, NULL};

static mi_arena_spec_t spec_with(bool is_committed, bool is_pinned, bool is_zero, bool is_exclusive) {
  mi_arena_spec_t spec = {is_committed, is_pinned, is_zero, is_exclusive, -1, NULL, NULL};
  return spec;
}

// ---- against the map ------------------------------------------------------------------------------------------------

static void begin_map(const given_t* g, size_t index, const mi_arena_spec_t* spec) {
  region = &_mi_region_all[index];
  arena = index;
  is_bounded = true;
  CHECK_EQ(region->base, (uintptr_t)g->first);
  CHECK_EQ(region->n_usable, g->n_chunks);
  bool is_committed = spec->is_committed || (spec->is_pinned && spec->commit == NULL);
  purged_is_stale = (spec->commit == NULL || !g->says_zero);
  fresh_is_dirty = (is_committed && !spec->is_zero);
  fresh_is_stale = !is_committed && (spec->commit == NULL ? !spec->is_zero : !g->says_zero);
  map_begin();
}

static void end_map(size_t index) {
  purge(SIZE_MAX);
  CHECK_EQ(_mi_chunk_purgeable(), map_elsewhere);
  CHECK(arena_unload(index));
  CHECK(!_mi_arena_exists(index) && !arena_unload(index));
  CHECK_EQ(_mi_chunk_purgeable(), map_elsewhere);
}

static void check_flags(rng_t* r, size_t n_ops, bool is_committed, bool is_pinned, bool is_zero, int commit) {
  static given_t  g;
  mi_arena_spec_t spec = spec_with(is_committed, is_pinned, is_zero, true);
  given_make(&g, 20 + rng_below(r, 12), r, is_committed || (is_pinned && commit == 0), is_zero);
  if (commit != 0) {
    spec.commit = &given_commit;
    spec.commit_arg = &g;
    g.says_zero = (commit == 1);
  }
  int64_t before = _mi_stat_live.committed.current;
  size_t  index = _mi_arena_manage(g.start, g.size, &spec);
  CHECK(index > MI_REGION_HUGE);
  if (index == 0) return;
  begin_map(&g, index, &spec);
  check_random(r, n_ops);
  if (commit != 0) {
    CHECK_EQ(region->committed, given_committed(&g) * MI_SLICE_SIZE);
    CHECK(is_committed || g.n_commits > 0);
  }
  end_map(index);
  if (commit != 0 && !is_pinned) CHECK(g.n_decommits > 0);
  if (commit != 0 && is_pinned) CHECK_EQ(g.n_decommits, 0);
  CHECK_EQ(_mi_stat_live.committed.current, before);
  given_end(&g);
}

static void check_all_flags(rng_t* r) {
  for (int i = 0; i < 24; i++) check_flags(r, 400, (i & 1) != 0, (i & 2) != 0, (i & 4) != 0, i / 8);
  check_flags(r, 10000 * test_scale(), true, false, true, 0);
  check_flags(r, 3000 * test_scale(), false, false, true, 1);
}

// A commit function that refuses now and then: requests fail or are served, and nothing else happens.
static void check_refusals(rng_t* r) {
  static given_t  g;
  mi_arena_spec_t spec = spec_with(false, false, true, true);
  size_t          n_none = 0;
  given_make(&g, 8, r, false, true);
  g.says_zero = true;
  g.refuse_every = 3;
  spec.commit = &given_commit;
  spec.commit_arg = &g;
  size_t index = _mi_arena_manage(g.start, g.size, &spec);
  for (size_t i = 0; i < 500; i++) {
    size_t   n = 1 + rng_below(r, 40);
    mi_run_t run = _mi_slices_alloc(n, 1, MI_REQUEST_MIXED, index);
    if (run.region == NULL) {
      n_none++;
      continue;
    }
    mi_track_writable(_mi_region_slice_start(run.region, run.slice), n * MI_SLICE_SIZE);
    memset(_mi_region_slice_start(run.region, run.slice), 1, n * MI_SLICE_SIZE);
    bool   says_zero = false;
    size_t more = (_mi_slices_extend(run.region, run.slice + n, 2, &says_zero) ? 2 : 0);
    if (more > 0 && says_zero)
      CHECK(is_zero_memory(_mi_region_slice_start(run.region, run.slice + n), 2 * MI_SLICE_SIZE));
    _mi_slices_free(run.region, run.slice, n + more, false);
    if (i % 5 == 0) _mi_purge_slices(SIZE_MAX);
  }
  CHECK(n_none > 20 && n_none < 480 && g.n_refused > n_none / 2);
  CHECK_EQ(_mi_region_all[index].committed, given_committed(&g) * MI_SLICE_SIZE);
  // Who is not bound gets other memory.
  g.refuse_every = 1;
  _mi_purge_slices(SIZE_MAX);
  CHECK(arena_unload(index));
  memset(g.is_committed, false, sizeof(g.is_committed));
  CHECK_EQ(mprotect(g.first, g.n_chunks * MI_CHUNK_SIZE, PROT_NONE), 0);
  spec.is_exclusive = false;
  index = _mi_arena_manage(g.start, g.size, &spec);
  mi_run_t run = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  CHECK(run.region == &_mi_region_all[0]);
  _mi_slices_free(run.region, run.slice, 1, false);
  CHECK(_mi_slices_alloc(1, 1, MI_REQUEST_SMALL, index).region == NULL);
  CHECK(arena_unload(index));
  given_end(&g);
}

// What was committed for a run before the rest of it was refused goes back, too, though nobody has used it.
static void check_refused_in_part(rng_t* r) {
  static given_t  g;
  mi_arena_spec_t spec = spec_with(false, false, true, true);
  given_make(&g, 1, r, false, true);
  g.says_zero = true;
  spec.commit = &given_commit;
  spec.commit_arg = &g;
  size_t       index = _mi_arena_manage(g.start, g.size, &spec);
  mi_region_t* given = &_mi_region_all[index];
  mi_run_t     run = _mi_slices_alloc(MI_CHUNK_SLICES, 1, MI_REQUEST_MIXED, index);
  CHECK(run.region == given);
  // Of the slices behind the first, which stays in use, every third is committed.
  _mi_slices_free(given, run.slice + 1, MI_CHUNK_SLICES - 1, false);
  _mi_purge_slices(SIZE_MAX);
  CHECK_EQ(given_committed(&g), 1);
  for (size_t i = 1; i < MI_CHUNK_SLICES; i++) {
    mi_run_t one = _mi_slices_alloc(1, 1, MI_REQUEST_MIXED, index);
    CHECK_EQ(one.slice, run.slice + i);
  }
  for (size_t i = 1; i < MI_CHUNK_SLICES; i++) {
    if (i % 3 != 0) _mi_slices_free(given, run.slice + i, 1, false);
  }
  _mi_purge_slices(SIZE_MAX);
  for (size_t i = 3; i < MI_CHUNK_SLICES; i += 3) _mi_slices_free(given, run.slice + i, 1, false);
  size_t n_before = given_committed(&g);
  CHECK_EQ(n_before, 11);
  g.refuse_every = g.n_commits + g.n_decommits + g.n_refused + 2; // the third call from now on
  CHECK(_mi_slices_alloc(20, 1, MI_REQUEST_MIXED, index).region == NULL);
  CHECK(g.n_refused == 1 && given_committed(&g) > n_before);
  g.refuse_every = 0;
  CHECK_EQ(given->committed, given_committed(&g) * MI_SLICE_SIZE);
  _mi_purge_slices(SIZE_MAX);
  CHECK_EQ(given_committed(&g), 1);
  _mi_slices_free(given, run.slice, 1, false);
  _mi_purge_slices(SIZE_MAX);
  CHECK_EQ(given_committed(&g), 0);
  CHECK(arena_unload(index));
  given_end(&g);
}

// ---- bounds ---------------------------------------------------------------------------------------------------------

static void check_bounds(rng_t* r) {
  static given_t g;
  for (size_t n = 1; n <= 3; n++) {
    given_make(&g, n, r, true, true);
    size_t index = _mi_arena_manage(g.start, g.size, &plain);
    begin_map(&g, index, &plain);
    size_t all = n * MI_CHUNK_SLICES;
    CHECK_EQ(take(all + 1, 1, MI_CHUNK_MIXED), SIZE_MAX);
    CHECK_EQ(take(all, 1, MI_CHUNK_MIXED), 0);
    CHECK_EQ(take(1, 1, MI_CHUNK_SMALL), SIZE_MAX);
    mi_track_writable(_mi_region_slice_start(region, 0), all * MI_SLICE_SIZE);
    memset(_mi_region_slice_start(region, 0), 1, all * MI_SLICE_SIZE);
    give(0, all, false);
    for (size_t c = 0; c < n; c++) CHECK_EQ(take(MI_CHUNK_SLICES, 1, MI_CHUNK_MIXED), c * MI_CHUNK_SLICES);
    CHECK_EQ(take(1, 1, MI_CHUNK_MIXED), SIZE_MAX);
    if (n == 3) {
      give(MI_CHUNK_SLICES, MI_CHUNK_SLICES, false);
      CHECK_EQ(take(MI_CHUNK_SLICES + 1, 1, MI_CHUNK_MIXED), SIZE_MAX);
      CHECK_EQ(take(MI_CHUNK_SLICES, 1, MI_CHUNK_MIXED), MI_CHUNK_SLICES);
    }
    for (size_t c = 0; c < n; c++) give(c * MI_CHUNK_SLICES, MI_CHUNK_SLICES, false);
    // A run that grows to the end, and no further.
    bool says_zero = true;
    CHECK_EQ(take(1, 1, MI_CHUNK_MIXED), 0);
    CHECK(!_mi_slices_extend(region, 1, all, &says_zero));
    CHECK(_mi_slices_extend(region, 1, all - 1, &says_zero) && !says_zero);
    map_set(1, all - 1, true, MI_CHUNK_MIXED);
    check_all();
    give(0, all, false);
    end_map(index);
    given_end(&g);
  }
}

// Blocks of a little more than half a chunk, pages of every kind: an arena is full when it is, and not when each chunk has
// something.
static void check_to_the_last_slice(rng_t* r) {
  static given_t               g;
  static const mi_chunk_kind_t kinds[] = {MI_CHUNK_SMALL, MI_CHUNK_MEDIUM, MI_CHUNK_MIXED};
  given_make(&g, 4, r, false, true);
  size_t index = _mi_arena_manage(g.start, g.size, &plain_uncommitted);
  begin_map(&g, index, &plain_uncommitted);
  size_t n = 0, slices[8];
  CHECK_EQ(take(5 * MI_CHUNK_SLICES, 1, MI_CHUNK_MIXED), SIZE_MAX);
  CHECK_EQ(region->n_open, 0); // it was not looked for by opening all
  while (n < COUNT_OF(slices) && (slices[n] = take(17, 1, MI_CHUNK_MIXED)) != SIZE_MAX) n++;
  CHECK_EQ(n, 7); // 119 slices of 128
  size_t rest = 0;
  for (size_t i = 0; take(1, 1, kinds[i % COUNT_OF(kinds)]) != SIZE_MAX; i++) rest++;
  CHECK_EQ(rest, 9);
  check_all();
  for (size_t i = 0; i < n; i++) give(slices[i], 17, false);
  for (size_t i = 0; i < 4 * MI_CHUNK_SLICES; i++) {
    if (map_used[i]) give(i, 1, false);
  }
  check_all();
  end_map(index);
  given_end(&g);
}

static size_t manage(void* start, size_t size) {
  return _mi_arena_manage(start, size, &plain);
}

static void check_refused(rng_t* r) {
  static given_t g;
  given_make(&g, 4, r, true, true);
  size_t end = _mi_region_count();
  CHECK_EQ(manage(NULL, 64 * MiB), 0);
  CHECK_EQ(manage(g.first, 0), 0);
  CHECK_EQ(manage(g.first, MI_ARENA_SIZE_MIN - 1), 0);
  CHECK_EQ(manage(g.first + 1, MI_ARENA_SIZE_MIN + MI_ARENA_ALIGN - 2), 0);
  CHECK_EQ(manage(g.first, SIZE_MAX), 0);
  CHECK_EQ(manage((void*)(UINTPTR_MAX - 100), 50), 0);
  // Blocks there would not fit into the word of their page.
  if (sizeof(void*) > 4) {
    CHECK_EQ(manage((void*)(uintptr_t)POWER_OF_TWO(50), 64 * MiB), 0);
    CHECK_EQ(manage((void*)(uintptr_t)(POWER_OF_TWO(48) - 8 * MiB), 64 * MiB), 0);
  }
  // Region 0, all of it or an end, used or not; and a block of ours.
  char* zero = (char*)_mi_region_all[0].base;
  CHECK_EQ(manage(zero, 4 * MiB), 0);
  CHECK_EQ(manage(zero - 4 * MiB, 8 * MiB), 0);
  CHECK_EQ(manage(zero - GiB, POWER_OF_TWO(42)), 0);
  CHECK_EQ(manage(_mi_region_all[0].table, 4 * MiB), 0);
  void* block = mi_malloc(8 * MiB);
  CHECK_EQ(manage(block, 8 * MiB), 0);
  mi_free(block);
  CHECK_EQ(_mi_region_count(), end);
  // What is managed already, and what describes that.
  size_t index = manage(g.first, 2 * MI_CHUNK_SIZE);
  CHECK(index != 0);
  CHECK_EQ(manage(g.first, 2 * MI_CHUNK_SIZE), 0);
  CHECK_EQ(manage(g.first + MI_CHUNK_SIZE, 2 * MI_CHUNK_SIZE), 0);
  CHECK_EQ(manage(g.first - 3 * MI_SLICE_SIZE, MI_CHUNK_SIZE + 3 * MI_SLICE_SIZE), 0);
  CHECK_EQ(manage((char*)_mi_region_all[index].table - MiB, 4 * MiB), 0);
  // Its neighbour is free to have, and so is it when it is forgotten.
  size_t next = manage(g.first + 2 * MI_CHUNK_SIZE, MI_CHUNK_SIZE);
  CHECK(next != 0 && next != index);
  CHECK(arena_unload(index));
  CHECK_EQ(manage(g.first, 2 * MI_CHUNK_SIZE), index);
  CHECK(arena_unload(index) && arena_unload(next));
  given_end(&g);
}

// ---- who gets what --------------------------------------------------------------------------------------------------

static mi_run_t run_of(size_t n, mi_request_t request, size_t from) {
  return _mi_slices_alloc(n, 1, request, from);
}

static size_t index_of_run(mi_run_t run) {
  return run.region == NULL ? SIZE_MAX : _mi_region_index(run.region);
}

static void free_run(mi_run_t run) {
  if (run.region != NULL) _mi_slices_free(run.region, run.slice, run.n_slices, false);
}

// Arenas that are for all come before our own memory, and that comes when they are full; but not for our own data, and not
// if the program does not want it.
static void check_shared(rng_t* r) {
  static const mi_request_t requests[] = {MI_REQUEST_SMALL, MI_REQUEST_MEDIUM, MI_REQUEST_MIXED, MI_REQUEST_HUGE};
  static given_t            g;
  mi_arena_spec_t           spec = spec_with(true, false, true, false);
  mi_run_t                  runs[COUNT_OF(requests)];
  given_make(&g, COUNT_OF(requests) - 1, r, true, true); // small and pages in huge-page chunks share a chunk
  free_run(run_of(4, MI_REQUEST_MIXED, MI_ARENA_ANY));   // region 0 has backed and free memory
  size_t   index = _mi_arena_manage(g.start, g.size, &spec);
  mi_run_t meta = run_of(1, MI_REQUEST_META, MI_ARENA_ANY);
  CHECK_EQ(index_of_run(meta), 0);
  free_run(meta);
  for (size_t i = 0; i < COUNT_OF(requests); i++) {
    runs[i] = run_of(4, requests[i], MI_ARENA_ANY);
    CHECK_EQ(index_of_run(runs[i]), index);
    CHECK(_mi_region_search(_mi_region_slice_start(runs[i].region, runs[i].slice)) == runs[i].region);
  }
  mi_option_set(mi_option_disallow_arena_alloc, 1);
  mi_run_t other = run_of(1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  CHECK(index_of_run(other) <= MI_REGION_HUGE);
  free_run(other);
  other = run_of(1, MI_REQUEST_SMALL, index);
  CHECK_EQ(index_of_run(other), index);
  free_run(other);
  mi_option_set(mi_option_disallow_arena_alloc, 0);
  mi_run_t large = run_of(MI_CHUNK_SLICES, MI_REQUEST_MIXED, MI_ARENA_ANY); // there is no room
  CHECK_EQ(index_of_run(large), 0);
  CHECK_EQ(index_of_run(run_of(MI_CHUNK_SLICES, MI_REQUEST_MIXED, index)), SIZE_MAX);
  free_run(large);
  CHECK(!arena_unload(index));
  for (size_t i = 0; i < COUNT_OF(requests); i++) free_run(runs[i]);
  CHECK(arena_unload(index));
  given_end(&g);
}

// Blocks of all sizes, freed and allocated again: not one lies in an arena that is exclusive, all that fit in one that is
// not, and both kinds of memory keep what is written.
static void check_blocks(rng_t* r) {
  enum { n_blocks = 600 };
  static given_t  shared, exclusive;
  static void*    blocks[n_blocks];
  static size_t   sizes[n_blocks];
  mi_arena_spec_t spec = spec_with(true, false, true, false);
  size_t          n_shared = 0;
  given_make(&shared, 12, r, true, true);
  given_make(&exclusive, 4, r, true, true);
  size_t own = _mi_arena_manage(exclusive.start, exclusive.size, &plain);
  CHECK_EQ(_mi_space_n_shared, 0); // nobody looks for one
  size_t index = _mi_arena_manage(shared.start, shared.size, &spec);
  memset(blocks, 0, sizeof(blocks));
  for (size_t i = 0; i < 20000 * test_scale(); i++) {
    size_t k = rng_below(r, n_blocks);
    if (blocks[k] != NULL) {
      CHECK_EQ(pattern_check(blocks[k], sizes[k], k), sizes[k]);
      mi_free(blocks[k]);
    }
    sizes[k] = rng_size(r, i % 64 == 0 ? 4 * MiB : 20 * KiB);
    blocks[k] = mi_malloc(sizes[k]);
    pattern_fill(blocks[k], 0, sizes[k], k);
    const mi_page_t* page = _mi_page_of(blocks[k]);
    CHECK(page != NULL && page->region != own);
    n_shared += (page != NULL && page->region == index);
  }
  CHECK(n_shared > 100);
  CHECK_EQ(_mi_region_all[own].n_used, 0);
  for (size_t k = 0; k < n_blocks; k++) {
    if (blocks[k] != NULL) CHECK_EQ(pattern_check(blocks[k], sizes[k], k), sizes[k]);
    mi_free(blocks[k]);
  }
  mi_collect(true);
  CHECK(arena_unload(own));
  CHECK(arena_unload(index)); // no page of this thread is left in it
  given_end(&shared);
  given_end(&exclusive);
}

static void check_nodes(rng_t* r) {
  static given_t   memory[3];
  static const int nodes[3] = {2, -1, 0};
  size_t           index[3];
  mi_option_set(mi_option_use_numa_nodes, 3);
  CHECK_EQ(_mi_numa_node_count(), 3);
  CHECK_EQ(_mi_arena_near(-1), MI_ARENA_ANY);
  CHECK_EQ(_mi_arena_near(5), MI_ARENA_NEAR(2));
  for (size_t i = 0; i < 3; i++) {
    given_make(&memory[i], 1, r, true, true);
    mi_arena_spec_t spec = spec_with(true, false, true, false);
    spec.numa_node = nodes[i];
    index[i] = _mi_arena_manage(memory[i].start, memory[i].size, &spec);
  }
  static const size_t orders[3][4] = {
      {2, 1, 0, 3}, {1, 0, 2, 3}, {0, 1, 2, 3}}; // by near node: which of the three, then ours
  for (size_t node = 0; node <= 3; node++) {
    size_t   from = (node < 3 ? _mi_arena_near((int)node) : MI_ARENA_ANY);
    size_t   here = (node < 3 ? node : _mi_numa_node());
    mi_run_t runs[4];
    for (size_t i = 0; i < 4; i++) {
      runs[i] = run_of(MI_CHUNK_SLICES, MI_REQUEST_MIXED, from);
      size_t want = orders[here][i];
      CHECK_EQ(index_of_run(runs[i]), want == 3 ? 0 : index[want]);
    }
    for (size_t i = 0; i < 4; i++) free_run(runs[i]);
  }
  for (size_t i = 0; i < 3; i++) {
    CHECK(arena_unload(index[i]));
    given_end(&memory[i]);
  }
  CHECK_EQ(_mi_space_n_shared, 0);
  CHECK_EQ(_mi_space_n_bound, 0);
  mi_option_set(mi_option_use_numa_nodes, 0);
}

// ---- what must not happen to memory ---------------------------------------------------------------------------------

// Free memory that is pinned keeps its contents and its OS pages, whatever is purged.
static void check_pinned(rng_t* r) {
  static given_t  g;
  unsigned char   resident[4 * MI_CHUNK_SIZE / 4096];
  mi_arena_spec_t spec = spec_with(true, true, false, false);
  given_make(&g, 4, r, true, false);
  mi_collect(true);
  size_t index = _mi_arena_manage(g.start, g.size, &spec);
  char*  p = (char*)mi_malloc(7 * MiB);
  CHECK_EQ(_mi_page_of(p)->region, index);
  mi_arena_info_t info;
  CHECK(_mi_arena_get_info(index, &info) && info.is_pinned && info.is_given && !info.is_large);
  memset(p, 0x5A, 7 * MiB);
  mi_free(p);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  // What is purged lies behind it, so that it is come across.
  static given_t other;
  given_make(&other, 1, r, true, true);
  size_t behind = _mi_arena_manage(other.start, other.size, &plain);
  free_run(run_of(5, MI_REQUEST_MIXED, behind));
  CHECK(behind > index && _mi_chunk_purgeable() == 5);
  mi_collect(true);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  CHECK(arena_unload(behind));
  given_end(&other);
  CHECK(is_filled(p, 7 * MiB, 0x5A));
  CHECK_EQ(mincore(g.first, sizeof(resident) * 4096, resident), 0);
  for (size_t i = 0; i < sizeof(resident); i++) CHECK_FOR((resident[i] & 1) != 0, "OS page %zu", i);
  char* q = (char*)mi_calloc(1, 7 * MiB); // and yet
  CHECK_EQ(_mi_page_of(q)->region, index);
  CHECK(is_zero(q, 0, 7 * MiB));
  mi_free(q);
  CHECK(arena_unload(index));
  given_end(&g);
}

// A large block that grows out of shared memory is copied: the program's mapping stays what it is.
static void check_mapping_stays(void) {
  const size_t size = 64 * MiB;
  int          fd = memfd_create("arena", 0);
  CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
  char*           start = (char*)mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  mi_arena_spec_t spec = spec_with(true, false, true, false);
  size_t          index = _mi_arena_manage(start, size, &spec);
  CHECK(start != MAP_FAILED && index != 0);
  size_t mappings = mapping_count();
  char*  in = (char*)mi_malloc(20 * MiB);
  memset(in, 1, 20 * MiB);
  char* wall = (char*)mi_malloc(20 * MiB); // what is behind it is not free
  CHECK(_mi_page_of(in)->region == index && _mi_page_of(wall)->region == index);
  char* out = (char*)mi_realloc(in, 30 * MiB); // to region 0
  CHECK(_mi_page_of(out)->region == 0 && is_filled(out, 20 * MiB, 1));
  memset(out, 2, 30 * MiB);
  mi_free(wall);
  char* barrier = (char*)mi_malloc(MiB);
  char* back = (char*)mi_realloc(out, 40 * MiB);
  CHECK(is_filled(back, 30 * MiB, 2));
  mi_free(barrier);
  // And from our memory into the program's.
  mi_option_set(mi_option_disallow_arena_alloc, 1);
  char* ours = (char*)mi_malloc(16 * MiB);
  char* ours_wall = (char*)mi_malloc(16 * MiB);
  mi_option_set(mi_option_disallow_arena_alloc, 0);
  memset(ours, 3, 16 * MiB);
  mi_free(back);
  char* moved = (char*)mi_realloc(ours, 20 * MiB);
  CHECK(_mi_page_of(moved)->region == index && is_filled(moved, 16 * MiB, 3));
  memset(moved, 4, 20 * MiB);
  char byte = 0;
  CHECK(pread(fd, &byte, 1, (off_t)(moved - start)) == 1 && byte == 4);
  CHECK(pread(fd, &byte, 1, (off_t)(moved - start) + 20 * (off_t)MiB - 1) == 1 && byte == 4);
  mi_free(moved);
  mi_free(ours_wall);
  mi_collect(true);
  // Purged, but the system keeps the contents of such memory: it is not taken for zero.
  char* again = (char*)mi_calloc(1, 20 * MiB);
  CHECK(_mi_page_of(again)->region == index && is_zero(again, 0, 20 * MiB));
  mi_free(again);
  CHECK(MI_TSAN || mapping_count() <= mappings + 4); // ThreadSanitizer maps memory when it wants to
  CHECK(arena_unload(index));
  munmap(start, size);
  close(fd);
}

// With purge_decommits off the system takes memory when it likes, so it may still hold what was there.
static void check_discard(void) {
  int64_t before = _mi_prim_calls.n_discarded;
  mi_option_set(mi_option_purge_decommits, 0);
  char* p = (char*)mi_malloc(24 * MiB); // more would have a mapping of its own
  memset(p, 7, 24 * MiB);
  mi_free(p);
  mi_collect(true);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  CHECK(_mi_prim_calls.n_discarded - before >= (int64_t)(24 * MiB));
  mi_run_t run = run_of(24 * MiB / MI_SLICE_SIZE, MI_REQUEST_MIXED, MI_ARENA_ANY);
  CHECK(!run.is_zero);
  free_run(run);
  p = (char*)mi_calloc(1, 24 * MiB);
  CHECK(is_zero(p, 0, 24 * MiB));
  mi_free(p);
  mi_option_set(mi_option_purge_decommits, 1);
  mi_collect(true);
  run = run_of(24 * MiB / MI_SLICE_SIZE, MI_REQUEST_MIXED, MI_ARENA_ANY);
  CHECK(run.is_zero); // now it is known
  CHECK(is_zero_memory(_mi_region_slice_start(run.region, run.slice), 24 * MiB));
  free_run(run);
}

// Without memory of the system's there is what is open already, and what the program brings.
static void check_disallow(rng_t* r) {
  static given_t  g;
  static mi_run_t runs[4096];
  size_t          n = 0, open = _mi_region_all[0].n_open;
  mi_arena_spec_t spec = spec_with(true, false, true, false);
  mi_option_set(mi_option_disallow_os_alloc, 1);
  while (n < COUNT_OF(runs) && (runs[n] = run_of(8, MI_REQUEST_MIXED, MI_ARENA_ANY)).region != NULL) n++;
  CHECK(n > 0 && n < COUNT_OF(runs));
  CHECK_EQ(_mi_region_all[0].n_open, open);
  errno = 0;
  CHECK(mi_malloc(400 * MiB) == NULL && errno == ENOMEM);
  CHECK(mi_malloc(hidden(POWER_OF_TWO(39))) == NULL && mi_malloc_aligned(1, 64 * MiB) == NULL);
  given_make(&g, 2, r, true, true);
  size_t index = _mi_arena_manage(g.start, g.size, &spec);
  void*  p = mi_malloc(MiB);
  CHECK(p != NULL && _mi_page_of(p)->region == index);
  mi_free(p);
  mi_collect(true);
  CHECK(arena_unload(index));
  mi_option_set(mi_option_disallow_os_alloc, 0);
  while (n > 0) free_run(runs[--n]);
  given_end(&g);
}

// ---- threads and processes ------------------------------------------------------------------------------------------

static bool stop; // atomically

static void* allocate_all_the_time(void* arg) {
  rng_t r = rng_make((uint64_t)(uintptr_t)arg);
  void* blocks[64] = {NULL};
  while (!__atomic_load_n(&stop, __ATOMIC_RELAXED)) {
    size_t k = rng_below(&r, COUNT_OF(blocks));
    size_t size = rng_size(&r, rng_below(&r, 16) == 0 ? 3 * MiB : 9000);
    mi_free(blocks[k]);
    blocks[k] = mi_malloc(size);
    if (blocks[k] != NULL && size > 0) ((char*)blocks[k])[size - 1] = (char)k;
  }
  for (size_t k = 0; k < COUNT_OF(blocks); k++) mi_free(blocks[k]);
  return NULL;
}

// Arenas come and go while threads allocate in them, memory is purged, and somebody looks.
static void check_threads(rng_t* r) {
  enum { n_threads = 3, n_arenas = 4 };
  static given_t  memory[n_arenas];
  size_t          index[n_arenas];
  pthread_t       threads[n_threads];
  mi_arena_info_t info;
  size_t          n_unloaded = 0;
  __atomic_store_n(&stop, false, __ATOMIC_RELAXED);
  for (size_t i = 0; i < n_arenas; i++) {
    given_make(&memory[i], 2 + i, r, i % 2 == 0, true);
    index[i] = 0;
  }
  for (size_t i = 0; i < n_threads; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, &allocate_all_the_time, (void*)(uintptr_t)(i + 1)), 0);
  for (size_t i = 0; i < 400 * test_scale(); i++) {
    size_t k = rng_below(r, n_arenas);
    if (index[k] == 0) {
      mi_arena_spec_t spec = spec_with(k % 2 == 0, false, true, k == 3);
      index[k] = _mi_arena_manage(memory[k].start, memory[k].size, &spec);
      CHECK(index[k] != 0);
    }
    else if (arena_unload(index[k])) {
      index[k] = 0;
      n_unloaded++;
    }
    _mi_arena_get_info(rng_below(r, 8), &info);
    if (i % 16 == 0) _mi_purge_slices(SIZE_MAX);
    sleep_ms(1);
  }
  __atomic_store_n(&stop, true, __ATOMIC_RELAXED);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  mi_collect(true);
  for (size_t i = 0; i < n_arenas; i++) {
    if (index[i] != 0) CHECK(arena_unload(index[i]));
    given_end(&memory[i]);
  }
  CHECK(n_unloaded > 10);
}

static void check_fork(rng_t* r) {
  static given_t  g;
  mi_arena_spec_t spec = spec_with(true, false, true, false);
  given_make(&g, 4, r, true, true);
  size_t index = _mi_arena_manage(g.start, g.size, &spec);
  char*  p = (char*)mi_malloc(3 * MiB);
  CHECK_EQ(_mi_page_of(p)->region, index);
  memset(p, 9, 3 * MiB);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    bool  ok = is_filled(p, 3 * MiB, 9);
    char* q = (char*)mi_malloc(2 * MiB);
    ok = ok && q != NULL && _mi_page_of(q)->region == index && !arena_unload(index);
    mi_free(q);
    mi_free(p);
    mi_collect(true);
    _exit(ok && arena_unload(index) ? 0 : 1);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
  CHECK(is_filled(p, 3 * MiB, 9));
  mi_free(p);
  mi_collect(true);
  CHECK(arena_unload(index));
  given_end(&g);
}

// Huge OS pages that an option asks for are asked of the system, on one node or on all; and there are usually none.
static void check_huge_option(long node) {
  int64_t n_before = mi_load_relaxed(&_mi_prim_calls.map);
  mi_option_set(mi_option_reserve_huge_os_pages, 1);
  mi_option_set(mi_option_reserve_huge_os_pages_at, node);
  _mi_arena_init_options();
  mi_option_set(mi_option_reserve_huge_os_pages, 0);
  CHECK_FOR(mi_load_relaxed(&_mi_prim_calls.map) > n_before, "node %ld", node);
}

// Regions of our own are neither large nor given nor arenas.
static void check_info_of_own(void) {
  mi_arena_info_t info;
  CHECK(_mi_arena_get_info(0, &info));
  CHECK(!info.is_large && !info.is_given && !info.is_arena && !info.is_pinned && !info.is_exclusive);
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1); // nobody but we
  CHECK(mi_malloc(1) != NULL);
  check_all_flags(&r);
  check_refusals(&r);
  check_refused_in_part(&r);
  check_bounds(&r);
  check_to_the_last_slice(&r);
  check_refused(&r);
  check_shared(&r);
  check_blocks(&r);
  check_nodes(&r);
  check_threads(&r);
  check_info_of_own();
  if (!MI_HARDENED) { // large blocks are guarded then, in memory that is never the program's
    check_pinned(&r);
    check_mapping_stays();
    check_huge_option(-1);
    check_huge_option(0);
    check_discard();
    check_disallow(&r);
    check_fork(&r);
  }
  return check_result();
}
