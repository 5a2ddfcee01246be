// Proves: the shared library may be loaded into a running program and closed again, hundreds of times, with threads
// alive that have used it; several copies of it work side by side, in what room for thread-local variables the loader
// has left; and the library with dynamic thread-local storage even where there is none.
//
// Started with the library preloaded, this program only learns its path from that, and runs itself again without.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include "initial_exec.h"
#include <pthread.h>
#include "../modes/support.h"

typedef struct library_s {
  void* handle;
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void (*free)(void*);
  size_t (*usable_size)(const void*);
  bool (*is_ours)(const void*);
  void (*register_error)(void (*)(int err, void* arg), void* arg);
} library_t;

// ISO C has no conversion from dlsym's result to a function.
static void load_symbol(void* handle, const char* name, void* function) {
  void* symbol = dlsym(handle, name);
  CHECK_FOR(symbol != NULL, "%s", name);
  memcpy(function, &symbol, sizeof(symbol));
}

static bool load(library_t* lib, const char* path) {
  lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (lib->handle == NULL) return false;
  load_symbol(lib->handle, "mi_malloc", &lib->malloc);
  load_symbol(lib->handle, "mi_calloc", &lib->calloc);
  load_symbol(lib->handle, "mi_realloc", &lib->realloc);
  load_symbol(lib->handle, "mi_free", &lib->free);
  load_symbol(lib->handle, "mi_usable_size", &lib->usable_size);
  load_symbol(lib->handle, "mi_is_in_heap_region", &lib->is_ours);
  load_symbol(lib->handle, "mi_register_error", &lib->register_error);
  return lib->malloc != NULL && lib->free != NULL && lib->is_ours != NULL && lib->register_error != NULL;
}

static void use(const library_t* lib) {
  for (size_t size = 1; size < 3 * MiB; size = size * 4 + 3) {
    uint8_t* p = (uint8_t*)lib->calloc(1, size);
    CHECK(p != NULL && is_zero(p, 0, size) && lib->usable_size(p) >= size);
    p = (uint8_t*)lib->realloc(p, 2 * size);
    CHECK(p != NULL);
    memset(p, 0xAB, 2 * size);
    lib->free(p);
  }
}

enum { n_threads = 4 };
static pthread_barrier_t barrier;

static void* use_and_wait(void* arg) {
  const library_t* lib = (const library_t*)arg;
  use(lib);
  lib->free(lib->malloc(100));
  pthread_barrier_wait(&barrier); // the library is closed now
  pthread_barrier_wait(&barrier);
  return NULL; // and what it has registered for the end of the thread runs
}

static void check_cycle(const char* path, bool with_threads) {
  library_t lib;
  CHECK_FOR(load(&lib, path), "%s", dlerror());
  use(&lib);
  pthread_t threads[n_threads];
  if (with_threads) {
    pthread_barrier_init(&barrier, NULL, n_threads + 1);
    for (size_t i = 0; i < n_threads; i++) CHECK_EQ(pthread_create(&threads[i], NULL, &use_and_wait, &lib), 0);
    pthread_barrier_wait(&barrier);
  }
  CHECK_EQ(dlclose(lib.handle), 0);
  if (with_threads) {
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < n_threads; i++) pthread_join(threads[i], NULL);
  }
}

static void check_cycles(const char* path) {
  size_t n_cycles = 1000 * test_scale();
  for (size_t i = 0; i < 30; i++) check_cycle(path, i % 10 == 9);
  size_t rss = rss_now(), mappings = mapping_count();
  for (size_t i = 0; i < n_cycles; i++) check_cycle(path, i % 10 == 9);
  printf("%zu cycles, mappings %zu to %zu\n", n_cycles, mappings, mapping_count());
  CHECK(rss_within("growth of resident memory", minus(rss_now(), rss), 2 * MiB));
  CHECK(mapping_count() <= mappings + 20);
}

static bool copy_file(const char* from, const char* to) {
  static char buffer[64 * 1024];
  ssize_t     n = -1;
  int         in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0700);
  while (in >= 0 && out >= 0 && (n = read(in, buffer, sizeof(buffer))) > 0) {
    if (write(out, buffer, (size_t)n) != n) {
      n = -1;
      break;
    }
  }
  if (in >= 0) close(in);
  if (out >= 0) close(out);
  return n == 0;
}

// musl has no such space, and falls while it makes the message about a library that wants some.
#if defined(MI_TEST_FILLER) && defined(__GLIBC__)

// The last of so many copies does not find room.
enum { n_fillers = 1000 };

static size_t fill_static_tls(const char* directory) {
  char   name[64];
  void*  handle = name; // not NULL
  size_t n = 0;
  for (; handle != NULL && n < n_fillers; n++) {
    snprintf(name, sizeof(name), "%s/filler-%zu.so", directory, n);
    if (!copy_file(MI_TEST_FILLER, name)) return 0;
    handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    unlink(name);
  }
  return n - 1;
}

// Other libraries have taken all space that there is for variables at fixed places.
static void check_crowd(const char* path, bool is_dynamic) {
  enum { n_copies = 8 };
  char      directory[] = "/tmp/mimalloc-crowd-XXXXXX", name[64];
  library_t lib;
  if (mkdtemp(directory) == NULL) return;
  size_t n = fill_static_tls(directory);
  printf("space for %zu bytes\n", 8 * n);
  CHECK(n > 0 && n < n_fillers - 1);
  for (size_t i = 0; i < n_copies; i++) {
    snprintf(name, sizeof(name), "%s/copy-%zu.so", directory, i);
    CHECK(copy_file(path, name));
    bool is_loaded = load(&lib, name);
    unlink(name);
    CHECK_EQ(is_loaded, is_dynamic);
    if (!is_loaded) {
      const char* error = dlerror();
      CHECK_FOR(error != NULL && strstr(error, "static TLS") != NULL, "%s", error);
      continue;
    }
    use(&lib);
    pthread_t t;
    pthread_barrier_init(&barrier, NULL, 1);
    CHECK_EQ(pthread_create(&t, NULL, &use_and_wait, &lib), 0);
    pthread_join(t, NULL);
    CHECK_EQ(dlclose(lib.handle), 0);
  }
  rmdir(directory);
}

#else

static void check_crowd(const char* path, bool is_dynamic) {
  (void)path;
  (void)is_dynamic;
  test_skip("no space for variables at fixed places", "this C library has none, or the test has no library for it");
}

#endif

static void count_invalid(int err, void* count) {
  CHECK_EQ(err, EINVAL);
  ++*(size_t*)count;
}

// Copies under other names are other libraries to the loader, each with variables of its own.
static void check_copies(const char* path) {
  enum { n_copies = 4 };
  char      directory[] = "/tmp/mimalloc-copies-XXXXXX", names[n_copies][64];
  library_t libs[n_copies];
  void*     blocks[n_copies];
  size_t    n = 0;
  if (mkdtemp(directory) == NULL) {
    test_skip("copies", "no directory for them");
    return;
  }
  for (size_t i = 0; i < n_copies; i++) {
    snprintf(names[i], sizeof(names[i]), "%s/copy-%zu.so", directory, i);
    CHECK(copy_file(path, names[i]));
    if (!load(&libs[i], names[i])) {
      printf("copy %zu: %s\n", i + 1, dlerror());
      break;
    }
    n++;
  }
  CHECK_EQ(n, n_copies);
  for (size_t i = 0; i < n; i++) {
    use(&libs[i]);
    blocks[i] = libs[i].malloc(1000);
    CHECK(blocks[i] != NULL);
    pattern_fill(blocks[i], 0, 1000, i);
    pthread_t t;
    pthread_barrier_init(&barrier, NULL, 1);
    CHECK_EQ(pthread_create(&t, NULL, &use_and_wait, &libs[i]), 0);
    pthread_join(t, NULL);
  }
  // Each knows its own blocks only, says so of those of the others, and leaves them alone.
  for (size_t i = 0; i < n; i++) {
    size_t n_invalid = 0;
    libs[i].register_error(&count_invalid, &n_invalid);
    for (size_t k = 0; k < n; k++) {
      CHECK_FOR(libs[i].is_ours(blocks[k]) == (i == k), "copy %zu, block of %zu", i, k);
      if (i != k) libs[i].free(blocks[k]);
    }
    CHECK_EQ(n_invalid, n - 1);
    libs[i].register_error(NULL, NULL);
  }
  for (size_t i = 0; i < n; i++) {
    CHECK_EQ(pattern_check(blocks[i], 1000, i), 1000);
    libs[i].free(blocks[i]);
  }
  for (size_t i = 0; i < n; i++) CHECK_EQ(dlclose(libs[i].handle), 0);
  for (size_t i = 0; i < n_copies; i++) unlink(names[i]);
  rmdir(directory);
}

int main(int argc, char** argv) {
  const char* path = getenv("MI_TEST_LIBRARY");
  setenv("MIMALLOC_PURGE_DELAY", "0", 1); // what waits to be given back is then at most 1 MiB
  if (path == NULL) {
    path = getenv("LD_PRELOAD");
    if (path == NULL) {
      test_skip("dlopen", "start it with LD_PRELOAD or MI_TEST_LIBRARY set to the library");
      return skip_code;
    }
    if (!test_can_exec()) return skip_code;
    setenv("MI_TEST_LIBRARY", path, 1);
    unsetenv("LD_PRELOAD");
    test_exec(argv, environ);
    return 99;
  }
  test_seed(argc, argv);
  watchdog(200);
  if (getenv("MI_TEST_DYNAMIC_TLS") == NULL && !opens_initial_exec(path)) {
    test_skip("dlopen", "the loader has no room for the library's thread-local variables");
    return skip_code;
  }
  check_copies(path);
  check_cycles(path);
  check_crowd(path, getenv("MI_TEST_DYNAMIC_TLS") != NULL);
  return check_result();
}
