// One bug in each function; run.py holds what a tool says about it against the comment in front of the function:
//
//   // TOOL: regular expression for the report, in one line      (memcheck, asan)
//
// bugs NAME: that one; bugs list: their names.  With MI_TEST_API by the mi_ functions, else by malloc.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(MI_TEST_API)
  #include <mimalloc.h>
  #define malloc  mi_malloc
  #define calloc  mi_calloc
  #define realloc mi_realloc
  #define free    mi_free
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
  sink = p[hundred - 101];
  free((void*)p);
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

// memcheck: Invalid free\(\).* by .*: double_free .* is 0 bytes inside a block of size 100 free'd
// asan: mimalloc: error: double free of the block 0x[0-9a-fA-F]+ of
BUG void double_free(void) {
  void* volatile p = malloc((size_t)hundred);
  free(p);
  free(p);
}

// memcheck: Invalid free\(\).* by .*: double_free_large .* is 0 bytes inside a block of size 3,000,000 free'd
// asan: mimalloc: error: free of an invalid pointer: 0x[0-9a-fA-F]+ is no block
BUG void double_free_large(void) {
  void* volatile p = malloc(3000000);
  free(p);
  free(p);
}

// memcheck: Invalid free\(\).* by .*: free_inside .* is 32 bytes inside a block of size 100 alloc'd
// asan: mimalloc: error: free of an invalid pointer: 0x[0-9a-fA-F]+ lies 32 bytes into the block
BUG void free_inside(void) {
  char* volatile p = malloc((size_t)hundred);
  free(p + 32);
  free(p);
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

// Right, and no report.
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
    NAMED(overflow_by_one),   NAMED(underflow_by_one),
    NAMED(overflow_large),    NAMED(overflow_after_realloc),
    NAMED(use_after_free),    NAMED(double_free),
    NAMED(double_free_large), NAMED(free_inside),
    NAMED(uninitialised),     NAMED(leak),
    NAMED(nothing),           NAMED(uninitialised_after_realloc),
};

int main(int argc, char** argv) {
  for (size_t i = 0; argc == 2 && i < sizeof(bugs) / sizeof(bugs[0]); i++) {
    if (strcmp(argv[1], bugs[i].name) == 0) {
      bugs[i].function();
      return 0;
    }
  }
  fprintf(stderr, "bugs NAME\n");
  return 2;
}
