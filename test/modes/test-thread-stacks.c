// Proves: a free starts no thread, so that libc and the program may hold any lock while they free: libc does when it gives back the
// stacks of threads that have ended, with the large thread-local variables of libraries and with small blocks, by the
// thousand; a program does that stands in for pthread_create itself and frees under a lock of its own.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <mimalloc.h>
#include <pthread.h>
#include "tasks.h"

enum { n_joined = 3000, n_blocks = 4500, n_with_storage = 12, n_wrapped = 8, part_seconds = 60 };

static bool              is_wrapped;
static pthread_barrier_t all_run;

// ---- a program that stands in for pthread_create ----------------------------------------------------------------------------

#if !defined(MI_INTERPOSE_THREADS)
typedef int (*create_t)(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg);

static pthread_mutex_t create_lock = PTHREAD_MUTEX_INITIALIZER;

int pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg) {
  static create_t next;
  if (next == NULL) {
    void* symbol = dlsym(RTLD_NEXT, "pthread_create");
    memcpy(&next, &symbol, sizeof(next));
  }
  if (!is_wrapped) return next(thread, attr, run, arg);
  pthread_mutex_lock(&create_lock);
  mi_free(memset(mi_malloc(8 * MiB), 1, 8 * MiB));
  int err = next(thread, attr, run, arg);
  mi_free(memset(mi_malloc(8 * MiB), 1, 8 * MiB));
  pthread_mutex_unlock(&create_lock);
  return err;
}
#endif

static void* churn(void* arg) {
  static _Thread_local void* blocks[n_blocks];
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = memset(mi_malloc(3000), 1, 3000);
  for (size_t i = 0; i < n_blocks; i++) mi_free(blocks[i]);
  return arg;
}

static void wrapped(void) {
  pthread_t threads[n_wrapped];
  is_wrapped = true;
  for (int k = 0; k < 5; k++) {
    for (size_t i = 0; i < n_wrapped; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &churn, NULL), 0);
    for (size_t i = 0; i < n_wrapped; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  }
  is_wrapped = false;
}

// ---- thread-local variables of a library ------------------------------------------------------------------------------------

typedef void (*touch_t)(void);
static touch_t touch;

static void* touch_and_wait(void* arg) {
  touch();
  pthread_barrier_wait(&all_run);
  return arg;
}

// Made here, since a test is one file.
static bool make_library(const char* path) {
  char command[600];
  snprintf(
      command, sizeof(command),
      "printf '%%s' 'static __thread volatile char big[1 << 20]; void touch(void); void touch(void) "
      "{ for (unsigned i = 0; i < sizeof big; i += 4096) big[i] = 1; }' | cc -shared -fPIC -x c - -o %s 2>/dev/null",
      path);
  return system(command) == 0;
}

static void storage(void) {
  char      directory[] = "/tmp/mimalloc-storage-XXXXXX", path[64];
  pthread_t threads[n_with_storage];
  bool      is_made = (mkdtemp(directory) != NULL);
  snprintf(path, sizeof(path), "%s/storage.so", directory);
  is_made = is_made && make_library(path);
  void* handle = (is_made ? dlopen(path, RTLD_NOW) : NULL);
  void* symbol = (handle != NULL ? dlsym(handle, "touch") : NULL);
  unlink(path);
  rmdir(directory);
  if (symbol == NULL) {
    test_skip("thread-local variables of a library", "no compiler for one");
    return;
  }
  memcpy(&touch, &symbol, sizeof(touch));
  pthread_barrier_init(&all_run, NULL, n_with_storage);
  for (int k = 0; k < 10; k++) {
    for (size_t i = 0; i < n_with_storage; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &touch_and_wait, NULL), 0);
    for (size_t i = 0; i < n_with_storage; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  }
}

// ---- thousands of joins -------------------------------------------------------------------------------------------------------

static void* wait_for_all(void* arg) {
  pthread_barrier_wait(&all_run);
  return arg;
}

// The main thread alone allocates; the free that has enough to give back may be one of libc's.
static void join_many(size_t n_pages) {
  static pthread_t threads[n_joined];
  static void*     blocks[n_blocks];
  size_t           n = 0;
  pthread_attr_t   attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 64 * KiB);
  for (size_t i = 0; i < 64 * n_pages; i++) blocks[i] = memset(mi_malloc(1000), 1, 1000);
  pthread_barrier_init(&all_run, NULL, n_joined + 1);
  for (; n < n_joined; n++) {
    if (pthread_create(&threads[n], &attr, &wait_for_all, NULL) != 0) break;
  }
  CHECK_EQ(n, n_joined);
  if (n < n_joined) _exit(check_result());
  for (size_t i = 0; i < 64 * n_pages; i++) mi_free(blocks[i]);
  pthread_barrier_wait(&all_run);
  for (size_t i = 0; i < n; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
  pthread_barrier_destroy(&all_run);
  pthread_attr_destroy(&attr);
}

static void joins(void) {
  for (size_t n_pages = 55; n_pages <= 67; n_pages += 4) join_many(n_pages);
}

static void run_and_end_alone(void (*part)(void)) {
  part();
  CHECK_FOR(tasks_become(1), "%zu threads", task_count());
}

static void wrapped_part(void) {
  run_and_end_alone(&wrapped);
}
static void storage_part(void) {
  run_and_end_alone(&storage);
}
static void joins_part(void) {
  run_and_end_alone(&joins);
}

int main(void) {
  if (TEST_SANITIZED || task_count() == 0) {
    test_skip("stacks of threads", "the sanitizer has threads and stacks of its own, or /proc is missing");
    return skip_code;
  }
  // Whoever starts a thread holds all signals back, so that nothing but SIGKILL ends a process that hangs there.
  in_child("thread-local variables of a library", &storage_part, part_seconds);
  in_child("thousands of joins", &joins_part, 2 * part_seconds);
  in_child("a program that stands in for pthread_create", &wrapped_part, part_seconds);
  return check_result();
}
