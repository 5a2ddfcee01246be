// Proves: where there is no memory for the handlers around fork when the first thread asks for them, the next thread asks again; once they are
// there nobody does.
//
// The program has a function by the name of that of the C library.  A sanitizer's runtime may ask as well, and asks once.
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

typedef void handler_t(void);

// Who has asked, by the handler in the child, and how often.
static struct {
  handler_t* child;
  size_t     n_asked;
} askers[8];

int pthread_atfork(handler_t* prepare, handler_t* parent, handler_t* child) {
  (void)prepare, (void)parent;
  size_t i = 0;
  while (i < COUNT_OF(askers) - 1 && askers[i].child != NULL && askers[i].child != child) i++;
  askers[i].child = child;
  if (askers[i].n_asked++ > 0) return 0;
  errno = ENOMEM;
  return ENOMEM;
}

// How often that one has asked who has asked most often.
static size_t n_asked(void) {
  size_t n = 0;
  for (size_t i = 0; i < COUNT_OF(askers); i++) {
    if (n < askers[i].n_asked) n = askers[i].n_asked;
  }
  return n;
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
  CHECK(errno == 0 && n_asked() == 1);
  run_thread();
  CHECK_EQ(n_asked(), 2);
  for (int i = 0; i < 3; i++) run_thread();
  CHECK_EQ(n_asked(), 2);
  return check_result();
}
#endif
