// One bug in each function; run.py holds what a tool says about it against the comment in front of the function:
//
//   // TOOL: regular expression for the report, in one line      (memcheck, asan)
//
// bugs NAME: that one; bugs list: their names.  With MI_TEST_API by the mi_ functions; with mimalloc-override.h by what it makes of malloc; else by
// malloc, whoever serves it.
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(MI_TEST_API)
  #include <mimalloc.h>
  #define malloc                    mi_malloc
  #define calloc                    mi_calloc
  #define realloc                   mi_realloc
  #define memalign(alignment, size) mi_memalign(alignment, size)
  #define free                      mi_free
#elif defined(MI_TEST_OVERRIDE)
  #include <mimalloc-override.h>
#endif

#define BUG __attribute__((noinline)) static

static volatile char sink;
static volatile int  hundred = 100; // the compiler is not to see the bugs

// memcheck: Invalid write of size 1 at .*: overflow_by_one .* is 0 bytes after a block of size 100 alloc'd at .* by .*: overflow_by_one
// asan: use-after-poison .*WRITE of size 1 .* in overflow_by_one
BUG void overflow_by_one(void) {
  volatile char* p = malloc((size_t)hundred);
  p[hundred] = 1;
  free((void*)p);
}

// memcheck: Invalid read of size 1 at .*: underflow_by_one .* is 1 bytes before a block of size 5,000 alloc'd
// asan: use-after-poison .*READ of size 1 .* in underflow_by_one
BUG void underflow_by_one(void) {
  volatile char* p = malloc(5000);
  volatile char* q = malloc(5000);
  sink = (p > q ? p : q)[hundred - 101]; // not the first of a page: there may be no memory at all before that
  free((void*)p);
  free((void*)q);
}

// memcheck: Invalid write of size 4 at .*: overflow_large .* is 4 bytes after a block of size 1,000,000 alloc'd
// asan: use-after-poison .*WRITE of size 4 .* in overflow_large
BUG void overflow_large(void) {
  volatile char* p = malloc(10000 * (size_t)hundred);
  *(volatile int*)(p + 1000004) = 1;
  free((void*)p);
}

// memcheck: Invalid read of size 1 at .*: overflow_after_realloc .* is 0 bytes after a block of size 70 alloc'd
// asan: use-after-poison .*READ of size 1 .* in overflow_after_realloc
BUG void overflow_after_realloc(void) {
  volatile char* p = realloc(malloc((size_t)hundred), 70);
  sink = p[70];
  free((void*)p);
}

// memcheck: Invalid read of size 1 at .*: use_after_free .* is 40 bytes inside a block of size 100 free'd at .* by .*: use_after_free .*Block was alloc'd at .* by .*: use_after_free
// asan: use-after-poison .*READ of size 1 .* in use_after_free
BUG void use_after_free(void) {
  volatile char* p = malloc((size_t)hundred);
  free((void*)p);
  sink = p[40];
}

// memcheck: Invalid write of size 1 at .*: overflow_aligned .* is 7 bytes after a block of size 1,000 alloc'd
// asan: use-after-poison .*WRITE of size 1 .* in overflow_aligned
BUG void overflow_aligned(void) {
  volatile char* p = memalign(256, 10 * (size_t)hundred);
  p[1007] = 1;
  free((void*)p);
}

// A function of the C library, to which the tool has its own.
// memcheck: Invalid write of size \d at .* by .*: overflow_by_memset .* is (96 bytes inside|0 bytes after) a block of size 100 alloc'd
// asan: use-after-poison .*WRITE of size 104 .* in overflow_by_memset
BUG void overflow_by_memset(void) {
  char* volatile p = malloc((size_t)hundred);
  memset(p, 7, (size_t)hundred + 4);
  free(p);
}

// memcheck: Invalid read of size 1 at .*: use_after_free_large .* is 2,000,000 bytes inside a block of size 3,000,000 free'd
// asan: use-after-poison .*READ of size 1 .* in use_after_free_large
BUG void use_after_free_large(void) {
  volatile char* p = malloc(3000000);
  free((void*)p);
  sink = p[20000 * hundred];
}

static void* free_it(void* p) {
  free(p);
  return NULL;
}

BUG void free_in_thread(void* p) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, free_it, p) == 0) pthread_join(thread, NULL);
}

// memcheck: Invalid write of size 1 at .*: use_after_free_in_thread .* is 3 bytes inside a block of size 100 free'd at .* by .*: free_it .*Block was alloc'd at .* by .*: use_after_free_in_thread
// asan: use-after-poison .*WRITE of size 1 .* in use_after_free_in_thread
BUG void use_after_free_in_thread(void) {
  volatile char* p = malloc((size_t)hundred);
  free_in_thread((void*)p);
  p[3] = 1;
}

// memcheck: Invalid free\(\).* by .*: double_free_in_thread .* is 0 bytes inside a block of size 100 free'd at .* by .*: free_it
// asan: mimalloc: error: double free of the block 0x[0-9a-fA-F]+ of 112 bytes.* in double_free_in_thread .*SUMMARY: mimalloc: double-free
BUG void double_free_in_thread(void) {
  void* volatile p = malloc((size_t)hundred);
  free_in_thread(p);
  free(p);
}

// memcheck: Invalid free\(\).* by .*: double_free .* is 0 bytes inside a block of size 100 free'd
// asan: mimalloc: error: double free of the block 0x[0-9a-fA-F]+ of 112 bytes.* in double_free .*SUMMARY: mimalloc: double-free
BUG void double_free(void) {
  void* volatile p = malloc((size_t)hundred);
  free(p);
  free(p);
}

// memcheck: Invalid free\(\).* by .*: double_free_large .* is 0 bytes inside a block of size 3,000,000 free'd
// asan: mimalloc: error: free of an invalid pointer: 0x[0-9a-fA-F]+ is no block.* in double_free_large .*SUMMARY: mimalloc: invalid pointer
BUG void double_free_large(void) {
  void* volatile p = malloc(3000000);
  free(p);
  free(p);
}

// memcheck: Invalid free\(\).* by .*: free_inside .* is 32 bytes inside a block of size 100 alloc'd
// asan: mimalloc: error: free of an invalid pointer: 0x[0-9a-fA-F]+ lies 32 bytes into the block.* in free_inside .*SUMMARY: mimalloc: invalid pointer
BUG void free_inside(void) {
  char* volatile p = malloc((size_t)hundred);
  free(p + 32);
  free(p);
}

// memcheck: Invalid (free|realloc).* by .*: realloc_freed .* is 0 bytes inside a block of size 100 free'd
// asan: mimalloc: error: realloc of the block 0x[0-9a-fA-F]+ of 112 bytes, which is free already.* in realloc_freed .*SUMMARY: mimalloc: double-free
BUG void realloc_freed(void) {
  void* volatile p = malloc((size_t)hundred);
  free(p);
  p = realloc(p, 200);
}

// memcheck: Conditional jump or move depends on uninitialised value\(s\) at .*: uninitialised
BUG void uninitialised(void) {
  volatile char* p = malloc((size_t)hundred);
  if (p[50] == 3) sink = 1;
  free((void*)p);
}

// memcheck: Conditional jump or move depends on uninitialised value\(s\) at .*: uninitialised_after_realloc
BUG void uninitialised_after_realloc(void) {
  char* p = malloc(20);
  memset(p, 1, 20);
  volatile char* q = realloc(p, (size_t)hundred);
  if (q[19] == 3) sink = 1;
  if (q[20] == 3) sink = 2;
  free((void*)q);
}

BUG void allocate(void) {
  volatile char* p = malloc((size_t)hundred);
  p[0] = 1;
}

// memcheck: 100 bytes in 1 blocks are definitely lost in loss record .* by .*: allocate .* by .*: leak
BUG void leak(void) {
  allocate(); // the first block that there is
  volatile char stack[1024];
  for (size_t i = 0; i < sizeof(stack); i++) stack[i] = 0;
}

#if defined(MI_TEST_API)

// The string is of the C library's malloc, under the address sanitizer that of the tool; ours only knows it.
BUG char** hold_string(void) {
  char** holder = malloc((size_t)hundred);
  holder[3] = strdup("01234567890123456789012345678901234567890123456789012345");
  return holder;
}

static char** volatile held;

// memcheck: nothing
// asan: nothing
BUG void known_by_block(void) {
  held = hold_string();
}

// memcheck: 57 bytes in 1 blocks are definitely lost in loss record .* by .*: hold_string .* by .*: lost_with_block
// asan: LeakSanitizer: detected memory leaks\s+Direct leak of 57 byte.* in hold_string .*SUMMARY: AddressSanitizer: 57 byte
BUG void lost_with_block(void) {
  held = hold_string();
  free(held);
}

// memcheck: Invalid read of size 1 at .*: use_after_destroy .* is 1 bytes inside a block of size 100 free'd at .* by .*: use_after_destroy
// asan: use-after-poison .*READ of size 1 .* in use_after_destroy
BUG void use_after_destroy(void) {
  mi_heap_t*     heap = mi_heap_new();
  volatile char* p = mi_heap_malloc(heap, (size_t)hundred);
  mi_heap_destroy(heap);
  sink = p[1];
}

#endif

// memcheck: nothing
// asan: nothing
BUG void nothing(void) {
  char* p = calloc(10, 10);
  for (int i = 0; i < 100; i++) sink = (char)(sink + p[i] == 0);
  p = realloc(p, 1000);
  memset(p, 1, 1000);
  free(p);
  free(NULL);
}

typedef struct bug_s {
  const char* name;
  void (*function)(void);
} bug_t;

#define NAMED(function) {#function, function}

static const bug_t bugs[] = {
    NAMED(overflow_by_one),
    NAMED(underflow_by_one),
    NAMED(overflow_large),
    NAMED(overflow_after_realloc),
    NAMED(overflow_aligned),
    NAMED(overflow_by_memset),
    NAMED(use_after_free),
    NAMED(use_after_free_large),
    NAMED(use_after_free_in_thread),
    NAMED(double_free),
    NAMED(double_free_in_thread),
    NAMED(double_free_large),
    NAMED(free_inside),
    NAMED(realloc_freed),
    NAMED(uninitialised),
    NAMED(uninitialised_after_realloc),
    NAMED(leak),
    NAMED(nothing),
#if defined(MI_TEST_API)
    NAMED(known_by_block),
    NAMED(lost_with_block),
    NAMED(use_after_destroy),
#endif
};

int main(int argc, char** argv) {
  bool is_list = (argc == 2 && strcmp(argv[1], "list") == 0);
  for (size_t i = 0; argc == 2 && i < sizeof(bugs) / sizeof(bugs[0]); i++) {
    if (is_list) puts(bugs[i].name);
    if (strcmp(argv[1], bugs[i].name) == 0) {
      bugs[i].function();
      return 0;
    }
  }
  if (!is_list) fprintf(stderr, "bugs NAME\n");
  return is_list ? 0 : 2;
}
