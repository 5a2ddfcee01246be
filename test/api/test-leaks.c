// Proves: what is printed with MIMALLOC_SHOW_LEAKS=1 at the end of a program is exactly what it has not freed, by block
// size and by heap, and not what waits in bins, on pages or on the way between threads.
//
// The program runs itself again for each case, and reads what that prints.
#include "../check.h"
#include <mimalloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include "../modes/support.h"
#include "base/mode.h"

// ---- programs that leak ---------------------------------------------------------------------------------------------

static void* volatile sink;

static void leak(mi_heap_t* heap, size_t n, size_t size) {
  for (size_t i = 0; i < n; i++) sink = (heap == NULL ? mi_malloc(size) : mi_heap_malloc(heap, size));
}

static void use(size_t n, size_t size) {
  static void* p[2000];
  for (size_t i = 0; i < n; i++) p[i] = mi_malloc(size);
  for (size_t i = 0; i < n; i++) mi_free(p[i]);
}

static void* handed[600];

static void* leak_in_thread(void* arg) {
  for (size_t i = 0; i < COUNT_OF(handed); i++) mi_free(handed[i]); // blocks of the main thread
  leak(NULL, 7, 200);
  use(1000, 200);
  leak((mi_heap_t*)arg, 11, 64);
  return NULL;
}

static void leak_nothing(void) {
  use(2000, 30);
  use(100, 1000);
  use(3, 2 * MiB);
}

static void leak_some(void) {
  leak(NULL, 100, 64);
  leak(NULL, 3, 1000);
  leak(NULL, 2, 3 * MiB);
  leak_nothing();
}

static void leak_in_heaps(void) {
  pthread_t  thread;
  mi_heap_t* heap = mi_heap_new();
  mi_heap_t* deleted = mi_heap_new();
  mi_heap_t* destroyed = mi_heap_new();
  for (size_t i = 0; i < COUNT_OF(handed); i++) handed[i] = mi_malloc(500);
  pthread_create(&thread, NULL, &leak_in_thread, heap);
  pthread_join(thread, NULL);
  leak(heap, 5, 5000);
  leak(heap, 1, 1 * MiB);
  leak(deleted, 13, 400);
  leak(destroyed, 1000, 24);
  mi_heap_delete(deleted);
  mi_heap_destroy(destroyed);
}

static void (*const programs[])(void) = {&leak_nothing, &leak_some, &leak_in_heaps};

// ---- what they print ------------------------------------------------------------------------------------------------

typedef struct report_s {
  char text[16 * 1024];
  bool was_printed;
} report_t;

static report_t run(const char* name, size_t program, const char* option) {
  report_t r;
  int      fds[2], status = -1;
  size_t   length = 0;
  char     number[16];
  CHECK_EQ(pipe(fds), 0);
  snprintf(number, sizeof(number), "%zu", program + 1);
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    setenv("MI_TEST_LEAK", number, 1);
    if (option != NULL) setenv(option, "1", 1);
    dup2(fds[1], 2);
    close(fds[0]);
    char* arguments[] = {(char*)(uintptr_t)name, NULL};
    test_exec(arguments, environ);
    _exit(99);
  }
  close(fds[1]);
  for (ssize_t n; (n = read(fds[0], r.text + length, sizeof(r.text) - 1 - length)) > 0;) length += (size_t)n;
  r.text[length] = 0;
  close(fds[0]);
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
  r.was_printed = (strstr(r.text, "not freed:") != NULL);
  return r;
}

// The part about one heap: from "heap: <name>" to the next, or all of it.
static const char* part_of(const report_t* r, bool is_main) {
  for (const char* at = r->text; (at = strstr(at, "      heap: ")) != NULL; at++) {
    const char* end = strchr(at, '\n');
    bool        says_main = (strstr(at, "(main)") != NULL && strstr(at, "(main)") < end);
    if (says_main == is_main) return end + 1;
  }
  return r->text;
}

// The number of blocks in the row of that label and size, 0 if there is none; *bytes is what it says of those.
static size_t row(const char* part, const char* label, size_t size, size_t* bytes) {
  size_t n, found_size;
  char   found_label[32];
  for (const char* line = part; line != NULL && *line != 0; line = strchr(line, '\n'), line += (line != NULL)) {
    if (strncmp(line, "      heap: ", 12) == 0 && line != part) break;
    size_t indent = strspn(line, " ");
    if (indent == 10 && line[10] == ':') found_label[0] = 0;
    else if (sscanf(line, " %31[a-z ]:", found_label) != 1) continue;
    const char* colon = strchr(line, ':');
    if (strcmp(found_label, label) != 0) continue;
    if (size > 0) {
      if (sscanf(colon, ": %zu %zu %zu\n", &n, &found_size, bytes) == 3 && found_size == size) return n;
    }
    else if (sscanf(colon, ": %zu %zu\n", &n, bytes) == 2) {
      return n;
    }
  }
  *bytes = 0;
  return 0;
}

static size_t total_of(const report_t* r, size_t* bytes) {
  const char* line = strstr(r->text, "     total:");
  return row(line != NULL ? line : "", "total", 0, bytes);
}

static void check_row(const report_t* r, const report_t* without, bool is_main, size_t n, size_t size) {
  size_t bytes, bytes_without;
  bool   is_large = (size > 512 * KiB);
  size_t row_size = (is_large ? 0 : mi_good_size(size));
  size_t found = row(part_of(r, is_main), is_large ? "large" : "", row_size, &bytes);
  size_t others = (is_main ? row(without->text, is_large ? "large" : "", row_size, &bytes_without) : 0);
  CHECK_FOR(found - others == n, "%zu of size %zu, not %zu:\n%s", found - others, size, n, r->text);
  if (!is_large) CHECK_EQ(bytes, found * row_size);
}

int main(int argc, char** argv) {
  size_t program = test_env("MI_TEST_LEAK", 0);
  (void)argc;
  if (program > 0) {
    programs[program - 1]();
    return 0;
  }
  if (!test_can_exec()) return skip_code;
  watchdog(60);
  static report_t r, without;
  size_t          bytes, other_bytes;
  CHECK(!run(argv[0], 1, NULL).was_printed);
  without = run(argv[0], 0, "MIMALLOC_SHOW_LEAKS"); // what libc does not free, where we serve it
  CHECK(without.was_printed);
  size_t others = total_of(&without, &other_bytes);
  CHECK_FOR(others <= 2, "%s", without.text);

  r = run(argv[0], 1, "MIMALLOC_SHOW_LEAKS");
  CHECK(r.was_printed);
  check_row(&r, &without, true, 100, 64);
  check_row(&r, &without, true, 3, 1000);
  check_row(&r, &without, true, 0, 30);
  check_row(&r, &without, true, 2, 3 * MiB);
  CHECK_EQ(total_of(&r, &bytes) - others, 105);
  size_t large = (MI_HARDENED ? 3 * MiB : mi_good_size(3 * MiB)); // guarded ones have exactly what was asked for
  CHECK_EQ(bytes - other_bytes, 100 * mi_good_size(64) + 3 * mi_good_size(1000) + 2 * large);
  CHECK(strstr(r.text, "heap:") == NULL); // there is only one

  r = run(argv[0], 2, "MIMALLOC_SHOW_LEAKS");
  check_row(&r, &without, true, 7, 200);
  check_row(&r, &without, true, 13, 400);
  check_row(&r, &without, true, 0, 500);
  check_row(&r, &without, true, 0, 24);
  check_row(&r, &without, false, 11, 64);
  check_row(&r, &without, false, 5, 5000);
  check_row(&r, &without, false, 1, 1 * MiB);
  check_row(&r, &without, false, 0, 200);
  size_t total = total_of(&r, &bytes);
  CHECK_FOR(total >= 37 + others && total <= 37 + others + 2, "%s", r.text); // pthread_create's, where we serve it
  return check_result();
}
