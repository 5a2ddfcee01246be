// Proves: the library maps memory and gives it back by libc's functions only, so that a program, or a library loaded before it,
// learns of each call that changes what is behind an address (decision 59).  Without the right to forbid system calls, or on
// processors where libc makes all of them, that is not tested.
//
// Functions of this program take the place of libc's and count the calls.  System calls of that kind by the library itself are
// refused.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include "../modes/support.h"

#if !(defined(__x86_64__) || defined(__aarch64__)) || !defined(__LP64__)
  #define MI_TEST_MISSING "libc makes all system calls on this processor"
#elif !defined(__has_include) || !__has_include(<linux/seccomp.h>)
  #define MI_TEST_MISSING "headers of Linux"
#endif

#if defined(MI_TEST_MISSING)
int main(void) {
  test_skip("hooks", MI_TEST_MISSING);
  return skip_code;
}
#else
  #include <linux/filter.h>
  #include <linux/seccomp.h>

static struct range_s {
  uintptr_t start, end;
} text; // the library's

static atomic_size_t n_maps, n_given; // calls of the functions below

// ---- in place of libc's -------------------------------------------------------------------------------------------------

void* mmap(void* start, size_t size, int protection, int flags, int fd, off_t offset) {
  atomic_fetch_add(&n_maps, 1);
  return (void*)syscall(SYS_mmap, start, size, protection, flags, fd, offset);
}

int munmap(void* start, size_t size) {
  atomic_fetch_add(&n_given, 1);
  return (int)syscall(SYS_munmap, start, size);
}

int madvise(void* start, size_t size, int advice) {
  atomic_fetch_add(&n_given, advice == MADV_DONTNEED || advice == MADV_FREE);
  return (int)syscall(SYS_madvise, start, size, advice);
}

// ---- what the library may not do ------------------------------------------------------------------------------------------

static int find_text(struct dl_phdr_info* module, size_t size, void* arg) {
  (void)size;
  uintptr_t function = *(const uintptr_t*)arg;
  for (size_t i = 0; i < module->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &module->dlpi_phdr[i];
    uintptr_t start = (uintptr_t)(module->dlpi_addr + part->p_vaddr), end = start + part->p_memsz;
    if (part->p_type == PT_LOAD && function >= start && function < end) text = (struct range_s){start, end};
  }
  return text.end != 0;
}

static void on_refused(int sig, siginfo_t* info, void* context) {
  (void)sig;
  (void)context;
  char text_of[100];
  int  n = snprintf(text_of, sizeof(text_of), "the library made system call %d itself\n", info->si_syscall);
  if (write(STDERR_FILENO, text_of, (size_t)n) != n) _exit(2);
  _exit(1);
}

  #define LOAD(field)                   BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, field)))
  #define LOAD_AT(field, at)            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offsetof(struct seccomp_data, field) + (at)))
  #define GO(condition, value, yes, no) BPF_JUMP(BPF_JMP | (condition) | BPF_K, (uint32_t)(value), yes, no)

// The library's text lies within 4 GiB that begin at a multiple of them, or the caller does not get here.
static bool refuse_calls(void) {
  struct sock_filter filter[] = {LOAD(nr), //
                                 GO(BPF_JEQ, SYS_mmap, 4, 0),
                                 GO(BPF_JEQ, SYS_munmap, 3, 0),
                                 GO(BPF_JEQ, SYS_mremap, 2, 0),
                                 GO(BPF_JEQ, SYS_madvise, 1, 0),
                                 GO(BPF_JEQ, SYS_brk, 0, 6), //
                                 LOAD_AT(instruction_pointer, 4),
                                 GO(BPF_JEQ, (uint64_t)text.start >> 32, 0, 4), //
                                 LOAD_AT(instruction_pointer, 0),
                                 GO(BPF_JGE, text.start, 0, 2),
                                 GO(BPF_JGE, text.end, 1, 0),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  struct sock_fprog  program = {sizeof(filter) / sizeof(filter[0]), filter};
  struct sigaction   action = {.sa_sigaction = &on_refused, .sa_flags = SA_SIGINFO};
  CHECK_EQ(sigaction(SIGSYS, &action, NULL), 0);
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// ---- what a program does --------------------------------------------------------------------------------------------------

static void* use(void* arg) {
  enum { n = 20000 };
  static __thread char* blocks[n];
  for (size_t i = 0; i < n; i++) {
    blocks[i] = (char*)malloc(16 + i % 3000);
    if (blocks[i] != NULL) *blocks[i] = 1;
  }
  for (size_t i = 0; i < n; i++) free(blocks[i]);
  for (size_t size = MiB / 4; size <= 128 * MiB; size *= 2) {
    char* p = (char*)calloc(1, size);
    for (size_t k = 0; k < 4 && p != NULL; k++) {
      memset(p, 1, size);
      char* q = (char*)realloc(p, size + (k + 1) * size / 2);
      if (q != NULL) p = q;
    }
    char* q = (char*)realloc(p, size / 4);
    free(q != NULL ? q : p);
  }
  malloc_trim(0);
  return arg;
}

int main(void) {
  void* symbol = dlsym(RTLD_DEFAULT, "mi_malloc");
  if (symbol == NULL || TEST_SANITIZED) {
    test_skip("hooks", "the library is not preloaded, or a sanitizer has hooks of its own");
    return skip_code;
  }
  dl_iterate_phdr(&find_text, &symbol);
  CHECK(text.end > text.start);
  if (text.start >> 32 != (text.end - 1) >> 32) {
    test_skip("hooks", "the library lies on both sides of a multiple of 4 GiB");
    return skip_code;
  }
  if (!refuse_calls()) {
    test_skip("hooks", "no seccomp filters");
    return skip_code;
  }
  size_t n_maps_before = n_maps, n_given_before = n_given;
  use(NULL);
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, &use, NULL), 0);
  pthread_join(thread, NULL);
  int   status = 1;
  pid_t child = fork();
  if (child == 0) {
    use(NULL);
    _exit(0);
  }
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  printf("%zu maps, %zu times memory given back\n", n_maps - n_maps_before, n_given - n_given_before);
  CHECK(n_maps > n_maps_before && n_given > n_given_before);
  return check_result();
}
#endif
