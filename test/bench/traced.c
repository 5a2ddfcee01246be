// A program whose calls test_traces.py knows.  Blocks of its own have 3000 to 3999 bytes; those of the C library have not.
//
//   traced calls | threads | fork | past-handlers | quit | unseen | table | many N | again | replaced | removed
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 2000

static void expect(int is_true) {
  if (!is_true) _exit(9);
}

static void calls(void) {
  void* a = malloc(3001);
  void* b = calloc(3, 1001);
  void* c = realloc(NULL, 3004);
  void* d = NULL;
  expect(a != NULL && b != NULL && c != NULL);
  memset(a, 1, 3001);
  a = realloc(a, 3500);
  b = reallocarray(b, 3, 1100);
  expect(posix_memalign(&d, 256, 3005) == 0);
  void* e = aligned_alloc(64, 3072);
  void* f = memalign(4096, 3006);
  void* g = valloc(3007);
  expect(realloc(g, PTRDIFF_MAX) == NULL);
  expect(malloc(PTRDIFF_MAX) == NULL);
  free(c);
  free(a);
  free(NULL);
  free(b);
  free(d);
  free(e);
  free(f);
  free(g);
  free(malloc(3999));
}

// Each thread passes its blocks to the next one, which frees them; every 8th is resized there.
static void* _Atomic passed[4];

static void* pass(void* argument) {
  int number = (int)(intptr_t)argument;
  for (int i = 0; i < ROUNDS; i++) {
    void* fresh = malloc(3000 + (size_t)(i % 50));
    while (atomic_load(&passed[number]) != NULL) sched_yield();
    atomic_store(&passed[number], fresh);
    int   from = (number + 3) % 4;
    void* other;
    while ((other = atomic_exchange(&passed[from], NULL)) == NULL) sched_yield();
    if (i % 8 == 0) other = realloc(other, 3100);
    free(other);
  }
  return NULL;
}

static void threads(void) {
  pthread_t handles[4];
  for (int i = 0; i < 4; i++) expect(pthread_create(&handles[i], NULL, pass, (void*)(intptr_t)i) == 0);
  for (int i = 0; i < 4; i++) pthread_join(handles[i], NULL);
}

static void in_two_processes(void) {
  void* before = malloc(3001);
  int   status;
  pid_t child = fork();
  if (child == 0) {
    free(before);
    void* own = malloc(3002);
    free(own);
    exit(own == NULL);
  }
  free(before);
  expect(waitpid(child, &status, 0) == child && status == 0);
  free(malloc(3003));
}

// A child that no handler of fork knows of is not recorded.
static void past_handlers(void) {
  void* before = malloc(3001);
  int   status;
  pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    free(malloc(3002));
    exit(0);
  }
  free(before);
  expect(waitpid(child, &status, 0) == child && status == 0);
  free(malloc(3003));
}

static void many(long n) {
  void* last = NULL;
  setlocale(LC_ALL, ""); // texts of errors are looked up with memory then
  for (long i = 0; i < n; i++) {
    void* fresh = malloc(3000 + (size_t)(i % 1000));
    free(last);
    last = fresh;
  }
  free(last);
}

// The free does not go through the name that the recorder has.
static void unseen(void) {
  extern void __libc_free(void*);
  void*       first = malloc(3001);
  __libc_free(first);
  void* second = malloc(3001);
  expect(second == first);
  free(second);
}

// 50000 live blocks, freed in another order.
static void table(void) {
  enum { COUNT = 50000 };
  static void* blocks[COUNT];
  for (int i = 0; i < COUNT; i++) blocks[i] = malloc(16 + (size_t)i * 7919 % 499);
  for (int i = 0; i < COUNT; i++) free(blocks[(size_t)i * 7919 % COUNT]);
}

// The recording is removed, and another file has its name while this process goes on.
static void is_replaced(const char* file) {
  char text[4096] = "another";
  free(malloc(3001));
  expect(unlink(file) == 0);
  int fd = open(file, O_RDWR | O_CREAT | O_EXCL, 0666);
  expect(fd >= 0 && write(fd, text, sizeof(text)) == (ssize_t)sizeof(text) && close(fd) == 0);
  many(300000);
}

// There is no room for the recording of the child.
static void has_no_place(char* file) {
  int status;
  free(malloc(3001));
  expect(unlink(file) == 0);
  *strrchr(file, '/') = 0;
  expect(rmdir(file) == 0);
  pid_t child = fork();
  if (child == 0) {
    free(malloc(3002));
    exit(0);
  }
  expect(waitpid(child, &status, 0) == child && status == 0);
}

static char* own_file(void) {
  static char file[4096];
  const char* pattern = getenv("TRACE_FILE");
  const char* percent = strstr(pattern, "%p");
  if (percent == NULL) snprintf(file, sizeof(file), "%s", pattern);
  else snprintf(file, sizeof(file), "%.*s%d%s", (int)(percent - pattern), pattern, (int)getpid(), percent + 2);
  return file;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  if (strcmp(what, "calls") == 0) calls();
  else if (strcmp(what, "threads") == 0) threads();
  else if (strcmp(what, "fork") == 0) in_two_processes();
  else if (strcmp(what, "past-handlers") == 0) past_handlers();
  else if (strcmp(what, "unseen") == 0) unseen();
  else if (strcmp(what, "table") == 0) table();
  else if (strcmp(what, "many") == 0 && argc == 3) many(atol(argv[2]));
  else if (strcmp(what, "replaced") == 0) is_replaced(own_file());
  else if (strcmp(what, "removed") == 0) has_no_place(own_file());
  else if (strcmp(what, "again") == 0) {
    free(malloc(3001));
    execl(argv[0], argv[0], "calls", (char*)NULL);
    return 2;
  }
  else if (strcmp(what, "quit") == 0) {
    many(10);
    _exit(0);
  }
  else return 2;
  return 0;
}
