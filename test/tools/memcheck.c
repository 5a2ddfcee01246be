// What memcheck finds in blocks of ours, and what it must not find.  Run by run.py, under valgrind only.
//
// Each step counts the errors that memcheck has seen before and after it: a bug must be seen at once, and what is right must
// not be reported.  With MI_TEST_API also for the mi_ functions; without, for malloc and its relatives, whoever brings them.
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <valgrind/memcheck.h>

#include "check.h"
#if defined(MI_TEST_API)
  #include <mimalloc.h>
#else
extern bool mi_is_in_heap_region(const void* p) __attribute__((weak));
#endif

typedef struct allocator_s {
  const char* name;
  void* (*alloc)(size_t size);
  bool is_zero;
  void* (*resize)(void* p, size_t size);
  void (*free)(void* p);
} allocator_t;

static volatile char sink;

static unsigned n_errors(void) {
  return VALGRIND_COUNT_ERRORS;
}

// The statement makes memcheck report so many errors.
#define ERRORS(expected, statement) \
  do { \
    unsigned errors_before = n_errors(); \
    statement; \
    unsigned errors_seen = n_errors() - errors_before; \
    CHECK_FOR(errors_seen == (expected), "%s, %zu bytes: %u errors, not %u, in: %s", a->name, size, errors_seen, \
              (unsigned)(expected), #statement); \
  } while (0)

// ---- ways to allocate -----------------------------------------------------------------------------------------------

static void* malloc_calloc(size_t size) {
  return calloc(1, size);
}

static void* malloc_aligned(size_t size) {
  void* p = NULL;
  return posix_memalign(&p, 64, size) == 0 ? p : NULL;
}

static void* malloc_page_aligned(size_t size) {
  return aligned_alloc(4096, size);
}

static void* malloc_huge_aligned(size_t size) {
  return memalign((size_t)1 << 20, size);
}

static void* malloc_by_realloc(size_t size) {
  return realloc(NULL, size);
}

#if defined(MI_TEST_API)

static mi_heap_t* heap;

static void* api_aligned_at(size_t size) {
  return mi_malloc_aligned_at(size, 64, 24);
}

static void* api_aligned(size_t size) {
  return mi_malloc_aligned(size, 128);
}

static void* api_zalloc_aligned(size_t size) {
  return mi_zalloc_aligned(size, (size_t)1 << 18);
}

static void* api_realloc_aligned(void* p, size_t size) {
  return mi_realloc_aligned(p, size, 128);
}

static void* api_heap(size_t size) {
  return mi_heap_malloc(heap, size);
}

static void* api_heap_zalloc(size_t size) {
  return mi_heap_zalloc(heap, size);
}

static void* api_heap_realloc(void* p, size_t size) {
  return mi_heap_realloc(heap, p, size);
}

#endif

static const allocator_t allocators[] = {
    {"malloc", malloc, false, realloc, free},
    {"calloc", malloc_calloc, true, realloc, free},
    {"posix_memalign", malloc_aligned, false, realloc, free},
    {"aligned_alloc", malloc_page_aligned, false, realloc, free},
    {"memalign", malloc_huge_aligned, false, realloc, free},
    {"realloc", malloc_by_realloc, false, realloc, free},
#if defined(MI_TEST_API)
    {"mi_malloc", mi_malloc, false, mi_realloc, mi_free},
    {"mi_zalloc", mi_zalloc, true, mi_rezalloc, mi_free},
    {"mi_new", mi_new, false, mi_realloc, mi_free},
    {"mi_malloc_aligned", api_aligned, false, api_realloc_aligned, mi_free},
    {"mi_malloc_aligned_at", api_aligned_at, false, mi_realloc, mi_free},
    {"mi_zalloc_aligned", api_zalloc_aligned, true, mi_realloc, mi_free},
    {"mi_heap_malloc", api_heap, false, api_heap_realloc, mi_free},
    {"mi_heap_zalloc", api_heap_zalloc, true, mi_realloc, mi_free},
#endif
};

// Classes of all kinds and their edges, blocks with a page of their own, and those that fill their slices.
static const size_t sizes[] = {1, 8, 13, 24, 100, 1000, 8184, 8192, 20000, 65528, 200000, 524280, 600000, 1048576};
static const size_t leak_sizes[] = {1, 100, 20000, 600000};
#define N_OF(array) (sizeof(array) / sizeof((array)[0]))

// ---- bugs -----------------------------------------------------------------------------------------------------------

static void bounds(const allocator_t* a, size_t size) {
  volatile char* p;
  ERRORS(0, p = a->alloc(size));
  if (p == NULL) {
    CHECK_FOR(p != NULL, "%s, %zu bytes", a->name, size);
    return;
  }
  ERRORS(0, memset((char*)p, 1, size));
  ERRORS(0, sink = p[0]);
  ERRORS(0, sink = p[size - 1]);
  ERRORS(1, sink = p[size]);
  ERRORS(1, sink = p[size + 7]);
  ERRORS(1, p[size] = 1);
  ERRORS(1, sink = p[-1]);
  ERRORS(1, p[-1] = 1);
  ERRORS(1, sink = p[-8]);
  ERRORS(0, a->free((void*)p));
  // The writes out of bounds went to where our own words are, so memcheck was told of nothing: it may not find more.
}

static void after_free(const allocator_t* a, size_t size) {
  volatile char* p = a->alloc(size);
  ERRORS(0, a->free((void*)p));
  ERRORS(1, sink = p[0]);
  ERRORS(1, sink = p[size - 1]);
  ERRORS(1, sink = p[size / 2]);
  ERRORS(1, p[size - 1] = 1);
}

static void frees(const allocator_t* a, size_t size) {
  char* p = (char*)a->alloc(size);
  char* q = (char*)a->alloc(size);
  char  here[256];
  memset(here, 0, sizeof(here));
  ERRORS(0, memset(q, 2, size));
  ERRORS(1, a->free(p + (size > 16 ? 16 : 1)));
  ERRORS(0, memset(q, 3, size)); // an invalid free leaves its neighbours alone
  ERRORS(0, memset(p, 3, size));
  ERRORS(1, a->free(here + 64));
  ERRORS(0, a->free(p));
  ERRORS(1, a->free(p));
  ERRORS(0, memset(q, 4, size));
  ERRORS(0, a->free(q));
}

static void contents(const allocator_t* a, size_t size) {
  char* p = (char*)a->alloc(size);
  if (a->is_zero) {
    ERRORS(0, for (size_t i = 0; i < size; i++) if (p[i] != 0) sink = 1);
  }
  else {
    ERRORS(1, if (p[0] == 1) sink = 1);
    ERRORS(1, if (p[size - 1] == 1) sink = 1);
    p[0] = 1;
    ERRORS(0, if (p[0] == 1) sink = 1);
  }
  a->free(p);
}

// What is new after a realloc has no contents, what was there stays, and the bounds are the new ones.
static void resize_to(const allocator_t* a, size_t size, size_t new_size) {
  volatile char* p = a->alloc(size);
  bool           is_new_zero = (a->name[0] == 'm' && a->name[3] == 'z' && strcmp(a->name, "mi_zalloc") == 0);
  memset((char*)p, 1, size);
  volatile char* q;
  ERRORS(0, q = a->resize((void*)p, new_size));
  size_t kept = size < new_size ? size : new_size;
  ERRORS(0, for (size_t i = 0; i < kept; i++) if (q[i] != 1) sink = 2);
  if (new_size > size && !is_new_zero) ERRORS(1, if (q[size] == 1) sink = 1);
  if (new_size > size && is_new_zero) {
    ERRORS(0, for (size_t i = size; i < new_size; i++) if (q[i] != 0) sink = 2);
  }
  ERRORS(1, sink = q[new_size]);
  ERRORS(1, sink = q[-1]);
  if (p != q) ERRORS(1, sink = p[0]);
  ERRORS(0, a->free((void*)q));
  ERRORS(1, sink = q[0]);
  CHECK_FOR(sink != 2, "%s, %zu to %zu bytes: contents", a->name, size, new_size);
  sink = 0;
}

static void resize(const allocator_t* a, size_t size) {
  const size_t news[] = {size + 1, size * 5 / 4, size * 3 + 5000};
  for (size_t i = 0; i < N_OF(news); i++) {
    resize_to(a, size, news[i]);
    resize_to(a, news[i], size);
  }
  resize_to(a, size, 1);
  volatile char* p = a->alloc(size);
  a->free((void*)p);
  ERRORS(1, a->resize((void*)p, size + 1)); // of what is free already
}

static void usable(const allocator_t* a, size_t size) {
  char*  p = (char*)a->alloc(size);
  size_t n = malloc_usable_size(p);
  CHECK_FOR(n >= size, "%s, %zu bytes: %zu usable", a->name, size, n);
  ERRORS(0, memset(p, 1, n));
  a->free(p);
}

// Blocks of no bytes have an address, and bounds.  Not in main, which is to have no old pointers.
static __attribute__((noinline)) void no_bytes(void) {
  size_t size = 0;
  for (size_t i = 0; i < N_OF(allocators); i++) {
    const allocator_t* a = &allocators[i];
    volatile char *    p, *q;
    ERRORS(0, p = a->alloc(0));
    ERRORS(1, sink = p[0]);
    ERRORS(0, a->free((void*)p));
    p = a->alloc(100);
    ERRORS(0, q = a->resize((void*)p, 0));
    ERRORS(1, sink = q[0]);
    ERRORS(0, a->free((void*)q));
  }
}

// ---- leaks ----------------------------------------------------------------------------------------------------------

typedef struct leaks_s {
  unsigned long lost, possibly, reachable, suppressed;
} leaks_t;

static leaks_t leaks_now(void) {
  leaks_t n = {0, 0, 0, 0};
  VALGRIND_DO_QUICK_LEAK_CHECK;
  VALGRIND_COUNT_LEAK_BLOCKS(n.lost, n.possibly, n.reachable, n.suppressed);
  return n;
}

// Old pointers on the stack and in registers would count.
static __attribute__((noinline)) void forget(void) {
  volatile char stack[8192];
  for (size_t i = 0; i < sizeof(stack); i++) stack[i] = 0;
  (void)strtol("1", NULL, 10);
}

#define N_LOST 8

static __attribute__((noinline)) void lose_blocks(const allocator_t* a, size_t n, size_t size) {
  for (size_t i = 0; i < n; i++) {
    volatile char* p = a->alloc(size);
    p[0] = 1;
  }
}

static char* volatile kept[N_LOST];

static __attribute__((noinline)) void keep_blocks(const allocator_t* a, size_t n, size_t size) {
  for (size_t i = 0; i < n; i++) kept[i] = (char*)a->alloc(size);
}

static void leaks(const allocator_t* a, size_t size) {
  leaks_t before = leaks_now();
  lose_blocks(a, N_LOST, size);
  forget();
  leaks_t after = leaks_now();
  CHECK_FOR(after.lost - before.lost == N_LOST && after.reachable == before.reachable &&
                after.possibly == before.possibly,
            "%s, %d of %zu bytes: %ld lost, %ld possibly, %ld reachable", a->name, N_LOST, size,
            (long)(after.lost - before.lost), (long)(after.possibly - before.possibly),
            (long)(after.reachable - before.reachable));
  keep_blocks(a, N_LOST, size);
  forget();
  before = leaks_now();
  CHECK_FOR(before.lost == after.lost && before.reachable - after.reachable == N_LOST,
            "%s, %d of %zu bytes: %ld lost although known, %ld reachable", a->name, N_LOST, size,
            (long)(before.lost - after.lost), (long)(before.reachable - after.reachable));
  for (size_t i = 0; i < N_LOST; i++) {
    a->free(kept[i]);
    kept[i] = NULL;
  }
  forget();
  after = leaks_now();
  CHECK_FOR(before.lost == after.lost && before.reachable - after.reachable == N_LOST, "%s, %d of %zu bytes: freed",
            a->name, N_LOST, size);
}

// A lost block is looked at for pointers like all memory that was not got from the tool's own malloc: so what is only
// known by it counts as reachable, and of a lost list its head is reported.
typedef struct node_s {
  struct node_s* volatile next;
  char space[40];
} node_t;

static __attribute__((noinline)) void lose_list(void) {
  node_t* volatile list = NULL;
  for (int i = 0; i < 10; i++) {
    node_t* node = (node_t*)malloc(sizeof(node_t));
    node->next = list;
    list = node;
  }
}

static __attribute__((noinline)) void leaked_list(void) {
  leaks_t before = leaks_now();
  lose_list();
  forget();
  leaks_t after = leaks_now();
  CHECK_EQ(after.lost - before.lost, 1);
  CHECK_EQ(after.reachable - before.reachable, 9);
}

// Blocks go around by way of outboxes and pools, which must not remember them; the thread and its theap end.
static void* lose_in_thread(void* blocks) {
  char** other = (char**)blocks;
  for (size_t i = 0; i < 1000; i++) {
    free(other[i]);
    other[i] = NULL;
  }
  lose_blocks(&allocators[0], 3000, 100);
  forget();
  return NULL;
}

static __attribute__((noinline)) void pass_blocks_on(void) {
  static char* blocks[1000];
  pthread_t    thread;
  for (size_t i = 0; i < N_OF(blocks); i++) blocks[i] = (char*)malloc(100);
  CHECK(pthread_create(&thread, NULL, lose_in_thread, blocks) == 0 && pthread_join(thread, NULL) == 0);
  lose_blocks(&allocators[0], 3000, 100);
}

static __attribute__((noinline)) void leaked_by_thread(void) {
  pass_blocks_on(); // what libc keeps of a thread is there from now on
  forget();
  leaks_t before = leaks_now();
  pass_blocks_on();
  forget();
  leaks_t after = leaks_now();
  CHECK_EQ(after.lost - before.lost, 6000);
  CHECK_EQ(after.reachable, before.reachable);
  CHECK_EQ(after.possibly, before.possibly);
}

// ---- heaps ----------------------------------------------------------------------------------------------------------

#if defined(MI_TEST_API)

static __attribute__((noinline)) void fill_heap(mi_heap_t* h, char* volatile* one) {
  for (size_t i = 0; i < 2000; i++) *one = (char*)mi_heap_malloc(h, i % 300 + 1);
  for (size_t i = 0; i < N_OF(sizes); i++) *one = (char*)mi_heap_malloc(h, sizes[i]);
  *one = (char*)mi_heap_malloc(h, 77);
}

static __attribute__((noinline)) void heaps(void) {
  const allocator_t  heap_allocator = {"heap", api_heap, false, api_heap_realloc, mi_free};
  const allocator_t* a = &heap_allocator;
  size_t             size = 0;
  char* volatile p = NULL;
  leaks_t    before = leaks_now();
  mi_heap_t* h = mi_heap_new();
  fill_heap(h, &p);
  forget();
  CHECK(leaks_now().lost - before.lost == 2000 + N_OF(sizes));
  ERRORS(0, mi_heap_destroy(h));
  forget();
  leaks_t after = leaks_now();
  CHECK_EQ(after.lost, before.lost); // destroyed heaps are no leaks
  CHECK_EQ(after.reachable, before.reachable);
  ERRORS(1, sink = *p);

  h = mi_heap_new();
  fill_heap(h, &p);
  ERRORS(0, mi_heap_delete(h)); // its blocks live on
  ERRORS(0, *p = 1);
  ERRORS(0, mi_free(p));
  ERRORS(1, sink = *p);
  forget();
  CHECK(leaks_now().lost - before.lost == 2000 + N_OF(sizes));
}

#endif

// ---- main -----------------------------------------------------------------------------------------------------------

typedef void (*step_t)(const allocator_t* a, size_t size);

static __attribute__((noinline)) void run(step_t step, const size_t* of_sizes, size_t n_sizes) {
  for (size_t i = 0; i < N_OF(allocators); i++) {
    for (size_t j = 0; j < n_sizes; j++) step(&allocators[i], of_sizes[j]);
  }
}

// A function of its own, so that main has no old pointers.
static __attribute__((noinline)) void check_allocator(void) {
  void* p = malloc(1);
#if defined(MI_TEST_API)
  CHECK(mi_is_in_heap_region(p));
#else
  CHECK(mi_is_in_heap_region != NULL && mi_is_in_heap_region(p)); // or somebody else brings malloc
#endif
  free(p);
}

int main(void) {
  if (!RUNNING_ON_VALGRIND) {
    fprintf(stderr, "not under valgrind\n");
    return 1;
  }
  check_allocator();
#if defined(MI_TEST_API)
  heap = mi_heap_new();
#endif
  const step_t steps[] = {contents, bounds, after_free, frees, usable, resize};
  for (size_t i = 0; i < N_OF(steps); i++) run(steps[i], sizes, N_OF(sizes));
  no_bytes();
  forget(); // what earlier steps left where no variable of the next ones will be
  run(leaks, leak_sizes, N_OF(leak_sizes));
  forget();
  leaked_list();
  leaked_by_thread();
#if defined(MI_TEST_API)
  forget();
  heaps();
#endif
  return check_result();
}
