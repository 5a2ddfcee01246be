// Proves: handlers of a fork that were registered before the program's first allocation, which so run while the library has taken
// all its locks, may allocate, free, reallocate small and large blocks, make and end heaps, and fork, in all three places, with and
// without other threads that allocate at the same time; those that were registered later may start threads and wait for them, too.  The
// children work on, and have threads again.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include "../modes/tasks.h"

enum { n_forks = 200, n_workers = 3, n_blocks = 40, part_seconds = 100, child_seconds = 150 };
enum { few_forks = 20, enough_seconds = 4 }; // so many are enough where they take longer than this

static atomic_bool   is_over, is_due; // is_due: workers rest while a child runs
static atomic_size_t n_prepares, n_parents, n_children, n_wrong;
static bool          are_registered; // the handlers
static bool          forks_nested;   // in handlers
static void*         kept[n_blocks]; // from one handler to the next

// ---- what handlers do -----------------------------------------------------------------------------------------------------

static size_t block_size(size_t i) {
  static const size_t sizes[] = {1, 24, 100, 1000, 5000, 40 * KiB, 300 * KiB, 700 * KiB, 5 * MiB};
  return sizes[i % COUNT_OF(sizes)];
}

static void block_renew(size_t i, size_t factor) {
  size_t size = block_size(i) * factor + i;
  if (kept[i] != NULL && ((uint8_t*)kept[i])[0] != (uint8_t)i) atomic_fetch_add(&n_wrong, 1);
  uint8_t* p = (uint8_t*)realloc(kept[i], size);
  if (p == NULL) atomic_fetch_add(&n_wrong, 1);
  else p[0] = p[size - 1] = (uint8_t)i;
  kept[i] = p;
}

static void renew_all(size_t factor) {
  for (size_t i = 0; i < n_blocks; i++) {
    block_renew(i, factor);
    if (i % 3 != 2) continue;
    free(kept[i - 1]);
    kept[i - 1] = NULL;
    free(calloc(3, block_size(i)));
  }
}

static void* use_thread(void* arg) {
  for (size_t i = 0; i < 9; i++) free(malloc(block_size(i)));
  return arg;
}

static void run_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, &use_thread, NULL) != 0 || pthread_join(thread, NULL) != 0)
    atomic_fetch_add(&n_wrong, 1);
}

static void fork_nested(void) {
  int status = 0;
  forks_nested = false;
  pid_t pid = fork();
  if (pid == 0) {
    renew_all(2);
    _exit(atomic_load(&n_wrong) == 0 ? 0 : 1);
  }
  if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) atomic_fetch_add(&n_wrong, 1);
  forks_nested = true;
}

// ---- heaps, where there are any: the library is preloaded ---------------------------------------------------------------------

static void* (*heap_new)(void);
static void* (*heap_malloc)(void* heap, size_t size);
static void (*heap_delete)(void* heap);
static void* heap_kept; // from one handler to the next

static void heaps_find(void) {
  void* symbols[3] = {dlsym(RTLD_DEFAULT, "mi_heap_new"), dlsym(RTLD_DEFAULT, "mi_heap_malloc"),
                      dlsym(RTLD_DEFAULT, "mi_heap_delete")};
  memcpy(&heap_new, &symbols[0], sizeof(heap_new));
  memcpy(&heap_malloc, &symbols[1], sizeof(heap_malloc));
  memcpy(&heap_delete, &symbols[2], sizeof(heap_delete));
}

static void* heap_begin(void) {
  void* heap = heap_new();
  if (heap == NULL || heap_malloc(heap, 100) == NULL) atomic_fetch_add(&n_wrong, 1);
  return heap;
}

// Ends one that was made before, and one that is made now.
static void heaps_renew(void) {
  if (heap_new == NULL) return;
  void* heap = heap_begin();
  if (heap_kept != NULL) heap_delete(heap_kept);
  heap_kept = heap_begin();
  heap_delete(heap);
}

// ---- handlers -------------------------------------------------------------------------------------------------------------

static void before(void) {
  atomic_fetch_add(&n_prepares, 1);
  heaps_renew();
  renew_all(2);
  if (forks_nested) fork_nested();
}

static void in_parent(void) {
  atomic_fetch_add(&n_parents, 1);
  heaps_renew();
  renew_all(1);
}

static void in_child_of_fork(void) {
  alarm(child_seconds); // a lock that nobody will release shows as a death by SIGALRM
  atomic_fetch_add(&n_children, 1);
  heaps_renew();
  renew_all(3);
}

// Before the constructors of all libraries.  There is no room in a thread for so many keys: libc allocates for the library's own.
static void register_handlers(void) {
  pthread_key_t key;
  for (int i = 0; i < 40; i++) pthread_key_create(&key, NULL);
  pthread_atfork(&before, &in_parent, &in_child_of_fork);
  are_registered = true;
}

__attribute__((section(".preinit_array"), used)) static void (*const register_first)(void) = &register_handlers;

// ---- other threads ----------------------------------------------------------------------------------------------------------

// With musl a fork waits for itself where a handler of a fork forks in a process that has other threads, also without the library.
#if defined(__GLIBC__)
enum { workers_nest = 1 };
#else
enum { workers_nest = 0 };
#endif

static void* work(void* arg) {
  rng_t rng = rng_make((uint64_t)(uintptr_t)arg);
  void* mine[50] = {NULL};
  while (!atomic_load(&is_over)) {
    void** place = &mine[rng_below(&rng, COUNT_OF(mine))];
    if (atomic_load(&is_due)) sleep_ms(1);
    free(*place);
    *place = malloc(rng_size(&rng, rng_below(&rng, 50) == 0 ? 2 * MiB : 4 * KiB));
  }
  for (size_t i = 0; i < COUNT_OF(mine); i++) free(mine[i]);
  return NULL;
}

static void child_works_on(size_t number) {
  for (size_t i = 0; i < 200; i++) free(malloc(block_size(i + number)));
  renew_all(1);
  for (size_t i = 0; i < 3; i++) heaps_renew();
  if (test_can_thread_in_child()) run_thread();
  _exit(atomic_load(&n_wrong) == 0 ? 0 : 1);
}

static void fork_all(size_t n_wanted) {
  double start = now_seconds();
  size_t n = 0;
  for (size_t i = 0; i < n_wanted && check_n_failed < 5 && (i < few_forks || now_seconds() < start + enough_seconds);
       i++, n++) {
    int   status = 0;
    pid_t pid = fork();
    if (pid == 0) child_works_on(i);
    atomic_store(&is_due, true);
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK_FOR(status == 0, "fork %zu: status %x", i, (unsigned)status);
    atomic_store(&is_due, false);
  }
  CHECK_EQ(atomic_load(&n_wrong), 0);
  CHECK(atomic_load(&n_prepares) >= n && atomic_load(&n_parents) >= n);
}

// ---- parts --------------------------------------------------------------------------------------------------------------------

static void alone(void) {
  fork_all(n_forks / 2);
}

static void nested(void) {
  forks_nested = true;
  fork_all(n_forks / 8);
}

static void fork_with_workers(bool nests) {
  pthread_t threads[n_workers];
  for (size_t i = 0; i < n_workers; i++)
    CHECK_EQ(pthread_create(&threads[i], NULL, &work, (void*)(uintptr_t)(i + 1)), 0);
  fork_all(n_forks);
  forks_nested = nests;
  if (nests) fork_all(n_forks / 8);
  atomic_store(&is_over, true);
  for (size_t i = 0; i < n_workers; i++) CHECK_EQ(pthread_join(threads[i], NULL), 0);
}

static void with_workers(void) {
  if (!workers_nest) test_skip("forks in handlers beside other threads", "this C library waits for itself then");
  fork_with_workers(workers_nest);
}

// Not within an outer fork's handlers, which hold the library's locks.
static void threads_in_handlers(void) {
  free(malloc(1)); // so that they come after the library's
  CHECK_EQ(pthread_atfork(&run_thread, &run_thread, &run_thread), 0);
  fork_with_workers(false);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  if (!are_registered) { // musl
    test_skip("handlers before the first allocation", "this C library does not call .preinit_array");
    register_handlers();
  }
  heaps_find();
  in_child("alone", &alone, part_seconds);
  in_child("nested", &nested, part_seconds);
  in_child("with workers", &with_workers, part_seconds);
  if (test_can_thread_in_child()) in_child("threads in handlers", &threads_in_handlers, part_seconds);
  else
    test_skip("threads in children and in handlers",
              "the emulator ends the child of a process with threads that starts one");
  CHECK(atomic_load(&n_prepares) > 0 && atomic_load(&n_parents) > 0);
  return check_result();
}
