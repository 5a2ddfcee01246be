// Proves: with guarded mode on for every block, each way to misuse a block ends the process by SIGSEGV at the access itself,
// whatever function the block came from, and the report names the misuse, the block, its size, the distance, and who
// allocated and freed it.  What a page cannot catch is reported when the block is freed.
#include "../check.h"
#include <mimalloc-new-delete.h>
#include <mimalloc.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "support.h"

// ---- blocks, from everywhere ----------------------------------------------------------------------------------------

typedef void* (*make_fun_t)(size_t size);

static void* make_malloc(size_t size) {
  return mi_malloc(size);
}
static void* make_calloc(size_t size) {
  return mi_calloc(1, size);
}
static void* make_realloc(size_t size) {
  return mi_realloc(mi_malloc(5), size);
}
static void* make_shrunk(size_t size) {
  return mi_realloc(mi_malloc(size + size / 3), size);
}
static void* make_aligned(size_t size) {
  return mi_malloc_aligned(size, 64);
}
static void* make_page_aligned(size_t size) {
  return mi_zalloc_aligned(size, 4096);
}
static void* make_memalign16(size_t size) {
  return mi_memalign(16, size);
}
static void* make_heap(size_t size) {
  return mi_heap_malloc(mi_heap_new(), size);
}
static void* make_heap_calloc(size_t size) {
  return mi_heap_calloc(mi_heap_new(), 1, size);
}
static void* make_strdup(size_t size) {
  static char text[70000];
  memset(text, 'x', size - 1);
  text[size - 1] = 0;
  return mi_strdup(text);
}
static void* make_new(size_t size) {
  return new char[size];
}

typedef struct maker_s {
  const char* name;
  make_fun_t  make;
  size_t      align; // of what it makes, if the size is not a multiple of it
} maker_t;

static const maker_t makers[] = {
    {"malloc", &make_malloc, 1},          {"calloc", &make_calloc, 1},    {"realloc", &make_realloc, 1},
    {"shrunk", &make_shrunk, 1},          {"aligned", &make_aligned, 64}, {"page-aligned", &make_page_aligned, 4096},
    {"memalign16", &make_memalign16, 16}, {"heap", &make_heap, 1},        {"heap-calloc", &make_heap_calloc, 1},
    {"strdup", &make_strdup, 1},          {"new[]", &make_new, 1},
};

// ---- misuse, in a process of its own --------------------------------------------------------------------------------

typedef struct job_s {
  make_fun_t make;
  size_t     size;
  ptrdiff_t  at; // of the access, from the block's start
} job_t;

static volatile char sink;

static void misuse(const char* how, const job_t* job) {
  char* block = (char*)job->make(job->size);
  char* p = (char*)hidden_pointer(block);
  memset(p, 1, job->size);
  // The parent holds the report against this.
  printf("block %p usable %zu\n", (void*)block, mi_usable_size(block));
  fflush(stdout);
  if (strcmp(how, "write") == 0) p[job->at] = 1;
  if (strcmp(how, "read") == 0) sink = p[job->at];
  if (strcmp(how, "write-freed") == 0) {
    mi_free(block);
    p[job->at] = 1;
  }
  if (strcmp(how, "read-freed") == 0) {
    mi_free(block);
    sink = p[job->at];
  }
  if (strcmp(how, "write-then-free") == 0) {
    p[job->at] = 1;
    mi_free(block);
  }
  if (strcmp(how, "double-free") == 0) {
    mi_free(block);
    mi_free(hidden_pointer(block));
  }
}

static void report_code(int code, void* arg) {
  (void)arg;
  printf("code %d\n", code);
  fflush(stdout);
}

static int child_main(int argc, char** argv) {
  job_t         job = {NULL, 0, 0};
  struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(60);
  if (argc != 6) return 99;
  for (size_t i = 0; i < COUNT_OF(makers); i++) {
    if (strcmp(makers[i].name, argv[3]) == 0) job.make = makers[i].make;
  }
  job.size = (size_t)strtoull(argv[4], NULL, 10);
  job.at = (ptrdiff_t)strtoll(argv[5], NULL, 10);
  mi_register_error(&report_code, NULL);
  misuse(argv[2], &job);
  return 3;
}

// ---- the parent -----------------------------------------------------------------------------------------------------

static const char* program;
static char        output[16384]; // of the child, standard output and error

typedef struct setting_s {
  const char* precise;
  const char* before;
} setting_t;

static int run_child(const setting_t* setting, const char* how, const char* maker, size_t size, ptrdiff_t at) {
  char size_text[32], at_text[32];
  int  fds[2], status = 0;
  snprintf(size_text, sizeof(size_text), "%zu", size);
  snprintf(at_text, sizeof(at_text), "%td", at);
  if (pipe(fds) != 0) return -1;
  pid_t child = fork();
  if (child == 0) {
    dup2(fds[1], 1);
    dup2(fds[1], 2);
    close(fds[0]);
    setenv("MIMALLOC_GUARDED_SAMPLE_RATE", "1", 1);
    setenv("MIMALLOC_GUARDED_PRECISE", setting->precise, 1);
    setenv("MIMALLOC_GUARDED_BEFORE", setting->before, 1);
    setenv("MIMALLOC_SHOW_ERRORS", "1", 1);
    execl(program, program, "child", how, maker, size_text, at_text, (char*)NULL);
    _exit(98);
  }
  close(fds[1]);
  size_t  n = 0;
  ssize_t got;
  while ((got = read(fds[0], output + n, sizeof(output) - 1 - n)) > 0) n += (size_t)got;
  output[n] = 0;
  close(fds[0]);
  waitpid(child, &status, 0);
  return status;
}

static size_t output_block(size_t* usable) {
  void* block = NULL;
  *usable = 0;
  const char* at = strstr(output, "block 0x");
  if (at != NULL && sscanf(at, "block %p usable %zu", &block, usable) != 2) block = NULL;
  return (size_t)(uintptr_t)block;
}

static const setting_t plain = {"0", "0"};
static const setting_t precise = {"1", "0"};
static const setting_t before = {"0", "100"};

// The child died at the access, and said so.
static void check_fault(const setting_t* setting, const char* how, const char* maker, size_t size, ptrdiff_t at,
                        const char* expected) {
  int    status = run_child(setting, how, maker, size, at);
  size_t usable;
  size_t block = output_block(&usable);
  char   wanted[256], where[64];
  bool   is_write = (strncmp(how, "write", 5) == 0);
  CHECK_FOR(block != 0 && usable == size, "%s %s: block %zx, %zu usable of %zu", how, maker, block, usable, size);
  if (TEST_SANITIZED) { // they have a handler of their own
    CHECK_FOR(!(WIFEXITED(status) && WEXITSTATUS(status) == 3), "%s %s %zu[%td]: survived", how, maker, size, at);
    CHECK_FOR(strstr(output, "mimalloc: error") == NULL, "%s %s: our handler", how, maker);
    return;
  }
  CHECK_FOR(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV, "%s %s %zu[%td]: status %x\n%s", how, maker, size, at,
            status, output);
  snprintf(wanted, sizeof(wanted), "mimalloc: error: %s: %s at 0x", expected, is_write ? "write" : "read");
#if defined(__x86_64__)
  CHECK_FOR(strstr(output, wanted) != NULL, "%s %s %zu[%td]: no '%s' in\n%s", how, maker, size, at, wanted, output);
#endif
  // The words of the report in which the block, its size and the distance are, in upper case hexadecimal digits.
  if (strcmp(expected, "buffer overflow") == 0) {
    snprintf(wanted, sizeof(wanted), "%zd bytes past the block 0x%zX of %zu bytes", (size_t)at - size, block, size);
  }
  else if (strcmp(expected, "buffer underflow") == 0) {
    snprintf(wanted, sizeof(wanted), "%td bytes before the block 0x%zX of %zu bytes", -at, block, size);
  }
  else {
    snprintf(wanted, sizeof(wanted), "byte %td of the freed block 0x%zX of %zu bytes", at, block, size);
  }
  CHECK_FOR(strstr(output, wanted) != NULL, "%s %s %zu[%td]: no '%s' in\n%s", how, maker, size, at, wanted, output);
  snprintf(where, sizeof(where), "0x%zX", block + (size_t)at);
  CHECK_FOR(strstr(output, where) != NULL, "%s %s: no address %s", how, maker, where);
  CHECK_FOR(strstr(output, "allocated by thread") != NULL, "%s %s: not who allocated it", how, maker);
  bool says_freed = strstr(output, "freed by thread") != NULL;
  CHECK_FOR(says_freed == (strstr(how, "freed") != NULL), "%s %s: who freed it: %d", how, maker, says_freed);
#if defined(__GLIBC__)
  const char* name = strrchr(program, '/') + 1;
  CHECK_FOR(strstr(output, name) != NULL, "%s %s: no frame of the program in\n%s", how, maker, output);
#endif
}

// The access was not noticed as such, but at the free; the process goes on.
static void check_late(const setting_t* setting, const char* maker, size_t size, ptrdiff_t at, const char* expected) {
  int    status = run_child(setting, "write-then-free", maker, size, at);
  size_t usable;
  size_t block = output_block(&usable);
  char   wanted[256];
  snprintf(wanted, sizeof(wanted), "code %d\n", EFAULT);
  CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 3, "%s %zu[%td]: status %x", maker, size, at, status);
  CHECK_FOR(strstr(output, wanted) != NULL, "%s %zu[%td]: no code in\n%s", maker, size, at, output);
  snprintf(wanted, sizeof(wanted),
           "mimalloc: error: %s: something was written %td bytes %s the block 0x%zX of %zu bytes", expected,
           at < 0 ? -at : at - (ptrdiff_t)size, at < 0 ? "before" : "past", block, size);
  CHECK_FOR(strstr(output, wanted) != NULL, "%s %zu[%td]: no '%s' in\n%s", maker, size, at, wanted, output);
}

static void check_double_free(const char* maker, size_t size) {
  int    status = run_child(&plain, "double-free", maker, size, 0);
  size_t usable;
  size_t block = output_block(&usable);
  char   wanted[256];
  CHECK_FOR(WIFEXITED(status) && WEXITSTATUS(status) == 3, "double free %s: status %x", maker, status);
  snprintf(wanted, sizeof(wanted), "code %d\n", EAGAIN);
  CHECK_FOR(strstr(output, wanted) != NULL, "double free %s: no code in\n%s", maker, output);
  snprintf(wanted, sizeof(wanted), "mimalloc: error: double free of the block 0x%zX of %zu bytes", block, size);
  CHECK_FOR(strstr(output, wanted) != NULL, "double free %s: no '%s' in\n%s", maker, wanted, output);
  CHECK_FOR(strstr(output, "was allocated by thread") != NULL, "double free %s: not who allocated it", maker);
  CHECK_FOR(strstr(output, "was freed by thread") != NULL, "double free %s: not who freed it", maker);
}

static size_t align_up(size_t n, size_t align) {
  return (n + align - 1) / align * align;
}

static void check_maker(const maker_t* m) {
  const size_t size = 100;
  size_t       end = align_up(size, m->align > 16 ? m->align : 16);
  // Blocks aligned to OS pages end within one: a fault where that ends, the rest when it is freed.
  size_t       precise_end = align_up(size, m->align);
  check_fault(&plain, "write", m->name, size, (ptrdiff_t)end, "buffer overflow");
  check_fault(&precise, "write", m->name, size, (ptrdiff_t)precise_end, "buffer overflow");
  check_fault(&precise, "read", m->name, size, (ptrdiff_t)precise_end, "buffer overflow");
  if (precise_end != size) check_late(&precise, m->name, size, (ptrdiff_t)size, "buffer overflow");
  check_late(&plain, m->name, size, (ptrdiff_t)size + 3, "buffer overflow");
  check_fault(&before, "write", m->name, size, -1, "buffer underflow");
  if (m->align < 4096) check_late(&plain, m->name, size, -1, "buffer underflow");
  check_fault(&plain, "read-freed", m->name, size, 0, "use after free");
  check_fault(&plain, "write-freed", m->name, size, 99, "use after free");
  check_double_free(m->name, size);
}

// Sizes of all kinds: in a bin's reach, of several OS pages, of several slices.
static void check_sizes(void) {
  static const size_t sizes[] = {1, 8, 16, 17, 4096, 4097, 60000, 70000, 600000, 3000000};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    ptrdiff_t size = (ptrdiff_t)sizes[i];
    check_fault(&precise, "write", "malloc", sizes[i], size, "buffer overflow");
    check_fault(&plain, "write", "malloc", sizes[i], (ptrdiff_t)align_up(sizes[i], 16), "buffer overflow");
    check_fault(&before, "read", "malloc", sizes[i], -1, "buffer underflow");
    check_fault(&plain, "write-freed", "malloc", sizes[i], size / 2, "use after free");
  }
  check_fault(&plain, "write", "malloc", 100, 4000, "buffer overflow");
  check_fault(&plain, "write", "malloc", 100, -4200, "buffer underflow");
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "child") == 0) return child_main(argc, argv);
  if (MI_TRACK) {
    test_skip("faults", "no block is guarded: the tool reports these, in its own words (test/tools)");
    return skip_code;
  }
  program = argv[0];
  watchdog(900);
  for (size_t i = 0; i < COUNT_OF(makers); i++) check_maker(&makers[i]);
  check_sizes();
  return check_result();
}
