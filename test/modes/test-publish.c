// Proves: without the option there is no file of statistics; with it there is one, readable by this user alone, which follows what
// the program does without a thread beside it; children of forks leave it alone, and have one of their own if that is asked for;
// files of processes that have ended go; setting the option back removes the file; a directory that is not absolute is refused; a
// process that was stopped for an hour goes on to publish.
#include "../check.h"
#include <dirent.h>
#include <fcntl.h>
#include <mimalloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "support.h"
#include "tasks.h"

enum { N_BLOCKS = 4000, N_WORK = 100, WAIT_MS = 20000 };

static char        directory[64];
static char        path[400]; // of the file that was found last
static const char* page;
static size_t      page_size;

// ---- files ----------------------------------------------------------------------------------------------------------

static int n_files(void) {
  int  n = 0;
  DIR* files = opendir(directory);
  if (files == NULL) return -1;
  for (const struct dirent* entry; (entry = readdir(files)) != NULL;) {
    if (strncmp(entry->d_name, "mimalloc-", 9) != 0) continue;
    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
    n++;
  }
  closedir(files);
  return n;
}

static uint64_t number_at(size_t offset, size_t size) {
  uint64_t n = 0;
  memcpy(&n, page + offset, size); // of systems with the low byte first
  return n;
}

static uint64_t n_updates(void) {
  return number_at(64, 8);
}

// The last of its values: what is current, or the counter.
static int64_t value_of(const char* name) {
  size_t entry = number_at(72, 4), n = number_at(76, 4), size = number_at(80, 4);
  for (size_t i = 0; i < n; i++, entry += size) {
    if (strcmp(page + entry, name) != 0) continue;
    size_t offset = number_at(entry + 40, 4), kind = number_at(entry + 44, 2);
    return (int64_t)number_at(offset + (kind == 1 ? 16 : 0), 8);
  }
  return -1;
}

static bool map_page(void) {
  struct stat info;
  int         fd = open(path, O_RDONLY);
  if (page != NULL) munmap((void*)(uintptr_t)page, page_size);
  page = NULL;
  if (fd < 0 || fstat(fd, &info) != 0) return false;
  CHECK_EQ(info.st_mode & 07777, 0600);
  page_size = (size_t)info.st_size;
  void* p = mmap(NULL, page_size, PROT_READ, MAP_SHARED, fd, 0);
  close(fd);
  page = (p == MAP_FAILED ? NULL : (const char*)p);
  return page != NULL;
}

// ---- rounds ---------------------------------------------------------------------------------------------------------

static void* blocks[N_BLOCKS];

static void allocate_all(void) {
  for (size_t i = 0; i < N_BLOCKS; i++) blocks[i] = mi_malloc(600);
}

static void free_all(void) {
  for (size_t i = 0; i < N_BLOCKS; i++) mi_free(blocks[i]);
}

// More than bins hold.
static void work(void) {
  static void* some[N_WORK];
  for (size_t i = 0; i < N_WORK; i++) some[i] = mi_malloc(100 * 1024);
  for (size_t i = 0; i < N_WORK; i++) mi_free(some[i]);
}

// Until there were two more updates: the last of them has begun after the call.
static bool work_until_updated(void) {
  uint64_t n = n_updates();
  double   end = now_seconds() + WAIT_MS / 1000.0;
  while (n_updates() < n + 2 && now_seconds() < end) work();
  return n_updates() >= n + 2;
}

static void work_ms(double ms) {
  double end = now_seconds() + ms / 1000;
  while (now_seconds() < end) work();
}

// ---- the clock ------------------------------------------------------------------------------------------------------

// Is it this function that the library calls in place of libc's?
#if defined(__linux__) && defined(__LP64__) && !TEST_SANITIZED

  #include <sys/syscall.h>

static atomic_int clock_seconds_more, clock_seconds_each; // with each reading

int clock_gettime(clockid_t clock, struct timespec* t) {
  long err = syscall(SYS_clock_gettime, clock, t);
  int  each = atomic_load(&clock_seconds_each);
  if (clock == CLOCK_MONOTONIC) t->tv_sec += (time_t)atomic_fetch_add(&clock_seconds_more, each) + each;
  return (int)err;
}

static bool work_for_one_more(void) {
  uint64_t n = n_updates();
  for (int ms = 0; ms < 5000 && n_updates() == n; ms++) { // the library's thread may still be there
    work();
    sleep_ms(1);
  }
  return n_updates() > n;
}

// An update is no dearer for being stopped in the middle.
static void check_stopped(void) {
  mi_option_set(mi_option_publish, 1);
  CHECK(n_files() == 1 && map_page());
  atomic_store(&clock_seconds_each, 3600);
  CHECK(work_for_one_more());
  atomic_store(&clock_seconds_each, 0);
  atomic_fetch_add(&clock_seconds_more, 120);
  CHECK(work_for_one_more());
  mi_option_set(mi_option_publish, 0);
}

#else

static void check_stopped(void) {
  test_skip("a process that was stopped", "the program has no function in place of libc's here");
}

#endif

// ---- the checks -----------------------------------------------------------------------------------------------------

static void check_one_thread(void) {
  size_t n_threads = task_count();
  CHECK_EQ(n_files(), 0);
  work_ms(300);
  CHECK_EQ(n_files(), 0);
  mi_option_set(mi_option_publish, 1);
  CHECK_EQ(mi_option_get(mi_option_publish), 1);
  CHECK_EQ(n_files(), 1);
  if (!map_page()) return;
  CHECK(memcmp(page, "MISTATS\n", 8) == 0);
  CHECK_EQ(number_at(16, 8), page_size);
  CHECK_EQ(number_at(32, 8), getpid());
  CHECK(work_until_updated());
  int64_t n = value_of("malloc_normal_count");
  allocate_all();
  CHECK(work_until_updated());
  CHECK(n >= 0 && value_of("malloc_normal_count") >= n + N_BLOCKS - N_WORK);
  free_all();
  CHECK(work_until_updated());
  CHECK(value_of("malloc_normal_count") < n + N_BLOCKS / 2);
  CHECK_EQ(task_count(), n_threads);
}

static char*             own_page; // as the library has it
static volatile uint32_t sequence_inside;

// The write of a value: it is allowed from now on.
static void on_write(int sig) {
  uint32_t sequence;
  (void)sig;
  memcpy(&sequence, own_page + 24, sizeof(sequence));
  sequence_inside = sequence;
  mprotect(own_page, page_size, PROT_READ | PROT_WRITE);
}

static char* find_own_page(void) {
  char  line[512];
  char* start = NULL;
  FILE* maps = fopen("/proc/self/maps", "r");
  while (maps != NULL && fgets(line, sizeof(line), maps) != NULL) {
    bool is_shared = (strstr(line, " rw-s ") != NULL && strstr(line, ".stats") != NULL);
    if (is_shared) start = (char*)(uintptr_t)strtoull(line, NULL, 16);
  }
  if (maps != NULL) fclose(maps);
  return start;
}

// While values are written the sequence is odd.
static void check_sequence(void) {
  size_t os_page = (size_t)sysconf(_SC_PAGESIZE);
  own_page = find_own_page();
  CHECK(own_page != NULL);
  if (own_page == NULL || page_size < 2 * os_page) return; // the header has no OS page without values
  CHECK_EQ(number_at(24, 4) % 2, 0);
  signal(SIGSEGV, &on_write);
  sequence_inside = 0;
  mprotect(own_page + os_page, page_size - os_page, PROT_READ);
  CHECK(work_until_updated());
  signal(SIGSEGV, SIG_DFL);
  CHECK_EQ(sequence_inside % 2, 1);
}

// What the exit status of a child says: how many files there were.
static int files_with_child(bool by_exit) {
  int   status = 0;
  pid_t child = fork();
  if (child == 0) {
    double end = now_seconds() + (mi_option_get(mi_option_publish) == 2 ? WAIT_MS / 1000.0 : 0.4);
    while (n_files() < 2 && now_seconds() < end) work();
    int n = n_files();
    if (by_exit) exit(n);
    _exit(n);
  }
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

static void check_forks(void) {
  uint64_t n = n_updates();
  CHECK_EQ(files_with_child(false), 1);
  CHECK_EQ(n_updates(), n); // nobody else writes there
  mi_option_set(mi_option_publish, 2);
  CHECK_EQ(files_with_child(false), 2);
  CHECK_EQ(n_updates(), n);
  CHECK_EQ(n_files(), 2); // it had no time to remove it
  mi_option_set(mi_option_publish, 0);
  CHECK_EQ(n_files(), 1);
  mi_option_set(mi_option_publish, 2);
  CHECK_EQ(n_files(), 1); // the child's has gone
  CHECK(map_page() && number_at(32, 8) == (uint64_t)getpid());
  if (getenv("MI_TEST_NO_EXIT") == NULL) {
    CHECK_EQ(files_with_child(true), 2);
    CHECK_EQ(n_files(), 1);
  }
}

static atomic_bool is_over;

static void* sleep_in_thread(void* arg) {
  mi_free(mi_malloc(10));
  while (!is_over) sleep_ms(5);
  return arg;
}

// The library's thread publishes while the program does nothing, for longer than it would look for work.
static void check_threads(void) {
  pthread_t thread;
  CHECK(map_page());
  if (pthread_create(&thread, NULL, &sleep_in_thread, NULL) != 0) return;
  if (library_task_comes()) {
    sleep_ms(2000);
    uint64_t n = n_updates();
    for (int i = 0; i < 1000 && n_updates() < n + 2; i++) sleep_ms(10);
    CHECK(n_updates() >= n + 2);
  }
  is_over = true;
  pthread_join(thread, NULL);
}

static int n_refusals;

static void on_output(const char* text, void* arg) {
  (void)arg;
  n_refusals += (strstr(text, "does not begin with a slash") != NULL);
}

// After a chdir the name would be that of another directory.
static int check_relative(void) {
  snprintf(directory, sizeof(directory), ".");
  mi_register_output(&on_output, NULL);
  mi_option_set(mi_option_publish, 1);
  mi_register_output(NULL, NULL);
  CHECK_EQ(n_files(), 0);
  CHECK(n_refusals == 1);
  return check_result();
}

static int check_inside(const char* where) {
  if (strcmp(where, ".") == 0) return check_relative();
  snprintf(directory, sizeof(directory), "%s", where);
  check_one_thread();
  if (page == NULL) return check_result();
  check_sequence();
  check_forks();
  check_threads();
  mi_option_set(mi_option_publish, 0);
  CHECK_EQ(n_files(), 0);
  check_stopped();
  return check_result();
}

int main(int argc, char** argv) {
  char        name[] = "/tmp/mi-publish-XXXXXX";
  char        setting[128];
  int         status = -1;
  const char* environment[] = {setting, "MIMALLOC_SHOW_ERRORS=1", NULL};
  if (argc > 1) return check_inside(argv[1]);
  if (mkdtemp(name) == NULL) {
    test_skip("everything", "there is no directory for it");
    return skip_code;
  }
  for (int is_relative = 0; is_relative < 2; is_relative++) {
    const char* arguments[] = {argv[0], is_relative ? "." : name, NULL};
    snprintf(setting, sizeof(setting), "MIMALLOC_PUBLISH_DIR=%s", arguments[1]);
    pid_t child = fork();
    if (child == 0) {
      if (is_relative && chdir(name) != 0) _exit(1);
      execve("/proc/self/exe", (char* const*)(uintptr_t)arguments, (char* const*)(uintptr_t)environment);
      _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
  }
  snprintf(directory, sizeof(directory), "%s", name);
  while (n_files() > 0) unlink(path);
  CHECK_EQ(rmdir(name), 0);
  return check_result();
}
