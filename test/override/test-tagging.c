// Proves: in builds with MI_MEMORY_TAGGING, on a processor with memory tags, accesses past a block, before it, and after its free
// fault at once; frees of what is no block in use are reported; and programs that do nothing wrong notice nothing.  On a
// processor without tags the same program does what it does without.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/wait.h>

#if defined(__aarch64__) && defined(MI_MEMORY_TAGGING) && MI_MEMORY_TAGGING

  #define HAS_MTE_BIT    (1ul << 18) // HWCAP2_MTE
  #define CODE_TAG_FAULT 9           // SEGV_MTESERR
  #define N_SIZES        (sizeof(sizes) / sizeof(sizes[0]))

static const size_t sizes[] = {1, 8, 9, 16, 17, 40, 100, 128, 129, 500, 1000, 1024, 4000, 9000, 33000, 100000, 524288};

static bool has_tags;

// ---- faults ---------------------------------------------------------------------------------------------------------

static sigjmp_buf    fault_back;
static volatile int  fault_code, is_expected;
static volatile char sink;

static struct sigaction action_before; // of platforms/qemu.c, if that has one

static void on_fault(int number, siginfo_t* info, void* context) {
  if (!is_expected) {
    if ((action_before.sa_flags & SA_SIGINFO) != 0) action_before.sa_sigaction(number, info, context);
    else signal(number, SIG_DFL); // the access happens again
    return;
  }
  is_expected = 0;
  fault_code = info->si_code;
  siglongjmp(fault_back, 1);
}

// Does the access fault because of its tag?
static bool faults(volatile char* p, bool is_write) {
  fault_code = 0;
  if (sigsetjmp(fault_back, 1) == 0) {
    is_expected = 1;
    if (is_write) *p = 1;
    else sink = *p;
    is_expected = 0;
    return false; // fault_code stays 0
  }
  return fault_code == CODE_TAG_FAULT;
}

// ---- errors ---------------------------------------------------------------------------------------------------------

static int last_error;

static void on_error(int err, void* arg) {
  (void)arg;
  last_error = err;
}

static int error_of_free(void* p) {
  last_error = 0;
  mi_free(p);
  return last_error;
}

// ---- what is wrong is found -----------------------------------------------------------------------------------------

static unsigned tag_of(const void* p) {
  return (unsigned)((uintptr_t)p >> 56);
}

static void check_neighbours(size_t size) {
  enum { n = 20 };
  char* blocks[n];
  for (size_t i = 0; i < n; i++) blocks[i] = (char*)mi_malloc(size);
  for (size_t i = 0; i < n; i++) {
    size_t usable = mi_usable_size(blocks[i]);
    CHECK_FOR(tag_of(blocks[i]) >= 1 && tag_of(blocks[i]) <= 15, "size %zu", size);
    CHECK_FOR(!faults(blocks[i], true) && !faults(blocks[i] + usable - 1, true), "size %zu", size);
    // Behind the last block of a slice and before the first there may be anything.
    uintptr_t end = (uintptr_t)blocks[i] + usable;
    if (end % 65536 != 0) {
      CHECK_FOR(faults(blocks[i] + usable, true) && faults(blocks[i] + usable + 15, false), "size %zu", size);
    }
    if ((uintptr_t)blocks[i] % 65536 != 0) CHECK_FOR(faults(blocks[i] - 1, i % 2 == 0), "size %zu", size);
  }
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
}

static void check_after_free(size_t size) {
  char* p = (char*)mi_malloc(size);
  mi_free(p);
  CHECK_FOR(faults(p, false) && faults(p, true) && faults(p + size - 1, false), "size %zu", size);
  CHECK_EQ(error_of_free(p), EAGAIN);
  p = (char*)mi_malloc(size);
  if (mi_usable_size(p) > 16) CHECK_EQ(error_of_free(p + 16), EINVAL);
  char* q = (char*)mi_realloc(p, 2 * size + 100);
  CHECK_FOR(q != p && faults(p, false), "size %zu", size);
  mi_free(q);
  mi_collect(true); // what is purged has no tags either
  CHECK_FOR(faults(p, true), "size %zu", size);
}

// What another block has now is found by chance, 14 of 15 times; so is what lies far away.
static void check_chances(void) {
  enum { n = 300 };
  char*  blocks[n];
  size_t n_reused = 0, n_far = 0;
  for (size_t i = 0; i < n; i++) blocks[i] = (char*)mi_malloc(48);
  for (size_t i = 0; i + 100 < n; i++) n_far += faults(blocks[i] + 4800, true);
  for (size_t i = 0; i < n; i++) {
    char* old = blocks[i];
    mi_free(old);
    blocks[i] = (char*)mi_malloc(48);
    n_reused += faults(old, true) && error_of_free(old) == EINVAL;
  }
  printf("found %zu of %d far away, %zu of %d reused\n", n_far, n - 100, n_reused, n);
  CHECK(n_far >= (n - 100) * 8 / 10 && n_reused >= n * 8 / 10);
  for (size_t i = 0; i < n; i++) mi_free(blocks[i]);
}

// ---- what is right is left alone ------------------------------------------------------------------------------------

static bool is_all(const char* p, size_t size, char c) {
  for (size_t i = 0; i < size; i++) {
    if (p[i] != c) return false;
  }
  return true;
}

static void check_block(size_t size) {
  char* p = (char*)mi_zalloc(size);
  CHECK(p != NULL && mi_is_in_heap_region(p) && mi_usable_size(p) >= size && is_all(p, size, 0));
  memset(p, 1, mi_usable_size(p));
  p = (char*)mi_realloc(p, size + 1);
  CHECK(is_all(p, size, 1));
  p = (char*)mi_rezalloc(p, 3 * size + 50);
  CHECK(is_all(p, size, 1));
  mi_free(p);
  p = (char*)mi_malloc_aligned(size, 64);
  CHECK(((uintptr_t)p & 63) == 0);
  memset(p, 2, size);
  mi_free(p);
}

static bool write_to_visited(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* count) {
  (void)heap;
  (void)area;
  if (block != NULL) {
    memset(block, 3, size);
    ++*(size_t*)count;
  }
  return true;
}

// Blocks of a heap that goes with all its blocks; then the memory serves others.
static void check_heap(void) {
  for (int round = 0; round < 5; round++) {
    mi_heap_t* heap = mi_heap_new();
    size_t     count = 0;
    for (size_t i = 0; i < 500; i++) memset(mi_heap_malloc(heap, i * 7), 4, i * 7);
    CHECK(mi_heap_visit_blocks(heap, true, &write_to_visited, &count));
    CHECK_EQ(count, 500);
    mi_heap_destroy(heap);
    char* large = (char*)mi_malloc(8 << 20);
    memset(large, 5, 8 << 20);
    mi_free(large);
    for (size_t i = 0; i < N_SIZES; i++) check_block(sizes[i]);
  }
}

// Memory of the program's that cannot hold tags.
static void check_given_memory(void) {
  const size_t  size = 64 << 20;
  mi_arena_id_t arena;
  void*         memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  CHECK(mi_manage_os_memory_ex(memory, size, true, false, true, -1, true, &arena));
  mi_heap_t* heap = mi_heap_new_in_arena(arena);
  for (size_t i = 0; i < 1000; i++) {
    char* p = (char*)mi_heap_malloc(heap, i);
    CHECK(p != NULL && tag_of(p) == 0);
    memset(p, 6, i);
    CHECK_EQ(error_of_free(p), 0);
  }
  mi_heap_delete(heap);
  CHECK_EQ(mi_reserve_os_memory_ex(size, true, false, true, &arena), 0);
  heap = mi_heap_new_in_arena(arena);
  char* p = (char*)mi_heap_malloc(heap, 100);
  CHECK(mi_arena_contains(arena, p) && (tag_of(p) != 0) == has_tags);
  mi_heap_delete(heap);
  mi_free(p);
}

// Large blocks have no tags, but can be guarded, beside small ones that have tags.
static void check_guarded(void) {
  enum { n = 20 };
  const size_t size = 1 << 20;
  mi_option_set(mi_option_guarded_min, 512 * 1024 + 1);
  mi_option_set(mi_option_guarded_sample_rate, 1);
  for (size_t i = 0; i < n; i++) {
    char* small = (char*)mi_malloc(100);
    char* p = (char*)mi_malloc(size);
    memset(p, 9, size);
    CHECK((tag_of(small) != 0) == has_tags && tag_of(p) == 0);
    CHECK(!has_tags || faults(small + 112, true));
    CHECK(!faults(p + size, true) && fault_code != 0 && fault_code != CODE_TAG_FAULT);
    mi_free(p);
    CHECK(!faults(p + 5, true) && fault_code != 0 && fault_code != CODE_TAG_FAULT);
    CHECK_EQ(error_of_free(p), EAGAIN);
    mi_free(small);
  }
  mi_option_set(mi_option_guarded_sample_rate, 0);
}

static void* free_all(void* arg) {
  void** blocks = (void**)arg;
  for (size_t i = 0; i < 1000; i++) {
    memset(blocks[i], 7, i);
    mi_free(blocks[i]);
  }
  return mi_malloc(100);
}

static void check_threads_and_system(void) {
  static void* blocks[1000];
  void*        theirs = NULL;
  int          fds[2];
  pthread_t    t;
  for (size_t i = 0; i < 1000; i++) blocks[i] = mi_malloc(i);
  CHECK_EQ(pthread_create(&t, NULL, &free_all, blocks), 0);
  CHECK_EQ(pthread_join(t, &theirs), 0);
  memset(theirs, 8, 100);
  CHECK(pipe(fds) == 0 && write(fds[1], theirs, 100) == 100); // system calls take such pointers
  CHECK(read(fds[0], theirs, 100) == 100 && is_all((char*)theirs, 100, 8));
  pid_t child = fork();
  if (child == 0) {
    bool ok = is_all((char*)theirs, 100, 8) && !(has_tags && !faults((char*)theirs + 112, true));
    mi_free(theirs);
    _exit(ok && mi_malloc(100) != NULL ? 0 : 1);
  }
  int status = -1;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  mi_free(theirs);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof(action));
  action.sa_sigaction = &on_fault;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSEGV, &action, &action_before);
  mi_register_error(&on_error, NULL);
  has_tags = ((getauxval(AT_HWCAP2) & HAS_MTE_BIT) != 0);
  if (getenv("MIMALLOC_MEMORY_TAGGING") != NULL) has_tags = false; // switched off
  printf("tags: %d\n", (int)has_tags);
  for (size_t i = 0; i < N_SIZES; i++) check_block(sizes[i]);
  for (size_t i = 0; has_tags && i < N_SIZES; i++) check_neighbours(sizes[i]);
  for (size_t i = 0; has_tags && i < N_SIZES; i++) check_after_free(sizes[i]);
  if (has_tags) check_chances();
  else CHECK_EQ(tag_of(mi_malloc(10)), 0);
  check_heap();
  check_given_memory();
  check_threads_and_system();
  check_guarded();
  for (size_t i = 0; i < N_SIZES; i++) check_block(sizes[i]);
  return check_result();
}

#else

int main(void) {
  printf("SKIP: memory tags, which this build has not\n");
  return 77;
}

#endif
