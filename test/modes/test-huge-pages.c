// Proves: whatever the settings for huge OS pages, of the system, of the process, and of the allocator, a small program
// stays small and a larger one near what it uses; and a child process finds its own huge-page setting as its parent had
// it.
//
// Each case runs this program again; the child says how much memory it needs.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "huge.h"
#include "support.h"

#if !defined(MADV_COLLAPSE)
  #define MADV_COLLAPSE 25
#endif

enum { code_wrong_state = 253 }; // more than any size that is told

// Resident bytes of a program that allocates `n_blocks` small blocks, in units of 64 KiB so that it fits an exit code.
static int small_program(size_t n_blocks) {
  for (size_t i = 0; i < n_blocks; i++) {
    char* p = (char*)mi_malloc(16 + i % 200);
    if (p == NULL) return 255;
    *p = 1;
  }
  size_t wanted = test_env("MI_TEST_THP_DISABLED", 0);
  if ((size_t)prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) != wanted) return code_wrong_state;
  size_t units = rss_now() / (64 * KiB);
  return units > 250 ? 250 : (int)units;
}

static int run_small(size_t n_blocks, const char* setting, bool is_disabled, const char* program) {
  char number[32];
  snprintf(number, sizeof(number), "%zu", n_blocks + 1);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    if (is_disabled) prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
    setenv("MI_TEST_SMALL", number, 1);
    setenv("MI_TEST_THP_DISABLED", is_disabled ? "1" : "0", 1);
    if (setting != NULL) setenv("MIMALLOC_ALLOW_THP", setting, 1);
    execl("/proc/self/exe", program, (char*)NULL);
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void check_small_programs(const char* program) {
  static const char* const settings[] = {NULL, "0", "1", "2"};
  char                     system_setting[128] = "?";
  read_file("/sys/kernel/mm/transparent_hugepage/enabled", system_setting, sizeof(system_setting));
  printf("system: %s", system_setting);
  for (int is_disabled = 0; is_disabled <= 1; is_disabled++) {
    int without = run_small(0, NULL, is_disabled != 0, program);
    for (size_t i = 0; i < COUNT_OF(settings); i++) {
      int         one = run_small(1, settings[i], is_disabled != 0, program);
      int         many = run_small(2000, settings[i], is_disabled != 0, program);
      const char* name = settings[i] == NULL ? "default" : settings[i];
      printf("allow_thp %s, process %s: KiB resident with 0, 1, 2000 blocks: %d %d %d\n", name,
             is_disabled ? "without" : "with", without * 64, one * 64, many * 64);
      CHECK_FOR(one != code_wrong_state && many != code_wrong_state, "allow_thp %s: the process setting changed", name);
      if (!rss_is_meaningful()) continue;
      CHECK_FOR(one >= 0 && one <= without + 8, "allow_thp %s", name); // half a MiB
      // "Always" is asked for with 2: there a huge page may be taken for so much.
      CHECK_FOR(many >= 0 && many <= without + (i == 3 ? 80 : 24), "allow_thp %s", name);
    }
  }
}

// ---- a large heap ---------------------------------------------------------------------------------------------------

// A huge page is worth having where it will be filled: threads that each use a few blocks of many sizes must not get
// one for every block.
enum { n_threads = 8 };
static pthread_barrier_t barrier;
static const size_t      total_bytes = 64 * MiB;

static void* use_medium_sizes(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  for (size_t bytes = 0; bytes < total_bytes / n_threads;) {
    size_t size = 65000 + rng_below(&rng, 235000);
    void*  p = mi_malloc(size);
    if (p == NULL) break;
    memset(p, 0xAB, size);
    bytes += size;
  }
  pthread_barrier_wait(&barrier); // counted here
  pthread_barrier_wait(&barrier);
  return NULL;
}

static void check_large_heap(void) {
  pthread_t threads[n_threads];
  size_t    before = rss_now();
  pthread_barrier_init(&barrier, NULL, n_threads + 1);
  for (size_t i = 0; i < n_threads; i++) {
    CHECK_EQ(pthread_create(&threads[i], NULL, &use_medium_sizes, (void*)(uintptr_t)(i + 1)), 0);
  }
  pthread_barrier_wait(&barrier);
  CHECK(rss_within("64 MiB of medium blocks in 8 threads", minus(rss_now(), before), total_bytes / 2 * 3));
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
}

// Small blocks of a few sizes fill their pages: those get huge pages, and memory stays near what is used.
static void check_huge(void) {
  static char* blocks[1 << 17];
  size_t       before = rss_now(), bytes = 0, n = 0;
  for (; bytes < total_bytes && n < COUNT_OF(blocks); n++) {
    size_t size = 512 + n % 4 * 128;
    blocks[n] = (char*)mi_malloc(size);
    if (blocks[n] == NULL) break;
    memset(blocks[n], 0xAB, size);
    bytes += MI_PADDING ? mi_good_size(size) : size; // these are sizes of classes: with padding they take the next
  }
  size_t small_bytes = bytes;
  long   huge = huge_kib();
  bool   is_wanted = mi_option_get(mi_option_allow_thp) != 0;
  printf("64 MiB of small blocks, allow_thp %ld: %ld KiB of huge pages\n", mi_option_get(mi_option_allow_thp), huge);
  CHECK(rss_within("64 MiB of small blocks", minus(rss_now(), before), bytes + bytes / 16 + 2 * MiB));
  if (!is_wanted) CHECK(huge <= 0);
  else if (rss_is_meaningful() && system_gives_huge_pages()) CHECK(huge >= 32 * 1024);
  while (n > 0) mi_free(blocks[--n]);
  // What pages in huge-page chunks have given back is for all, before it goes back to the system.
  for (bytes = 0; bytes < total_bytes / 4 * 3; bytes += 20000) {
    blocks[n] = (char*)mi_malloc(20000);
    if (blocks[n] == NULL) break;
    memset(blocks[n++], 0xAB, 20000);
  }
  CHECK(rss_within("48 MiB of medium blocks after them", minus(rss_now(), before),
                   small_bytes + small_bytes / (MI_HARDENED ? 5 : 8)));
  while (n > 0) mi_free(blocks[--n]);
  mi_collect(true);
}

// Medium blocks that are written all over get huge pages, too, and those of which little is used get none, even after others that were
// (src/page/written.h).
enum { n_medium = 2048, medium_size = 30000, n_thin = 4096 };

static char* medium[n_thin];

static void malloc_medium(size_t n, size_t n_written) {
  for (size_t i = 0; i < n; i++) {
    medium[i] = (char*)mi_malloc(medium_size);
    if (medium[i] != NULL) memset(medium[i], 0xAB, n_written);
  }
}

static void free_medium(size_t n) {
  for (size_t i = 0; i < n; i++) mi_free(medium[i]);
  mi_collect(true);
}

static void check_medium(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE), before = rss_now();
  malloc_medium(n_medium, medium_size);
  long huge = huge_kib();
  printf("60 MiB of medium blocks: %ld KiB of huge pages\n", huge);
  CHECK(rss_within("60 MiB of medium blocks", minus(rss_now(), before), n_medium * medium_size / 8 * 9 + 4 * MiB));
  bool may_ask = (!MI_TRACK && !MI_HARDENED);
  if (may_ask && rss_is_meaningful() && system_gives_huge_pages()) CHECK(huge >= 32 * 1024);
  free_medium(n_medium);
  before = rss_now();
  malloc_medium(n_thin, 1);
  size_t bound = n_thin * 2 * page + 8 * MiB; // what was written, and a link that was written when the block was made
  bool   is_filled = (MI_FILL || MI_FILL_NEW);
  if (!is_filled) CHECK(rss_within("120 MiB of blocks of which little is used", minus(rss_now(), before), bound));
  free_medium(n_thin);
}

// So do blocks of many sizes, of each of which there are few pages.
static void check_medium_mixed(void) {
  rng_t  r = rng_make(1);
  size_t n = 0, bytes = 0;
  for (; n < n_thin && bytes < 32 * MiB; n++) {
    size_t size = 10000 + rng_below(&r, n % 2 == 0 ? 40000 : 190000);
    medium[n] = (char*)mi_malloc(size);
    if (medium[n] != NULL) memset(medium[n], 0xAB, size);
    bytes += size;
  }
  long huge = huge_kib();
  printf("32 MiB of blocks of 10 to 200 KB: %ld KiB of huge pages\n", huge);
  if (!MI_TRACK && !MI_HARDENED && rss_is_meaningful() && system_gives_huge_pages()) CHECK(huge >= 24 * 1024);
  free_medium(n);
}

// And so do large blocks, unless little of them is used.
static void check_large(void) {
  enum { n = 64 };
  size_t page = (size_t)sysconf(_SC_PAGESIZE), before = rss_now(), bytes = 0;
  long   huge_before = huge_kib();
  for (size_t i = 0; i < n; i++) {
    size_t size = 600 * KiB + i * 37 % 64 * 16 * KiB;
    medium[i] = (char*)mi_malloc(size);
    if (medium[i] != NULL) memset(medium[i], 0xAB, size);
    bytes += size;
  }
  long huge = huge_kib() - huge_before;
  printf("%zu MiB of blocks of 0.6 to 1.6 MB: %ld KiB of huge pages\n", bytes / MiB, huge);
  bool may_ask = (!MI_TRACK && !MI_HARDENED && rss_is_meaningful() && system_gives_huge_pages());
  if (may_ask) CHECK(huge >= 40 * 1024);
  CHECK(rss_within("with these", minus(rss_now(), before), bytes + n * 64 * KiB + 8 * MiB));
  for (size_t i = 0; i < n; i++) {
    size_t size = 2 * mi_usable_size(medium[i]);
    medium[i] = (char*)mi_realloc(medium[i], size);
    if (medium[i] != NULL) memset(medium[i], 0xAB, size);
  }
  huge = huge_kib() - huge_before;
  printf("twice as large: %ld KiB of huge pages\n", huge);
  if (may_ask) CHECK(huge >= 96 * 1024);
  for (size_t i = n; i < 2 * n; i++) {
    medium[i] = (char*)mi_malloc(MiB);
    if (medium[i] != NULL) memset(medium[i], 0xAB, page);
  }
  if (!MI_FILL && !MI_FILL_NEW)
    CHECK(rss_within("with 64 MiB of blocks of which little is used", minus(rss_now(), before), 2 * bytes + 48 * MiB));
  free_medium(2 * n);
}

// Makes huge pages of those around these addresses, as an idle system does where they are asked for; how many times it did.
static size_t collapse(char** blocks, size_t n, size_t step) {
  size_t n_collapsed = 0;
  for (size_t i = 0; i < n; i += step) {
    uintptr_t start = (uintptr_t)blocks[i] & ~(uintptr_t)(2 * MiB - 1);
    n_collapsed += (madvise((void*)start, 2 * MiB, MADV_COLLAPSE) == 0);
  }
  return n_collapsed;
}

static bool system_collapses(void) {
  char* memory = (char*)mmap(NULL, 4 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  char* middle = memory + 2 * MiB;
  *middle = 1;
  bool ok = (collapse(&middle, 1, 1) != 0);
  munmap(memory, 4 * MiB);
  return ok;
}

// 64 MiB of small blocks, each 256th of which stays.
enum { n_small = 1 << 16, small_size = 1024, small_step = 256 };
static char* small[n_small];

static void fill_small(void) {
  for (size_t i = 0; i < n_small; i++) {
    if (small[i] == NULL) small[i] = (char*)memset(mi_malloc(small_size - MI_PADDING_SIZE), 0xAB, 1);
  }
}

static void free_small(bool but_some) {
  for (size_t i = 0; i < n_small; i++) {
    if (but_some && i % small_step == 0) continue;
    mi_free(small[i]);
    small[i] = NULL;
  }
  mi_collect(true);
}

// What went back stays away, though the rest of each huge page is in use; huge pages come back where it is used again.
static void check_holes(void) {
  fill_small();
  free_small(true);
  size_t before = rss_now(), n_holed = collapse(small, n_small, small_step);
  CHECK(rss_within("huge pages made of what is left of 64 MiB", minus(rss_now(), before), 4 * MiB));
  fill_small();
  mi_collect(true);
  size_t n_full = collapse(small, n_small, small_step);
  printf("huge pages made around %d blocks: %zu, and %zu when others are between them\n", n_small / small_step, n_holed,
         n_full);
  CHECK(!system_collapses() || n_full > 0);
  free_small(false);
}

// The same when the process has as many mappings as it may: holes cannot be told from the rest then, and memory goes back all
// the same.
static void check_holes_at_limit(void) {
  char text[32] = "0";
  read_file("/proc/sys/vm/max_map_count", text, sizeof(text));
  size_t limit = strtoull(text, NULL, 10), page = (size_t)sysconf(_SC_PAGESIZE), i = 0;
  if (limit == 0 || limit > 200000 || TEST_SANITIZED) return;
  fill_small();
  char* others = (char*)mmap(NULL, (limit + 1) * 2 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (others == MAP_FAILED) return;
  while (i <= limit && mprotect(others + 2 * i * page, page, PROT_NONE) == 0) i++;
  CHECK(i > 0 && i < limit);
  size_t before = rss_now();
  free_small(true);
  CHECK(rss_within("of 64 MiB when most were freed, at the limit of mappings", rss_now(), minus(before, 24 * MiB)));
  munmap(others, (limit + 1) * 2 * page);
  free_small(false);
}

// With a heap that is large enough for huge pages, and after using all of it, the process's setting is as before.
static void check_process_setting(void) {
  int          before = prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0);
  static void* blocks[3000];
  for (size_t i = 0; i < COUNT_OF(blocks); i++) {
    blocks[i] = mi_malloc(50000);
    if (blocks[i] != NULL) memset(blocks[i], 0xAB, 50000);
  }
  for (size_t i = 0; i < COUNT_OF(blocks); i++) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), before);
  pid_t pid = fork();
  if (pid == 0) _exit(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == before ? 0 : 1);
  int status = 0;
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
}

int main(int argc, char** argv) {
  watchdog(60);
  size_t n_blocks = test_env("MI_TEST_SMALL", 0);
  if (n_blocks != 0) return small_program(n_blocks - 1);
  test_seed(argc, argv);
  check_small_programs(argv[0]);
  check_huge();
  check_holes();
  check_holes_at_limit();
  check_huge(); // huge pages again
  mi_option_set(mi_option_allow_thp, 0);
  check_huge();
  mi_option_set(mi_option_allow_thp, 1);
  check_medium();
  check_medium_mixed();
  check_large();
  check_process_setting();
  check_large_heap();
  return check_result();
}
