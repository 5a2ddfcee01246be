// Proves: output goes where it was asked to go, and none is lost at a change; an output or error function may itself
// allocate, print and fail; warnings and errors keep to their limits; errors end the process exactly in the builds and
// for the codes that the header says; errno survives all of it.
#include "../check.h"
#include "../sink.h"
#include "../modes/support.h"
#include "support/assert.h"
#include "support/message.h"
#include "support/options.h"

#include <pthread.h>
#include <sys/wait.h>

#if TEST_TSAN
const char* __tsan_default_options(void);
const char* __tsan_default_options(void) {
  return "die_after_fork=0";
}
#endif

// ---- what was said --------------------------------------------------------------------------------------------------

static size_t count(const char* text, const char* word) {
  size_t n = 0;
  for (const char* at = text; (at = strstr(at, word)) != NULL; at++) n++;
  return n;
}

// Runs `run` in a child process; its stderr goes to text.  Returns how it ended.
// What QEMU says of a program that ends by a signal, which is not what the program says.
static void drop_emulators_line(char* text) {
  char* line = strstr(text, "qemu: uncaught target signal");
  if (line != NULL) *line = 0;
}

static int in_child(void (*run)(void), char* text, size_t size) {
  int fds[2];
  if (pipe(fds) != 0) return -1;
  pid_t pid = fork();
  if (pid == 0) {
    dup2(fds[1], 2);
    close(fds[0]);
    run();
    _exit(0);
  }
  close(fds[1]);
  size_t  length = 0;
  ssize_t n;
  while (length < size - 1 && (n = read(fds[0], text + length, size - 1 - length)) > 0) length += (size_t)n;
  text[length] = 0;
  drop_emulators_line(text);
  close(fds[0]);
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

static sink_t sink, other;

// An error that does not end a process which has no handler, in any build that is tested.
static const int harmless = MI_XMALLOC > 0 ? EINVAL : ENOMEM;

// ---- output ---------------------------------------------------------------------------------------------------------

static void say_20_kib(void) {
  for (int i = 0; i < 2048; i++) _mi_message_raw(NULL, NULL, "%09d\n", i);
  sink_clear(&sink);
  mi_register_output(&sink_write, &sink);
  CHECK_EQ(sink.n_calls, 1);
  CHECK(sink.length > 16000 && sink.length <= 16 * KiB);
  for (size_t i = 0; i < sink.length / 10; i++) { // the beginning of it, whole
    char line[32];
    snprintf(line, sizeof(line), "%09zu\n", i);
    CHECK_FOR(memcmp(sink.text + i * 10, line, 10) == 0, "line %zu", i);
  }
  size_t before = sink.length;
  _mi_message_raw(NULL, NULL, "later");
  CHECK(sink.n_calls == 2 && sink.length == before + 5);
  sink_clear(&sink);
  mi_register_output(&sink_write, &sink); // nothing is told twice
  CHECK_EQ(sink.n_calls, 0);
  mi_register_output(NULL, NULL);
  _mi_message_raw(NULL, NULL, "to stderr again\n");
  CHECK_EQ(sink.n_calls, 0);
  mi_register_output(&sink_write, &sink);
  CHECK(strcmp(sink.text, "to stderr again\n") == 0);
  if (check_n_failed > 0) _exit(1);
}

static void check_earlier_output(void) {
  static char text[64 * 1024];
  int         status = in_child(&say_20_kib, text, sizeof(text));
  CHECK_FOR(status == 0, "status %x: %.99s", status, text);
  CHECK_EQ(count(text, "\n"), 2048 + 1);
}

static void check_forms(void) {
  sink_clear(&sink);
  sink_clear(&other);
  mi_register_output(&sink_write, &sink);
  sink_clear(&sink);
  _mi_message_print(0, "number %d", 1);
  _mi_message_print(0, "number %d\n", 2);
  CHECK_FOR(strcmp(sink.text, "mimalloc: number 1\nmimalloc: number 2\n") == 0, "%.99s", sink.text);
  CHECK_EQ(sink.n_calls, 2);
  _mi_message_raw(&sink_write, &other, "%s", "elsewhere");
  _mi_message_write(&sink_write, &other, "!");
  CHECK(sink.n_calls == 2 && strcmp(other.text, "elsewhere!") == 0);

  static char longer[5000];
  memset(longer, 'x', sizeof(longer) - 1);
  sink_clear(&sink);
  _mi_message_print(0, "%s", longer);
  CHECK(sink.length > 400 && sink.length < 600 && sink.text[sink.length - 1] == '\n' && sink.n_calls == 1);
}

static void check_verbosity(void) {
  for (long level = 0; level <= 2; level++) {
    mi_option_set(mi_option_verbose, level);
    sink_clear(&sink);
    _mi_message_print(1, "verbose");
    _mi_message_print(2, "trace");
    CHECK_EQ(sink.n_calls, level);
    CHECK_EQ(count(sink.text, "mimalloc: verbose\n"), level >= 1);
    CHECK_EQ(count(sink.text, "mimalloc: trace\n"), level >= 2);
  }
  mi_option_set(mi_option_verbose, 0);
}

// An output function that does everything that it better should not.
static size_t depth, deepest;

static void record_and_misbehave(const char* text, void* arg) {
  depth++;
  if (depth > deepest) deepest = depth;
  sink_write(text, arg);
  mi_free(mi_malloc(100000));
  _mi_message_print(0, "said while speaking");
  _mi_message_error(harmless, "failed while speaking");
  errno = EIO;
  depth--;
}

static void speak_recursively(void) {
  mi_register_output(&record_and_misbehave, &sink);
  sink_clear(&sink);
  errno = 4711;
  _mi_message_print(0, "hello");
  CHECK_EQ(errno, 4711);
  CHECK(sink.n_calls == 1 && deepest == 1);
  CHECK(strcmp(sink.text, "mimalloc: hello\n") == 0);
  mi_register_output(&sink_write, &sink);
  if (check_n_failed > 0) _exit(1);
}

static void check_recursion(void) {
  char text[4096];
  CHECK_EQ(in_child(&speak_recursively, text, sizeof(text)), 0);
  CHECK_FOR(count(text, "mimalloc: said while speaking\n") >= 1, "%.99s", text);
  CHECK_FOR(count(text, "mimalloc: error: failed while speaking\n") >= 1, "%.99s", text);
}

// ---- warnings and errors --------------------------------------------------------------------------------------------

static void check_limits(void) {
  mi_option_set(mi_option_show_errors, 1);
  mi_option_set(mi_option_max_warnings, -1);
  sink_clear(&sink);
  for (int i = 0; i < 200; i++) _mi_message_warning("w%d", i);
  CHECK_EQ(count(sink.text, "mimalloc: warning: w"), 200);
  mi_option_set(mi_option_max_warnings, 0);
  mi_option_set(mi_option_max_errors, 5); // none was counted up to now
  sink_clear(&sink);
  for (int i = 0; i < 20; i++) _mi_message_warning("w%d", i);
  for (int i = 0; i < 20; i++) _mi_message_error(harmless, "e%d", i);
  CHECK_EQ(count(sink.text, "warning"), 0);
  CHECK_EQ(count(sink.text, "mimalloc: error: e"), 5);
  mi_option_set(mi_option_max_errors, 7); // those that were not shown do not count, or their number would wrap one day
  for (int i = 0; i < 20; i++) _mi_message_error(harmless, "e%d", i);
  CHECK_EQ(count(sink.text, "mimalloc: error: e"), 7);
  mi_option_set(mi_option_verbose, 1); // no limit
  for (int i = 0; i < 20; i++) _mi_message_warning("v%d", i);
  CHECK_EQ(count(sink.text, "mimalloc: warning: v"), 20);
  mi_option_set(mi_option_verbose, 0);
  mi_option_set(mi_option_max_warnings, -1);
  mi_option_set(mi_option_max_errors, -1);
  mi_option_set(mi_option_show_errors, 0);
  sink_clear(&sink);
  _mi_message_warning("hidden");
  _mi_message_error(harmless, "hidden");
  CHECK_EQ(sink.n_calls, 0);
  mi_option_set(mi_option_show_errors, 1);
}

static int codes[16], n_codes;

static void handle(int err, void* arg) {
  CHECK(arg == &n_codes);
  if (n_codes < 16) codes[n_codes++] = err;
  _mi_message_error(ENOMEM, "failed while handling"); // does not come back here
  mi_free(mi_malloc(1000));
  errno = EIO;
}

static void check_handler(void) {
  static const int all[] = {EAGAIN, EFAULT, EINVAL, ENOMEM, EOVERFLOW};
  mi_register_error(&handle, &n_codes);
  sink_clear(&sink);
  for (size_t i = 0; i < COUNT_OF(all); i++) {
    errno = 4711;
    _mi_message_error(all[i], "fault %zu", i);
    CHECK_EQ(errno, 4711);
  }
  CHECK_EQ(n_codes, COUNT_OF(all));
  for (size_t i = 0; i < COUNT_OF(all); i++) CHECK_EQ(codes[i], all[i]);
  CHECK_EQ(count(sink.text, "mimalloc: error: fault "), COUNT_OF(all));
  CHECK_EQ(count(sink.text, "mimalloc: error: failed while handling\n"), COUNT_OF(all));
  mi_register_error(NULL, NULL);
  _mi_message_error(harmless, "nobody listens");
  CHECK_EQ(n_codes, COUNT_OF(all));
}

static int the_code;

static void fail_with_code(void) {
  mi_register_output(NULL, NULL);
  mi_option_set(mi_option_show_errors, 0); // shown all the same if it is the last thing
  _mi_message_error(the_code, "code %d", the_code);
}

static void fail_assertion(void) {
  mi_register_output(NULL, NULL);
  _mi_assert_fail("a < b", "some/file.c", 77, "some_function");
}

static void check_default_actions(void) {
  static const struct {
    int  code;
    bool is_fatal;
  } cases[] = {
      {EFAULT, MI_CHECKED},     {EAGAIN, MI_CHECKED},        {EINVAL, MI_CHECKED},
      {ENOMEM, MI_XMALLOC > 0}, {EOVERFLOW, MI_XMALLOC > 0},
  };
  char text[1024], want[64];
  for (size_t i = 0; i < COUNT_OF(cases); i++) {
    the_code = cases[i].code;
    int status = in_child(&fail_with_code, text, sizeof(text));
    snprintf(want, sizeof(want), "mimalloc: error: code %d\n", the_code);
    if (cases[i].is_fatal) CHECK_FOR(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT, "code %d", the_code);
    else CHECK_FOR(status == 0, "code %d", the_code);
    if (MI_TRACK_ASAN && cases[i].is_fatal) text[strlen(want)] = 0; // the stack comes next
    CHECK_FOR(strcmp(text, cases[i].is_fatal ? want : "") == 0, "code %d: %.99s", the_code, text);
  }
  int status = in_child(&fail_assertion, text, sizeof(text));
  CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
  CHECK_FOR(
      strcmp(text, "mimalloc: assertion failed: at \"some/file.c\":77, some_function\n  assertion: \"a < b\"\n") == 0,
      "%.99s", text);
}

// ---- threads --------------------------------------------------------------------------------------------------------

static void* fail_in_thread(void* arg) {
  _mi_message_error(harmless, "elsewhere");
  _mi_message_warning("elsewhere");
  return arg;
}

static void check_thread_prefix(void) {
  pthread_t thread;
  size_t    id = 0;
  char      want[128];
  _mi_message_init();
  mi_register_output(&sink_write, &sink);
  sink_clear(&sink);
  _mi_message_error(harmless, "here");
  CHECK_FOR(strcmp(sink.text, "mimalloc: error: here\n") == 0, "%.99s", sink.text);
  sink_clear(&sink);
  pthread_create(&thread, NULL, &fail_in_thread, NULL);
  pthread_join(thread, NULL);
  CHECK(sscanf(sink.text, "mimalloc: error: thread 0x%zX", &id) == 1);
  snprintf(want, sizeof(want), "mimalloc: error: thread 0x%zX: elsewhere\nmimalloc: warning: thread 0x%zX: elsewhere\n",
           id, id);
  CHECK_FOR(strcmp(sink.text, want) == 0, "%.99s", sink.text);
}

// Functions are only ever called with their own arguments, and with whole lines, while others change them.
static int  number_of_a, number_of_b;
static long n_lines; // atomically

static void expect(const char* text, void* arg, int* mine) {
  size_t n = count(text, "\n");
  CHECK(arg == mine);
  CHECK_FOR(n >= 1 && count(text, "mimalloc: line ") == n && strncmp(text, "mimalloc: line ", 15) == 0, "%.99s", text);
  CHECK(text[strlen(text) - 1] == '\n');
  __atomic_add_fetch(&n_lines, (long)n, __ATOMIC_RELAXED);
}

static void expect_a(const char* text, void* arg) {
  expect(text, arg, &number_of_a);
}
static void expect_b(const char* text, void* arg) {
  expect(text, arg, &number_of_b);
}

enum { N_SPEAKERS = 3, N_LINES = 3000 };
static bool is_over; // atomically

static void* change(void* arg) {
  for (int i = 0; !__atomic_load_n(&is_over, __ATOMIC_ACQUIRE); i++) {
    if (i % 2 == 0) mi_register_output(&expect_a, &number_of_a);
    else mi_register_output(&expect_b, &number_of_b);
  }
  return arg;
}

static void* speak(void* arg) {
  for (int i = 0; i < N_LINES; i++) _mi_message_print(0, "line %d", i);
  return arg;
}

static void change_while_speaking(void) {
  pthread_t speakers[N_SPEAKERS], changers[2];
  mi_register_output(&expect_a, &number_of_a);
  for (size_t i = 0; i < COUNT_OF(changers); i++) pthread_create(&changers[i], NULL, &change, NULL);
  for (size_t i = 0; i < N_SPEAKERS; i++) pthread_create(&speakers[i], NULL, &speak, NULL);
  for (size_t i = 0; i < N_SPEAKERS; i++) pthread_join(speakers[i], NULL);
  __atomic_store_n(&is_over, true, __ATOMIC_RELEASE);
  for (size_t i = 0; i < COUNT_OF(changers); i++) pthread_join(changers[i], NULL);
  mi_register_output(&expect_a, &number_of_a);
  if (check_n_failed > 0) _exit(1);
  char text[64];
  snprintf(text, sizeof(text), "given: %ld\n", n_lines);
  check_write(text);
}

// No line is lost: what was said in the middle of a change went to stderr (and, while there was room, came along with
// others at the next registration).
static void check_changes(void) {
  static char text[512 * 1024];
  mi_register_output(NULL, NULL);
  int         status = in_child(&change_while_speaking, text, sizeof(text));
  const char* failure = strstr(text, "failed: ");
  const char* given = strstr(text, "given: ");
  CHECK_FOR(status == 0 && failure == NULL, "status %x: %.200s", status, failure == NULL ? "" : failure);
  long n_given = (given == NULL ? 0 : atol(given + 7));
  long n_stderr = (long)count(text, "mimalloc: line ");
  CHECK_FOR(n_given <= N_SPEAKERS * N_LINES && n_given + n_stderr >= N_SPEAKERS * N_LINES, "%ld and %ld", n_given,
            n_stderr);
}

// What a terminal obeys is not said, nor what would look like another line.
static void check_printable(void) {
  static sink_t sink;
  mi_option_set(mi_option_show_errors, 1);
  mi_option_set(mi_option_max_warnings, -1);
  mi_register_output(&sink_write, &sink);
  _mi_message_warning("of %s", "/a\x1b]0;b\x07\r\nmimalloc: error: c\x7f/\xc3\xa9");
  CHECK(sink_has(&sink, "of /a?]0;b???mimalloc: error: c?/\xc3\xa9\n"));
  mi_register_output(NULL, NULL);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_earlier_output();
  check_forms();
  check_verbosity();
  check_recursion();
  check_limits();
  check_handler();
  check_default_actions();
  check_changes(); // before there is a thread: under QEMU (7.2) the child of a process with threads cannot start any
  check_thread_prefix();
  check_printable();
  return check_result();
}
