// Fuzzes: arenas of the program's memory, at any address and of any size, with commit functions that refuse now and then.
//
// A1  Memory is taken if its aligned part is large enough and no part of that is managed already.
// A2  Nothing outside of what was given is touched: around it, memory is inaccessible.
// A3  What a commit function has not committed, or has been told to give up, is not touched: it is inaccessible.
// A4  An exclusive arena serves only its heap, and its heap has blocks nowhere else.
// A5  Memory that is said to be zero and memory that is not both serve calloc.
//
// The interface has no way to end an arena, so that a process could try 256 inputs only: each input ends with what the library
// does itself with reserved arenas that are empty.
#include <mimalloc.h>
#include <sys/mman.h>

#include "arena/arena.h"
#include "arena/shrink.h"
#include "arena/space.h"
#include "input.h"

enum { n_arenas_max = 6, n_blocks_max = 60, pool_mib = 96, os_page = 4096, slice = 64 * 1024 };

typedef struct given_s {
  uintptr_t     start;
  size_t        size; // as the library must see it, rounded
  mi_arena_id_t id;
  mi_heap_t*    heap; // NULL: not exclusive
  bool          has_commit, is_pinned;
} given_t;

typedef struct held_s {
  uint8_t* p;
  size_t   size;
  uint64_t key;
  int      arena; // -1: from anywhere
} held_t;

static input_t  in;
static uint8_t* pool;
static given_t  given[n_arenas_max];
static held_t   held[n_blocks_max];
static size_t   n_given, n_held;
static unsigned refuse_mask; // the commit function refuses when a choice has none of these bits
static uint32_t n_commits;
static uint8_t  is_open[(size_t)pool_mib * 16]; // of each slice of the pool: committed by the function

static void require(bool is_so, const char* what) {
  if (is_so) return;
  printf("not so: %s\n", what);
  fflush(stdout);
  abort();
}

static size_t pick(size_t n) {
  return input_pick(&in, n);
}

static void protect(uintptr_t start, size_t size, int protection) {
  if (size > 0) require(mprotect((void*)start, size, protection) == 0, "mprotect");
}

// ---- the commit function (A3) -----------------------------------------------------------------------------------------

static bool commit(bool is_commit, void* start, size_t size, bool* is_zeroed, void* arg) {
  const given_t* g = (const given_t*)arg;
  uintptr_t      first = (uintptr_t)start;
  require(first >= g->start && first + size <= g->start + g->size && size > 0, "commit within the arena");
  require(first % os_page == 0 && size % os_page == 0, "commit in OS pages");
  if (refuse_mask != 0 && (n_commits++ & refuse_mask) == 0) return false;
  protect(first, size, PROT_READ | PROT_WRITE);
  if (!is_commit) {
    require(madvise(start, size, MADV_DONTNEED) == 0, "madvise");
    protect(first, size, PROT_NONE);
  }
  for (size_t i = (first - (uintptr_t)pool) / slice; i < (first + size - (uintptr_t)pool) / slice; i++) {
    is_open[i] = (uint8_t)is_commit;
  }
  if (is_commit && is_zeroed != NULL) *is_zeroed = (first / slice % 2 == 0); // it does; not to know is allowed
  return true;
}

// ---- arenas -----------------------------------------------------------------------------------------------------------

// The part of it that can be managed; 0 if that is too small.
static size_t fit(uintptr_t* start, size_t size) {
  uintptr_t first = (*start + mi_arena_min_alignment() - 1) & ~(uintptr_t)(mi_arena_min_alignment() - 1);
  if (*start == 0 || first < *start || *start + size < *start || first - *start > size) return 0;
  size = (size - (first - *start)) / (2 * MiB) * (2 * MiB);
  *start = first;
  return size >= mi_arena_min_size() ? size : 0;
}

static bool overlaps(uintptr_t start, size_t size) {
  for (size_t i = 0; i < n_given; i++) {
    if (start < given[i].start + given[i].size && given[i].start < start + size) return true;
  }
  return false;
}

// What nobody may manage: nothing, far too much, memory of the library's own.
static void step_refused(void) {
  void* own = mi_malloc(1 + pick(3 * MiB));
  switch (pick(6)) {
    case 0: require(!mi_manage_os_memory(NULL, pick(SIZE_MAX), true, false, true, -1), "no memory"); break;
    case 1:
      require(!mi_manage_os_memory(pool + pick(MiB), SIZE_MAX - pick(8 * MiB), true, false, true, -1), "all");
      break;
    case 2: require(!mi_manage_os_memory(pool + pick(MiB), pick(2 * MiB), true, false, true, -1), "too small"); break;
    case 3:
      require(!mi_manage_os_memory((void*)(UINTPTR_MAX - pick(64 * MiB)), 64 * MiB, true, false, true, -1), "end");
      break;
    case 4:
      require(!mi_manage_os_memory((void*)((uintptr_t)own & ~(uintptr_t)0xFFFF), 4 * MiB, true, false, true, -1),
              "ours");
      break;
    default: require(mi_reserve_os_memory(SIZE_MAX - pick(64 * MiB), false, false) != 0, "reserved too much");
  }
  mi_free(own);
}

// Contents that are not zero, in some OS pages.
static void soil(uintptr_t start, size_t size) {
  for (size_t at = 0; at + 64 <= size; at += 3 * slice + os_page) memset((uint8_t*)start + at, 0xEE, 64);
}

static void step_manage(void) {
  uint8_t*  asked = pool + pick(pool_mib * MiB - 8 * MiB);
  size_t    size = 2 * MiB + pick(14 * MiB), flags = pick(64);
  uintptr_t start = (uintptr_t)asked;
  if (pick(2) == 0) start = start / slice * slice;
  if (n_given == n_arenas_max || start + size > (uintptr_t)pool + pool_mib * MiB) return;
  asked = (uint8_t*)start;
  size_t   usable = fit(&start, size);
  given_t* g = &given[n_given];
  bool     has_commit = (flags & 1) != 0, is_pinned = (flags & 2) != 0, is_zeroed = (flags & 4) != 0;
  bool     is_there = (!has_commit && (is_pinned || (flags & 8) != 0)), is_exclusive = (flags & 16) != 0;
  bool     wanted = (usable > 0 && !overlaps(start, usable));
  *g = (given_t){start, usable, 0, NULL, has_commit, is_pinned};
  if (wanted && is_there) protect(start, usable, PROT_READ | PROT_WRITE);
  if (wanted && is_there && !is_zeroed) soil(start, usable);
  bool is_taken = mi_manage_memory(asked, size, is_there, is_pinned, is_zeroed, (int)pick(5) - 2, is_exclusive,
                                   has_commit ? &commit : NULL, g, &g->id);
  require(is_taken == wanted, "memory is taken if it may be (A1)");
  if (!is_taken) return;
  size_t area_size;
  void*  area = mi_arena_area(g->id, &area_size);
  require((uintptr_t)area == start && area_size == usable, "the area is what was given, rounded (A2)");
  if (is_exclusive) {
    g->heap = mi_heap_new_in_arena(g->id);
    require(g->heap != NULL, "a heap in the arena");
  }
  n_given++;
}

// ---- blocks -----------------------------------------------------------------------------------------------------------

static void check_held(const held_t* h) {
  require(pattern_check(h->p, h->size, h->key) == h->size, "contents");
}

// A4.  Whether a block of the main heap is in an arena is the library's choice; in an exclusive one it is not.
static void check_place(const held_t* h) {
  for (size_t i = 0; i < n_given; i++) {
    bool is_inside = mi_arena_contains(given[i].id, h->p);
    if (h->arena == (int)i)
      require(is_inside && mi_arena_contains(given[i].id, h->p + h->size - 1), "in its arena (A4)");
    else if (given[i].heap != NULL) require(!is_inside, "not in the exclusive arena of others (A4)");
  }
}

static size_t pick_size(void) {
  size_t kind = pick(10);
  return 1 + log_size(input_next(&in), kind < 5 ? 20 * KiB : kind < 8 ? 600 * KiB : 9 * MiB);
}

static void step_get(void) {
  held_t h = {NULL, pick_size(), input_next(&in), -1};
  size_t way = pick(4), arena = pick(n_given + 1);
  if (n_held == n_blocks_max) return;
  mi_heap_t* heap = (arena < n_given && given[arena].heap != NULL ? given[arena].heap : mi_heap_main());
  if (heap != mi_heap_main()) h.arena = (int)arena;
  if (way == 0) h.p = (uint8_t*)mi_heap_calloc(heap, 1, h.size);
  else if (way == 1) h.p = (uint8_t*)mi_heap_malloc_aligned(heap, h.size, (size_t)16 << pick(14));
  else h.p = (uint8_t*)mi_heap_malloc(heap, h.size);
  if (h.p == NULL) require(h.arena >= 0, "only an arena is full"); // or its function has refused
  if (h.p == NULL) return;
  if (way == 0) require(is_zero(h.p, 0, h.size), "calloc (A5)");
  check_place(&h);
  pattern_fill(h.p, 0, h.size, h.key);
  held[n_held++] = h;
}

static void step_resize(void) {
  if (n_held == 0) return;
  held_t* h = &held[pick(n_held)];
  size_t  size = pick_size(), kept = (h->size < size ? h->size : size);
  check_held(h);
  mi_heap_t* heap = (h->arena >= 0 ? given[h->arena].heap : mi_heap_main());
  uint8_t*   p = (uint8_t*)mi_heap_realloc(heap, h->p, size);
  if (p == NULL) require(h->arena >= 0, "only an arena is full");
  if (p == NULL) return;
  require(pattern_check(p, kept, h->key) == kept, "contents behind realloc");
  h->p = p;
  h->size = size;
  pattern_fill(p, kept, size, h->key);
  check_place(h);
}

static void step_put(size_t index) {
  if (n_held == 0) return;
  check_held(&held[index]);
  mi_free(held[index].p);
  held[index] = held[--n_held];
}

static void step(void) {
  size_t kind = pick(20);
  if (kind < 3) step_manage();
  else if (kind < 11) step_get();
  else if (kind < 13) step_resize();
  else if (kind < 17) step_put(pick(n_held));
  else if (kind == 17) mi_collect(true);
  else if (kind == 18) refuse_mask = (unsigned)pick(8);
  else step_refused();
}

// ---- the end ----------------------------------------------------------------------------------------------------------

static void end_arenas(void) {
  for (size_t i = 0; i < n_given; i++) mi_heap_delete(given[i].heap);
  mi_collect(true);
  _mi_lock_acquire(&_mi_region_lock);
  for (size_t i = 0; i < n_given; i++) {
    mi_region_t* region = &_mi_region_all[(uint32_t)(uintptr_t)given[i].id];
    require(_mi_shrink_forget(region), "nothing of an arena is in use at the end");
    _mi_space_remove(region);
  }
  _mi_lock_release(&_mi_region_lock);
}

static void begin(const uint8_t* data, size_t size) {
  void* fresh = mmap(pool, pool_mib * MiB, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (pool != NULL ? MAP_FIXED : 0), -1, 0);
  require(fresh != MAP_FAILED, "mmap");
  pool = (uint8_t*)fresh;
  in = input_make(data, size);
  n_given = n_held = n_commits = refuse_mask = 0;
  memset(is_open, 0, sizeof(is_open));
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  begin(data, size);
  while (input_has_more(&in)) step();
  refuse_mask = 0;
  while (n_held > 0) step_put(n_held - 1);
  end_arenas();
  return 0;
}
