// Proves: arenas of large OS pages (2 MiB) and of huge ones (1 GiB) where the system has some: they are made of those,
// stay when memory is purged, go back with the arena, end with what there is or when time is up, and are bound to their
// node; where it has none, large ones are ordinary memory that asks for huge pages, and huge ones are refused.
//
// What the system has none of is skipped; MI_TEST_SYSTEM=1 makes it set some aside.
#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "../unload.h"
#include "../os_pages.h"
#include "base/track.h"
#include "mimalloc.h"
#include "page/page.h"
#include "support/stat.h"

// What the system says of the mapping at an address: a number behind a key, or whether there is a flag of VmFlags.
static size_t mapping_number(const void* p, const char* key, const char* flag) {
  static char text[4 * MiB];
  if (read_file("/proc/self/smaps", text, sizeof(text)) == 0) return 0;
  for (char* line = text; line != NULL && *line != 0;) {
    char*  end;
    size_t from = strtoull(line, &end, 16);
    bool   is_it = false;
    if (*end == '-') is_it = (from <= (size_t)p && (size_t)p < strtoull(end + 1, NULL, 16));
    // Up to the next mapping.
    char* next = strstr(line, "VmFlags:");
    if (next == NULL) return 0;
    char* stop = strchr(next, '\n');
    if (stop == NULL) return 0;
    if (is_it) {
      *stop = 0;
      if (flag != NULL) return strstr(next, flag) != NULL;
      char* at = strstr(line, key);
      return at == NULL ? 0 : (size_t)strtoull(at + strlen(key), NULL, 10);
    }
    line = stop + 1;
  }
  return 0;
}

static size_t os_page_kib(const void* p) {
  return mapping_number(p, "KernelPageSize:", NULL);
}

// Sanitizers have advice of their own, and emulators leave it out of what they say of mappings.
static bool advice_is_shown(void) {
  return TEST_SANITIZED == 0 && test_env("MI_TEST_EMULATED", 0) == 0;
}

static mi_region_t* reserve_large(size_t size, bool commit) {
  size_t index = 0;
  CHECK_EQ(_mi_arena_reserve(size, commit, true, true, &index), 0);
  return &_mi_region_all[index];
}

static char* fill_arena(mi_region_t* region, size_t n_slices) {
  mi_run_t run = _mi_slices_alloc(n_slices, 1, MI_REQUEST_MIXED, _mi_region_index(region));
  CHECK(run.region == region && run.is_zero);
  if (run.region == NULL) return NULL;
  char* p = _mi_region_slice_start(region, run.slice);
  mi_track_readable(p, n_slices * MI_SLICE_SIZE); // slices without blocks are out of bounds to tools
  for (size_t i = 0; i < n_slices * MI_SLICE_SIZE; i += 4096) {
    CHECK_FOR(p[i] == 0, "byte %zu", i);
    p[i] = 1;
  }
  return p;
}

// ---- 2 MiB ----------------------------------------------------------------------------------------------------------

static void check_large(void) {
  os_pages_t pages;
  if (!os_pages_begin(&pages, os_pages_large, 10)) return;
  size_t       n_free = os_pages_free(os_pages_large);
  size_t       mappings = mapping_count();
  mi_region_t* region = reserve_large(15 * MiB, false); // 8 of them
  CHECK(region->is_pinned && region->is_fixed && region->is_committed);
  CHECK_EQ(region->committed, 16 * MiB);
  CHECK_EQ(os_page_kib((void*)region->base), os_pages_large);
  char* p = fill_arena(region, 8 * MI_CHUNK_SLICES);
  CHECK_EQ(os_pages_free(os_pages_large), n_free - 8);
  CHECK(!arena_unload(_mi_region_index(region)));
  _mi_slices_free(region, 0, 8 * MI_CHUNK_SLICES, false);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  mi_collect(true);
  for (size_t i = 0; i < 16 * MiB; i += 4096) CHECK(p[i] == 1);
  CHECK_EQ(os_pages_free(os_pages_large), n_free - 8);
  // More than are left: ordinary memory instead.
  size_t       n = n_free - 8 + 1;
  mi_region_t* other = reserve_large(n * MI_CHUNK_SIZE, true);
  CHECK(!other->is_pinned && !other->is_fixed);
  CHECK_EQ(other->n_open, n);
  CHECK_EQ(os_page_kib((void*)other->base), 4);
  CHECK_EQ(mapping_number((void*)other->base, NULL, " hg"), 1);
  fill_arena(other, n * MI_CHUNK_SLICES);
  _mi_slices_free(other, 0, n * MI_CHUNK_SLICES, false);
  CHECK_EQ(_mi_chunk_purgeable(), n * MI_CHUNK_SLICES);
  CHECK(arena_unload(_mi_region_index(other)) && arena_unload(_mi_region_index(region)));
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  CHECK_EQ(os_pages_free(os_pages_large), n_free);
  CHECK(mapping_count() <= mappings + 12); // what describes the two arenas stays usable
  // The place is ordinary memory again.
  size_t index = 0;
  CHECK_EQ(_mi_arena_reserve(16 * MiB, true, false, true, &index), 0);
  CHECK_EQ(os_page_kib((void*)_mi_region_all[index].base), 4);
  fill_arena(&_mi_region_all[index], 8 * MI_CHUNK_SLICES);
  _mi_slices_free(&_mi_region_all[index], 0, 8 * MI_CHUNK_SLICES, false);
  CHECK(arena_unload(index));
  os_pages_end(&pages);
}

static void check_no_large(void) {
  if (os_pages_free(os_pages_large) > 0) return;
  mi_region_t* region = reserve_large(16 * MiB, false);
  CHECK(!region->is_pinned && region->n_open == 0);
  fill_arena(region, 8 * MI_CHUNK_SLICES);
  if (advice_is_shown()) CHECK_EQ(mapping_number((void*)region->base, NULL, " hg"), 1);
  _mi_slices_free(region, 0, 8 * MI_CHUNK_SLICES, false);
  CHECK(arena_unload(_mi_region_index(region)));
}

// With option allow_large_os_pages our own memory asks for huge pages too, from 32 MiB of it on.
static void check_option(void) {
  char* p = (char*)mi_malloc(40 * MiB);
  CHECK_EQ(mapping_number(p, NULL, " hg"), 0);
  mi_option_set(mi_option_allow_large_os_pages, 1);
  char* q = (char*)mi_malloc(40 * MiB);
  if (advice_is_shown()) CHECK_EQ(mapping_number(q, NULL, " hg"), 1);
  mi_option_set(mi_option_allow_large_os_pages, 0);
  mi_free(p);
  mi_free(q);
  mi_collect(true);
}

// ---- 1 GiB ----------------------------------------------------------------------------------------------------------

static int reserve_huge(size_t n, int node, size_t timeout_ms, size_t* index, size_t* got) {
  int err = _mi_arena_reserve_huge(n, node, timeout_ms, true, index, got);
  CHECK_EQ(err, n > 0 && *got == 0 ? ENOMEM : 0);
  CHECK_EQ(*index != 0, *got > 0);
  return err;
}

// Where the system says that the memory at an address is bound to.
static bool is_bound_to(const void* p, int node) {
  static char text[MiB];
  char        key[64], want[32];
  snprintf(key, sizeof(key), "%zx bind:%d", (size_t)p, node);
  snprintf(want, sizeof(want), "N%d=", node);
  if (read_file("/proc/self/numa_maps", text, sizeof(text)) == 0) return true; // it does not say
  char* line = strstr(text, key);
  if (line == NULL) return false;
  *strchr(line, '\n') = 0;
  return strstr(line, want) != NULL;
}

static void check_huge(void) {
  os_pages_t pages;
  size_t     index, got;
  if (!os_pages_begin(&pages, os_pages_huge, 2)) return;
  size_t n = os_pages_free(os_pages_huge);
  // One more than there are.
  CHECK_EQ(reserve_huge(n + 1, -1, 0, &index, &got), 0);
  CHECK_EQ(got, n);
  mi_region_t* region = &_mi_region_all[index];
  char*        start = (char*)region->base;
  CHECK(region->is_pinned && region->is_fixed && region->is_committed && region->base % GiB == 0);
  CHECK_EQ(region->n_usable, n * GiB / MI_CHUNK_SIZE);
  CHECK_EQ(region->numa_node, -1);
  CHECK_EQ(os_page_kib(start), os_pages_huge);
  CHECK_EQ(os_page_kib(start + n * GiB - 1), os_pages_huge);
  CHECK_EQ(os_pages_free(os_pages_huge), 0);
  fill_arena(region, n * GiB / MI_SLICE_SIZE);
  CHECK(_mi_slices_alloc(1, 1, MI_REQUEST_SMALL, index).region == NULL); // the last has no memory
  _mi_slices_free(region, 0, n * GiB / MI_SLICE_SIZE, false);
  CHECK_EQ(_mi_chunk_purgeable(), 0);
  // None are left.
  size_t none, nothing;
  reserve_huge(1, -1, 0, &none, &nothing);
  CHECK_EQ(none, 0);
  CHECK(arena_unload(index));
  CHECK_EQ(os_pages_free(os_pages_huge), n);
  // Time is up after the first.
  reserve_huge(2, 0, 1, &index, &got);
  CHECK_EQ(got, 1);
  CHECK_EQ(_mi_region_all[index].numa_node, 0);
  CHECK(is_bound_to((void*)_mi_region_all[index].base, 0));
  CHECK_EQ(os_pages_free(os_pages_huge), n - 1);
  CHECK(arena_unload(index));
  // Spread over two nodes, one each.
  mi_option_set(mi_option_use_numa_nodes, 2);
  CHECK_EQ(_mi_arena_reserve_huge_interleave(2, 0, 10000, &got), 0);
  CHECK_EQ(got, 2);
  size_t last = _mi_region_count() - 1;
  CHECK_EQ(_mi_region_all[last - 1].numa_node + _mi_region_all[last].numa_node, 1);
  CHECK(arena_unload(last) && arena_unload(last - 1));
  mi_option_set(mi_option_use_numa_nodes, 0);
  CHECK_EQ(os_pages_free(os_pages_huge), n);
  os_pages_end(&pages);
}

static void check_no_huge(void) {
  size_t index, got;
  CHECK_EQ(reserve_huge(0, -1, 0, &index, &got), 0);
  CHECK_EQ(_mi_arena_reserve_huge_interleave(0, 0, 0, &got), 0);
  CHECK_EQ(reserve_huge(PTRDIFF_MAX, -1, 0, &index, &got), ENOMEM);
  if (os_pages_free(os_pages_huge) > 0) return;
  size_t end = _mi_region_count(), usable = _mi_region_all[0].n_usable;
  for (int i = 0; i < 20; i++) CHECK_EQ(reserve_huge(1, i - 1, 0, &index, &got), ENOMEM);
  CHECK_EQ(_mi_arena_reserve_huge_interleave(4, 2, 100, &got), ENOMEM);
  CHECK(_mi_region_count() <= end + 1);
  CHECK_EQ(_mi_region_all[0].n_usable, usable);
}

int main(int argc, char** argv) {
  watchdog(120);
  test_seed(argc, argv);
  mi_option_set(mi_option_purge_delay, -1); // nobody but we
  CHECK(mi_malloc(1) != NULL);
  check_large();
  check_no_large();
  check_option();
  check_huge();
  check_no_huge();
  return check_result();
}
