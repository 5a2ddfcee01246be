// Writes into a block that another thread has freed, and which is handed out again: SIZE OFFSET.
#include "bug.h"
#include <pthread.h>

static void* other_thread(void* p) {
  free(p);
  return NULL;
}

int main(int argc, char** argv) {
  (void)argc;
  size_t    size = number(argv, 1), offset = number(argv, 2);
  char*     p = get(size);
  pthread_t thread;
  name_block(p, size);
  if (pthread_create(&thread, NULL, other_thread, p) != 0) return 3;
  pthread_join(thread, NULL);
  memset((char*)hidden(p) + offset, 'x', sizeof(void*));
  go_on(size);
  return undetected();
}
