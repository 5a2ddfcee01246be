// A program in which known probes are hit, with known arguments.  Run by probes.py, under gdb, with the library preloaded.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void* volatile kept;

static void* work(void* arg) {
  (void)arg;
  kept = malloc(700); // no page has had a block of this size
  return NULL;
}

int main(void) {
  pthread_t thread;
  void* volatile p = malloc(3000000);
  printf("large %p\n", p);
  free(p);
  if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  p = memalign((size_t)1 << 20, 5000000);
  printf("aligned %p\n", p);
  free(p);
  kept = malloc((size_t)1 << 62);
  return kept == NULL ? 0 : 1;
}
