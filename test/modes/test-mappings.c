// Proves: the number of kernel mappings stays bounded under many threads and many large resizes; a large block keeps its
// contents when it is resized with as many mappings as there may be, or a few less; a process with an
// address space limit can use most of it, gets NULL and ENOMEM beyond, and works on after it has freed.
//
// With MI_TEST_SYSTEM=1 and the rights to do so, also under strict overcommit accounting; that is a setting of the
// whole machine, which the test puts back.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "support.h"

// Mappings that gaps behind pages may cost, where there are any: two each (MI_GUARD_PAGE_MAX in src/page/page.h).
enum { gaps_max = MI_HARDENED ? 2 * 16 * 1024 : 0 };

enum { n_threads = 64, blocks_per_thread = 200, n_growing = 300 };

static pthread_barrier_t barrier;

static void* many_sizes(void* arg) {
  rng_t                      rng = rng_make((uint64_t)(uintptr_t)arg);
  static _Thread_local void* blocks[blocks_per_thread];
  for (size_t round = 0; round < (TEST_TSAN ? 1 : 3); round++) {
    for (size_t i = 0; i < blocks_per_thread; i++) {
      blocks[i] = mi_realloc(blocks[i], 1 + rng_size(&rng, i % 20 == 0 ? 2 * MiB : 40 * KiB));
      CHECK(blocks[i] != NULL);
    }
  }
  pthread_barrier_wait(&barrier); // all at their fullest: counted here
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < blocks_per_thread; i++) mi_free(blocks[i]);
  return NULL;
}

static void check_threads(void) {
  pthread_t threads[n_threads];
  size_t    before = mapping_count();
  pthread_barrier_init(&barrier, NULL, n_threads + 1);
  for (size_t i = 0; i < n_threads; i++) {
    CHECK_EQ(pthread_create(&threads[i], NULL, &many_sizes, (void*)(uintptr_t)i), 0);
  }
  pthread_barrier_wait(&barrier);
  size_t count = mapping_count();
  pthread_barrier_wait(&barrier);
  for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  // Two for each thread's stack; the C library may keep a few more for each.
  printf("mappings with %d threads: %zu, before %zu\n", n_threads, count, before);
  CHECK(count <= before + (TEST_SANITIZED ? 20 : 2) * n_threads + 400 + gaps_max);
}

// All growing at the same time, so that no two of one block's steps are neighbours in time.
static size_t check_resizes(uint64_t seed) {
  static uint8_t* blocks[n_growing];
  static size_t   sizes[n_growing];
  rng_t           rng = rng_make(seed);
  size_t          before = mapping_count(), peak = 0;
  for (size_t i = 0; i < n_growing; i++) sizes[i] = 0;
  for (size_t step = 0; step < 12; step++) {
    for (size_t i = 0; i < n_growing; i++) {
      size_t size =
          sizes[i] == 0 ? 200 * KiB + rng_below(&rng, 300 * KiB) : sizes[i] + sizes[i] / (3 + rng_below(&rng, 4));
      uint8_t* p = (uint8_t*)mi_realloc(blocks[i], size);
      CHECK(p != NULL);
      if (p == NULL) return 0;
      if (sizes[i] != 0)
        CHECK_FOR(p[0] == (uint8_t)i && p[sizes[i] - 1] == (uint8_t)(i + 1), "block %zu of %zu", i, size);
      p[0] = (uint8_t)i;
      p[size - 1] = (uint8_t)(i + 1);
      blocks[i] = p;
      sizes[i] = size;
    }
    size_t count = mapping_count();
    if (count > peak) peak = count;
  }
  for (size_t i = 0; i < n_growing; i++) {
    mi_free(blocks[i]);
    blocks[i] = NULL;
  }
  mi_collect(true);
  size_t after = mapping_count();
  printf("mappings with %d growing blocks: %zu, before %zu, after %zu\n", n_growing, peak, before, after);
  CHECK(peak <= before + 3000); // the kernel allows 65530; what moves without copying costs one or two
  return after;
}

// Small blocks in a random pattern of live and free, purged: holes must not become mappings.
static void check_purged_holes(uint64_t seed) {
  enum { count = 40000 };
  static void* blocks[count];
  rng_t        rng = rng_make(seed);
  size_t       before = mapping_count();
  for (size_t i = 0; i < count; i++) blocks[i] = mi_malloc(1000 + rng_below(&rng, 7000));
  for (size_t i = 0; i < count; i++) {
    if (rng_below(&rng, 8) == 0) continue;
    mi_free(blocks[i]);
    blocks[i] = NULL;
  }
  mi_collect(true);
  size_t holes = mapping_count();
  for (size_t i = 0; i < count; i++) mi_free(blocks[i]);
  printf("mappings with purged holes: %zu, before %zu\n", holes, before);
  CHECK(holes <= before + 300 + gaps_max);
}

// ---- as many mappings as there may be -----------------------------------------------------------------------------------

enum { filler_page = 4096, filler_max = 200000, n_slack = 40, n_barriers = 8 };

// Every second of its OS pages has another protection: two mappings each.
static char*  filler;
static size_t filler_pairs;

static bool filler_protect(size_t pair, int protection) {
  return mprotect(filler + (2 * pair + 1) * filler_page, filler_page, protection) == 0;
}

static void filler_fill(void) {
  while (filler_protect(filler_pairs, PROT_READ)) filler_pairs++;
}

static void filler_give(size_t pairs) {
  for (; pairs > 0 && filler_pairs > 0; pairs--) filler_protect(--filler_pairs, PROT_NONE);
}

// A block that was moved and has grown, so that it is several mappings, if the library moves blocks at all.
static uint8_t* make_moved(size_t* size, void** barriers) {
  uint8_t* p = (uint8_t*)mi_malloc(*size = 9 * MiB);
  CHECK(p != NULL);
  if (p == NULL) return NULL;
  pattern_fill(p, 0, *size, 1);
  for (size_t i = 0; i < n_barriers; i++) {
    barriers[i] = mi_malloc(3 * MiB);
    uint8_t* q = (uint8_t*)mi_realloc(p, *size + MiB);
    if (q == NULL) continue;
    p = q;
    pattern_fill(p, *size, *size + MiB, 1);
    *size += MiB;
  }
  return p;
}

// The block moves with so many mappings left.
static void check_move_with(size_t slack, char* odd) {
  size_t size;
  void*  barriers[n_barriers + 1] = {NULL};
  filler_give(100);
  mi_collect(true);
  uint8_t* p = make_moved(&size, barriers);
  if (p == NULL) return;
  barriers[n_barriers] = mi_malloc(3 * MiB);
  CHECK_EQ(mprotect(odd, filler_page, slack % 2 != 0 ? PROT_NONE : PROT_READ), 0);
  filler_fill();
  filler_give(slack / 2);
  uint8_t* q = (uint8_t*)mi_realloc(p, size + MiB);
  if (q != NULL) p = q;
  CHECK_FOR(pattern_check(p, size, 1) == size, "%zu mappings left", slack);
  filler_give(100);
  mi_free(p);
  for (size_t i = 0; i <= n_barriers; i++) mi_free(barriers[i]);
}

static void check_moves_at_limit(void) {
  char   text[32];
  size_t limit = (read_file("/proc/sys/vm/max_map_count", text, sizeof(text)) > 0 ? (size_t)atol(text) : SIZE_MAX);
  if (TEST_SANITIZED || MI_TRACK || limit > filler_max) {
    test_skip("moves at the limit of mappings", "tools copy, or there may be too many");
    return;
  }
  size_t size = 2 * (limit + 100) * filler_page;
  filler = (char*)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(filler != (char*)MAP_FAILED);
  if (filler == (char*)MAP_FAILED) return;
  for (size_t slack = 0; slack < n_slack; slack++) check_move_with(slack, filler + size - filler_page);
  munmap(filler, size);
}

// ---- limits ---------------------------------------------------------------------------------------------------------

typedef struct link_s {
  struct link_s* next;
} link_t;

static size_t use_up(link_t** list, size_t size) {
  size_t bytes = 0;
  for (;;) {
    errno = 0;
    link_t* p = (link_t*)mi_malloc(size);
    if (p == NULL) break;
    memset(p, 0xAB, size < 4096 ? size : 4096);
    p->next = *list;
    *list = p;
    bytes += MI_PADDING ? mi_good_size(size) : size; // a slice more for 1 MiB and its padding
  }
  return errno == ENOMEM ? bytes : 0;
}

static size_t release(link_t** list) {
  size_t count = 0;
  while (*list != NULL) {
    link_t* p = *list;
    *list = p->next;
    mi_free(p);
    count++;
  }
  return count;
}

static size_t child_limit;

static bool is_enough(size_t bytes, const char* what, size_t size) {
  if (bytes >= child_limit / 2) return true;
  printf("  %s of %zu bytes: %zu MiB of %zu\n", what, size, bytes / MiB, child_limit / MiB);
  return false;
}

static int child_main(size_t limit) {
  static const size_t sizes[] = {1 * MiB, 10 * MiB, 100 * KiB, 5000, 24 * MiB};
  link_t*             list = NULL;
  child_limit = limit;
  size_t first = 0;
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    size_t bytes = use_up(&list, sizes[i]);
    if (!is_enough(bytes, "blocks", sizes[i])) return 1;
    if (i == 0) first = bytes;
    mi_free(mi_malloc(1));
    release(&list);
    mi_collect(true);
  }
  // A second time as much as the first: nothing was lost.
  size_t again = use_up(&list, sizes[0]), held = (MI_HARDENED ? 4 * MiB : 0); // freed blocks wait
  release(&list);
  if (again < first / 10 * 9 - held) {
    printf("  %zu MiB at first, %zu MiB again\n", first / MiB, again / MiB);
    return 2;
  }
  void* p = mi_malloc(limit / 4);
  if (p == NULL) return 3;
  p = mi_realloc(p, limit / 3);
  if (p == NULL) return 4;
  mi_free(p);
  pthread_t t;
  pthread_barrier_init(&barrier, NULL, 1);
  if (pthread_create(&t, NULL, &many_sizes, NULL) != 0) return 5;
  pthread_join(t, NULL);
  printf("limit %zu MiB: %zu MiB used\n", limit / MiB, first / MiB);
  return check_result();
}

static int run_limited(size_t limit, const char* program, bool is_real_limit) {
  char text[32];
  snprintf(text, sizeof(text), "%zu", limit);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    struct rlimit r = {limit, limit};
    if (is_real_limit && setrlimit(RLIMIT_AS, &r) != 0) _exit(98);
    setenv("MI_TEST_LIMIT", text, 1);
    execl("/proc/self/exe", program, (char*)NULL);
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void check_limits(const char* program) {
  if (TEST_SANITIZED) {
    test_skip("address space limits", "the sanitizer's shadow needs more");
    return;
  }
  CHECK_EQ(run_limited(512 * MiB, program, true), 0);
  CHECK_EQ(run_limited(1 * GiB, program, true), 0);
}

static bool write_setting(const char* path, const char* value) {
  int  fd = open(path, O_WRONLY);
  bool is_written = fd >= 0 && write(fd, value, strlen(value)) == (ssize_t)strlen(value);
  if (fd >= 0) close(fd);
  return is_written;
}

static void check_overcommit(const char* program) {
  static const char path[] = "/proc/sys/vm/overcommit_memory";
  char              before[32];
  if (test_env("MI_TEST_SYSTEM", 0) == 0 || read_file(path, before, sizeof(before)) == 0 ||
      !write_setting(path, "2\n")) {
    test_skip("strict overcommit", "it is a setting of the machine (MI_TEST_SYSTEM=1)");
    return;
  }
  int code = run_limited(512 * MiB, program, true);
  CHECK(write_setting(path, before));
  CHECK_EQ(code, 0);
}

int main(int argc, char** argv) {
  watchdog(120);
  size_t limit = test_env("MI_TEST_LIMIT", 0);
  if (limit != 0) return child_main(limit);
  uint64_t seed = test_seed(argc, argv);
  check_threads();
  size_t first = check_resizes(seed), last = first;
  for (size_t round = 1; round < (TEST_TSAN ? 2 : 4); round++) last = check_resizes(seed + round);
  CHECK(last <= first + 200); // what is left over does not add up
  check_purged_holes(seed);
  check_moves_at_limit();
  check_limits(argv[0]);
  check_overcommit(argv[0]);
  return check_result();
}
