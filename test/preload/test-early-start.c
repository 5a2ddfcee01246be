// Proves: with the allocator in the place of malloc, the first calls may come from the preinit array and from
// constructors of every priority: the standard functions work there, and what was allocated can be freed in main.  So they do in
// constructors of other libraries that run before the allocator's, if there is only the memory that its options reserve.
//
// Runs under preload, and with the allocator as a part of the program (MI_TEST_LINKED), from its object file or
// library.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include "../modes/support.h"

#if !defined(MI_TEST_LINKED)
  #define MI_TEST_LINKED 0 // 1: the allocator is a part of this program
#endif

enum { n_levels = 7, at_preinit = 6, n_kept = 20 };

static void* kept[n_levels][n_kept];
static int   n_wrong;
static bool  has_run[n_levels];

static void expect(bool cond) {
  n_wrong += !cond;
}

// Early code may not rely on stdio or the environment: it only allocates.
static void at_level(int level) {
  has_run[level] = true;
  free(NULL);
  expect(malloc_usable_size(NULL) == 0);
  for (size_t i = 0; i < n_kept; i++) {
    size_t size = i * i * i * 40; // up to 270 KB
    char*  p = (char*)malloc(size);
    expect(p != NULL && malloc_usable_size(p) >= size);
    if (p != NULL) memset(p, 0x40 + level, size);
    kept[level][i] = p;
  }
  char* z = (char*)calloc(50, 50);
  expect(z != NULL && is_zero(z, 0, 2500));
  z = (char*)realloc(z, 100000);
  expect(z != NULL && is_zero(z, 0, 2500));
  free(z);
  void* a = NULL;
  expect(posix_memalign(&a, 4096, 100) == 0 && is_aligned(a, 4096));
  free(a);
  a = aligned_alloc(256, 512);
  expect(a != NULL && is_aligned(a, 256));
  free(a);
  char* s = strdup("early");
  expect(s != NULL && strcmp(s, "early") == 0);
  free(s);
}

static void check_kept(int level) {
  for (size_t i = 0; i < n_kept; i++) {
    size_t      size = i * i * i * 40;
    const char* p = (const char*)kept[level][i];
    bool        is_right = true;
    for (size_t k = 0; k < size; k++) is_right = is_right && p[k] == 0x40 + level;
    CHECK_FOR(is_right, "level %d, block %zu", level, i);
    free(kept[level][i]);
  }
}

#include "../constructors.h"

#if defined(__GLIBC__)

static void run_at_preinit(void) {
  at_level(at_preinit);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit_entry)(void) = &run_at_preinit;
#endif

static void* thread_main(void* arg) {
  at_level((int)(uintptr_t)arg);
  return NULL;
}

// Another allocator would pass all of this and prove nothing.
#if MI_TEST_LINKED
bool mi_is_in_heap_region(const void* p) __attribute__((weak)); // not what brings the library into the program

static void check_is_ours(void) {
  void* p = malloc(100);
  CHECK(mi_is_in_heap_region != NULL && mi_is_in_heap_region(p));
  free(p);
}
#else
static void check_is_ours(void) {
  Dl_info info;
  CHECK(dlsym(RTLD_DEFAULT, "mi_version") != NULL);
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0) {
    CHECK_FOR(strstr(info.dli_fname, "mimalloc") != NULL, "malloc is that of %s", info.dli_fname);
  }
}

static void check_module(void) {
  void** block = (void**)dlsym(RTLD_DEFAULT, "early_block");
  CHECK(block != NULL && *block != NULL && malloc_usable_size(*block) >= 20 * MiB);
}
#endif

int main(int argc, char** argv) {
  test_seed(argc, argv);
  if (test_env("MI_TEST_LIBC", 0) == 0) check_is_ours();
#if !MI_TEST_LINKED
  if (test_env("MI_TEST_MODULE", 0) != 0) check_module();
#endif
  CHECK_EQ(n_wrong, 0);
  for (int level = 0; level < n_levels - 1; level++) {
    CHECK_FOR(has_run[level], "level %d", level);
    check_kept(level);
  }
#if defined(__GLIBC__)
  CHECK(has_run[at_preinit]);
  check_kept(at_preinit);
#endif
  pthread_t t;
  CHECK_EQ(pthread_create(&t, NULL, &thread_main, NULL), 0);
  pthread_join(t, NULL);
  check_kept(0);
  CHECK_EQ(n_wrong, 0);
  return check_result();
}
