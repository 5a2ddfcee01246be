// Proves: a library that is opened with RTLD_DEEPBIND under the preloaded library has the program's malloc and free, so blocks
// may go from one to the other; and dlopen and dlmopen, which see to that, search where they would for their caller.
//
// With MIMALLOC_KEEP_DEEPBIND=1 it proves that the flag has its effect: the library's blocks come from libc.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <stdlib.h>

#if defined(__GLIBC__) && ((defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__))

static bool (*is_ours)(const void* p);

// ISO C has no conversion from dlsym's result to a function.
static void load_symbol(void* handle, const char* name, void* function) {
  void* symbol = dlsym(handle, name);
  CHECK_FOR(symbol != NULL, "%s", name);
  memcpy(function, &symbol, sizeof(symbol));
}

typedef struct deep_s {
  void* handle;
  char* (*copy)(const char* text);
  void (*free)(void* p);
} deep_t;

static deep_t deep_load(void* handle) {
  deep_t deep = {handle, NULL, NULL};
  CHECK_FOR(handle != NULL, "%s", dlerror());
  load_symbol(handle, "deep_copy", &deep.copy);
  load_symbol(handle, "deep_free", &deep.free);
  return deep;
}

static void check_exchange(void* handle, bool is_kept) {
  deep_t deep = deep_load(handle);
  char*  theirs = deep.copy("from the library");
  CHECK(theirs != NULL && strcmp(theirs, "from the library") == 0);
  CHECK_EQ(is_ours(theirs), !is_kept);
  if (is_kept) deep.free(theirs);
  else {
    char* mine = strdup("from the program");
    CHECK(is_ours(mine));
    deep.free(mine);
    free(theirs);
  }
  CHECK_EQ(dlclose(deep.handle), 0);
}

// In a namespace of its own a library has a libc of its own.
static void check_namespace(void) {
  deep_t deep = deep_load(dlmopen(LM_ID_NEWLM, MI_TEST_DEEP, RTLD_NOW | RTLD_DEEPBIND));
  char*  theirs = deep.copy("from the other namespace");
  CHECK(theirs != NULL && !is_ours(theirs));
  deep.free(theirs);
  CHECK_EQ(dlclose(deep.handle), 0);
}

static void check_search_path(void) {
  static const int flags[] = {RTLD_NOW, RTLD_NOW | RTLD_DEEPBIND, RTLD_LAZY | RTLD_GLOBAL};
  void* (*open)(const char* name, int flags, int calls_dlmopen);
  void* caller = dlopen(MI_TEST_CALLER, RTLD_NOW);
  CHECK_FOR(caller != NULL, "%s", dlerror());
  load_symbol(caller, "caller_open", &open);
  CHECK(dlopen(MI_TEST_HIDDEN_NAME, RTLD_NOW) == NULL); // this program's path does not lead there
  for (size_t i = 0; i < 2 * sizeof(flags) / sizeof(flags[0]); i++) {
    void* handle = open(MI_TEST_HIDDEN_NAME, flags[i / 2], i % 2);
    CHECK_FOR(handle != NULL, "case %zu: %s", i, dlerror());
    if (handle == NULL) continue;
    int (*answer)(void);
    load_symbol(handle, "hidden_answer", &answer);
    CHECK_EQ(answer(), 42);
    CHECK_EQ(dlclose(handle), 0);
  }
}

static void check_results(void) {
  CHECK(dlopen("/no/such/library.so", RTLD_NOW) == NULL);
  const char* error = dlerror();
  CHECK_FOR(error != NULL && strstr(error, "/no/such/library.so") != NULL, "%s", error);
  void* program = dlopen(NULL, RTLD_NOW);
  CHECK(program != NULL && dlsym(program, "malloc") != NULL);
  CHECK(dlopen(MI_TEST_DEEP, RTLD_NOW | RTLD_NOLOAD | RTLD_DEEPBIND) == NULL);
}

int main(void) {
  bool is_kept = (getenv("MIMALLOC_KEEP_DEEPBIND") != NULL);
  load_symbol(RTLD_DEFAULT, "mi_is_in_heap_region", &is_ours);
  if (is_ours == NULL) return check_result();
  check_results();
  check_exchange(dlopen(MI_TEST_DEEP, RTLD_NOW | RTLD_DEEPBIND), is_kept);
  check_exchange(dlopen(MI_TEST_DEEP, RTLD_LAZY | RTLD_DEEPBIND | RTLD_GLOBAL), is_kept);
  check_exchange(dlmopen(LM_ID_BASE, MI_TEST_DEEP, RTLD_NOW | RTLD_DEEPBIND), is_kept);
  check_namespace();
  check_search_path();
  return check_result();
}

#else

int main(void) {
  printf("SKIP: RTLD_DEEPBIND, which this C library does not have, or the library leaves alone on this processor\n");
  return 77;
}

#endif
