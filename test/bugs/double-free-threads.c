// Frees a block twice, the ORDERth time (1 or 2) in another thread: SIZE ORDER.
#include "bug.h"
#include <pthread.h>

static void* other_thread(void* p) {
  free(p);
  return NULL;
}

static void free_elsewhere(void* p) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, other_thread, p) != 0) _exit(3);
  pthread_join(thread, NULL);
}

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1);
  bool   is_first = number(argv, 2) == 1;
  char*  p = get(size);
  name_block(p, size);
  if (is_first) free_elsewhere(p);
  else free(p);
  if (is_first) free(hidden(p));
  else free_elsewhere(hidden(p));
  go_on(size);
  return undetected();
}
