// Proves: arenas serve the heaps that were made for them and nobody else if they are exclusive; memory of the program's own
// is used as it says, within its bounds, and made usable by its own function; what cannot be had is refused cleanly.
#include "../check.h"
#include "../tags.h"
#include "entries.h"
#include <pthread.h>
#include <sys/mman.h>

#if MI_API_LEVEL < 3
static const mi_arena_id_t no_arena = 0, not_stored = -1, junk = 12345;
#else
static const mi_arena_id_t no_arena = NULL, not_stored = NULL, junk = (void*)12345;
#endif

enum { n_max = 4096 };
static void* held[n_max];

static bool is_within(const void* p, size_t size, const void* start, size_t length) {
  uintptr_t a = address_of(p), b = (uintptr_t)start;
  return a >= b && a + size <= b + length;
}

// ---- arenas of the system's memory ----------------------------------------------------------------------------------

static mi_arena_id_t reserve(size_t size, bool exclusive) {
  mi_arena_id_t id = junk;
  CHECK_EQ(mi_reserve_os_memory_ex(size, false, false, exclusive, &id), 0);
  CHECK(id != no_arena && id != junk && id != not_stored);
  return id;
}

static void check_reserve(void) {
  CHECK_EQ(mi_reserve_os_memory(64 * MiB, false, false), 0);
  CHECK_EQ(mi_reserve_os_memory(64 * MiB, true, false), 0);
  CHECK_EQ(mi_reserve_os_memory_ex(64 * MiB, false, true, false, NULL), 0);
  mi_arena_id_t first = reserve(64 * MiB, false), second = reserve(100 * MiB, true);
  CHECK(first != second);
  size_t size = 0;
  void*  start = mi_arena_area(second, &size);
  CHECK(start != NULL && size >= 100 * MiB && start == mi_arena_area(second, NULL));
  CHECK(is_aligned(start, mi_arena_min_alignment()));
  CHECK(mi_arena_contains(second, start) && mi_arena_contains(second, (char*)start + size - 1));
  CHECK(!mi_arena_contains(second, (char*)start + size) && !mi_arena_contains(second, (char*)start - 1));
  CHECK(!mi_arena_contains(first, start) && !mi_arena_contains(second, NULL) && !mi_arena_contains(second, &size));
}

static void check_reserve_refused(void) {
  mi_arena_id_t id = junk;
  CHECK_EQ(mi_reserve_os_memory(hidden(POWER_OF_TWO(60)), false, false), ENOMEM);
  CHECK_EQ(mi_reserve_os_memory(hidden(SIZE_MAX), false, false), ENOMEM);
  CHECK_EQ(mi_reserve_os_memory_ex(hidden(POWER_OF_TWO(60)), false, false, true, &id), ENOMEM);
  CHECK(id == not_stored);
}

static void check_no_arena(void) {
  size_t size = 77;
  CHECK(mi_arena_area(no_arena, &size) == NULL && size == 0);
  size = 77;
  CHECK(mi_arena_area(junk, &size) == NULL && size == 0);
  CHECK(mi_arena_area(junk, NULL) == NULL);
  CHECK(!mi_arena_contains(no_arena, &size) && !mi_arena_contains(junk, &size) && !mi_arena_contains(junk, NULL));
}

static void check_minima(void) {
  size_t alignment = mi_arena_min_alignment(), size = mi_arena_min_size();
  CHECK(alignment >= 4096 && (alignment & (alignment - 1)) == 0);
  CHECK(size >= alignment && size <= 64 * MiB && size % alignment == 0);
}

// ---- heaps in arenas ------------------------------------------------------------------------------------------------

// Allocates until the arena is full; all blocks are in it.  The number of blocks.
static size_t fill(mi_heap_t* heap, mi_arena_id_t id, size_t block_size) {
  size_t n = 0, size = 0;
  void*  start = mi_arena_area(id, &size);
  errno = 0;
  while (n < n_max && (held[n] = mi_heap_malloc(heap, block_size)) != NULL) {
    CHECK(is_within(held[n], block_size, start, size) && mi_arena_contains(id, held[n]));
    memset(held[n], 0xAB, block_size);
    n++;
  }
  CHECK(n < n_max && errno == ENOMEM);
  return n;
}

static void check_heap_in_arena(void) {
  mi_option_disable(mi_option_show_errors);
  mi_arena_id_t id = reserve(64 * MiB, true);
  mi_heap_t*    heap = mi_heap_new_in_arena(id);
  CHECK(heap != NULL);
  size_t n = fill(heap, id, 1 * MiB);
  CHECK_FOR(n >= 32 && n <= 64, "%zu blocks of 1 MiB in 64 MiB", n);
  void* p = mi_malloc(1 * MiB); // others still have memory
  CHECK(p != NULL && !mi_arena_contains(id, p));
  mi_free(p);
  for (size_t round = 0; round < 3; round++) { // what is freed can be had again
    for (size_t i = 0; i < n; i++) mi_free(held[i]);
    size_t again = fill(heap, id, 1 * MiB);
    CHECK_FOR(again >= n - 1, "%zu, then %zu blocks", n, again);
    n = again;
  }
  for (size_t i = 0; i < n; i++) mi_free(held[i]);
  n = fill(heap, id, 20 * KiB);
  CHECK_FOR(n >= 1200, "%zu blocks of 20 KiB in 64 MiB", n);
  mi_heap_delete(heap); // the blocks stay where they are
  for (size_t i = 0; i < n; i++) {
    CHECK(mi_arena_contains(id, held[i]) && ((uint8_t*)held[i])[20 * KiB - 1] == 0xAB);
    mi_free(held[i]);
  }
}

static void check_destroyed_heap(void) {
  mi_arena_id_t id = reserve(64 * MiB, true);
  size_t        before = 0;
  for (size_t round = 0; round < 5; round++) { // destroying gives the memory back to the arena
    mi_heap_t* heap = mi_heap_new_ex(0, true, id);
    CHECK(heap != NULL);
    size_t n = fill(heap, id, 300 * KiB);
    CHECK_FOR(round == 0 || n + 8 >= before, "%zu blocks, then %zu", before, n);
    before = n;
    mi_heap_destroy(heap);
  }
}

// More blocks than there is room in what the allocator has reserved at the start; untouched, so they are only addresses.
// Where blocks are filled they are memory, five times as much under the thread sanitizer: then only more than there is room
// in all arenas reserved here.  How many of them are in this arena.
static size_t count_beyond_first(mi_arena_id_t id) {
  size_t n = 0, n_within = 0, n_wanted = (MI_DEBUG > 0 ? 500 : 3000);
  for (; n < n_wanted; n++) {
    held[n] = mi_malloc(1 * MiB);
    if (held[n] == NULL) break;
    n_within += mi_arena_contains(id, held[n]);
  }
  CHECK_FOR(n > n_wanted / 2, "%zu blocks of 1 MiB", n);
  for (size_t i = 0; i < n; i++) mi_free(held[i]);
  return n_within;
}

static void check_shared_by_all(void) {
  size_t size = 0;
  CHECK_EQ(count_beyond_first(reserve(64 * MiB, true)), 0);
  mi_arena_id_t id = reserve(64 * MiB, false);
  mi_arena_area(id, &size);
  // Guarded blocks are never in memory that may be the program's.
  CHECK(size < 128 * MiB && (MI_HARDENED || count_beyond_first(id) >= 32));
}

static mi_arena_id_t exclusive_id;

static void* allocate_outside(void* arg) {
  (void)arg;
  for (size_t i = 0; i < 2000; i++) {
    size_t size = (i % 100 == 0 ? 2 * MiB : i % 3000);
    void*  p = mi_malloc(size);
    CHECK(p != NULL && !mi_arena_contains(exclusive_id, p));
    mi_free(p);
  }
  return NULL;
}

// Nobody else gets memory of an exclusive arena, neither before nor after it had blocks.
static void check_exclusive(void) {
  exclusive_id = reserve(64 * MiB, true);
  mi_heap_t* heap = mi_heap_new_in_arena(exclusive_id);
  for (size_t round = 0; round < 2; round++) {
    pthread_t thread;
    CHECK_EQ(pthread_create(&thread, NULL, &allocate_outside, NULL), 0);
    for (size_t i = 0; i < 500; i++) {
      held[i] = mi_heap_malloc(heap, 1 + i * 100);
      CHECK(held[i] != NULL && mi_arena_contains(exclusive_id, held[i]));
    }
    allocate_outside(NULL);
    for (size_t i = 0; i < 500; i++) mi_free(held[i]);
    mi_heap_collect(heap, true);
    pthread_join(thread, NULL);
  }
  mi_heap_destroy(heap);
}

// ---- memory of the program's own ------------------------------------------------------------------------------------

enum { own_size = (sizeof(void*) > 4 ? 64 : 32) << 20 };

static char* map_memory(int protection) {
  char* p = (char*)mmap(NULL, own_size, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(p != (char*)MAP_FAILED);
  return p;
}

// Use an arena of memory at `start` through and through: within its bounds, zero where it must be.
static void use_own(mi_arena_id_t id, char* start) {
  size_t size = 0;
  char*  area = (char*)mi_arena_area(id, &size);
  CHECK(area != NULL && is_within(area, size, start, own_size));
  CHECK(size >= own_size / 2);
  mi_heap_t* heap = mi_heap_new_in_arena(id);
  for (size_t round = 0; round < 3; round++) {
    size_t n = 0;
    while (n < n_max && (held[n] = mi_heap_zalloc(heap, 500 * KiB)) != NULL) {
      CHECK(is_within(held[n], 500 * KiB, start, own_size) && is_zero(held[n], 0, 500 * KiB));
      memset(held[n], 0xAB, 500 * KiB);
      n++;
    }
    CHECK_FOR(n >= 50, "%zu blocks of 500 KiB", n);
    for (size_t i = 0; i < n; i++) mi_free(held[i]);
    mi_heap_collect(heap, true);
  }
  mi_heap_destroy(heap);
}

static void check_manage(void) {
  for (size_t kind = 0; kind < 8; kind++) {
    bool          is_committed = (kind & 1) != 0, is_pinned = (kind & 2) != 0, is_zero_memory = (kind & 4) != 0;
    char*         start = map_memory(is_committed ? PROT_READ | PROT_WRITE : PROT_NONE);
    mi_arena_id_t id = junk;
    if (is_committed && !is_zero_memory) memset(start, 0xCD, own_size);
    if (is_pinned && !is_committed) continue; // what cannot be changed must be usable
    CHECK_FOR(mi_manage_os_memory_ex(start, own_size, is_committed, is_pinned, is_zero_memory, -1, true, &id),
              "kind %zu", kind);
    CHECK(id != junk && id != no_arena);
    use_own(id, start);
  }
}

static void check_manage_shared(void) {
  char* start = map_memory(PROT_READ | PROT_WRITE);
  CHECK(mi_manage_os_memory(start, own_size, true, false, true, -1));
  start = map_memory(PROT_READ | PROT_WRITE);
  CHECK(mi_manage_os_memory_ex(start, own_size, true, false, true, 0, false, NULL));
  for (size_t i = 0; i < 200; i++) { // wherever they come from
    void* p = mi_malloc(1 * MiB);
    CHECK(p != NULL);
    memset(p, 0xAB, 1 * MiB);
    mi_free(p);
  }
}

static void check_manage_refused(void) {
  mi_arena_id_t id = junk;
  char*         start = map_memory(PROT_READ | PROT_WRITE);
  CHECK(!mi_manage_os_memory(start, 4096, true, false, true, -1));
  CHECK(!mi_manage_os_memory(start, 0, true, false, true, -1));
  CHECK(!mi_manage_os_memory(NULL, own_size, true, false, true, -1));
  CHECK(!mi_manage_os_memory_ex(start, 4096, true, false, true, -1, true, &id) && id == not_stored);
  id = junk;
  CHECK(!mi_manage_memory(NULL, own_size, true, false, true, -1, true, NULL, NULL, &id) && id == not_stored);
  munmap(start, own_size);
}

// Memory that begins and ends anywhere: what is left at the right alignment is used, no byte beside it.
static void check_manage_unaligned(void) {
  char*         start = map_memory(PROT_READ | PROT_WRITE);
  mi_arena_id_t id = junk;
  memset(start, 0xCD, 5000);
  memset(start + own_size - 3000, 0xCD, 3000);
#if MI_API_LEVEL < 3 // where that is left to the caller it may be refused
  if (!mi_manage_os_memory_ex(start + 5000, own_size - 8000, true, false, false, -1, true, &id)) return;
#else
  CHECK(mi_manage_os_memory_ex(start + 5000, own_size - 8000, true, false, false, -1, true, &id));
#endif
  use_own(id, start);
  for (size_t i = 0; i < 5000; i++) CHECK((uint8_t)start[i] == 0xCD);
  for (size_t i = own_size - 3000; i < own_size; i++) CHECK((uint8_t)start[i] == 0xCD);
}

// ---- made usable by the program -------------------------------------------------------------------------------------

typedef struct committer_s {
  char*  start;
  size_t n_commits, n_decommits, n_outside;
  bool   fails;
} committer_t;

static bool commit(bool is_commit, void* start, size_t size, bool* is_zero, void* arg) {
  committer_t* c = (committer_t*)arg;
  if (!is_within(start, size, c->start, own_size)) __atomic_add_fetch(&c->n_outside, 1, __ATOMIC_RELAXED);
  __atomic_add_fetch(is_commit ? &c->n_commits : &c->n_decommits, 1, __ATOMIC_RELAXED);
  if (is_commit && c->fails) return false;
  if (is_zero != NULL) *is_zero = false;
  if (is_commit) return mprotect(start, size, PROT_READ | PROT_WRITE) == 0;
  return madvise(start, size, MADV_DONTNEED) == 0 && mprotect(start, size, PROT_NONE) == 0;
}

static void check_commit_function(void) {
  mi_arena_id_t id = junk;
  committer_t   committer = {map_memory(PROT_NONE), 0, 0, 0, false};
  CHECK(mi_manage_memory(committer.start, own_size, false, false, true, -1, true, &commit, &committer, &id));
  use_own(id, committer.start);
  CHECK_FOR(committer.n_commits > 0, "%zu", committer.n_commits);
  CHECK_EQ(committer.n_outside, 0);
}

static void check_commit_failure(void) {
  static committer_t committer; // purges may come at any time from now on
  mi_arena_id_t      id = junk;
  committer.start = map_memory(PROT_NONE);
  committer.fails = true;
  if (!mi_manage_memory(committer.start, own_size, false, false, true, -1, true, &commit, &committer, &id)) {
    CHECK(id == not_stored); // some of it may be needed at once
    return;
  }
  mi_heap_t* heap = mi_heap_new_in_arena(id);
  CHECK(heap != NULL);
  errno = 0;
  CHECK(mi_heap_malloc(heap, 100) == NULL && errno == ENOMEM);
  CHECK(mi_heap_malloc(heap, 3 * MiB) == NULL);
  CHECK(committer.n_commits > 0);
  committer.fails = false;
  void* p = mi_heap_malloc(heap, 3 * MiB);
  CHECK(p != NULL && is_within(p, 3 * MiB, committer.start, own_size));
  memset(p, 0xAB, 3 * MiB);
  mi_free(p);
  mi_heap_destroy(heap);
}

// ---- huge OS pages --------------------------------------------------------------------------------------------------

// Few systems have some; then they must be usable, elsewhere cleanly refused.
static void check_huge_pages(void) {
  size_t        n_pages = 77;
  mi_arena_id_t id = junk;
  CHECK_EQ(mi_reserve_huge_os_pages_at(0, -1, 0), 0);
  CHECK_EQ(mi_reserve_huge_os_pages_interleave(0, 0, 0), 0);
  CHECK_EQ(mi_reserve_huge_os_pages_at_ex(0, 0, 0, false, NULL), 0);
  CHECK_EQ(mi_reserve_huge_os_pages(0, 0.5, &n_pages), 0);
  CHECK_EQ(n_pages, 0);
  int code = mi_reserve_huge_os_pages_at_ex(1, -1, 200, true, &id);
  CHECK_FOR(code == 0 || code == ENOMEM, "%d", code);
  CHECK((id == not_stored) == (code != 0));
  if (code != 0) {
    CHECK_EQ(mi_reserve_huge_os_pages_at(1, 0, 200), ENOMEM);
    CHECK_EQ(mi_reserve_huge_os_pages_interleave(1, 1, 200), ENOMEM);
    CHECK_EQ(mi_reserve_huge_os_pages(1, 0.2, &n_pages), ENOMEM);
    CHECK_EQ(mi_reserve_huge_os_pages(1, 0.2, NULL), ENOMEM);
    CHECK_EQ(n_pages, 0);
    test_skip("arenas of huge OS pages", "there are none");
    return;
  }
  mi_heap_t* heap = mi_heap_new_in_arena(id);
  char*      p = (char*)mi_heap_malloc(heap, 100 * MiB);
  CHECK(p != NULL && mi_arena_contains(id, p));
  memset(p, 0xAB, 100 * MiB);
  mi_heap_destroy(heap);
}

// ---- printing -------------------------------------------------------------------------------------------------------

static void count_output(const char* text, void* arg) {
  *(size_t*)arg += strlen(text);
}

static void check_print(void) {
  size_t first = 0, second = 0;
  mi_register_output(&count_output, &first);
  mi_arenas_print();
  mi_register_output(&count_output, &second);
  mi_debug_show_arenas();
  mi_register_output(NULL, NULL);
  CHECK(first > 100 && second > 100);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_minima();
  check_reserve();
  check_reserve_refused();
  check_no_arena();
  check_heap_in_arena();
  check_destroyed_heap();
  check_exclusive();
  check_shared_by_all();
  check_manage();
  check_manage_shared();
  check_manage_refused();
  check_manage_unaligned();
  check_commit_function();
  check_commit_failure();
  check_huge_pages();
  check_print();
  return check_result();
}
