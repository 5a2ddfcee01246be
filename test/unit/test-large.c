// Proves: a large block is freed once, by whichever thread (L1), starts where its alignment and offset say (L2), and is kept by its
// thread for the next request of about its size (L3), within bounds (kept.h: KE3 to KE6); no slice is lost.
#include <pthread.h>
#include <sched.h>
#include "../check.h"
#include "../modes/support.h"
#include "arena/dense.h"
#include "arena/purge.h"
#include "arena/recur.h"
#include "heap/large.h"
#include "heap/vacant.h"
#include "mimalloc.h"
#include "large.h"

enum { keep_max = 64 }; // slices

// Where large blocks are guarded, or tools look on, nothing is kept.
static bool const may_keep = !MI_HARDENED && !MI_TRACK;

// ---- freeing --------------------------------------------------------------------------------------------------------

enum { n_frees = 1000 };

static mi_page_t* page_to_free;
static size_t     n_begun, n_done, n_freed; // rounds, and frees of the last one that counted

static void free_page(size_t round) {
  while (__atomic_load_n(&n_begun, __ATOMIC_ACQUIRE) < round) {
  }
  if (_mi_large_free(NULL, page_to_free)) __atomic_add_fetch(&n_freed, 1, __ATOMIC_RELAXED);
}

static void* free_pages(void* arg) {
  for (size_t i = 1; i <= n_frees; i++) {
    free_page(i);
    __atomic_store_n(&n_done, i, __ATOMIC_RELEASE);
  }
  return arg;
}

// L1: of two frees at a time one counts.
static void check_free(void) {
  pthread_t other;
  mi_collect(true);
  size_t before = slices_in_use();
  pthread_create(&other, NULL, &free_pages, NULL);
  for (size_t i = 1; i <= n_frees; i++) {
    size_t size = 700 * KiB + i % 100 * 8 * KiB;
    page_to_free = _mi_page_of(mi_malloc(size));
    n_freed = 0;
    CHECK(bytes_in_use() >= (int64_t)size);
    __atomic_store_n(&n_begun, i, __ATOMIC_RELEASE);
    free_page(i);
    while (__atomic_load_n(&n_done, __ATOMIC_ACQUIRE) < i) sched_yield();
    CHECK_EQ(n_freed, 1);
    CHECK_EQ(bytes_in_use(), 0);
  }
  pthread_join(other, NULL);
  mi_collect(true);
  if (!MI_HARDENED) CHECK_EQ(slices_in_use(), before); // guarded blocks stay inaccessible for a while
}

// L2
static void check_offset(rng_t* r) {
  for (int i = 0; i < 300; i++) {
    size_t align = (size_t)8 << rng_below(r, 19); // up to a chunk
    size_t size = 600 * KiB + rng_below(r, 3 * MiB), offset = rng_below(r, size);
    char*  p = (char*)mi_malloc_aligned_at(size, align, offset);
    CHECK_FOR(p != NULL && is_aligned(p + offset, align), "%zu at %zu of %zu", align, offset, size);
    const mi_page_t* page = _mi_page_of(p);
    CHECK(_mi_page_kind(page) == MI_PAGE_LARGE && mi_usable_size(p) >= size);
    p[0] = p[size - 1] = 1;
    mi_free(p);
  }
  mi_collect(true);
  CHECK_EQ(bytes_in_use(), 0);
}

// ---- keeping --------------------------------------------------------------------------------------------------------

static mi_kept_t* kept(void) {
  return &_mi_theap_backing()->kept;
}

static size_t n_kept(void) {
  return mi_load_relaxed(&kept()->n_allowed) - kept()->n_room;
}

static void set_room(size_t n) {
  _mi_purge_unlend(kept()->n_room);
  kept()->n_room = n;
  _mi_purge_lend(n);
}

static bool is_kept(const mi_page_t* page) {
  return _mi_kept_has(kept(), page) &&
         _mi_page_word_state(mi_load_relaxed(&((mi_page_t*)page)->word)) == MI_PAGE_CLAIMED;
}

static int n_errors;

static void count_error(int code, void* arg) {
  (void)arg;
  n_errors += (code == EAGAIN);
}

// L3
static void check_kept(void) {
  mi_collect(true);
  size_t base = _mi_purge_n_backed();
  CHECK(n_kept() == 0 && !_mi_kept_any(kept()));
  char* p = (char*)mi_malloc(MiB);
  memset(p, 1, MiB);
  mi_page_t* page = _mi_page_of(p);
  mi_free(p);
  CHECK(is_kept(page) && n_kept() == page->n_slices);
  CHECK_EQ(bytes_in_use(), 0);
  CHECK_EQ(_mi_purge_n_backed(), base + page->n_slices);
  mi_register_error(&count_error, NULL);
  mi_free(hidden_pointer(p));
  CHECK(n_errors == 1 && is_kept(page));
  mi_register_error(NULL, NULL);
  CHECK((char*)mi_zalloc(MiB - 100 * KiB) == p && is_zero(p, 0, MiB - 100 * KiB) && n_kept() == 0);
  mi_free(p);
  CHECK((char*)mi_malloc_aligned(MiB, 4096) == p);
  void* small = mi_malloc(MiB / 2 + 64 * KiB);
  void* big = mi_malloc(2 * MiB);
  mi_free(small);
  mi_free(p);
  mi_free(big); // it asked for all of them
  CHECK(is_kept(page) && is_kept(_mi_page_of(big)) && is_kept(_mi_page_of(small)));
  mi_collect(true);
  CHECK(n_kept() == 0 && !_mi_kept_any(kept()));
  CHECK_EQ(_mi_purge_n_backed(), 0);
}

// Neither what is too large, nor what starts within its page, nor what belongs to another heap.
static void check_not_kept(void) {
  mi_heap_t* heap = mi_heap_new();
  mi_free(mi_malloc(keep_max * MI_SLICE_SIZE + 1));
  mi_free(mi_malloc_aligned_at(MiB, 4096, 8));
  mi_free(mi_heap_malloc(heap, MiB));
  CHECK(n_kept() == 0);
  mi_heap_delete(heap);
}

// What fits best is used; one size takes the place of others when there is no more room.
static void check_kept_sizes(rng_t* r) {
  enum { n = 100 };
  void* blocks[n];
  mi_collect(true);
  size_t before = slices_in_use();
  for (int round = 0; round < 50; round++) {
    for (int i = 0; i < n; i++) {
      size_t size = 600 * KiB + rng_below(r, 6 * MiB);
      blocks[i] = mi_malloc(size);
      CHECK(mi_usable_size(blocks[i]) <= (size + MI_SLICE_SIZE) / 4 * 5);
    }
    for (int i = 0; i < n; i++) mi_free(blocks[i]);
    CHECK(slices_in_use() <= before + MI_KEPT_SLICES && n_kept() > keep_max);
    CHECK(mi_load_relaxed(&kept()->n_allowed) <= MI_KEPT_SLICES);
  }
  mi_free(mi_malloc(MiB + 64 * KiB));
  mi_collect(true);
  CHECK_EQ(slices_in_use(), before);
}

static const size_t one = MiB - KiB; // with padding, where there is some

// KE5: what two rounds find is gone, and what is allowed with it.
static void check_kept_rounds(void) {
  enum { n = 8 };
  void*       blocks[n];
  mi_theap_t* theap = _mi_theap_backing();
  for (int i = 0; i < n; i++) blocks[i] = mi_malloc(one);
  for (int i = 0; i < n; i++) mi_free(blocks[i]);
  _mi_large_drop_unused(theap); // none was used again, but all have just been freed
  CHECK(n_kept() == n * MiB / MI_SLICE_SIZE && kept()->n_room == 0);
  for (int i = 0; i < n / 2; i++) blocks[i] = mi_malloc(one);
  _mi_large_drop_unused(theap);
  CHECK(n_kept() == 0 && mi_load_relaxed(&kept()->n_allowed) == n / 2 * MiB / MI_SLICE_SIZE);
  for (int i = 0; i < n / 2; i++) mi_free(blocks[i]);
  CHECK(n_kept() == n / 2 * MiB / MI_SLICE_SIZE);
  _mi_large_drop_unused(theap);
  _mi_large_drop_unused(theap);
  CHECK(!_mi_kept_any(kept()));
}

// KE6: what is larger serves, and of what is left of it others are made.
// A size of which none is kept takes the place of the largest that is; nothing takes the place of its own size.
static void check_kept_instead(void) {
  enum { n = 3 };
  void *big = mi_malloc(4 * MiB - 100 * KiB), *small[n];
  for (size_t i = 0; i < n; i++) small[i] = mi_malloc(MiB - 100 * KiB);
  mi_page_t *of_big = _mi_page_of(big), *of_small = _mi_page_of(small[0]);
  size_t     n_slices = of_small->n_slices;
  mi_store_relaxed(&kept()->n_credit, (size_t)0);
  mi_free(big);
  CHECK(is_kept(of_big) && kept()->n_room == 0);
  mi_free(small[0]);
  CHECK(is_kept(of_small));
  CHECK_EQ(n_kept(), n_slices);
  set_room(0); // as if more were kept
  mi_free(small[1]);
  CHECK(is_kept(of_small) && _mi_page_of(small[1]) != of_small);
  CHECK_EQ(kept()->n_room, 0);
  set_room(mi_load_relaxed(&kept()->n_allowed) - n_slices);
  mi_free(small[2]);
  CHECK_EQ(n_kept(), 2 * n_slices);
  mi_collect(true);
  CHECK(n_kept() == 0 && !_mi_kept_any(kept()));
}

static void check_kept_larger(void) {
  mi_collect(true);
  char*  p = (char*)mi_malloc(3 * MiB);
  size_t before = slices_in_use(), n_slices = _mi_page_of(p)->n_slices;
  memset(p, 1, 3 * MiB);
  mi_free(p);
  CHECK_EQ(n_kept(), n_slices);
  CHECK((char*)mi_zalloc(MiB) == p && is_zero(p, 0, MiB));
  CHECK_EQ(n_kept(), 0);
  CHECK_EQ(slices_in_use(), before - n_slices + _mi_page_of(p)->n_slices);
  CHECK(mi_usable_size(p) < 2 * MiB && mi_heap_check(NULL));
  mi_free(p);
}

// KE3, KE6: what was kept and is in use again does not count as free, and what went to the arena for a larger block may not be kept.
static void check_kept_counts(void) {
  enum { n = 6, n_each = 3 * MiB / MI_SLICE_SIZE };
  void* blocks[n];
  mi_collect(true);
  for (int i = 0; i < n; i++) blocks[i] = mi_malloc(n_each * MI_SLICE_SIZE - KiB);
  for (int i = 0; i < n; i++) mi_free(blocks[i]);
  size_t n_before = _mi_purge_n_backed();
  CHECK(n_kept() == n * n_each && n_before >= n * n_each);
  for (int i = 0; i < n; i++) blocks[i] = mi_malloc(n_each * MI_SLICE_SIZE - KiB);
  CHECK_EQ(_mi_purge_n_backed(), n_before - n * n_each);
  CHECK_EQ(mi_load_relaxed(&kept()->n_allowed), n * n_each);
  for (int i = 0; i < n; i++) mi_free(blocks[i]);
  void* larger = mi_malloc(5 * MiB);
  CHECK(n_kept() == (n - 2) * n_each && kept()->n_room == 0);
  mi_free(larger);
  mi_collect(true);
  CHECK(_mi_purge_n_backed() == 0 && !_mi_kept_any(kept()));
}

// KE6: two of one list, of which the second is a little larger than what is asked for; neither is lost.
static void check_kept_pair(void) {
  mi_collect(true);
  size_t before = slices_in_use();
  for (int i = 0; i < 2; i++) {
    void* smaller = mi_malloc(40 * MI_SLICE_SIZE - 64);
    void* larger = mi_malloc(43 * MI_SLICE_SIZE - 64);
    mi_free(i == 0 ? smaller : larger);
    mi_free(i == 0 ? larger : smaller);
    void* p = mi_malloc(41 * MI_SLICE_SIZE - 64);
    CHECK(mi_heap_check(NULL));
    mi_free(p);
    mi_collect(true);
    CHECK_EQ(slices_in_use(), before);
  }
}

// KE6: buffers of many sizes.
static void check_kept_missed(rng_t* r) {
  enum { n = 4 };
  mi_collect(true);
  for (size_t round = 0, most = 0; round < 300; round++) {
    void*  blocks[n];
    size_t live = 0;
    for (int i = 0; i < n; i++) {
      size_t n_slices = 8 + rng_below(r, 80);
      blocks[i] = mi_malloc(n_slices * MI_SLICE_SIZE);
      live += _mi_page_of(blocks[i])->n_slices;
      if (live > most) most = live;
      CHECK_FOR(live + n_kept() <= most, "round %zu: %zu and %zu, %zu before", round, live, n_kept(), most);
    }
    for (int i = 0; i < n; i++) mi_free(blocks[i]);
  }
  mi_collect(true);
}

static void* malloc_eight(void* arg) {
  for (int i = 0; i < 8; i++) ((void**)arg)[i] = mi_malloc(one);
  return NULL;
}

static void* free_eight(void* arg) {
  for (int i = 0; i < 8; i++) mi_free(((void**)arg)[i]);
  return NULL;
}

static void* free_eight_with_theap(void* arg) {
  mi_free(mi_malloc(1));
  free_eight(arg);
  CHECK(n_kept() == 0);
  return NULL;
}

static void run_thread(void* (*function)(void*), void* arg) {
  pthread_t thread;
  pthread_create(&thread, NULL, function, arg);
  pthread_join(thread, NULL);
}

// L3: the thread that has asked keeps what others free, with a theap or without.
static void check_kept_by_asker(void) {
  void* blocks[8];
  for (int i = 0; i < 2; i++) {
    mi_collect(true);
    malloc_eight(blocks);
    run_thread(i == 0 ? &free_eight : &free_eight_with_theap, blocks);
    CHECK_EQ(n_kept(), 8 * MiB / MI_SLICE_SIZE);
    CHECK(is_kept(_mi_page_of(blocks[0])));
    malloc_eight(blocks);
    CHECK_EQ(n_kept(), 0);
    free_eight(blocks);
  }
}

// KE4, if that has ended.
static void check_kept_by_freer(void) {
  void* blocks[8];
  mi_collect(true);
  run_thread(&malloc_eight, blocks);
  free_eight(blocks);
  CHECK_EQ(n_kept(), MiB / MI_SLICE_SIZE);
}

// Somebody else is at the set: its thread does without.
static void check_kept_taken(void) {
  mi_collect(true);
  void* p = mi_malloc(one);
  mi_free(p);
  CHECK(n_kept() > 0);
  mi_store_relaxed(&kept()->is_taken, 1u);
  void* q = mi_malloc(one);
  CHECK(q != p);
  mi_free(q);
  _mi_large_drop_unused(_mi_theap_backing());
  mi_store_relaxed(&kept()->is_taken, 0u);
  CHECK(n_kept() == MiB / MI_SLICE_SIZE && mi_malloc(one) == p);
  mi_free(p);
}

static void* keep_and_end(void* arg) {
  mi_free(mi_malloc(3 * MiB));
  CHECK(n_kept() > 0);
  return arg;
}

static void run_keepers(int n) {
  for (int i = 0; i < n; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, &keep_and_end, NULL);
    pthread_join(thread, NULL);
  }
}

// The first ones make theaps, which rest before others have them.
static void check_kept_by_threads(void) {
  run_keepers(MI_VACANT_REST + 1);
  mi_collect(true);
  size_t before = slices_in_use();
  run_keepers(20);
  CHECK_EQ(slices_in_use(), before);
}

// Does the system say what can be read?  Linux does from 5.14 on; elsewhere what was freed is not looked at.
static bool can_look(void) {
  char* p = (char*)mi_malloc(4 * MiB);
  p[0] = 1;
  bool can = (_mi_prim_populate_read(p, _mi_prim_os_page_size()) == 0);
  mi_free(p);
  return can;
}

// DE4: the system clears zeros only while little of them is used; they are zeros in any case.
static void check_thin(void) {
  const size_t size = 8 * MiB;
  const bool   looks = can_look();
  for (int i = 0; i < 4; i++) {
    char* dirty = (char*)mi_malloc(size);
    memset(dirty, 1, size);
    mi_free(dirty); // backed, as nothing is purged
    char* zeros = (char*)mi_zalloc(size);
    CHECK(zeros != NULL && is_zero(zeros, 0, size));
    if (i % 2 == 0) zeros[size / 2] = 1;
    else memset(zeros, 1, size);
    mi_free(zeros);
    CHECK_EQ(_mi_dense_is_thin(size), looks && i % 2 == 0);
    CHECK(!_mi_dense_is_thin(MI_THIN_MIN - 1));
  }
}

// DE6: while zeros are thin, a smaller block that is kept is cleared by the system as well, if it holds little.
static void check_little(void) {
  const size_t size = 2 * MiB;
  mi_free(mi_zalloc(8 * MiB)); // thin
  for (int i = 0; i < 6; i++) {
    char* p = (char*)mi_malloc(size);
    memset(p, i == 4 ? 1 : 0, size);
    mi_free(p);
    int64_t before = mi_load_relaxed(&_mi_prim_calls.n_purged);
    char*   zeros = (char*)mi_zalloc(size);
    CHECK(zeros == p && is_zero(zeros, 0, size));
    bool is_purged = (mi_load_relaxed(&_mi_prim_calls.n_purged) - before >= (int64_t)size);
    CHECK(is_purged == (can_look() && i != 4) || (MI_PADDING && !is_purged)); // padding may be what is looked at
    mi_free(zeros);
  }
  mi_collect(true);
}

// KE4: a block that is kept and used again was not asked for in vain, and earns no room for more.
static void check_not_in_vain(void) {
  size_t before = 0;
  for (size_t i = 0; i < 40; i++) {
    mi_free(mi_malloc(MI_MiB));
    if (i == 20) before = mi_load_relaxed(&kept()->n_credit);
  }
  CHECK(mi_load_relaxed(&kept()->n_credit) <= before);
  mi_collect(true);
}

// A large block of slices in which the program has left a part without access, and which the system does not make accessible, is nobody's
// until it does.
static void check_no_access(void) {
  const size_t size = 34 * MiB;
  char*        p = (char*)mi_malloc(size);
  for (int i = 0; i < 40 && _mi_page_is_mapped(_mi_page_of(p)); i++) { // until it is seen that such blocks come again
    memset(p, 1, size);
    mi_free(p);
    p = (char*)mi_malloc(size);
  }
  memset(p, 1, size);
  if (_mi_page_is_mapped(_mi_page_of(p))) {
    test_skip("a part without access", "such a block has a mapping of its own");
    mi_free(p);
    return;
  }
  size_t n_slices = _mi_page_of(p)->n_slices, before = slices_in_use();
  CHECK_EQ(_mi_prim_make_readable(_mi_page_start(_mi_page_of(p)) + 16 * MiB, MiB), 0);
  _mi_prim_fail_nth(1, true);
  mi_free(p);
  _mi_prim_fail_nth(0, false);
  CHECK_EQ(slices_in_use(), before);
  mi_free(mi_malloc(MiB)); // the system is asked again
  mi_collect(true);
  CHECK_EQ(slices_in_use(), before - n_slices);
  p = (char*)mi_malloc(size);
  CHECK(p != NULL);
  if (p != NULL) memset(p, 1, size);
  mi_free(p);
  mi_collect(true);
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1);
  mi_free(mi_malloc(1));
  check_free();
  check_offset(&r);
  if (!can_look()) test_skip("large blocks of which little is used", "the system does not say what can be read");
  if (may_keep) {
    check_thin();
    check_little();
    check_not_in_vain();
    check_kept();
    check_not_kept();
    check_kept_sizes(&r);
    check_kept_rounds();
    check_kept_instead();
    check_kept_larger();
    check_kept_counts();
    check_kept_pair();
    check_kept_missed(&r);
    check_kept_by_asker();
    check_kept_by_freer();
    check_kept_taken();
    check_kept_by_threads();
  }
  if (may_keep && MI_PRIM_VIRTUAL && !MI_PRIM_CHARGES && can_look() && _mi_recur_may()) check_no_access();
  return check_result();
}
