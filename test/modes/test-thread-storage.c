// Proves: a program with much thread-local storage, which libc takes from the stacks of all threads, has the library's thread too:
// its memory goes back while it sleeps.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "tasks.h"

enum { n_blocks = 300000, block_size = 200, settle_seconds = 40 };

static _Thread_local volatile char storage[700 * 1024];

static void*       blocks[n_blocks];
static atomic_bool is_over;

static void* wait_for_end(void* arg) {
  storage[sizeof(storage) / 2] = 1;
  while (!atomic_load(&is_over)) sleep_ms(5);
  return arg;
}

static bool goes_back(size_t base, size_t bound) {
  double end = now_seconds() + settle_seconds;
  while (minus(rss_now(), base) > bound && now_seconds() < end) sleep_ms(20);
  return rss_within("stays", minus(rss_now(), base), bound);
}

int main(void) {
  pthread_t thread;
  if (TEST_SANITIZED || task_count() != 1) {
    test_skip("thread-local storage", "the sanitizer has a thread of its own, or /proc is missing");
    return skip_code;
  }
  watchdog(120);
  storage[0] = 1;
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = &blocks[i]; // touched: not part of the account
  size_t base = rss_now();
  CHECK_EQ(pthread_create(&thread, NULL, &wait_for_end, NULL), 0);
  CHECK(library_task_comes());
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = memset(mi_malloc(block_size), 1, block_size);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  CHECK(goes_back(base, 4 * MiB));
  atomic_store(&is_over, true);
  CHECK_EQ(pthread_join(thread, NULL), 0);
  CHECK(tasks_become(1));
  return check_result();
}
