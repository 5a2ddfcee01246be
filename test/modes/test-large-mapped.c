// Proves: blocks of an alignment above that of a chunk cost linear time and no memory beside their own, as many as the
// system has mappings for; a large block grows and shrinks without being copied, under a limit on address space too;
// one that is freed is gone at once, but where such blocks come again, on both sides of 32 MiB, new or grown; a large calloc does
// not touch its memory; and threads that pass such blocks on while others fork lose none and share none.
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "../check.h"
#include <mimalloc.h>
#include "base/mode.h"
#include "populate.h"
#include "support.h"

enum { max_blocks = 16000 };
static void* blocks[max_blocks];

static size_t const align = 32 * MiB;

// CPU seconds to make and free n of them; *kib: what is resident for each.
static double aligned_seconds(size_t n, double* kib) {
  size_t rss = rss_now(), n_bad = 0;
  double start = cpu_seconds();
  for (size_t i = 0; i < n; i++) {
    blocks[i] = mi_malloc_aligned(100, align);
    if (blocks[i] == NULL || !is_aligned(blocks[i], align)) n_bad++;
    else *(char*)blocks[i] = 1;
  }
  *kib = (double)minus(rss_now(), rss) / KiB / (double)n;
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
  CHECK_EQ(n_bad, 0);
  return cpu_seconds() - start;
}

// Twice as long for each block as with a quarter of them would be much; when they were searched one by one it was four times.
static void check_many_aligned(void) {
  size_t n = (TEST_SANITIZED ? max_blocks / 8 : max_blocks);
  double kib, best_few = 1e9, best_many = 1e9;
  for (int run = 0; run < 3; run++) {
    double few = aligned_seconds(n / 4, &kib), many = aligned_seconds(n, &kib);
    best_few = few < best_few ? few : best_few;
    best_many = many < best_many ? many : best_many;
  }
  printf("%zu aligned blocks: %.1f ms, %zu: %.1f ms, %.1f KiB each\n", n / 4, best_few * 1e3, n, best_many * 1e3, kib);
  CHECK(best_many < 4 * 2.5 * best_few + 0.02);
  // The OS page that was touched, and a descriptor; the rest of the block's slice is not backed.
  if (rss_is_meaningful()) CHECK(kib < (MI_DEBUG > 0 || TEST_SANITIZED ? 70 : 6));
}

// The contents are seen at each step; a copy of 128 MiB takes at least 10 ms.
static void check_steps(void) {
  size_t   from = 128 * MiB, to = 192 * MiB, n_bad = 0;
  double   best = 1e9;
  uint8_t* p = (uint8_t*)mi_malloc(from);
  CHECK(p != NULL);
  if (p == NULL) return;
  for (size_t i = 0; i < from; i += 4096) p[i] = (uint8_t)(i / 4096);
  for (int run = 0; run < 3; run++) {
    double start = cpu_seconds();
    for (size_t size = from; size < to && p != NULL; size += MiB) {
      p = (uint8_t*)mi_realloc(p, size + MiB);
      if (p != NULL) p[size] = 1;
    }
    double seconds = cpu_seconds() - start;
    if (seconds < best) best = seconds;
    CHECK(p != NULL);
    if (p == NULL) return;
    for (size_t i = 0; i < from; i += 4096) n_bad += p[i] != (uint8_t)(i / 4096);
    CHECK_EQ(n_bad, 0);
    // Less than half, so that something goes back.
    p = (uint8_t*)mi_realloc(p, from / 4);
    p = (uint8_t*)mi_realloc(p, from);
    for (size_t i = from / 4; i < from; i += 4096) p[i] = (uint8_t)(i / 4096);
  }
  printf("64 steps of 1 MiB from 128 MiB on: %.3f ms each\n", best / 64 * 1e3);
  CHECK(best / 64 < 0.002);
  mi_free(p);
}

static void check_limited(char* self) {
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {(rlim_t)2000 * MiB, (rlim_t)2000 * MiB};
    setrlimit(RLIMIT_AS, &limit);
    execl(self, self, "steps", (char*)NULL);
    _exit(3);
  }
  int status = -1;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
}

// Neither a purge nor a wait: with the free it is gone, if nothing as large was freed just before (recur.h, CA1).
static void check_gone_at_once(void) {
  sleep_ms(300);
  size_t size = 100 * MiB, before = rss_now();
  char*  p = (char*)mi_malloc(size);
  CHECK(p != NULL);
  if (p == NULL) return;
  memset(p, 1, size);
  mi_free(p);
  CHECK(rss_within("after the free of 100 MiB", minus(rss_now(), before), 2 * MiB));
  p = (char*)mi_calloc(1, size);
  CHECK(p != NULL && p[0] == 0 && p[size - 1] == 0);
  CHECK(rss_within("with a calloc of 100 MiB", minus(rss_now(), before), 4 * MiB)); // both ends, maybe with huge pages
  mi_free(p);
}

// Of a block of rounds, from one to the next; and how much of a processor they had.
static double slowest, share;

// What `n` blocks cost in page faults, one after the other: each is written all over.  All of them must be writable, wherever the one
// before had no access.
static long rounds(size_t size, int n, bool leaves_no_access) {
  long   before = minor_faults();
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  double all_seconds = now_seconds(), busy_seconds = cpu_seconds();
  slowest = 0;
  for (int i = 0; i < n; i++) {
    double start_seconds = now_seconds();
    char*  p = (char*)(i % 5 == 4 ? mi_calloc(1, size) : mi_malloc(size));
    CHECK(p != NULL);
    if (p == NULL) break;
    if (i % 5 == 4) CHECK(p[0] == 0 && p[size / 2] == 0 && p[size - 1] == 0);
    else memset(p, i + 1, size);
    char* start = (char*)(((uintptr_t)p + page - 1) / page * page);
    if (leaves_no_access) CHECK_EQ(mprotect(start + size / 2, size / 4, PROT_NONE), 0);
    mi_free(p);
    double seconds = now_seconds() - start_seconds;
    if (seconds > slowest) slowest = seconds;
  }
  share = (cpu_seconds() - busy_seconds) / (now_seconds() - all_seconds);
  return minor_faults() - before;
}

// A hold is 10 ms for each MiB: who takes longer for a block on a busy machine has no more of it, nor has who waits most of the time
// (arena/hold.h, HD4).
static bool was_quick(size_t size) {
  return slowest < (double)(size / MiB) * 0.005 && share >= 0.6;
}

// Page faults of the last four of ten blocks that were all quick, the least of some attempts, or few; -1: there were no such ten.  On a busy
// machine some that are not quick enough for the library look so from here: then more are made.
static long quick_rounds(size_t size, long few) {
  long least = -1;
  for (int attempt = 0; attempt < (least < 0 ? 10 : 30); attempt++) {
    rounds(size, 6, false);
    bool is_quick = was_quick(size);
    long n = rounds(size, 4, false);
    if (!is_quick || !was_quick(size)) continue;
    if (least < 0 || n < least) least = n;
    if (least < few) break;
  }
  return least;
}

// The library has a thread of its own then, which makes rounds.
static void* wait_for_hold(void* arg) {
  const size_t* before = (const size_t*)arg;
  mi_free(mi_malloc(100));
  for (int i = 0; i < 200 && minus(rss_now(), *before) > 3 * MiB; i++) sleep_ms(100);
  CHECK(rss_within("when the hold is over, without a call", minus(rss_now(), *before), 3 * MiB));
  return NULL;
}

// A program that soon asks for another block of such a size pays for it once, and has nothing of it when it stops (arena/recur.h).
static void check_held(void) {
  if (!can_populate_read()) {
    test_skip("blocks that come again", "the system cannot be asked whether a block can be read");
    return;
  }
  size_t size = 64 * MiB, before = rss_now(), n_pages = size / (size_t)sysconf(_SC_PAGESIZE);
  mi_option_set(mi_option_allow_thp, 0); // so that pages are counted
  long few = (long)n_pages / 2, n = quick_rounds(size, few);
  bool is_quick = (n >= 0);
  if (!is_quick) test_skip("blocks that come again", "on this machine a block is written in more time than it is held");
  printf("4 blocks of 64 MiB that are written again: %ld page faults, of %zu pages\n", n, n_pages);
  if (rss_is_meaningful() && is_quick) CHECK(n < few);
  if (!MI_HARDENED && MI_DEBUG == 0 && !MI_PADDING) rounds(size, 10, true); // others touch it themselves
  for (size_t i = 0; i < 40; i++) rounds(size + i % 3 * 8 * MiB, 1, false);
  mi_collect(true);
  CHECK(rss_within("after a collection", minus(rss_now(), before), 2 * MiB));
  is_quick = (quick_rounds(size, few) >= 0);
  CHECK(!rss_is_meaningful() || !is_quick || minus(rss_now(), before) > size / 2);
  void** small = (void**)mi_malloc(size / 4096 * sizeof(void*)); // what is held gives way to small blocks
  for (size_t i = 0; i < size / 4096; i++) small[i] = memset(mi_malloc(4096), 1, 4096);
  CHECK(rss_within("with as much of small blocks", minus(rss_now(), before), size + size / 2));
  for (size_t i = 0; i < size / 4096; i++) mi_free(small[i]);
  mi_free(small);
  mi_collect(true);
  rounds(size, 3, false);
  sleep_ms(4100);
  mi_free(mi_malloc(33 * MiB));
  CHECK(rss_within("when the hold is over, after the next block", minus(rss_now(), before), 2 * MiB));
  rounds(size, 3, false);
  pthread_t thread;
  pthread_create(&thread, NULL, &wait_for_hold, &before);
  pthread_join(thread, NULL);
  mi_option_set(mi_option_allow_thp, 1);
}

// What writing costs in page faults from now on, with thp off so that each is of one OS page.
typedef struct spent_s {
  size_t n_pages; // written
  long   faults;
  double seconds, busy;
} spent_t;

static spent_t spent_now(void) {
  return (spent_t){0, minor_faults(), now_seconds(), cpu_seconds()};
}

static void check_spent(const char* name, const spent_t* spent, double min) {
  double ratio = (double)spent->n_pages / (double)(minor_faults() - spent->faults + 1);
  bool   is_busy = (cpu_seconds() - spent->busy >= 0.6 * (now_seconds() - spent->seconds));
  printf("%s: %.2f OS pages for each page fault\n", name, ratio);
  if (ratio < min && !is_busy) test_skip(name, "the machine is too busy for that");
  else if (rss_is_meaningful()) CHECK_FOR(ratio >= min, "%.2f", ratio);
}

// Sparse ones: of each four, one at least is looked at (dense.h, DE5).
static void use_little(size_t page) {
  for (int i = 0; i < 12; i++) {
    char* p = (char*)mi_malloc(60 * MiB);
    CHECK(p != NULL);
    for (size_t at = 0; at < 60 * MiB; at += 4 * page) p[at] = 1;
    mi_free(p);
  }
}

// Blocks on both sides of 32 MiB that are replaced have few page faults, since they serve each other; one of which little is written
// leaves nothing (CA3).
static void check_both_sides(void) {
  enum { n_buffers = 4 };
  char*   buffers[n_buffers] = {NULL};
  rng_t   r = rng_make(3);
  size_t  page = (size_t)sysconf(_SC_PAGESIZE), before = rss_now();
  spent_t spent = {0};
  if (!can_populate_read()) return;
  mi_option_set(mi_option_allow_thp, 0);
  for (int i = 0; i < 200; i++) {
    size_t size = 16 * MiB + rng_below(&r, 48 * MiB);
    if (i == 100) spent = spent_now();
    mi_free(buffers[i % n_buffers]);
    buffers[i % n_buffers] = (char*)mi_malloc(size);
    CHECK(buffers[i % n_buffers] != NULL);
    memset(buffers[i % n_buffers], i, size);
    spent.n_pages += size / page;
  }
  check_spent("blocks of 16 to 64 MiB that are replaced", &spent, 8);
  CHECK(rss_within("with four of them", minus(rss_now(), before), 2 * n_buffers * 64 * MiB));
  for (int i = 0; i < n_buffers; i++) mi_free(buffers[i]);
  mi_collect(true);
  use_little(page);
  CHECK(rss_within("after sparse ones", minus(rss_now(), before), 4 * MiB));
  mi_option_set(mi_option_allow_thp, 1);
}

// The same for buffers that double from 1 to 64 MiB, each at another time, and begin again.  When each of them was moved to a mapping
// of its own there were 0.8 OS pages for a fault.
static void check_growing(void) {
  enum { n_buffers = 4, n_steps = 600 };
  char*   buffers[n_buffers] = {NULL};
  size_t  sizes[n_buffers] = {0}, page = (size_t)sysconf(_SC_PAGESIZE), before = rss_now();
  rng_t   r = rng_make(4);
  spent_t spent = {0};
  if (!can_populate_read()) return;
  mi_option_set(mi_option_allow_thp, 0);
  for (int i = 0; i < n_steps; i++) {
    size_t k = rng_below(&r, n_buffers);
    size_t old_size = (sizes[k] >= 64 * MiB ? 0 : sizes[k]), size = (old_size == 0 ? MiB : 2 * old_size);
    if (i == n_steps / 2) spent = spent_now();
    if (old_size == 0) mi_free(buffers[k]), buffers[k] = NULL;
    char* p = (char*)mi_realloc(buffers[k], size);
    CHECK(p != NULL && (old_size == 0 || (p[0] == 1 && p[old_size - 1] == 1)));
    if (p == NULL) break;
    memset(p + old_size, 1, size - old_size);
    spent.n_pages += (size - old_size) / page;
    buffers[k] = p, sizes[k] = size;
  }
  check_spent("buffers that double up to 64 MiB", &spent, 1.2);
  CHECK(rss_within("with four of them", minus(rss_now(), before), 2 * n_buffers * 64 * MiB));
  for (int i = 0; i < n_buffers; i++) mi_free(buffers[i]);
  mi_collect(true);
  mi_option_set(mi_option_allow_thp, 1);
}

// ---- threads --------------------------------------------------------------------------------------------------------

enum { n_threads = 4, n_shared = 16 };
static _Atomic(uint64_t*) shared[n_shared];
static atomic_size_t      n_wrong;
static atomic_bool        is_over;

// A block says at both ends how large it is, and where it lies.
static void mark(uint64_t* p, size_t size) {
  p[0] = p[size / 8 - 1] = size;
  p[1] = (uint64_t)(uintptr_t)p;
}

static bool is_marked(const uint64_t* p) {
  size_t size = (size_t)p[0];
  return size >= MiB && size <= 64 * MiB && p[size / 8 - 1] == size && p[1] == (uint64_t)(uintptr_t)p;
}

static uint64_t* make_shared(rng_t* r) {
  size_t    size = (1 + rng_below(r, 48)) * MiB;
  uint64_t* p = (uint64_t*)(rng_below(r, 3) == 0 ? mi_malloc_aligned(size = MiB, align) : mi_malloc(size));
  if (p != NULL) mark(p, size);
  return p;
}

static void* work(void* arg) {
  rng_t r = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t i = 0; i < 200 * test_scale(); i++) {
    uint64_t* p = atomic_exchange(&shared[rng_below(&r, n_shared)], NULL);
    if (p != NULL && !is_marked(p)) atomic_fetch_add(&n_wrong, 1);
    if (p != NULL && rng_below(&r, 3) == 0) {
      size_t    size = (1 + rng_below(&r, 48)) * MiB, old = (size_t)p[0];
      uint64_t* q = (uint64_t*)mi_realloc(p, size);
      if (q != NULL && q[0] != old) atomic_fetch_add(&n_wrong, 1);
      if (q != NULL) mark(q, size);
      p = q;
    }
    else if (rng_below(&r, 2) == 0) {
      mi_free(p);
      p = make_shared(&r);
    }
    mi_free(atomic_exchange(&shared[rng_below(&r, n_shared)], p));
  }
  return NULL;
}

// What it finds is whole, and what it frees and makes is its own.
static void child_work(void) {
  rng_t r = rng_make(1);
  bool  ok = true;
  for (size_t i = 0; i < n_shared; i++) {
    uint64_t* p = atomic_exchange(&shared[i], NULL);
    if (p == NULL) continue;
    if (!is_marked(p)) ok = false;
    mi_free(p);
    p = make_shared(&r);
    if (p == NULL || !is_marked(p)) ok = false;
    mi_free(p);
  }
  _exit(ok ? 0 : 1);
}

static void* fork_often(void* arg) {
  while (!atomic_load(&is_over)) {
    int   status = -1;
    pid_t child = fork();
    if (child == 0) {
      alarm(60);
      child_work();
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) atomic_fetch_add(&n_wrong, 1);
    sleep_ms(10);
  }
  return arg;
}

static void check_threads(uint64_t seed) {
  pthread_t threads[n_threads], forker;
  bool      may_fork = !TEST_SANITIZED;
  if (may_fork) pthread_create(&forker, NULL, &fork_often, NULL);
  for (size_t i = 0; i < n_threads; i++) pthread_create(&threads[i], NULL, &work, (void*)(uintptr_t)(seed + i));
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  atomic_store(&is_over, true);
  if (may_fork) pthread_join(forker, NULL);
  for (size_t i = 0; i < n_shared; i++) mi_free(atomic_exchange(&shared[i], NULL));
  CHECK_EQ(atomic_load(&n_wrong), 0);
}

// The library reads a block when it is freed (arena/dense.h), but not what must not be read.
static void check_no_access(void) {
  char*  p = (char*)mi_malloc(64 * MiB);
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  CHECK(p != NULL);
  if (p == NULL) return;
  memset(p, 1, 64 * MiB);
  char* start = (char*)(((uintptr_t)p + page - 1) / page * page);
  CHECK_EQ(mprotect(start, 63 * MiB, PROT_NONE), 0);
  mi_free(p);
}

int main(int argc, char** argv) {
  watchdog(240);
  bool may_step = !TEST_SANITIZED && !MI_TRACK && !MI_HARDENED; // there large blocks are copied, or guarded
  if (argc > 1 && strcmp(argv[1], "steps") == 0) {
    check_steps();
    return check_result();
  }
  check_many_aligned();
  if (may_step) check_steps();
  if (may_step) check_limited(argv[0]);
  if (!TEST_SANITIZED) check_gone_at_once();
  if (may_step && MI_SECURE == 0) check_held();
  if (may_step && MI_SECURE == 0) check_both_sides();
  if (may_step && MI_SECURE == 0) check_growing();
  if (!TEST_SANITIZED && !MI_TRACK && !MI_HARDENED && MI_DEBUG == 0 && !MI_PADDING)
    check_no_access(); // others touch it themselves
  check_threads(test_seed(argc, argv));
  return check_result();
}
