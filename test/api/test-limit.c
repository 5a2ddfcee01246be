// Proves: what mimalloc-limit.h says of limits on memory: what is refused and how, that everything works again afterwards, what is
// counted, and when, where and how often the hook is called; for the process and for heaps.
#include "../check.h"
#include "../modes/support.h"
#include <mimalloc-limit.h>
#include <mimalloc.h>
#include <pthread.h>
#include "base/mode.h"

enum { n_max = 70000, n_wait = 64 };

// Elsewhere a large block is copied when it is resized, and counts twice meanwhile.
#if defined(__linux__)
enum { has_remap = !MI_TRACK };
#else
enum { has_remap = false };
#endif

// In WebAssembly nothing that has come goes, so it counts for ever, and free memory is used under any limit.
#if defined(__wasm__)
enum { only_grows = true };
#else
enum { only_grows = false };
#endif

static void* blocks[n_max];

// All that is free where memory only grows, so that what is allocated next needs more of it.
typedef struct held_s {
  struct held_s* next;
} held_t;

static held_t* held;

static void give_back_held(void) {
  for (held_t* next; held != NULL; held = next) {
    next = held->next;
    mi_free(held);
  }
}

static void hold_free_memory(void) {
  static const size_t sizes[] = {4 * MiB, 600 * KiB, 64 * KiB, 8 * KiB};
  CHECK_EQ(mi_limit_set(1, 0), 0);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    for (held_t* p; (p = (held_t*)mi_malloc(sizes[i])) != NULL; held = p) p->next = held;
  }
}

static void set_limits(size_t hard, size_t soft) {
  mi_collect(true);
  if (only_grows) hold_free_memory();
  size_t base = mi_limit_used();
  CHECK_EQ(mi_limit_set(hard == 0 ? 0 : base + hard, soft == 0 ? 0 : base + soft), 0);
}

static void end_limits(void) {
  CHECK_EQ(mi_limit_set(0, 0), 0);
  give_back_held();
}

// Blocks until there are no more; how many.
static size_t fill(mi_heap_t* heap, size_t size) {
  size_t n = 0;
  while (n < n_max && (blocks[n] = (heap == NULL ? mi_malloc(size) : mi_heap_malloc(heap, size))) != NULL) {
    memset(blocks[n], (int)n, size);
    n++;
  }
  return n;
}

static void empty(size_t n) {
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
}

static bool are_whole(size_t n, size_t size) {
  for (size_t i = 0; i < n; i++) {
    const unsigned char* p = (const unsigned char*)blocks[i];
    if (p[0] != (unsigned char)i || p[size - 1] != (unsigned char)i) return false;
  }
  return true;
}

// ---- setting ----------------------------------------------------------------------------------------------------------

static void check_set(void) {
  size_t hard = 1, soft = 1;
  mi_limit_get(&hard, &soft);
  CHECK_EQ(hard, 0);
  CHECK_EQ(soft, 0);
  CHECK_EQ(mi_limit_set(100 * MiB, 101 * MiB), EINVAL);
  mi_limit_get(&hard, &soft);
  CHECK_EQ(hard, 0);
  CHECK_EQ(mi_limit_set(100 * MiB, 100 * MiB), 0);
  CHECK_EQ(mi_limit_set(0, 50 * MiB), 0);
  mi_limit_get(NULL, &soft);
  CHECK_EQ(soft, 50 * MiB);
  CHECK_EQ(mi_limit_set(60 * MiB, 0), 0);
  mi_limit_get(&hard, NULL);
  CHECK_EQ(hard, 60 * MiB);
  CHECK_EQ(mi_limit_set(0, 0), 0);
  CHECK_EQ(mi_heap_limit_set(NULL, MiB, 0), EINVAL);
  CHECK_EQ(mi_heap_limit_set(mi_heap_main(), MiB, 0), EINVAL);
  CHECK_EQ(mi_heap_limit_used(NULL), 0);
  mi_heap_limit_get(NULL, &hard, &soft);
  CHECK_EQ(hard, 0);
  CHECK_EQ(soft, 0);
  size_t container = mi_limit_container();
  CHECK(container == 0 || container >= 16 * MiB);
}

// ---- refusing ---------------------------------------------------------------------------------------------------------

static int n_errors, last_error;

static void on_error(int err, void* arg) {
  (void)arg;
  n_errors++;
  last_error = err;
}

static void check_refused(size_t size) {
  mi_register_error(&on_error, NULL);
  set_limits(24 * MiB, 0);
  size_t hard;
  mi_limit_get(&hard, NULL);
  n_errors = 0;
  errno = 0;
  size_t n = fill(NULL, size);
  CHECK_FOR(n > 0 && n < n_max, "%zu of %zu bytes", n, size);
  CHECK_EQ(errno, ENOMEM);
  CHECK_EQ(n_errors, 1);
  CHECK_EQ(last_error, ENOMEM);
  CHECK(mi_limit_used() <= hard);
  CHECK(are_whole(n, size));
  // Nothing is lost by what is refused: not a block that was to be resized either.
  for (int i = 0; i < 20; i++) CHECK(mi_realloc(blocks[0], 30 * MiB) == NULL && mi_calloc(1, 30 * MiB) == NULL);
  CHECK(mi_malloc_aligned(30 * MiB, 4 * MiB) == NULL);
  CHECK(mi_malloc(100 * MiB) == NULL);
  CHECK(are_whole(n, size));
  CHECK(mi_limit_used() <= hard);
  // It works again as soon as something is free (where freed blocks wait, as soon as more of them are than can wait),
  size_t n_freed = (MI_HARDENED && n > n_wait ? n_wait + 1 : 1);
  for (size_t i = 0; i < n_freed; i++) mi_free(blocks[--n]);
  blocks[n] = mi_malloc(size);
  CHECK_FOR(blocks[n] != NULL, "%zu bytes", size);
  n++;
  // for another size as well,
  empty(n);
  n = fill(NULL, size * 3 / 2 + 100);
  CHECK(n * (size * 3 / 2 + 100) >= 12 * MiB);
  // or the limit was raised.
  CHECK_EQ(mi_limit_set(hard + 64 * MiB, 0), 0);
  void* p = mi_malloc(40 * MiB);
  CHECK(p != NULL);
  memset(p, 1, 40 * MiB);
  // A limit below what is in use takes nothing away.
  CHECK_EQ(mi_limit_set(MiB, 0), 0);
  CHECK(mi_malloc(only_grows ? 30 * MiB : MiB) == NULL); // where some is free after requests that were refused
  CHECK(((char*)p)[39 * MiB] == 1);
  mi_free(p);
  empty(n);
  end_limits();
  mi_register_error(NULL, NULL);
}

// A block that grows a little gets more than was asked for if there is room.  If there is not, that is no failure.
static void check_grows_quietly(void) {
  enum { before = 390000, after = 450000 };
  size_t n_grown = 0;
  mi_register_error(&on_error, NULL);
  for (size_t i = 0; i < 64; i++) {
    mi_collect(true);
    char* p = (char*)memset(mi_malloc(before), 1, before);
    mi_collect(true);
    set_limits(i * 16 * KiB + 1, 0);
    n_errors = 0;
    errno = 0;
    char* q = (char*)mi_realloc(p, after);
    if (q != NULL) CHECK_FOR(errno == 0 && n_errors == 0, "%zu slices: errno %d, %d errors", i, errno, n_errors);
    n_grown += (q != NULL);
    set_limits(0, 0);
    mi_free(q != NULL ? q : p);
  }
  CHECK_FOR(n_grown > 8, "%zu grew", n_grown);
  mi_register_error(NULL, NULL);
}

// A large block grows to nearly all of the limit: its old place does not count beside the new one.
static void check_growth_by_moves(void) {
  set_limits(32 * MiB, 0);
  void*  between[32];
  size_t n = 0;
  char*  p = (char*)mi_malloc(8 * MiB);
  memset(p, 7, 8 * MiB);
  for (size_t size = 9 * MiB; size <= 20 * MiB; size += MiB) {
    between[n++] = mi_malloc(640 * KiB); // so that it cannot grow where it is, as a rule
    char* q = (char*)mi_realloc(p, size);
    CHECK_FOR(q != NULL && q[0] == 7 && q[8 * MiB - 1] == 7, "%zu MiB", size / MiB);
    if (q != NULL) p = q;
  }
  mi_free(p);
  while (n > 0) mi_free(between[--n]);
  end_limits();
}

static void check_growth(void) {
  set_limits(64 * MiB, 0);
  size_t size = MiB;
  char*  p = (char*)mi_malloc(size);
  memset(p, 7, size);
  for (size_t next = 2 * MiB; next <= 56 * MiB; next += MiB) {
    char* q = (char*)mi_realloc(p, next);
    CHECK_FOR(q != NULL, "%zu MiB", next / MiB);
    if (q == NULL) break;
    p = q;
    memset(p + size, 7, next - size);
    size = next;
  }
  CHECK(is_zero(p, 0, 0) && p[0] == 7 && p[size - 1] == 7);
  mi_free(p);
  end_limits();
}

// ---- the hook ---------------------------------------------------------------------------------------------------------

typedef struct seen_s {
  int        n[2], depth, max_depth;
  mi_heap_t* heap;
  size_t     used;
  pthread_t  thread;
  void*      cache; // what it gives up
  bool       greedy;
} seen_t;

static void on_limit(mi_limit_event_t event, mi_heap_t* heap, size_t used, void* arg) {
  seen_t* seen = (seen_t*)arg;
  if (++seen->depth > seen->max_depth) seen->max_depth = seen->depth;
  seen->n[event]++;
  seen->heap = heap;
  seen->used = used;
  seen->thread = pthread_self();
  errno = 77;
  mi_free(mi_malloc(1000));                               // it may allocate,
  if (seen->greedy) CHECK(mi_malloc(1024 * MiB) == NULL); // also what is refused,
  mi_free(seen->cache);                                   // and free
  seen->cache = NULL;
  seen->depth--;
}

static void check_soft_hook(void) {
  seen_t seen = {{0, 0}, 0, 0, NULL, 0, pthread_self(), NULL, false};
  set_limits(0, 16 * MiB);
  mi_limit_hook(&on_limit, &seen);
  size_t soft;
  mi_limit_get(NULL, &soft);
  double start = now_seconds();
  errno = 5;
  size_t n = 0;
  for (; n < 24 * MiB / (16 * KiB); n++) {
    blocks[n] = mi_malloc(16 * KiB);
    CHECK(blocks[n] != NULL);
  }
  CHECK_EQ(errno, 5);
  CHECK_EQ(seen.n[mi_limit_hard], 0);
  CHECK_FOR(seen.n[mi_limit_soft] == 1 || now_seconds() - start > 0.9, "%d times", seen.n[mi_limit_soft]);
  CHECK(seen.n[mi_limit_soft] >= 1);
  CHECK(seen.used > soft);
  if (seen.n[mi_limit_soft] == 1) CHECK(seen.used <= soft + MiB); // of the last call
  CHECK(seen.heap == NULL && pthread_equal(seen.thread, pthread_self()));
  // Once more after it was below,
  empty(n);
  for (int round = 0; round < 3 && !only_grows; round++) {
    mi_collect(true);
    int before = seen.n[mi_limit_soft];
    n = 0;
    for (; n < 24 * MiB / (16 * KiB); n++) blocks[n] = mi_malloc(16 * KiB);
    CHECK(seen.n[mi_limit_soft] > before);
    empty(n);
  }
  // but not for what is only retained.
  mi_collect(true);
  int before = seen.n[mi_limit_soft];
  for (int round = 0; round < 50; round++) {
    void* p = mi_malloc(10 * MiB);
    memset(p, 1, 10 * MiB);
    mi_free(p);
    for (n = 0; n < 10 * MiB / (16 * KiB); n++) {
      blocks[n] = mi_malloc(16 * KiB);
      memset(blocks[n], 1, 16 * KiB);
    }
    empty(n);
  }
  if (!MI_HARDENED) CHECK_EQ(seen.n[mi_limit_soft], before); // large blocks wait there
  end_limits();
  mi_limit_hook(NULL, NULL);
}

static void check_soft_again(void) {
  seen_t seen = {{0, 0}, 0, 0, NULL, 0, pthread_self(), NULL, false};
  set_limits(0, 4 * MiB);
  mi_limit_hook(&on_limit, &seen);
  double start = now_seconds();
  size_t n = 0;
  for (double first = start; n < 400 && now_seconds() - first < 2.2;) {
    blocks[n++] = mi_malloc(100 * KiB);
    if (n > 60) sleep_ms(5);
    else first = now_seconds(); // the first call is somewhere here
  }
  CHECK_FOR(seen.n[mi_limit_soft] >= 2 && seen.n[mi_limit_soft] <= 2 + (int)(now_seconds() - start), "%d times",
            seen.n[mi_limit_soft]);
  empty(n);
  end_limits();
  mi_limit_hook(NULL, NULL);
}

static void check_hard_hook(void) {
  seen_t seen = {{0, 0}, 0, 0, NULL, 0, pthread_self(), NULL, true};
  set_limits(16 * MiB, 0);
  mi_limit_hook(&on_limit, &seen);
  seen.cache = mi_malloc(6 * MiB);
  void* p = mi_malloc(12 * MiB); // the hook makes room for it
  CHECK(p != NULL);
  CHECK_EQ(seen.n[mi_limit_hard], 1);
  CHECK_EQ(seen.max_depth, 1);
  CHECK(mi_malloc(12 * MiB) == NULL); // now it cannot
  CHECK_EQ(seen.n[mi_limit_hard], 2);
  double start = now_seconds();
  for (int i = 0; i < 20; i++) CHECK(mi_malloc(12 * MiB) == NULL);
  CHECK(seen.n[mi_limit_hard] == 2 || now_seconds() - start > 0.09);
  sleep_ms(120);
  CHECK(mi_malloc(12 * MiB) == NULL);
  CHECK(seen.n[mi_limit_hard] >= 3);
  mi_free(p);
  end_limits();
  mi_limit_hook(NULL, NULL);
}

// ---- heaps ------------------------------------------------------------------------------------------------------------

// Resizing counts.
static void check_heap_resize(mi_heap_t* heap) {
  void* p = mi_heap_malloc(heap, MiB);
  for (size_t size = 2 * MiB; size <= 7 * MiB; size += MiB) {
    p = mi_heap_realloc(heap, p, size);
    CHECK(p != NULL && mi_heap_limit_used(heap) >= size && mi_heap_limit_used(heap) <= size + 2 * MiB);
  }
  CHECK(mi_heap_realloc(heap, p, 9 * MiB) == NULL);
  CHECK_EQ(mi_heap_limit_set(heap, 20 * MiB, 0), 0);
  void* behind = mi_malloc(8 * MiB); // it may have to move
  p = mi_heap_realloc(heap, p, 18 * MiB + MiB / 2);
  CHECK_FOR(p != NULL && mi_heap_limit_used(heap) <= 20 * MiB, "%zu", mi_heap_limit_used(heap));
  mi_free(behind);
  CHECK_EQ(mi_heap_limit_set(heap, 80 * MiB, 0), 0);
  p = mi_heap_realloc(heap, p, 40 * MiB); // a mapping of its own
  CHECK(p != NULL && mi_heap_limit_used(heap) >= 40 * MiB);
  CHECK(mi_heap_realloc(heap, p, 81 * MiB) == NULL);
  p = mi_heap_realloc(heap, p, 70 * MiB);
  CHECK(p != NULL && mi_heap_limit_used(heap) >= 70 * MiB);
  p = mi_heap_realloc(heap, p, 33 * MiB);
  CHECK(p != NULL && mi_heap_limit_used(heap) < 40 * MiB);
  mi_free(p);
}

static void check_heap(void) {
  seen_t     seen = {{0, 0}, 0, 0, NULL, 0, pthread_self(), NULL, false};
  mi_heap_t* heap = mi_heap_new();
  mi_heap_t* other = mi_heap_new();
  size_t     hard, soft;
  mi_limit_hook(&on_limit, &seen);
  CHECK_EQ(mi_heap_limit_used(heap), 0);
  CHECK_EQ(mi_heap_limit_set(heap, 2 * MiB, 3 * MiB), EINVAL);
  CHECK_EQ(mi_heap_limit_set(heap, 8 * MiB, 4 * MiB), 0);
  mi_heap_limit_get(heap, &hard, &soft);
  CHECK(hard == 8 * MiB && soft == 4 * MiB);
  static const size_t sizes[] = {200, 5000, 100 * KiB, MiB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    errno = 0;
    size_t n = fill(heap, sizes[i]);
    CHECK_EQ(errno, ENOMEM);
    CHECK_FOR(n * sizes[i] >= 6 * MiB && n * sizes[i] <= 8 * MiB, "%zu of %zu bytes", n, sizes[i]);
    CHECK(mi_heap_limit_used(heap) <= 8 * MiB && mi_heap_limit_used(heap) >= n * sizes[i]);
    CHECK(seen.n[mi_limit_soft] > 0 && seen.n[mi_limit_hard] > 0 && seen.heap == heap);
    CHECK(are_whole(n, sizes[i]));
    void* p = mi_malloc(20 * MiB); // of another heap
    void* q = mi_heap_malloc(other, 2 * MiB);
    CHECK(p != NULL && q != NULL);
    mi_free(p);
    mi_free(q);
    empty(n);
    mi_heap_collect(heap, true);
  }
  CHECK_EQ(mi_heap_limit_used(heap), 0);
  if (!MI_HARDENED && has_remap) check_heap_resize(heap); // where large blocks have room to grow
  void* p = mi_heap_malloc(heap, MiB);
  CHECK(p != NULL);
  CHECK_EQ(mi_heap_limit_set(heap, 80 * MiB, 0), 0);
  mi_heap_destroy(heap); // with its block
  CHECK_EQ(mi_heap_limit_set(heap, MiB, 0), EINVAL);
  heap = mi_heap_new(); // maybe in the same place
  mi_heap_limit_get(heap, &hard, &soft);
  CHECK(hard == 0 && soft == 0 && mi_heap_limit_used(heap) == 0);
  p = mi_heap_malloc(heap, 20 * MiB);
  CHECK(p != NULL);
  mi_heap_delete(heap); // its block is the main heap's now
  CHECK(((char*)memset(p, 1, 20 * MiB))[20 * MiB - 1] == 1);
  mi_free(p);
  mi_heap_delete(other);
  mi_limit_hook(NULL, NULL);
}

// Room for one block is enough, where a page of its class has eight times as much.
static void check_room_for_one(mi_heap_t* heap) {
  static const size_t slice = 64 * KiB;
  for (size_t size = 9000; size < 450 * KiB; size += size / 5) {
    size_t room = (mi_good_size(size) / slice + 2) * slice;
    if (heap == mi_heap_main()) set_limits(room, 0);
    else CHECK_EQ(mi_heap_limit_set(heap, room, 0), 0);
    unsigned char* p = (unsigned char*)mi_heap_zalloc(heap, size);
    CHECK(p != NULL && mi_usable_size(p) >= size && p[0] == 0 && p[size - 1] == 0);
    mi_free(p);
    if (heap == mi_heap_main()) end_limits();
  }
}

static void check_rooms_for_one(void) {
  mi_heap_t* heap = mi_heap_new();
  check_room_for_one(mi_heap_main());
  check_room_for_one(heap);
  mi_heap_delete(heap);
}

int main(void) {
  watchdog(120);
  mi_option_set(mi_option_show_errors, 0);
  check_set();
  static const size_t sizes[] = {400, 3000, 20 * KiB, 200 * KiB, 2 * MiB};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) check_refused(sizes[i]);
  if (has_remap) check_growth();
  if (!MI_CHECKED && !MI_TRACK && !only_grows) check_growth_by_moves();
  check_soft_hook();
  check_soft_again();
  if (!MI_HARDENED) check_hard_hook(); // large blocks wait there after they were freed, and are given up first
  check_heap();
  if (!only_grows) check_rooms_for_one();
  check_grows_quietly(); // last: freed guarded blocks wait, and would be in the way
  CHECK(mi_heap_check(NULL));
  return check_result();
}
