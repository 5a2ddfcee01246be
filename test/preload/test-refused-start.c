// Proves: where the library cannot even begin, because there is too little address space or because the system has OS pages of a
// size that it does not know, malloc returns NULL with ENOMEM, and the reason is on standard error, once, whatever the options are.
//
// Runs under preload, and with the allocator as a part of the program (MI_TEST_LINKED), of one that contains libc as well
// (MI_TEST_WHOLE): what starts a static program of glibc may crash if it gets no memory, after the reason was given.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "../modes/support.h"

#if !defined(MI_TEST_WHOLE)
  #define MI_TEST_WHOLE 0
#endif

enum { exit_served = 40, exit_refused = 41, exit_alone = 42, exit_short = 43 }; // what a child says

// ---- the system as the library sees it ----------------------------------------------------------------------------------

// The library asks this program's sysconf, in the midst of its first malloc: so no memory may be allocated here for the size of OS
// pages, as dlsym may do.  libc asks nobody: it has the size from the kernel.
long sysconf(int name) {
  if (name == _SC_PAGESIZE) {
    const char* fake = getenv("MI_TEST_PAGE");
    return fake != NULL ? strtol(fake, NULL, 10) : (long)getauxval(AT_PAGESZ);
  }
  long (*next)(int) = NULL;
  void* symbol = dlsym(RTLD_NEXT, "sysconf");
  memcpy(&next, &symbol, sizeof(next));
  return next(name);
}

// ---- children -----------------------------------------------------------------------------------------------------------

static int child(void) {
#if !defined(MI_TEST_LINKED)
  if (dlsym(RTLD_DEFAULT, "mi_malloc") == NULL) return exit_alone; // musl goes on without a library that it cannot load
#endif
  for (int i = 0; i < 3; i++) {
    errno = 0;
    void* p = malloc(100);
    if (p != NULL) return exit_served;
    if (errno != ENOMEM) return 1;
  }
  // What runs before main may have got blocks of other sizes, and the rest of them is there.
  for (size_t size = 8; size <= 64 * KiB; size += size / 2) {
    if (malloc(size) != NULL) return exit_short;
  }
  return exit_refused;
}

// Runs this program anew, with a limit on its address space if it is not 0.  `said`: what it wrote to standard error.
static int run(size_t limit, const char* page, char* said, size_t size) {
  int    ends[2];
  int    status = -1;
  size_t n = 0;
  CHECK(pipe(ends) == 0);
  pid_t pid = fork();
  if (pid == 0) {
    struct rlimit r = {limit, limit};
    char*         arguments[] = {(char*)"refused-start", NULL};
    dup2(ends[1], 2);
    setenv("MI_TEST_CHILD", "1", 1);
    setenv("MIMALLOC_SHOW_ERRORS", "0", 1); // which a debug build would show beside the reason
    if (page != NULL) setenv("MI_TEST_PAGE", page, 1);
    if (limit == 0 || setrlimit(RLIMIT_AS, &r) == 0) test_exec(arguments, environ);
    _exit(99);
  }
  close(ends[1]);
  for (ssize_t got = 1; got > 0 && n < size - 1; n += got > 0 ? (size_t)got : 0)
    got = read(ends[0], said + n, size - 1 - n);
  said[n] = 0;
  close(ends[0]);
  CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1; // a loader may crash
}

static size_t count_of(const char* text, const char* what) {
  size_t n = 0;
  for (const char* at = text; (at = strstr(at, what)) != NULL; at += strlen(what)) n++;
  return n;
}

// ---- parts --------------------------------------------------------------------------------------------------------------

// From so little that the loader fails to so much that all is well.
static void check_address_space(void) {
  char   said[4096];
  size_t n_refused = 0, n_served = 0, limit;
  for (limit = MiB / 2; limit < 64 * MiB && n_served < 8; limit += 128 * KiB) {
    int    result = run(limit, NULL, said, sizeof(said));
    size_t n_said = count_of(said, "mimalloc: error: too little address space");
    n_refused += (n_said > 0);
    n_served += (result == exit_served);
    CHECK_FOR(n_served == 0 || result == exit_served, "%zu KiB: status %d: %s", limit / KiB, result, said);
    CHECK_FOR(n_said == 1 || (n_said == 0 && result != exit_refused), "%zu KiB: status %d: %s", limit / KiB, result,
              said);
    CHECK_FOR(count_of(said, "mimalloc:") == n_said, "%zu KiB: %s", limit / KiB, said);
  }
  printf("limits with which the library refused to start: %zu\n", n_refused);
  CHECK(n_served > 0);
  if (test_env("MI_TEST_EMULATED", 0) != 0 && n_refused == 0) test_skip("address space", "the emulator knows no limit");
  else CHECK(n_refused > 0);
}

static void check_pages(void) {
  static const char* const sizes[] = {"131072", "12288", "-1", "0"};
  char                     said[4096];
#if defined(__x86_64__) || defined(__i386__)
  test_skip("unknown OS pages", "this processor has one size only, which the library does not ask for");
  return;
#endif
  CHECK_EQ(run(0, "4096", said, sizeof(said)), exit_served);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    int result = run(0, sizes[i], said, sizeof(said));
    CHECK_FOR(result == exit_refused || (MI_TEST_WHOLE && result == -1), "OS pages of %s bytes: status %d: %s",
              sizes[i], result, said);
    CHECK_FOR(count_of(said, "mimalloc: error: OS pages of ") == 1, "OS pages of %s bytes: %s", sizes[i], said);
  }
}

int main(int argc, char** argv) {
  if (test_env("MI_TEST_CHILD", 0) != 0) return child();
  if (!test_can_exec()) return 77;
  test_seed(argc, argv);
  check_address_space();
  check_pages();
  return check_result();
}
