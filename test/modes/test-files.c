// Proves: where a heap profile or a page of statistics cannot be written, the process goes on, a function returns the error, one
// message names the file and the reason, and nothing is left in the directory.  A dump that another thread, a cancellation or a
// fork disturbs keeps its promise, too, and has nothing in it that was written to a closed standard error.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "../check.h"
#include <dirent.h>
#include <fcntl.h>
#include <mimalloc-profile.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "support.h"

#if defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
  #define HAS_STACKS 1
#else
  #define HAS_STACKS 0
#endif

enum { PATH_MAX_HERE = 300, NOBODY = 65534 };

static char directory[] = "/tmp/mi-files-XXXXXX";

// ---- directories ----------------------------------------------------------------------------------------------------

static const char* path_of(const char* folder, const char* name) {
  static char path[PATH_MAX_HERE];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return path;
}

static bool is_there(const char* folder, const char* name) {
  return access(path_of(folder, name), F_OK) == 0;
}

// What is in it; 0 if it is none.
static int n_entries(const char* folder) {
  int  n = 0;
  DIR* entries = opendir(folder);
  if (entries == NULL) return 0;
  for (const struct dirent* entry; (entry = readdir(entries)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    printf("in %s: %s\n", folder, entry->d_name);
    n++;
  }
  closedir(entries);
  return n;
}

static void empty(const char* folder) {
  DIR* entries = opendir(folder);
  if (entries == NULL) return;
  for (const struct dirent* entry; (entry = readdir(entries)) != NULL;) {
    if (entry->d_name[0] != '.') unlink(path_of(folder, entry->d_name));
  }
  closedir(entries);
}

// ---- what refuses files -----------------------------------------------------------------------------------------------

typedef enum refusal_e { MISSING, NO_FOLDER, READ_ONLY, FULL, TOO_LONG, NO_BYTE, NO_DESCRIPTOR, N_REFUSALS } refusal_t;

static const struct {
  const char* name;
  int         err;
} refusals[N_REFUSALS] = {
    {"missing", ENOENT}, {"no-folder", ENOTDIR}, {"read-only", EACCES},     {"full", ENOSPC},
    {"too-long", EFBIG}, {"no-byte", EFBIG},     {"no-descriptor", EMFILE},
};

static bool write_text(const char* path, const char* text) {
  int  fd = open(path, O_WRONLY);
  bool is_done = (fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
  if (fd >= 0) close(fd);
  return is_done;
}

// A disk of 4 KiB that this process alone sees.
static bool mount_small(const char* folder) {
  static char page[4096];
  char        uid[64], gid[64];
  snprintf(uid, sizeof(uid), "0 %d 1", (int)geteuid());
  snprintf(gid, sizeof(gid), "0 %d 1", (int)getegid());
  if (unshare(CLONE_NEWNS) != 0) {
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return false;
    if (!write_text("/proc/self/uid_map", uid) || !write_text("/proc/self/setgroups", "deny")) return false;
    if (!write_text("/proc/self/gid_map", gid)) return false;
  }
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return false;
  if (mount("tmpfs", folder, "tmpfs", 0, "size=4k") != 0) return false;
  int  fd = open(path_of(folder, ".full"), O_CREAT | O_WRONLY, 0600);
  bool is_full = (write(fd, page, sizeof(page)) == (ssize_t)sizeof(page) && write(fd, page, 1) < 0);
  close(fd);
  return is_full;
}

// Before the program is started.  False: it cannot be had here.
static bool prepare(refusal_t refusal, char* folder) {
  snprintf(folder, PATH_MAX_HERE, "%s", directory);
  if (refusal == MISSING) snprintf(folder, PATH_MAX_HERE, "%s/none", directory);
  if (refusal == NO_FOLDER) snprintf(folder, PATH_MAX_HERE, "/dev/null/none");
  if (refusal == FULL) return mount_small(directory);
  return refusal != READ_ONLY || chmod(directory, 0555) == 0;
}

static void limit(int resource, rlim_t value) {
  struct rlimit both = {value, value};
  CHECK_EQ(setrlimit(resource, &both), 0);
}

// Within the program.
static void refuse(refusal_t refusal) {
  if (refusal == READ_ONLY && geteuid() == 0) CHECK_EQ(setuid(NOBODY), 0);
  if (refusal == TOO_LONG) limit(RLIMIT_FSIZE, HAS_STACKS ? 4100 : 100); // a part is written
  if (refusal == NO_BYTE) limit(RLIMIT_FSIZE, 0);
  if (refusal == NO_DESCRIPTOR) limit(RLIMIT_NOFILE, 3);
}

// ---- the program that is refused them ---------------------------------------------------------------------------------

// So many stacks that they do not fit into the file.
static void allocate_deep(size_t depth) {
  static void* volatile block;
  static void (*volatile deeper)(size_t depth) = &allocate_deep; // not inlined
  if (depth > 0) deeper(depth - 1);
  block = mi_malloc(1000);
  mi_free(block);
  block = mi_malloc(2000);
  mi_free(block);
  block = mi_calloc(1, 3000);
  mi_free(block);
}

static int run_refused(refusal_t refusal, const char* folder) {
  watchdog(60);
  for (size_t i = 0; i < 500; i++) allocate_deep(60);
  refuse(refusal);
  errno = 0;
  CHECK_EQ(mi_profile_dump(path_of(folder, "named.pb")), MI_TRACK ? EINVAL : refusals[refusal].err);
  CHECK_EQ(errno, 0);
  mi_option_set(mi_option_publish, 1);
  CHECK_EQ(errno, 0);
  for (size_t i = 0; i < 2000; i++) mi_free(mi_malloc(1000));
  return check_result(); // and at the exit the profile is to be written
}

// Both ends of a pipe hold all that it says.
static size_t read_all(int fd, char* text, size_t size) {
  size_t length = 0;
  for (ssize_t n; length + 1 < size && (n = read(fd, text + length, size - 1 - length)) > 0;) length += (size_t)n;
  text[length] = 0;
  return length;
}

static int count_in(const char* text, const char* what) {
  int n = 0;
  for (; (text = strstr(text, what)) != NULL; text++) n++;
  return n;
}

static void check_messages(refusal_t refusal, const char* folder, const char* said) {
  char number[32], prefix[PATH_MAX_HERE + 8];
  snprintf(number, sizeof(number), "(error %d)", refusals[refusal].err);
  snprintf(prefix, sizeof(prefix), "%s/x.", folder);
  int n_profiles = (MI_TRACK ? 0 : 1);
  CHECK_EQ(count_in(said, "the heap profile cannot be written: "), n_profiles);
  CHECK_EQ(count_in(said, prefix), n_profiles);
  CHECK_EQ(count_in(said, "the statistics are not published"), 1);
  CHECK_EQ(count_in(said, number), n_profiles + 1);
}

static void exec_refused(refusal_t refusal, const char* folder) {
  char        number[16], profile[PATH_MAX_HERE + 32], publish[PATH_MAX_HERE + 32];
  const char* arguments[] = {"test-files", number, folder, NULL};
  // The search for leaks of a sanitizer needs files.
  const char* environment[] = {
      profile, publish, "MIMALLOC_PROFILE_RATE=2000", "MIMALLOC_SHOW_ERRORS=1", "ASAN_OPTIONS=detect_leaks=0", NULL};
  snprintf(number, sizeof(number), "%d", (int)refusal);
  snprintf(profile, sizeof(profile), "MIMALLOC_PROFILE=%s/x", folder);
  snprintf(publish, sizeof(publish), "MIMALLOC_PUBLISH_DIR=%s", folder);
  test_exec((char* const*)(uintptr_t)arguments, (char* const*)(uintptr_t)environment);
  _exit(1);
}

static int watch_refused(refusal_t refusal) {
  static char said[64 * KiB];
  char        folder[PATH_MAX_HERE];
  int         ends[2], status = -1;
  if (!prepare(refusal, folder)) return skip_code;
  CHECK_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    exec_refused(refusal, folder);
  }
  close(ends[1]);
  read_all(ends[0], said, sizeof(said));
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK_EQ(n_entries(folder), 0);
  check_messages(refusal, folder, said);
  printf("%s: status %d\n%s", refusals[refusal].name, status, said);
  return check_result();
}

static void check_refused(refusal_t refusal) {
  int status = -1;
  fflush(NULL);
  pid_t child = fork(); // what is prepared, ends with it
  if (child == 0) {
    int result = watch_refused(refusal);
    fflush(NULL);
    _exit(result);
  }
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
  if (WEXITSTATUS(status) == skip_code) test_skip(refusals[refusal].name, "it cannot be had here");
  else CHECK_FOR(status == 0, "%s", refusals[refusal].name);
  chmod(directory, 0700);
  empty(directory);
}

// ---- what disturbs a dump -----------------------------------------------------------------------------------------------

static atomic_bool is_inside, may_go_on;

static int write_nothing(const void* data, size_t size, void* arg) {
  (void)data, (void)size, (void)arg;
  return 0;
}

static int write_slowly(const void* data, size_t size, void* arg) {
  (void)data, (void)size, (void)arg;
  is_inside = true;
  while (!may_go_on) sleep_ms(1);
  return 0;
}

static void* dump_slowly(void* arg) {
  CHECK_EQ(mi_profile_dump_to(&write_slowly, arg), 0);
  return NULL;
}

// Meanwhile another thread's dump is refused, but not one of a child, where the first thread is not.
static void check_busy(void) {
  pthread_t thread;
  int       status = -1;
  pthread_create(&thread, NULL, &dump_slowly, NULL);
  while (!is_inside) sleep_ms(1);
  CHECK_EQ(mi_profile_dump_to(&write_nothing, NULL), EBUSY);
  CHECK_EQ(mi_profile_dump(path_of(directory, "busy.pb")), EBUSY);
  CHECK_EQ(n_entries(directory), 0);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    CHECK_EQ(mi_profile_dump_to(&write_nothing, NULL), 0);
    CHECK_EQ(mi_profile_dump(path_of(directory, "child.pb")), 0);
    _exit(check_result());
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  may_go_on = true;
  pthread_join(thread, NULL);
  CHECK(is_there(directory, "child.pb"));
  CHECK_EQ(mi_profile_dump_to(&write_nothing, NULL), 0);
  empty(directory);
}

static void* dump_cancelled(void* arg) {
  pthread_cancel(pthread_self());
  CHECK_EQ(mi_profile_dump(path_of(directory, "cancelled.pb")), 0);
  mi_process_info(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
  *(bool*)arg = true;
  pthread_testcancel();
  return NULL;
}

// These are no points of cancellation, as malloc, which may call what they do, is none.
static void check_cancelled(void) {
  pthread_t thread;
  bool      is_done = false;
  pthread_create(&thread, NULL, &dump_cancelled, &is_done);
  pthread_join(thread, NULL);
  CHECK(is_done);
  CHECK(is_there(directory, "cancelled.pb") && !is_there(directory, "cancelled.pb.part"));
  CHECK_EQ(mi_profile_dump_to(&write_nothing, NULL), 0);
  empty(directory);
}

// The file of another is left as it is, under either name.
static void check_taken(void) {
  char path[PATH_MAX_HERE];
  int  fd = open(path_of(directory, "a.pb.part"), O_CREAT | O_WRONLY, 0600);
  close(fd);
  snprintf(path, sizeof(path), "%s", path_of(directory, "a.pb"));
  CHECK_EQ(mi_profile_dump(path), EEXIST);
  CHECK(is_there(directory, "a.pb.part") && !is_there(directory, "a.pb"));
  unlink(path_of(directory, "a.pb.part"));
  CHECK_EQ(mi_profile_dump(path), 0);
  CHECK_EQ(mi_profile_dump(path), EEXIST);
  CHECK(is_there(directory, "a.pb") && !is_there(directory, "a.pb.part"));
  CHECK_EQ(mi_profile_dump(""), ENOENT);
  CHECK_EQ(mi_profile_dump_to(NULL, NULL), EINVAL);
  char* long_path = (char*)mi_zalloc(5000);
  memset(long_path, 'x', 4999);
  CHECK_EQ(mi_profile_dump(long_path), ENAMETOOLONG);
  mi_free(long_path);
  empty(directory);
}

// Nor is a link followed, under either name: whoever may write to the directory does not choose what is written.
static void check_links(void) {
  char        path[PATH_MAX_HERE], target[PATH_MAX_HERE];
  const char* names[] = {"b.pb.part", "b.pb"};
  snprintf(path, sizeof(path), "%s", path_of(directory, "b.pb"));
  snprintf(target, sizeof(target), "%s", path_of(directory, "target"));
  for (size_t i = 0; i < 2; i++) {
    CHECK_EQ(symlink(target, path_of(directory, names[i])), 0);
    CHECK_EQ(mi_profile_dump(path), EEXIST);
    CHECK(!is_there(directory, "target"));
    CHECK_EQ(unlink(path_of(directory, names[i])), 0);
  }
  CHECK_EQ(mi_profile_dump(path), 0);
  empty(directory);
}

// ---- without standard error -------------------------------------------------------------------------------------------

static const char  said[] = "what the program says";
static atomic_bool must_be_silent;

static void* say(void* arg) {
  (void)arg;
  while (!atomic_load(&must_be_silent)) (void)!write(STDERR_FILENO, said, sizeof(said) - 1);
  return NULL;
}

static bool has_what_was_said(const char* path) {
  static char text[MiB];
  size_t      n = read_file(path, text, sizeof(text));
  return memmem(text, n, said, sizeof(said) - 1) != NULL;
}

// What a thread writes to a descriptor that is closed is in no file.
static void check_closed(void) {
  enum { n_dumps = 1000 };
  pthread_t thread;
  size_t    n_bad = 0;
  int       kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  CHECK(kept >= 0);
  close(STDERR_FILENO);
  atomic_store(&must_be_silent, false);
  CHECK_EQ(pthread_create(&thread, NULL, &say, NULL), 0);
  for (size_t i = 0; i < n_dumps; i++) {
    const char* path = path_of(directory, "c.pb");
    CHECK_EQ(mi_profile_dump(path), 0);
    n_bad += has_what_was_said(path);
    unlink(path);
  }
  atomic_store(&must_be_silent, true);
  pthread_join(thread, NULL);
  dup2(kept, STDERR_FILENO);
  close(kept);
  CHECK_EQ(n_bad, 0);
}

static void check_disturbed(void) {
  if (MI_TRACK) return;
  CHECK_EQ(mi_profile_start(1000), 0);
  for (size_t i = 0; i < 2000; i++) mi_free(mi_malloc(1000));
  if (!TEST_TSAN) check_busy();
  check_cancelled();
  check_taken();
  check_links();
  if (!TEST_TSAN) check_closed(); // it sees two threads at one descriptor
}

int main(int argc, char** argv) {
  if (argc > 2) return run_refused((refusal_t)atoi(argv[1]), argv[2]);
  watchdog(200);
  if (mkdtemp(directory) == NULL) {
    test_skip("everything", "there is no directory for it");
    return skip_code;
  }
  check_disturbed();
  for (int i = 0; i < N_REFUSALS && test_can_exec(); i++) check_refused((refusal_t)i);
  CHECK_EQ(rmdir(directory), 0);
  return check_result();
}
