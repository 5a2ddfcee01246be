// Proves: where there is no memory for the handlers around fork when the first thread asks for them, the next thread asks again; once they are
// there nobody does.
//
// The program has a function by the name of that of the C library.
#include <pthread.h>
#include "../check.h"
#include "../modes/support.h"
#include "mimalloc.h"

#if !defined(__linux__) || defined(__ANDROID__)
int main(void) {
  test_skip("everything", "handlers around fork are the system's own");
  return skip_code;
}
#else

static size_t n_asked;
static void (*on_child)(void);

int pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
  (void)prepare, (void)parent;
  if (n_asked++ == 0) {
    errno = ENOMEM;
    return ENOMEM;
  }
  on_child = child;
  return 0;
}

static void* allocate(void* arg) {
  mi_free(mi_malloc(100));
  return arg;
}

static void run_thread(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &allocate, NULL), 0);
  CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(void) {
  watchdog(60);
  errno = 0;
  mi_free(mi_malloc(1));
  CHECK(errno == 0 && n_asked == 1 && on_child == NULL);
  run_thread();
  CHECK(n_asked == 2 && on_child != NULL);
  for (int i = 0; i < 3; i++) run_thread();
  CHECK_EQ(n_asked, 2);
  return check_result();
}
#endif
