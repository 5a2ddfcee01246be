// Proves: a program under an auditor of the loader (rtld-audit, sotruss) that watches all calls and their returns starts threads
// and opens libraries.
#define _GNU_SOURCE
#include "../check.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include "../modes/support.h"

#if defined(MI_TEST_AUDITOR)

enum { SOMEBODY = 4711, NOT_AUDITED = 3 };

static void* allocate(void* arg) {
  for (size_t i = 0; i < 1000; i++) free(malloc(i * 10));
  return arg;
}

static int run_audited(void) {
  pthread_t thread;
  void*     result = NULL;
  if (getppid() != SOMEBODY) return NOT_AUDITED;
  if (pthread_create(&thread, NULL, &allocate, &result) != 0) return 4;
  if (pthread_join(thread, &result) != 0 || result != &result) return 5;
  void* library = dlopen("libm.so.6", RTLD_NOW);
  return library != NULL && dlclose(library) == 0 ? 0 : 6;
}

int main(int argc, char** argv) {
  if (argc > 0 && strcmp(argv[0], "audited") == 0) return run_audited();
  test_seed(argc, argv);
  if (!test_can_exec()) return skip_code;
  pid_t pid = fork();
  if (pid == 0) {
    char* arguments[] = {(char*)"audited", NULL};
    setenv("LD_AUDIT", MI_TEST_AUDITOR, 1);
    test_exec(arguments, environ);
    _exit(99);
  }
  int status = 0;
  CHECK_EQ(waitpid(pid, &status, 0), pid);
  if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_AUDITED) {
    test_skip("auditors", "the loader has no use for them");
    return skip_code;
  }
  CHECK_EQ(status, 0);
  return check_result();
}

#else

int main(void) {
  test_skip("auditors", "this one needs glibc on x86-64");
  return skip_code;
}

#endif
