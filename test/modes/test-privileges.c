// Proves: a program that runs with raised privileges takes no settings from its environment, which whoever started it has
// written, from its first allocation on; it can still be told by its own calls, and says then that the environment is ignored.
//
// Copies of this program are made privileged: setgid, setuid, and with a capability.  Only root can do so.
#include "../check.h"
#include <mimalloc.h>
#include <grp.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "support.h"

enum { NOBODY = 65534, NOT_PRIVILEGED = 3, CANNOT_START = 99 };

#define IGNORED "the environment is ignored"

// ---- the privileged program -----------------------------------------------------------------------------------------

// The first allocation of the process, before main and before other constructors of ours.
static void* early;

__attribute__((constructor(102))) static void allocate_early(void) {
  early = mi_malloc(100);
}

static int run_as_privileged(bool is_expected) {
  char* p = (char*)mi_malloc(100000);
  if ((getauxval(AT_SECURE) != 0) != is_expected) return NOT_PRIVILEGED;
  bool ignores = mi_option_get(mi_option_purge_delay) != 77 && mi_option_get(mi_option_verbose) == 0 &&
                 !mi_option_is_enabled(mi_option_disallow_os_alloc) && !mi_option_is_enabled(mi_option_show_stats);
  mi_option_set_default(mi_option_purge_delay, 55); // nobody has set it
  bool takes_default = (mi_option_get(mi_option_purge_delay) == 55);
  mi_option_set(mi_option_verbose, 1);
  mi_option_set(mi_option_verbose, 0);
  mi_options_print();
  printf("%s, %s, %s, %s\n", p != NULL ? "memory" : "no memory", early != NULL ? "early" : "late",
         ignores ? "ignores" : "obeys", takes_default ? "default" : "no default");
  mi_free(p);
  mi_free(early);
  return 0;
}

// ---- copies ---------------------------------------------------------------------------------------------------------

static char directory[64], copy[128];

static bool make_copy(uid_t owner, gid_t group, mode_t mode) {
  char    buffer[4096];
  ssize_t n;
  int     from = open("/proc/self/exe", O_RDONLY);
  int     to = open(copy, O_WRONLY | O_CREAT | O_TRUNC, 0700);
  bool    ok = (from >= 0 && to >= 0);
  while (ok && (n = read(from, buffer, sizeof(buffer))) > 0) ok = (write(to, buffer, (size_t)n) == n);
  ok = ok && fchown(to, owner, group) == 0 && fchmod(to, mode) == 0;
  close(from);
  close(to);
  return ok;
}

// Runs `command` in a child; returns its exit status.
static int run_tool(const char* const* command) {
  pid_t pid = fork();
  if (pid == 0) {
    int fd = open("/dev/null", O_WRONLY);
    dup2(fd, 2);
    execvp(command[0], (char* const*)(uintptr_t)command);
    _exit(CANNOT_START);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Starts the copy in an environment that is full of settings; returns its exit status.
static int run_copy(bool as_nobody, const char* word, char* text, size_t size) {
  static const char* const environment[] = {
      "MIMALLOC_DISALLOW_OS_ALLOC=1", "MIMALLOC_SHOW_STATS=1", "MIMALLOC_VERBOSE=1",       "MIMALLOC_PURGE_DELAY=77",
      "mimalloc_show_leaks=1",        "MIMALLOC_XYZ=1",        "MIMALLOC_MAX_ERRORS=soon", NULL};
  const char* const arguments[] = {word, NULL};
  int               fds[2], status = 0;
  size_t            length = 0;
  if (pipe(fds) != 0) return CANNOT_START;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    close(fds[0]);
    if (as_nobody && (setgroups(0, NULL) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) _exit(CANNOT_START);
    execve(copy, (char* const*)(uintptr_t)arguments, (char* const*)(uintptr_t)environment);
    _exit(CANNOT_START);
  }
  close(fds[1]);
  for (ssize_t n; (n = read(fds[0], text + length, size - 1 - length)) > 0;) length += (size_t)n;
  text[length] = 0;
  close(fds[0]);
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int n_checked;

static void check_copy(const char* what, bool as_nobody) {
  static char text[64 * 1024];
  int         status = run_copy(as_nobody, "privileged", text, sizeof(text));
  if (status == NOT_PRIVILEGED || status == CANNOT_START || status == 127) { // 127: the loader may not read our library
    test_skip(what, status == NOT_PRIVILEGED ? "the system gives no privileges here" : "it cannot be started");
    return;
  }
  n_checked++;
  CHECK_FOR(status == 0, "%s: status %d: %s", what, status, text);
  CHECK_FOR(strstr(text, "memory, early, ignores, default\n") != NULL, "%s: %s", what, text);
  CHECK_FOR(strstr(text, "no memory") == NULL, "%s: %s", what, text);
  CHECK_FOR(strstr(text, "mimalloc: warning") == NULL && strstr(text, "heap stats") == NULL, "%s: %s", what, text);
  // Once when it became verbose, and once with the options.
  const char* first = strstr(text, IGNORED);
  const char* second = (first == NULL ? NULL : strstr(first + 1, IGNORED));
  CHECK_FOR(second != NULL && strstr(second + 1, IGNORED) == NULL, "%s: %s", what, text);
}

// Without privileges the same environment counts: the test sees what it is to see.
static void check_plain(void) {
  static char text[64 * 1024];
  if (!make_copy(0, 0, 0755)) return;
  int status = run_copy(false, "plain", text, sizeof(text));
  if (status == CANNOT_START) return;
  CHECK_FOR(status == 0 && strstr(text, "obeys, no default") != NULL, "status %d: %s", status, text);
  CHECK_FOR(strstr(text, IGNORED) == NULL && strstr(text, "MIMALLOC_XYZ=1 is not known") != NULL, "%s", text);
}

static void check_capability(void) {
  const char* const command[] = {"setcap", "cap_net_raw+ep", copy, NULL};
  if (!make_copy(0, 0, 0755)) return;
  if (run_tool(command) != 0) test_skip("capabilities", "setcap is not there, or not allowed");
  else check_copy("capabilities", true);
}

int main(int argc, char** argv) {
  if (argc > 0 && strcmp(argv[0], "privileged") == 0) return run_as_privileged(true);
  if (argc > 0 && strcmp(argv[0], "plain") == 0) return run_as_privileged(false);
  if (getuid() != 0 || TEST_SANITIZED) {
    test_skip("everything", "only root can make a program privileged");
    return skip_code;
  }
  snprintf(directory, sizeof(directory), "/tmp/privileges-XXXXXX");
  if (mkdtemp(directory) == NULL || chmod(directory, 0755) != 0) {
    test_skip("privileges", "no directory for programs can be made");
    return skip_code;
  }
  snprintf(copy, sizeof(copy), "%s/program", directory);
  check_plain();
  if (make_copy(0, NOBODY, 02755)) check_copy("setgid", false);
  if (make_copy(0, 0, 04755)) check_copy("setuid", true);
  check_capability();
  unlink(copy);
  rmdir(directory);
  int result = check_result();
  return n_checked == 0 && result == 0 ? skip_code : result;
}
