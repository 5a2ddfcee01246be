// Proves: guarded blocks lie where they should for every size, alignment and offset; records find their blocks; freed runs
// are used again in order; each system call may fail; an armed theap loses no block of its bins, whatever allocates
// meanwhile.
#include "../check.h"
#include <pthread.h>
#include "../modes/support.h"
#include "heap/bin.h"
#include "heap/event.h"
#include "heap/presence.h"
#include "heap/background.h"
#include "heap/idle.h"
#include "heap/outbox.h"
#include "heap/guard.h"
#include "heap/sampler.h"
#include "heap/thread.h"
#include "support/stat.h"

// ---- places ---------------------------------------------------------------------------------------------------------

static void check_place(size_t size, size_t align, size_t offset, bool is_precise, bool is_before) {
  mi_guard_request_t r = {size, align, offset, is_precise, is_before, 0};
  mi_guard_place_t   at;
  size_t             page = _mi_prim_os_page_size();
  bool               ok = _mi_guard_place(&r, &at);
  CHECK_FOR(ok, "size %zu, align %zu, offset %zu", size, align, offset);
  if (!ok) return;
  size_t end = at.block + (size == 0 ? 1 : size);
  size_t real = (align > 1 || is_precise ? align : 16);
  bool   good = (at.block + offset) % real == 0                                       // aligned
              && at.data % page == 0 && at.data_end % page == 0                       // whole OS pages
              && at.data >= page && at.data_end + page <= at.n_slices * MI_SLICE_SIZE // between inaccessible ones
              && at.data <= at.block && at.block < at.data + page && end <= at.data_end && end + page > at.data_end;
  CHECK_FOR(good, "size %zu, align %zu, offset %zu, precise %d, before %d: block %zu in [%zu, %zu) of %zu slices", size,
            align, offset, is_precise, is_before, at.block, at.data, at.data_end, at.n_slices);
  CHECK_FOR(at.n_slices <= (size + 2 * page + real + page) / MI_SLICE_SIZE + 1 + real / MI_SLICE_SIZE,
            "%zu slices for %zu", at.n_slices, size);
  CHECK_EQ(at.align, real > MI_SLICE_SIZE ? real / MI_SLICE_SIZE : 1);
  // As near to its end of memory as its alignment allows.
  if (is_before && offset == 0) CHECK_FOR(at.block == (real > page ? real : page), "before: %zu", at.block);
  if (!is_before && real <= page)
    CHECK_FOR(at.data_end - end < real, "size %zu, align %zu: %zu behind", size, align, at.data_end - end);
}

static void check_places(void) {
  rng_t rng = rng_make(1);
  for (size_t align = 1; align <= MI_CHUNK_SIZE; align *= 2) {
    for (int i = 0; i < 2000; i++) {
      size_t size = rng_size(&rng, 300000);
      size_t offset = i % 3 == 0 ? 0 : rng_size(&rng, 300000);
      check_place(size, align, offset, i % 2 == 0, i % 5 == 0);
    }
  }
  for (size_t size = 0; size < 10000; size++) check_place(size, 1, 0, true, false);
  check_place(MI_GiB, 1, 0, false, false);
  mi_guard_place_t   at;
  mi_guard_request_t large = {2 * MI_GiB, 1, 0, false, false, 0},
                     aligned = {100, 2 * MI_CHUNK_SIZE, 0, false, false, 0};
  mi_guard_request_t absurd = {SIZE_MAX - 4, 1, 0, true, false, 0};
  CHECK(!_mi_guard_place(&large, &at) && !_mi_guard_place(&aligned, &at) && !_mi_guard_place(&absurd, &at));
}

// ---- records --------------------------------------------------------------------------------------------------------

static void* guard_malloc(size_t size) {
  mi_guard_request_t r = {size, 1, 0, false, false, 0};
  return _mi_guard_malloc(&_mi_heap_main, &r);
}

static void check_records(void) {
  enum { n = 600 };
  static char* blocks[n];
  size_t       live = _mi_guard_count(MI_GUARD_LIVE);
  for (size_t i = 0; i < n; i++) {
    blocks[i] = (char*)guard_malloc(i + 1);
    CHECK(blocks[i] != NULL);
  }
  CHECK_EQ(_mi_guard_count(MI_GUARD_LIVE) - live, n);
  for (size_t i = 0; i < n; i++) {
    const mi_guard_t* guard = _mi_guard_find((uintptr_t)blocks[i]);
    CHECK(guard != NULL && guard->block == blocks[i] && guard->size == i + 1 && guard->allocated.thread != 0);
    CHECK(guard == _mi_guard_find((uintptr_t)guard->start) && guard == _mi_guard_find((uintptr_t)guard->end - 1));
    CHECK(_mi_guard_has(blocks[i]));
  }
  CHECK(_mi_guard_find((uintptr_t)&live) == NULL && _mi_guard_find(0) == NULL && !_mi_guard_has(&live));
  // The runs of the first that are freed are the first that are used again, but not before there are enough.
  for (size_t i = 0; i < n; i++) {
    mi_free(blocks[i]);
    CHECK(_mi_guard_count(MI_GUARD_FREED) <= MI_GUARD_FREED_MAX);
  }
  CHECK_EQ(_mi_guard_count(MI_GUARD_LIVE), live);
  CHECK_EQ(_mi_guard_count(MI_GUARD_FREED), MI_GUARD_FREED_MAX);
  for (size_t i = n - MI_GUARD_FREED_MAX; i < n; i++) {
    const mi_guard_t* guard = _mi_guard_find((uintptr_t)blocks[i]);
    CHECK(guard != NULL && guard->block == blocks[i] && guard->freed.thread != 0);
    void* p = guard_malloc(i + 1);
    CHECK_FOR(p == blocks[i], "%zu", i);
    CHECK(p == NULL || is_zero(p, 0, i + 1));
    mi_free(p);
  }
  // Large ones keep little address space.
  for (size_t i = 0; i < 100; i++) mi_free(guard_malloc(10 * MI_MiB));
  CHECK(_mi_guard_count(MI_GUARD_FREED) <= MI_GUARD_FREED_SLICES * MI_SLICE_SIZE / (10 * MI_MiB));
  // One that is larger than that stays until the next one is freed, and is not used at once.
  void* p = guard_malloc(100 * MI_MiB);
  CHECK(p != NULL);
  mi_free(p);
  CHECK_EQ(_mi_guard_count(MI_GUARD_FREED), 1);
  const mi_guard_t* guard = _mi_guard_find((uintptr_t)p);
  CHECK(guard != NULL && guard->block == p && guard->freed.thread != 0);
  void* q = guard_malloc(100 * MI_MiB);
  CHECK(q != NULL && q != p);
  mi_free(q);
  CHECK(_mi_guard_count(MI_GUARD_FREED) == 1 && _mi_guard_find((uintptr_t)p) == NULL);
}

// A run that could not be purged as its block was freed is not taken for zero when a smaller block has been in it since.
static void check_not_purged(void) {
  enum { large = 50000, small = 50 };
  char* dirty = (char*)guard_malloc(large);
  memset(dirty, 0xaa, large);
  _mi_prim_fail_nth(1, true);
  mi_free(dirty);
  _mi_prim_fail_nth(0, false);
  const mi_guard_t* guard = _mi_guard_find((uintptr_t)dirty);
  CHECK(guard != NULL && !guard->is_zero);
  bool was_small = false, was_large = false;
  for (size_t i = 0; i < 2 * MI_GUARD_FREED_MAX + 2; i++) {
    char* p = (char*)guard_malloc(small);
    was_small |= (_mi_guard_find((uintptr_t)p) == guard);
    mi_free(p);
  }
  for (size_t i = 0; i < 2 * MI_GUARD_FREED_MAX + 2; i++) {
    char* p = (char*)guard_malloc(large);
    was_large |= (_mi_guard_find((uintptr_t)p) == guard);
    CHECK_FOR(is_zero(p, 0, large), "block %zu", i);
    mi_free(p);
  }
  CHECK(was_small && was_large);
}

static bool is_accessible(const char* p) {
  int  ends[2];
  bool ok = (pipe(ends) == 0 && write(ends[1], p, 1) == 1);
  close(ends[0]);
  close(ends[1]);
  return ok;
}

// A run that could not be made inaccessible, and was written to since, is not taken for zero.
static void check_not_protected(void) {
  enum { size = 50000 };
  char* written = NULL;
  for (size_t nth = 1; nth < 5 && written == NULL; nth++) {
    char* p = (char*)guard_malloc(size);
    _mi_prim_fail_nth(nth, false);
    mi_free(p);
    _mi_prim_fail_nth(0, false);
    if (is_accessible(p)) written = (char*)hidden_pointer(p);
  }
  CHECK(written != NULL);
  memset(written, 0xaa, size);
  bool is_used = false;
  for (size_t i = 0; i < 2 * MI_GUARD_FREED_MAX + 2; i++) {
    char* p = (char*)guard_malloc(size);
    is_used |= (p == written);
    CHECK_FOR(is_zero(p, 0, size), "block %zu", i);
    mi_free(p);
  }
  CHECK(is_used);
}

// The same of what a block gave up when it shrank, and gets again.
static void check_shrunk_not_protected(void) {
  enum { large = 90000, small = 50000 };
  char*      p = (char*)guard_malloc(large);
  mi_page_t* page = _mi_page_of(p);
  char*      behind = NULL;
  for (size_t nth = 1; nth < 5 && behind == NULL; nth++) {
    CHECK(_mi_guard_resize(page, large));
    _mi_prim_fail_nth(nth, false);
    CHECK(_mi_guard_resize(page, small));
    _mi_prim_fail_nth(0, false);
    if (is_accessible(page->guard->data_end)) behind = page->guard->data_end;
  }
  CHECK(behind != NULL);
  memset(behind, 0xaa, 10000);
  CHECK(_mi_guard_resize(page, large) && is_zero(behind, 0, 10000));
  mi_free(p);
}

// ---- resizing -------------------------------------------------------------------------------------------------------

static int last_error;

static void on_error(int err, void* arg) {
  (void)arg;
  last_error = err;
}

// To a size below `limit`: it fits, or nothing changes.
static void check_resize_to(mi_page_t* page, char* p, size_t size) {
  const mi_guard_t* guard = page->guard;
  size_t            os_page = _mi_prim_os_page_size(), old = guard->size;
  char*             end = (char*)mi_align_up((uintptr_t)p + size, os_page);
  bool              fits = (size >= old / 2 && end + os_page <= guard->end);
  CHECK_FOR(_mi_guard_resize(page, size) == fits, "%zu to %zu", old, size);
  if (!fits) size = old;
  CHECK(guard->size == size && page->asked == size && guard->data_end >= p + size &&
        guard->data_end < p + size + os_page);
  // What was there before, or zero.  When it shrank there was the fill, too, but not behind the end that it had last.
  size_t n_other = 0;
  for (size_t i = 0; i < size; i++) {
    bool is_fill = ((unsigned char)p[i] == 0xE5 && i >= old + 128);
    n_other += (p[i] != 7 && ((p[i] != 0 && !is_fill) || i < old));
  }
  CHECK_FOR(n_other == 0, "%zu to %zu: %zu", old, size, n_other);
  CHECK(is_accessible(guard->data_end - 1) && !is_accessible(guard->data_end));
  memset(p, 7, size);
}

static void check_resize(void) {
  rng_t              rng = rng_make(2);
  mi_guard_request_t r = {MI_MiB + 5, 1, 0, false, false, 200000};
  char*              p = (char*)_mi_guard_malloc(&_mi_heap_main, &r);
  mi_page_t*         page = _mi_page_of(p);
  size_t             room = (size_t)(page->guard->end - p);
  CHECK(room >= r.size + r.room + _mi_prim_os_page_size() && _mi_guard_resize(page, r.size + r.room));
  memset(p, 7, page->guard->size);
  for (int i = 0; i < 300; i++) check_resize_to(page, p, rng_below(&rng, room + 10000));
  CHECK(_mi_guard_resize(page, MI_MiB + 3));
  mi_register_error(&on_error, NULL);
  p[MI_MiB + 3] = 1;
  mi_free(p);
  CHECK_EQ(last_error, EFAULT);
  mi_register_error(NULL, NULL);
}

// ---- failing calls --------------------------------------------------------------------------------------------------

// A guarded block, or an ordinary one when that cannot be had; each is a block, and nothing is lost.
static void check_failures(void) {
  mi_option_set(mi_option_guarded_sample_rate, 1);
  for (int round = 0; round < 3; round++) {
    size_t size = (round == 0 ? 100 : round == 1 ? 70000 : 3 * MI_MiB);
    size_t live = _mi_guard_count(MI_GUARD_LIVE), n_fallen = 0;
    for (size_t nth = 1; nth < 12; nth++) {
      _mi_prim_fail_nth(nth, false);
      char* p = (char*)mi_malloc(size);
      char* q = (char*)mi_zalloc_aligned(size, 128);
      _mi_prim_fail_nth(0, false);
      CHECK_FOR(p != NULL && q != NULL, "round %d, call %zu", round, nth);
      n_fallen += !_mi_guard_has(p) + !_mi_guard_has(q);
      CHECK(is_zero(q, 0, size) && is_aligned(q, 128));
      memset(p, 1, size);
      memset(q, 1, size);
      _mi_prim_fail_nth(nth, false);
      mi_free(p);
      mi_free(q);
      _mi_prim_fail_nth(0, false);
    }
    // Where large blocks are always guarded, they are tried twice.
    CHECK_FOR(n_fallen > 0 || (MI_HARDENED && round == 2), "round %d: no call failed", round);
    CHECK_EQ(_mi_guard_count(MI_GUARD_LIVE), live);
  }
  // All of them at once.
  _mi_prim_fail_nth(1, true);
  void* p = mi_malloc(200);
  mi_free(p);
  _mi_prim_fail_nth(0, false);
  CHECK(p != NULL);
  mi_option_set(mi_option_guarded_sample_rate, 0);
}

// ---- armed theaps ---------------------------------------------------------------------------------------------------

static size_t bin_count(const mi_bin_t* bin) {
  size_t n = 0;
  for (const mi_block_t* b = bin->head; b != NULL; b = _mi_page_next_block(b)) n++;
  return n;
}

static void fill_bins(void) {
  static void* blocks[100];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_malloc(8 + 20 * i);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
}

// A round takes what the thread has, if that sleeps from now on.
static bool is_outside(mi_theap_t* theap) {
  return mi_load_relaxed(&theap->presence) == MI_THEAP_OUTSIDE;
}

static void check_arming(void) {
  static mi_bin_t before[MI_CLASS_COUNT];
  static size_t   counts[MI_CLASS_COUNT];
  mi_theap_t*     theap = _mi_thread_theap();
  fill_bins();
  memcpy(before, theap->bins, sizeof(before));
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) counts[cls] = bin_count(&before[cls]);
  CHECK_EQ(mi_load_relaxed(&_mi_event_pending), 0);
  mi_option_set(mi_option_guarded_sample_seed, 20401); // the first block is not one that is guarded
  mi_option_set(mi_option_guarded_sample_rate, 500);
  CHECK(mi_load_relaxed(&_mi_event_pending) == 2 && theap->sampler->is_armed && is_outside(theap));
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    CHECK(theap->bins[cls].head == NULL && theap->bins[cls].slots < 0);
    CHECK(theap->sampler->bins[cls].head == before[cls].head);
  }
  // Blocks still come from there, and go to their pages.
  size_t cls = _mi_size_class_of(108 + MI_PADDING_SIZE); // one of those that were filled
  size_t n = counts[cls];
  CHECK(n > 0);
  void* p = mi_malloc(108);
  CHECK(p == before[cls].head);
  mi_free(p);
  CHECK(theap->bins[cls].head == NULL);
  CHECK_EQ(bin_count(&theap->sampler->bins[cls]), n - 1);
  mi_option_set(mi_option_guarded_sample_rate, 0);
  CHECK(mi_load_relaxed(&_mi_event_pending) == 0 && !theap->sampler->is_armed && is_outside(theap));
  for (size_t i = 0; i < MI_CLASS_COUNT; i++) {
    size_t was = counts[i] - (i == cls), now = bin_count(&theap->bins[i]);
    CHECK_FOR(now == was, "class %zu: %zu blocks, not %zu", i, now, was);
    CHECK_EQ(theap->bins[i].limit, before[i].limit);
  }
}

static void* exit_armed(void* arg) {
  (void)arg;
  fill_bins();
  // In a new thread; where a tool watches every block (MI_TRACK), allocating does not ask for a sampler, and there is none.
  const mi_sampler_t* sampler = _mi_thread_theap()->sampler;
  CHECK(MI_TRACK ? sampler == NULL : sampler != NULL && sampler->is_armed);
  return NULL;
}

static int64_t page_count(void) {
  mi_stats_t stats;
  _mi_stat_snapshot(&stats);
  return stats.pages.current;
}

// What an armed theap has in its bins goes back when it has to give everything up, and when its thread ends.
static void check_giving_up(void) {
  pthread_t thread;
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
  fill_bins();
  mi_option_set(mi_option_guarded_sample_rate, 500);
  fill_bins();
  mi_collect(true);
  CHECK_EQ(page_count(), 0);
  pthread_create(&thread, NULL, &exit_armed, NULL);
  pthread_join(thread, NULL);
  CHECK_EQ(page_count(), 0);
  mi_option_set(mi_option_guarded_sample_rate, 0);
  CHECK_EQ(mi_load_relaxed(&_mi_event_pending), 0);
}

static size_t n_deferred;

// Allocates within an allocation: of the same class, of others, and with everything given up meanwhile.
static void deferred(bool force, unsigned long long beat, void* arg) {
  void* blocks[30];
  (void)beat;
  (void)arg;
  if (force) return;
  n_deferred++;
  for (size_t i = 0; i < COUNT_OF(blocks); i++) blocks[i] = mi_malloc(60 + i);
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  if (n_deferred % 3 == 0) mi_collect(false);
  if (n_deferred % 5 == 0) mi_option_set(mi_option_guarded_sample_rate, 300 + (long)(n_deferred % 5));
}

static void check_nesting(void) {
  static void* blocks[500];
  mi_theap_t*  theap = _mi_thread_theap();
  mi_register_deferred_free(&deferred, NULL);
  mi_option_set(mi_option_guarded_sample_rate, 300);
  for (size_t i = 0; i < 100000; i++) {
    size_t k = i % COUNT_OF(blocks);
    mi_free(blocks[k]);
    blocks[k] = mi_malloc(60 + i % 30);
    memset(blocks[k], 1, 60);
  }
  mi_register_deferred_free(NULL, NULL);
  CHECK_FOR(n_deferred > 100, "%zu calls", n_deferred);
  mi_option_set(mi_option_guarded_sample_rate, 0);
  for (size_t k = 0; k < COUNT_OF(blocks); k++) mi_free(blocks[k]);
  // No block was lost: all pages of these classes are empty, but for those that the class keeps.
  mi_collect(true);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    CHECK(theap->bins[cls].head == NULL && theap->sampler->bins[cls].head == NULL);
    CHECK(theap->classes[cls].queue.count == 0 && theap->classes[cls].full.count == 0);
  }
  mi_stats_t stats;
  _mi_stat_snapshot(&stats);
  CHECK_FOR(stats.pages_abandoned.current == 0, "%lld pages have lost blocks",
            (long long)stats.pages_abandoned.current);
}

// ---- ticks ----------------------------------------------------------------------------------------------------------

static size_t count_without_room(void) {
  const mi_theap_t* theap = _mi_thread_theap();
  size_t            n = 0;
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) n += (theap->bins[cls].slots < MI_BIN_NO_SLOTS / 2);
  return n;
}

// Whether bins stay as they are, or lose their room, while there are rounds.  One may have begun before: there are some tries.
static bool rounds_take_room(bool do_they) {
  mi_theap_t* theap = _mi_thread_theap();
  for (int tries = 0; tries < 10; tries++) {
    mi_collect(true); // nothing is in a bin: all its room is left
    for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) theap->bins[cls].slots = theap->bins[cls].limit;
    for (int i = 0; i < 10; i++) {
      _mi_event_wake();
      sleep_ms(20);
      _mi_presence_enter(theap); // it is not idle
      _mi_presence_leave(theap);
      _mi_event_poll();
    }
    if ((count_without_room() > 0) == do_they) return true;
  }
  return false;
}

// Slow mallocs may be wanted for something else than to count.
static void check_ticks(void) {
  mi_option_set(mi_option_purge_delay, 10);
  mi_fetch_add_relaxed(&_mi_event_pending, MI_EVENT_ORPHANS);
  CHECK(rounds_take_room(false));
  mi_fetch_sub_relaxed(&_mi_event_pending, MI_EVENT_ORPHANS);
  mi_option_set(mi_option_guarded_sample_rate, 100000000);
  if (!MI_TSAN) CHECK(rounds_take_room(true));
  mi_option_set(mi_option_guarded_sample_rate, 0);
}

// Empties a bin that has so much room.  How much it has then: 1: all, 0: none, -1: some.
static int room_of_emptied(int32_t room) {
  mi_theap_t* theap = _mi_thread_theap();
  size_t      cls = _mi_size_class_of(108 + MI_PADDING_SIZE);
  mi_bin_t*   bin = &theap->bins[cls];
  mi_free(mi_malloc(108));
  _mi_presence_enter(theap);
  bin->slots = room;
  _mi_outbox_return_bin(theap, cls);
  _mi_presence_leave(theap);
  CHECK(bin->head == NULL && bin->limit > 1);
  return bin->slots == bin->limit ? 1 : _mi_bin_has_no_slots(bin->slots) ? 0 : -1;
}

// What a round took stays taken while anybody samples (SA3), whatever else empties the bin.  Other bins have all their room, and
// so have all of them when nobody does: else frees would pay for it.
static void check_emptied(void) {
  CHECK_EQ(mi_load_relaxed(&_mi_event_pending), 0);
  CHECK_EQ(room_of_emptied(MI_BIN_NO_SLOTS), 1);
  mi_fetch_add_relaxed(&_mi_event_pending, 1); // another theap
  CHECK_EQ(room_of_emptied(1), 1);
  CHECK_EQ(room_of_emptied(MI_BIN_NO_SLOTS), 0);
  mi_fetch_sub_relaxed(&_mi_event_pending, 1);
  CHECK_EQ(room_of_emptied(1), 1);
}

// SA5: at a low rate most allocations look at no setting.
static void check_credit(void) {
  size_t n_looks = 0;
  mi_option_set(mi_option_guarded_sample_rate, 100000000);
  mi_free(mi_malloc(100)); // the bins may have been filled before
  const mi_sampler_t* s = _mi_thread_theap()->sampler;
  for (size_t i = 0; i < 3000; i++) {
    int64_t before = s->credit;
    mi_free(mi_malloc(100));
    n_looks += (s->credit >= before);
  }
  CHECK_FOR(n_looks < 100, "%zu", n_looks);
  mi_option_set(mi_option_guarded_sample_rate, 0);
}

// Heaps that prefer a node have guarded blocks, too.
static void check_numa(void) {
  mi_guard_request_t request = {100, 1, 0, false, false, 0};
  mi_heap_t*         heaps[] = {mi_heap_new(), mi_heap_main()};
  for (size_t i = 0; i < COUNT_OF(heaps); i++) {
    mi_heap_set_numa_affinity(heaps[i], 0);
    void* p = _mi_guard_malloc(heaps[i], &request);
    CHECK(p != NULL);
    mi_free(p);
    mi_heap_set_numa_affinity(heaps[i], -1);
  }
  mi_heap_delete(heaps[0]);
}

// A guarded block ends where the program's request ends, though other blocks that grow get more than that.
static void check_grown(void) {
  enum { n = 400, size = 1000, more = 1100 };
  size_t n_guarded = 0;
  mi_option_set(mi_option_guarded_sample_rate, 2);
  for (size_t i = 0; i < n; i++) {
    void* p = mi_malloc(size);
    bool  was_guarded = _mi_guard_has(p);
    p = mi_realloc(p, more);
    if (!was_guarded && _mi_guard_has(p)) {
      n_guarded++;
      CHECK_EQ(mi_usable_size(p), more);
    }
    mi_free(p);
  }
  mi_option_set(mi_option_guarded_sample_rate, 0);
  CHECK_FOR(n_guarded > n / 20, "%zu", n_guarded);
}

int main(void) {
  watchdog(300);
  check_arming();
  check_giving_up();
  if (!MI_TRACK) { // a tool watches every block: none is guarded, and it is not told of guards' memory
    check_places();
    check_records();
    check_not_purged();
    check_not_protected();
    check_shrunk_not_protected();
    check_resize();
    check_failures();
    check_nesting();
    check_emptied();
    check_credit();
    check_grown();
    check_numa();
    check_ticks();
  }
  return check_result();
}
