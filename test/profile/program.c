// A program whose heap is known: what it keeps, passes, and leaks, each in a function of its own.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#if defined(__clang__)
  #undef NOINLINE
  #define NOINLINE __attribute__((noinline))
#endif

enum { n_leaks = 100000 };
static void* kept[n_leaks];

NOINLINE void leak(size_t i) {
  kept[i] = malloc(300);
  memset(kept[i], 1, 300);
}

NOINLINE void pass(void) {
  void* volatile p = malloc(300);
  free(p);
}

NOINLINE void keep_large(size_t i) {
  void* volatile p = calloc(1, 2 << 20);
  if (i % 2 == 0) free(p);
  else kept[i] = p;
}

static void work(void) {
  for (size_t i = 0; i < n_leaks; i++) {
    leak(i);
    for (int k = 0; k < 5; k++) pass();
  }
  for (size_t i = 0; i < 40; i++) keep_large(i);
}

// "signal N": asks itself for a start and, when the work is done, for a profile.
int main(int argc, char** argv) {
  int sig = (argc > 2 && strcmp(argv[1], "signal") == 0 ? atoi(argv[2]) : 0);
  if (sig > 0) kill(getpid(), sig);
  work();
  if (sig > 0) {
    union sigval value;
    value.sival_int = 3;
    sigqueue(getpid(), sig, value);
    for (int i = 0; i < 1000; i++) pass();
  }
  return 0;
}
