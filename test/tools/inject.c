// Three bugs for a program that has none.  Preloaded, does them when the program is done: what a tool sees then, it would
// have seen in the program.
#include <stdlib.h>

static volatile char sink;
static volatile int  hundred = 100; // the compiler is not to see the bugs

static __attribute__((noinline)) void injected_overflow(void) {
  volatile char* p = malloc((size_t)hundred);
  p[hundred] = 1;
  free((void*)p);
}

static __attribute__((noinline)) void injected_use_after_free(void) {
  volatile char* p = malloc((size_t)hundred);
  free((void*)p);
  sink = p[40];
}

static __attribute__((noinline)) void injected_leak(void) {
  volatile char* p = malloc(12345);
  p[0] = 1;
}

__attribute__((destructor)) static void inject(void) {
  injected_overflow();
  injected_use_after_free();
  injected_leak();
  volatile char stack[1024]; // the pointer shall be nowhere
  for (size_t i = 0; i < sizeof(stack); i++) stack[i] = 0;
}
