// Somebody else's program.  Prints who serves what, as in
//
//   version=20401 header=20401 mi=ours malloc=ours libc=other new=ours
//
// where "libc" is a block that the C library allocates for us; "new" only in C++.  Exit status 0: blocks hold what was put
// in.  With CLIENT_PLAIN it knows nothing of the allocator, and looks for it at run time; with CLIENT_WEAK too it refers to
// it weakly, which no linker takes as a reason to link anything.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__cplusplus)
  #include <string>
#endif

#if !defined(CLIENT_PLAIN)
  #include <mimalloc.h>
static bool is_ours(const void* p) {
  return mi_is_in_heap_region(p);
}
static int version(void) {
  return mi_version();
}
#else
  #define MI_MALLOC_VERSION 0
typedef bool (*is_in_t)(const void*);
typedef int (*version_t)(void);
  #if defined(CLIENT_WEAK)
    #if defined(__cplusplus)
extern "C" {
    #endif
bool mi_is_in_heap_region(const void* p) __attribute__((weak));
int  mi_version(void) __attribute__((weak));
    #if defined(__cplusplus)
}
    #endif
static bool is_ours(const void* p) {
  return mi_is_in_heap_region != NULL && mi_is_in_heap_region(p);
}
static int version(void) {
  return mi_version != NULL ? mi_version() : 0;
}
  #else
static bool is_ours(const void* p) {
  const is_in_t is_in = (is_in_t)dlsym(RTLD_DEFAULT, "mi_is_in_heap_region");
  return is_in != NULL && is_in(p);
}
static int version(void) {
  const version_t get = (version_t)dlsym(RTLD_DEFAULT, "mi_version");
  return get != NULL ? get() : 0;
}
  #endif
#endif

static void say(const char* what, const void* p) {
  printf(" %s=%s", what, is_ours(p) ? "ours" : "other");
}

// A block of `from`, grown by `to`, keeps what is in it.
static char* grown(char* from, void* (*to)(void*, size_t)) {
  if (from == NULL) return NULL;
  memset(from, 1, 100);
  char* const p = (char*)to(from, 100000);
  return (p != NULL && p[0] == 1 && p[99] == 1) ? p : NULL;
}

int main(void) {
  printf("version=%d header=%d", version(), MI_MALLOC_VERSION);
#if !defined(CLIENT_PLAIN)
  char* const mine = grown((char*)mi_malloc(100), mi_realloc);
  if (mine == NULL) return 1;
  say("mi", mine);
  mi_free(mine);
#endif
  char* const p = grown((char*)malloc(100), realloc);
  if (p == NULL) return 2;
  say("malloc", p);
  free(p);
  char* const path = realpath("/", NULL);
  if (path == NULL || strcmp(path, "/") != 0) return 3;
  say("libc", path);
  free(path);
#if defined(__cplusplus)
  std::string text(100, 'x');
  text.append(100000, 'y');
  if (text[99] != 'x' || text[100099] != 'y') return 4;
  say("new", text.data());
#endif
  printf("\n");
  return 0;
}
