// Proves: whichever request to the system fails while arenas are reserved, brought, used, purged and given up, the caller is
// told, and nothing else happens: what is there keeps its contents, nothing stays counted, and at most the address space
// of one arena is lost for each failure that makes it uncertain whose it is.
//
// A discard that is refused becomes a purge.
//
// A script runs with the n-th call failing, for n = 1, 2, ... until a run meets no failure; then with all from the n-th on.
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "../unload.h"
#include "../os_pages.h"
#include "arena/hole.h"
#include "base/track.h"
#include "mimalloc.h"
#include "page/page.h"
#include "support/stat.h"

static size_t n_done, n_refused; // in a run

static bool is_told(bool ok) {
  n_done += ok;
  n_refused += !ok;
  return ok;
}

// Uses what an arena gives, up to so many slices, and gives it back.
static void use(size_t index, size_t n) {
  mi_run_t run = _mi_slices_alloc(n, 1, MI_REQUEST_MIXED, index);
  if (!is_told(run.region != NULL)) return;
  CHECK_EQ(_mi_region_index(run.region), index);
  char* p = _mi_region_slice_start(run.region, run.slice);
  mi_track_readable(p, n * MI_SLICE_SIZE); // slices without blocks are out of bounds to tools
  for (size_t i = 0; i < n; i++) {
    if (run.is_zero) CHECK(is_zero(p + i * MI_SLICE_SIZE, 0, 4096));
    memset(p + i * MI_SLICE_SIZE, (int)i, 4096);
  }
  bool   says_zero = false;
  size_t more = (is_told(_mi_slices_extend(run.region, run.slice + n, 3, &says_zero)) ? 3 : 0);
  mi_track_writable(p + n * MI_SLICE_SIZE, more * MI_SLICE_SIZE);
  if (more > 0) memset(p + n * MI_SLICE_SIZE, 1, more * MI_SLICE_SIZE);
  is_told(_mi_space_open_heap_links(run.region));
  for (size_t i = 0; i < n; i++) CHECK_FOR(p[i * MI_SLICE_SIZE + 4095] == (char)i, "slice %zu", i);
  _mi_slices_free(run.region, run.slice, n + more, false);
  _mi_purge_slices(SIZE_MAX);
}

static void end_arena(size_t index) {
  if (index == 0) return;
  CHECK(arena_unload(index)); // the program is rid of it in any case
  CHECK(!_mi_arena_exists(index));
}

static void reserve(size_t size, bool commit, bool allow_large) {
  size_t index = 77;
  int    err = _mi_arena_reserve(size, commit, allow_large, true, &index);
  CHECK(is_told(err == 0) ? index != 0 && _mi_arena_exists(index) : err == ENOMEM && index == 0);
  if (err != 0) return;
  CHECK_EQ(_mi_region_all[index].n_open, commit ? _mi_region_all[index].n_usable : 0);
  use(index, 40);
  use(index, 90);
  end_arena(index);
}

static void reserve_huge(void) {
  size_t index = 77, got = 77;
  int    err = _mi_arena_reserve_huge(2, 0, 0, true, &index, &got);
  CHECK(is_told(err == 0) ? index != 0 && got > 0 : err == ENOMEM && index == 0 && got == 0);
  if (err == 0) use(index, 1000);
  end_arena(index);
}

static void bring(bool is_committed) {
  const size_t    size = 8 * MiB;
  mi_arena_spec_t spec = {is_committed, false, true, true, -1, NULL, NULL};
  char*           p = (char*)mmap(NULL, size, is_committed ? PROT_READ | PROT_WRITE : PROT_NONE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(p != (char*)MAP_FAILED);
  size_t index = _mi_arena_manage(p, size, &spec);
  if (is_told(index != 0)) {
    use(index, 40);
    use(index, 60);
    end_arena(index);
  }
  CHECK_EQ(munmap(p, size), 0); // still ours
}

static void script(void) {
  reserve(10 * MiB, true, false);
  reserve(30 * MiB, false, false);
  reserve(10 * MiB, false, true);
  bring(true);
  bring(false);
  mi_option_set(mi_option_purge_decommits, 0);
  bring(true);
  mi_option_set(mi_option_purge_decommits, 1);
}

static size_t count_lost(void) {
  size_t n = 0;
  for (size_t i = 0; i < _mi_region_count(); i++) n += (_mi_region_all[i].origin == MI_REGION_LOST);
  return n;
}

// What is committed but for our own memory, which may grow.
static int64_t committed_in_arenas(void) {
  int64_t sum = _mi_stat_live.committed.current;
  for (size_t i = 0; i <= MI_REGION_HUGE; i++) sum -= (int64_t)_mi_region_all[i].committed;
  return sum;
}

// The same for what is reserved: bands are as large as they are open.
static int64_t reserved_in_arenas(void) {
  int64_t sum = _mi_stat_live.reserved.current;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    if (_mi_region_all[i].is_planned) sum -= (int64_t)_mi_region_all[i].reserved_size;
  }
  return sum;
}

static void check_script(void (*script)(void), bool repeat, const char* name) {
  size_t  n_calls = 0, n_runs = 0, n_refused_runs = 0, mappings = 0, space = 0;
  int64_t reserved = reserved_in_arenas();
  char*   witness = (char*)mi_malloc(5 * MiB);
  memset(witness, 0x77, 5 * MiB);
  n_refused = 0;
  script();
  size_t n_usual = n_refused; // the system may have no huge OS pages
  for (size_t n = 1; n == 1 || n_calls >= n - 1; n++) {
    size_t lost = count_lost();
    n_done = n_refused = 0;
    _mi_prim_fail_nth(n, repeat);
    script();
    n_calls = _mi_prim_fail_nth(0, false);
    n_refused_runs += (n_refused > n_usual);
    n_runs++;
    CHECK_FOR(count_lost() <= lost + (repeat ? 8 : 1), "call %zu failing: %zu lost", n, count_lost() - lost);
    // With the system willing again everything works.
    n_refused = 0;
    script();
    // ... but memory that the system has put where an arena was lost cannot be had.
    CHECK(n_refused == n_usual || (count_lost() > 0 && n_refused <= n_usual + 3));
    _mi_purge_slices(SIZE_MAX);
    CHECK_EQ(_mi_chunk_purgeable(), 0);
    CHECK_EQ(reserved_in_arenas(), reserved);
    CHECK_EQ(committed_in_arenas(), 0);
    for (size_t i = 0; i < 5 * MiB; i += 4096) CHECK(witness[i] == 0x77);
    if (n == 2) {
      mappings = mapping_count();
      space = proc_bytes("/proc/self/status", "\nVmSize:");
    }
  }
  mi_free(witness);
  printf("%s, %s: %zu runs, %zu with refusals, %zu lost\n", name, repeat ? "all from the n-th" : "n-th", n_runs,
         n_refused_runs, count_lost());
  CHECK(n_runs > (n_usual > 0 ? 2 : 5) && n_refused_runs > (n_usual > 0 ? 0 : 3));
  CHECK(mapping_count() <= mappings + 8 * count_lost() + 10);
  // Address space that is not given back would go on in one mapping with its neighbours.
  if (!repeat && !TEST_SANITIZED) CHECK(proc_bytes("/proc/self/status", "\nVmSize:") <= space + 16 * KiB);
}

// A part of a slice in use goes back also if the program prefers that the system takes it when it likes, and the system refuses that.
static void check_discard(void) {
  mi_run_t run = _mi_slices_alloc(1, 1, MI_REQUEST_SMALL, MI_ARENA_ANY);
  char*    p = _mi_region_slice_start(run.region, run.slice);
  mi_track_writable(p, MI_SLICE_SIZE);
  memset(p, 1, MI_SLICE_SIZE);
  mi_option_set(mi_option_purge_decommits, 0);
  _mi_prim_fail_nth(1, false);
  CHECK(_mi_hole_give(run.region, run.slice, p, MI_SLICE_SIZE));
  CHECK_EQ(_mi_prim_fail_nth(0, false), 2);
  CHECK(is_zero(p, 0, MI_SLICE_SIZE));
  mi_option_set(mi_option_purge_decommits, 1);
  _mi_slices_free(run.region, run.slice, 1, false);
}

int main(int argc, char** argv) {
  watchdog(240);
  test_seed(argc, argv);
  mi_option_set(mi_option_purge_delay, -1);
  mi_option_set(mi_option_show_errors, 0);
  CHECK(mi_malloc(1) != NULL);
  check_script(&script, false, "arenas");
  check_script(&script, true, "arenas");
  os_pages_t pages;
  if (os_pages_begin(&pages, os_pages_large, 8)) {
    check_script(&script, false, "with large OS pages");
    os_pages_end(&pages);
  }
  if (os_pages_begin(&pages, os_pages_huge, 1)) {
    check_script(&reserve_huge, false, "huge OS pages");
    check_script(&reserve_huge, true, "huge OS pages");
    os_pages_end(&pages);
  }
  check_discard();
  return check_result();
}
