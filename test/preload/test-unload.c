// Proves: a library that contains the allocator (libmimalloc.a) may be loaded and unloaded, many times, each time from another
// file, while threads that have used it run on and end later; nothing of it stays but what docs/design/loading.md says.
#define _GNU_SOURCE
#include "../check.h"
#include <dirent.h>
#include <dlfcn.h>
#include "initial_exec.h"
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include "../modes/support.h"

// dlclose of musl does nothing: there the copies are side by side.
#if defined(__GLIBC__)
enum { can_unload = 1 };
#else
enum { can_unload = 0 };
#endif

typedef struct plugin_s {
  void* handle;
  int (*work)(void);
  int* (*number)(void);
} plugin_t;

static pthread_barrier_t barrier;

// ISO C has no conversion from dlsym's result to a function.
static void load_symbol(void* handle, const char* name, void* function) {
  void* symbol = dlsym(handle, name);
  CHECK_FOR(symbol != NULL, "%s", name);
  memcpy(function, &symbol, sizeof(symbol));
}

static bool copy_file(const char* from, const char* to) {
  static char buffer[64 * 1024];
  ssize_t     n = -1;
  int         in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
  while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof(buffer))) > 0 && write(out, buffer, (size_t)n) == n) {
  }
  if (in >= 0) close(in);
  if (out >= 0) close(out);
  return n == 0;
}

static size_t free_keys(void) {
  static pthread_key_t keys[2048];
  size_t               n = 0;
  while (n < 2048 && pthread_key_create(&keys[n], NULL) == 0) n++;
  for (size_t i = 0; i < n; i++) pthread_key_delete(keys[i]);
  return n;
}

static void* work_and_wait(void* arg) {
  const plugin_t* plugin = (const plugin_t*)arg;
  CHECK_EQ(plugin->work(), 0);
  pthread_barrier_wait(&barrier); // unloaded now
  pthread_barrier_wait(&barrier);
  return NULL; // and what was registered for the end of the thread runs
}

static void check_cycle(const char* path, bool with_threads) {
  enum { n_threads = 3 };
  pthread_t threads[n_threads];
  plugin_t  plugin;
  plugin.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  CHECK_FOR(plugin.handle != NULL, "%s", dlerror());
  if (plugin.handle == NULL) return;
  load_symbol(plugin.handle, "plugin_work", &plugin.work);
  load_symbol(plugin.handle, "plugin_number", &plugin.number);
  CHECK_EQ(plugin.work(), 0);
  CHECK_EQ((*plugin.number())++, 0);
  pthread_barrier_init(&barrier, NULL, n_threads + 1);
  for (size_t i = 0; with_threads && i < n_threads; i++) {
    CHECK_EQ(pthread_create(&threads[i], NULL, &work_and_wait, &plugin), 0);
  }
  if (with_threads) pthread_barrier_wait(&barrier);
  CHECK_EQ(dlclose(plugin.handle), 0);
  if (can_unload) CHECK(dlopen(path, RTLD_NOW | RTLD_NOLOAD) == NULL); // it is gone
  if (with_threads) pthread_barrier_wait(&barrier);
  for (size_t i = 0; with_threads && i < n_threads; i++) pthread_join(threads[i], NULL);
}

// ---- robust mutexes -----------------------------------------------------------------------------------------------------

static void lock_robust(void) {
  pthread_mutexattr_t attr;
  pthread_mutex_t     mutex;
  pthread_mutexattr_init(&attr);
  CHECK_EQ(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
  CHECK_EQ(pthread_mutex_init(&mutex, &attr), 0);
  CHECK_EQ(pthread_mutex_lock(&mutex), 0);
  CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
  pthread_mutex_destroy(&mutex);
  pthread_mutexattr_destroy(&attr);
}

// The C library links such mutexes of a thread with each other: none of them may have gone with the library.
static void* load_and_lock(void* arg) {
  check_cycle(MI_TEST_PLUGIN, false);
  lock_robust();
  return arg;
}

static void check_robust(void) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &load_and_lock, NULL), 0);
  pthread_join(thread, NULL);
}

// ---- threads that are ending ----------------------------------------------------------------------------------------------

static void (*plugin_fill)(void);

static void* fill_and_end(void* arg) {
  plugin_fill();
  pthread_barrier_wait(&barrier);
  return arg;
}

// The library waits for what its threads have begun to do at their end.
static void check_ending(void) {
  enum { n_threads = 4, n_rounds = 20 };
  pthread_t threads[n_threads];
  for (size_t round = 0; can_unload && round < n_rounds; round++) {
    void* handle = dlopen(MI_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    CHECK_FOR(handle != NULL, "%s", dlerror());
    if (handle == NULL) return;
    load_symbol(handle, "plugin_fill", &plugin_fill);
    pthread_barrier_init(&barrier, NULL, n_threads + 1);
    for (size_t i = 0; i < n_threads; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &fill_and_end, NULL), 0);
    pthread_barrier_wait(&barrier);
    CHECK_EQ(dlclose(handle), 0);
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  }
}

// ---- handlers of signals ----------------------------------------------------------------------------------------------

static void on_signal(int sig) {
  (void)sig;
}

static void (*handler_of(int sig))(int sig) {
  struct sigaction action;
  CHECK_EQ(sigaction(sig, NULL, &action), 0);
  return action.sa_handler;
}

// After the library has gone, the signal that its option names does what it did before, or what the program has chosen since.
static void check_signal(const char* option, int sig, bool is_chosen) {
  char number[16];
  if (!can_unload) return;
  snprintf(number, sizeof(number), "%d", sig);
  setenv(option, number, 1);
  void* handle = dlopen(MI_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  unsetenv(option);
  CHECK_FOR(handle != NULL, "%s", dlerror());
  if (handle == NULL) return;
  CHECK(handler_of(sig) != SIG_DFL);
  if (is_chosen) signal(sig, &on_signal);
  CHECK_EQ(dlclose(handle), 0);
  CHECK(handler_of(sig) == (is_chosen ? &on_signal : SIG_DFL));
  signal(sig, SIG_DFL);
}

// Nor does guarded mode leave its handler of faults in the place of the program's.
static void check_faults(void) {
  plugin_t plugin;
  if (!can_unload || TEST_SANITIZED) return;
  signal(SIGSEGV, &on_signal);
  setenv("MIMALLOC_GUARDED_SAMPLE_RATE", "1", 1);
  plugin.handle = dlopen(MI_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  unsetenv("MIMALLOC_GUARDED_SAMPLE_RATE");
  CHECK_FOR(plugin.handle != NULL, "%s", dlerror());
  if (plugin.handle == NULL) return;
  load_symbol(plugin.handle, "plugin_work", &plugin.work);
  CHECK_EQ(plugin.work(), 0);
  CHECK(handler_of(SIGSEGV) != &on_signal);
  CHECK_EQ(dlclose(plugin.handle), 0);
  CHECK(handler_of(SIGSEGV) == &on_signal);
  signal(SIGSEGV, SIG_DFL);
}

// ---- published statistics ---------------------------------------------------------------------------------------------

// The path of the only file of statistics in it.
static bool find_published(const char* folder, char* path, size_t size) {
  size_t n = 0;
  DIR*   entries = opendir(folder);
  for (const struct dirent* entry; entries != NULL && (entry = readdir(entries)) != NULL;) {
    if (strstr(entry->d_name, ".stats") == NULL) continue;
    snprintf(path, size, "%s/%s", folder, entry->d_name);
    n++;
  }
  if (entries != NULL) closedir(entries);
  CHECK_EQ(n, 1);
  return n == 1;
}

// Its number, if what it says is that the process is alive; or 0 (docs/design/publish.md has the format).
static ino_t live_published(const char* folder) {
  char        path[300];
  uint32_t    words[8] = {0};
  struct stat file = {0};
  int         fd = (find_published(folder, path, sizeof(path)) ? open(path, O_RDONLY) : -1);
  CHECK(fd >= 0 && read(fd, words, sizeof(words)) == (ssize_t)sizeof(words) && fstat(fd, &file) == 0);
  if (fd >= 0) close(fd);
  return words[7] == 1 ? file.st_ino : 0;
}

// Two copies of the library: the first one publishes, and the other one leaves its file alone.
static void check_two_published(const char* folder) {
  void* handles[2];
  ino_t first = 0;
  for (size_t i = 0; i < 2; i++) {
    char path[80];
    snprintf(path, sizeof(path), "%s/copy-%zu.so", folder, i);
    CHECK(copy_file(MI_TEST_PLUGIN, path));
    handles[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    CHECK_FOR(handles[i] != NULL, "%s", dlerror());
    unlink(path);
    if (i == 0) first = live_published(folder);
  }
  CHECK(first != 0 && live_published(folder) == first);
  for (size_t i = 0; i < 2; i++) {
    if (handles[i] != NULL) CHECK_EQ(dlclose(handles[i]), 0);
  }
  if (can_unload) CHECK_EQ(live_published(folder), 0);
}

// When both have gone, the next one publishes.
static void check_published(const char* folder) {
  char path[300];
  setenv("MIMALLOC_PUBLISH", "1", 1);
  setenv("MIMALLOC_PUBLISH_DIR", folder, 1);
  for (size_t i = 0; i < (can_unload ? 3 : 1); i++) check_two_published(folder);
  if (find_published(folder, path, sizeof(path))) unlink(path);
  unsetenv("MIMALLOC_PUBLISH");
  unsetenv("MIMALLOC_PUBLISH_DIR");
}

// ---- cycles ---------------------------------------------------------------------------------------------------------

// What a library has reserved stays reserved, which with pointers of 32 bits must be little for many cycles.
#if UINTPTR_MAX > UINT32_MAX
enum { n_cycles = can_unload ? 1000 : 20, n_first = 50 };
static const char* const arena_reserve = ""; // the default
#else
enum { n_cycles = 200, n_first = 20 };
static const char* const arena_reserve = "8M";
#endif

int main(int argc, char** argv) {
  char   directory[] = "/tmp/mimalloc-unload-XXXXXX", path[64];
  size_t keys = 0, rss = 0, mappings = 0;
  test_seed(argc, argv);
  watchdog(200);
  if (arena_reserve[0] != 0) setenv("MIMALLOC_ARENA_RESERVE", arena_reserve, 1);
  if (!opens_initial_exec(MI_TEST_PLUGIN)) return skip_code;
  if (mkdtemp(directory) == NULL) return 99;
  check_robust();
  check_ending();
  check_signal("MIMALLOC_PROFILE_SIGNAL", SIGUSR2, false);
  check_signal("MIMALLOC_PROFILE_SIGNAL", SIGUSR2, true);
  check_faults();
  check_published(directory);
  for (size_t i = 0; i < n_first + n_cycles; i++) {
    if (i == n_first) {
      keys = free_keys();
      rss = rss_now();
      mappings = mapping_count();
    }
    snprintf(path, sizeof(path), "%s/plugin-%zu.so", directory, i % 2); // another file each time, if not another name
    CHECK(copy_file(MI_TEST_PLUGIN, path));
    check_cycle(path, i % 4 == 3);
    unlink(path);
  }
  rmdir(directory);
  printf("%d cycles: %.1f KiB and %.2f mappings each\n", (int)n_cycles, (double)minus(rss_now(), rss) / 1024 / n_cycles,
         (double)(mapping_count() - mappings) / n_cycles);
  if (can_unload) CHECK_EQ(free_keys(), keys);
  else test_skip("unloading", "this C library unloads nothing");
  return check_result();
}
