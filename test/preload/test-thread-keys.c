// Proves: a program that has taken all keys of thread-specific data before it loads the library leaves nothing behind by its
// threads: what those that have ended held is found, in a time that does not depend on how many there were, in forked children
// too; and theaps of threads that still run are left alone.
//
// Started with the library preloaded, this program only learns its path from that, and runs itself again without.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include "initial_exec.h"
#include <pthread.h>
#include <stdatomic.h>
#include "../modes/tasks.h"

enum { n_threads = 4000, n_at_once = 8, n_sleepers = 20, part_seconds = 100, stays_most = 6 };

static struct library_s {
  void* (*malloc)(size_t);
  void (*free)(void*);
  void (*thread_done)(void);
} lib;

static atomic_bool   is_over;
static atomic_size_t n_ready;

// ISO C has no conversion from dlsym's result to a function.
static void load_symbol(void* handle, const char* name, void* function) {
  void* symbol = dlsym(handle, name);
  CHECK_FOR(symbol != NULL, "%s", name);
  memcpy(function, &symbol, sizeof(symbol));
}

static bool load(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (handle == NULL) return false;
  load_symbol(handle, "mi_malloc", &lib.malloc);
  load_symbol(handle, "mi_free", &lib.free);
  load_symbol(handle, "mi_thread_done", &lib.thread_done);
  return lib.malloc != NULL && lib.free != NULL && lib.thread_done != NULL;
}

static void take_all_keys(void) {
  pthread_key_t key;
  size_t        n = 0;
  while (pthread_key_create(&key, NULL) == 0) n++;
  printf("%zu keys taken\n", n);
}

// About 200 KiB, of several classes; half of it is freed, a block is left to who asks for it.
static void use(void** left) {
  void* blocks[200];
  for (size_t i = 0; i < 200; i++) blocks[i] = memset(lib.malloc(100 + 10 * i), 3, 100);
  for (size_t i = 0; i < 200; i++) lib.free(blocks[i]);
  if (left != NULL) *left = lib.malloc(100);
}

static void* short_life(void* arg) {
  void* left;
  use(&left);
  lib.free(left);
  if (arg != NULL) lib.thread_done(); // a program may end its part by hand
  return NULL;
}

static void run_threads(size_t n) {
  pthread_t threads[n_at_once];
  for (size_t i = 0; i < n; i += n_at_once) {
    for (size_t k = 0; k < n_at_once; k++)
      CHECK_EQ(pthread_create(&threads[k], NULL, &short_life, i % 128 == 0 ? &lib : NULL), 0);
    for (size_t k = 0; k < n_at_once; k++) CHECK_EQ(pthread_join(threads[k], NULL), 0);
  }
}

static void* sleeper(void* arg) {
  void *  first, *second;
  size_t* n_wrong = (size_t*)arg;
  use(&first);
  memset(first, 7, 100);
  atomic_fetch_add(&n_ready, 1);
  while (!atomic_load(&is_over)) sleep_ms(5);
  use(&second);
  for (size_t i = 0; i < 100; i++) *n_wrong += (((uint8_t*)first)[i] != 7);
  lib.free(first);
  lib.free(second);
  return NULL;
}

static void check_threads(void) {
  static size_t n_wrong[n_sleepers];
  pthread_t     sleepers[n_sleepers];
  for (size_t i = 0; i < n_sleepers; i++) CHECK_EQ(pthread_create(&sleepers[i], NULL, &sleeper, &n_wrong[i]), 0);
  while (atomic_load(&n_ready) < n_sleepers) sleep_ms(1);
  run_threads(100);
  size_t rss = rss_now();
  run_threads(n_threads);
  CHECK(rss_within("growth of resident memory", minus(rss_now(), rss), stays_most * MiB));
  atomic_store(&is_over, true);
  for (size_t i = 0; i < n_sleepers; i++) {
    CHECK_EQ(pthread_join(sleepers[i], NULL), 0);
    CHECK_EQ(n_wrong[i], 0);
  }
}

static void check_child(void) {
  atomic_store(&n_ready, 0);
  atomic_store(&is_over, false);
  check_threads();
}

int main(int argc, char** argv) {
  const char* path = getenv("MI_TEST_LIBRARY");
  if (path == NULL) {
    path = getenv("LD_PRELOAD");
    if (path == NULL) {
      test_skip("keys", "start it with LD_PRELOAD or MI_TEST_LIBRARY set to the library");
      return skip_code;
    }
    if (!test_can_exec()) return skip_code;
    setenv("MI_TEST_LIBRARY", path, 1);
    unsetenv("LD_PRELOAD");
    test_exec(argv, environ);
    return 99;
  }
  (void)argc;
  if (!opens_initial_exec(path)) return skip_code;
  take_all_keys();
  CHECK_FOR(load(path), "%s", dlerror());
  use(NULL);
  in_child("child before threads", &check_child, part_seconds);
  run_threads(16);
  check_child();
  in_child("child after threads", &check_child, part_seconds);
  return check_result();
}
