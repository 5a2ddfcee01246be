// Proves: a thread whose exit nobody reports may fork, and end in the child, in a child of the child, and in the parent; then
// what it had is released.
#define _GNU_SOURCE
#include "../check.h"
#include "../modes/support.h"
#include "heap/theap.h"
#include "mimalloc.h"

#if defined(__linux__) && __has_include(<threads.h>) && !TEST_SANITIZED // which do not know such threads
  #include <pthread.h>
  #include <sys/wait.h>
  #include <threads.h>

static int start(void* arg) {
  mi_free(mi_malloc(10));
  (void)arg;
  return 0;
}

// Each start looks at two; what it releases, a later one may have.
static bool is_released(const mi_theap_t* theap) {
  thrd_t thread;
  for (int i = 0; i < 8 && theap->watch.is_watched; i++) {
    CHECK_EQ(thrd_create(&thread, &start, NULL), thrd_success);
    CHECK_EQ(thrd_join(thread, NULL), thrd_success);
  }
  return !theap->watch.is_watched;
}

// The main thread has ended, all of it.
static bool main_is_gone(void) {
  char path[64], text[1024];
  snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)getpid());
  const char* end = (read_file(path, text, sizeof(text)) == 0 ? NULL : strrchr(text, ')'));
  return end == NULL || end[2] == 'Z';
}

// Not by pthread_join: musl's waits for ever for the thread with which a child began.
static void* wait_for_main(void* theap) {
  for (int i = 0; i < 12000 && !main_is_gone(); i++) sleep_ms(5);
  CHECK(main_is_gone());
  CHECK(!((mi_theap_t*)theap)->watch.is_watched);
  fflush(stdout);
  _exit(check_result());
  return NULL;
}

static int fork_and_end(void* theap) {
  pthread_t thread;
  int       status = 0;
  bool      is_child = false;
  void*     block = mi_malloc(100);
  *(mi_theap_t**)theap = _mi_theap_backing();
  CHECK(_mi_theap_backing()->watch.is_watched);
  for (int i = 0; i < 2; i++) {
    fflush(stdout);
    pid_t pid = fork();
    if (pid != 0) {
      CHECK_FOR(waitpid(pid, &status, 0) == pid && status == 0, "status %x", (unsigned)status);
      break;
    }
    is_child = true;
    alarm(200);
  }
  CHECK(_mi_theap_backing()->watch.is_watched);
  mi_free(block);
  if (is_child) CHECK_EQ(pthread_create(&thread, NULL, &wait_for_main, _mi_theap_backing()), 0);
  return 0;
}

int main(void) {
  mi_theap_t* theap = NULL;
  thrd_t      first;
  watchdog(120);
  mi_free(mi_malloc(10));
  CHECK_EQ(thrd_create(&first, &fork_and_end, &theap), thrd_success);
  CHECK_EQ(thrd_join(first, NULL), thrd_success);
  CHECK(is_released(theap));
  return check_result();
}

#else

int main(void) {
  test_skip("everything", "no threads of C11 here that are watched, or a sanitizer");
  return skip_code;
}

#endif
