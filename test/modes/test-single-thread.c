// Proves: a program with one thread keeps one thread, whatever it frees: it may leave its namespace, may forbid itself to start
// threads, and libc knows that there is one.  What stays resident when it then sleeps is at most 1/16 of what was freed and at
// most 32 MiB, but for 2 MiB, a page of each class, and two chunks of which parts were freed just before; or what it used at most, if
// it swung by that until then.
#define _GNU_SOURCE
#include "../check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <mimalloc.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include "tasks.h"

enum { n_blocks = 600000, part_seconds = 120, hold_ms = 4000 };

static void*    blocks[n_blocks];
static size_t   sizes[n_blocks];
static uint64_t seed;
static bool     may_unshare;

extern char __libc_single_threaded __attribute__((weak));

// ---- what must hold afterwards ------------------------------------------------------------------------------------------

// A page of each class may stay besides, since the last blocks that were freed are in bins, and parts of huge pages do not go at
// once (AM4).
static void check_stays(const char* what, size_t base, size_t freed, size_t n_classes) {
  size_t share = (freed / 16 < 32 * MiB ? freed / 16 : 32 * MiB);
  char   text[80];
  snprintf(text, sizeof(text), "%s: %zu MiB freed, stays", what, freed / MiB);
  CHECK_FOR(
      rss_within(text, minus(rss_now(), base), share + 2 * MiB + n_classes * 64 * KiB + (n_classes > 0 ? 4 * MiB : 0)),
      "%s", what);
}

static void check_alone(void) {
  CHECK_EQ(task_count(), 1);
  CHECK_EQ(library_task(), 0);
  if (&__libc_single_threaded != NULL) CHECK(__libc_single_threaded);
  if (may_unshare) CHECK_FOR(unshare(CLONE_NEWUSER) == 0, "%s", strerror(errno));
}

// ---- what is freed ------------------------------------------------------------------------------------------------------

static void* make(size_t size) {
  return memset(mi_malloc(size), 1, size);
}

static void one_block(size_t size) {
  size_t base = rss_now();
  mi_free(make(size));
  check_stays("one block", base, size, 0);
}

static void one_block_4(void) {
  one_block(4 * MiB);
}
static void one_block_16(void) {
  one_block(16 * MiB);
}
static void one_block_100(void) {
  one_block(100 * MiB);
}
static void one_block_400(void) {
  one_block(400 * MiB);
}

static size_t fill(size_t n, size_t min, size_t below, rng_t* rng) {
  size_t bytes = 0;
  for (size_t i = 0; i < n; i++) {
    sizes[i] = min + rng_below(rng, below - min);
    blocks[i] = make(sizes[i]);
    bytes += sizes[i];
  }
  return bytes;
}

static void shuffle(size_t n, rng_t* rng) {
  for (size_t i = n; i > 1; i--) {
    size_t k = rng_below(rng, i);
    void*  block = blocks[i - 1];
    blocks[i - 1] = blocks[k];
    blocks[k] = block;
  }
}

static void free_all(size_t n) {
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
}

static void small_blocks(void) {
  rng_t  rng = rng_make(seed);
  size_t base = rss_now();
  size_t freed = fill(n_blocks, 100, 101, &rng);
  free_all(n_blocks);
  check_stays("small blocks", base, freed, 1);
}

// What a part took again is held (AM3).  A hold ends after four seconds at most (RC4), and what was held goes with the next free.
static void end_hold(void) {
  sleep_ms(hold_ms);
  mi_free(make(16 * MiB));
}

static void any_order(void) {
  rng_t  rng = rng_make(seed + 1);
  size_t base = rss_now();
  size_t freed = fill(60000, 8, 4000, &rng);
  shuffle(60000, &rng);
  free_all(60000);
  sleep_ms(500); // what is used again at once may stay, up to 32 MiB
  freed += fill(300, 4000, 1 * MiB, &rng);
  shuffle(300, &rng);
  free_all(300);
  end_hold();
  check_stays("any order", base, freed, 64);
}

// To give back what it swings by may have become dear, so that what it used at most stays until the hold is over (AM5).
static void oscillation(void) {
  rng_t  rng = rng_make(seed + 2);
  size_t base = rss_now(), freed = 0, most = 0;
  for (size_t i = 0; i < 20; i++) {
    size_t large = fill(30, 1 * MiB, 3 * MiB, &rng);
    free_all(30);
    size_t small = fill(20000, 100, 2000, &rng);
    free_all(20000);
    freed += large + small;
    if (large > most) most = large;
  }
  CHECK(rss_within("oscillation, at once", minus(rss_now(), base), 2 * most));
  end_hold();
  check_stays("oscillation", base, freed, 64);
}

// Again, but not at once: so it is no oscillation.
static void now_and_then(void) {
  rng_t  rng = rng_make(seed + 3);
  size_t base = rss_now();
  for (size_t i = 0; i < 4; i++) {
    size_t freed = fill(40000, 500, 501, &rng);
    free_all(40000);
    sleep_ms(700);
    check_stays("now and then", base, freed, 1);
  }
}

static void reallocation(void) {
  size_t   base = rss_now(), size = 1 * MiB;
  uint8_t* p = (uint8_t*)make(size);
  for (; size < 256 * MiB; size *= 2) {
    p = (uint8_t*)mi_realloc(p, 2 * size);
    memset(p + size, 2, size);
  }
  p = (uint8_t*)mi_realloc(p, 100);
  check_stays("realloc", base, size, 1);
  mi_free(p);
}

// ---- and where threads are forbidden --------------------------------------------------------------------------------------

static bool forbid_threads(void) {
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void forbidden(void) {
  if (!forbid_threads()) {
    test_skip("threads forbidden", "no seccomp filters");
    return;
  }
  small_blocks();
}

static bool can_unshare(void) {
  int   status = 0;
  pid_t pid = fork();
  if (pid == 0) _exit(unshare(CLONE_NEWUSER) == 0 ? 0 : 1);
  return waitpid(pid, &status, 0) == pid && status == 0;
}

static void (*part_now)(void);

static void part_and_check(void) {
  part_now();
  check_alone();
}

int main(int argc, char** argv) {
  static const struct part_s {
    const char* name;
    void (*run)(void);
  } parts[] = {{"4 MiB", &one_block_4},       {"16 MiB", &one_block_16},       {"100 MiB", &one_block_100},
               {"400 MiB", &one_block_400},   {"small blocks", &small_blocks}, {"any order", &any_order},
               {"oscillation", &oscillation}, {"now and then", &now_and_then}, {"realloc", &reallocation},
               {"forbidden", &forbidden}};
  seed = test_seed(argc, argv);
  if (TEST_SANITIZED || task_count() != 1) {
    test_skip("alone", "the sanitizer has a thread of its own, or /proc is missing");
    return skip_code;
  }
  if (MI_API_LEVEL >= 3) mi_option_set(mi_option_purge_delay, 100); // at level 3 it is a second
  may_unshare = can_unshare();
  if (!may_unshare) test_skip("unshare", "not permitted here");
  for (size_t i = 0; i < n_blocks; i++) sizes[i] = 1, blocks[i] = &blocks[i]; // touched: not part of the account
  for (size_t i = 0; i < COUNT_OF(parts); i++) {
    part_now = parts[i].run;
    in_child(parts[i].name, &part_and_check, part_seconds);
  }
  return check_result();
}
