// Proves: constructors and destructors of static C++ objects may allocate and free, whatever their order relative to
// the allocator's own start and end.
#include "../check.h"
#include <mimalloc.h>
#include <sys/wait.h>
#include <thread>
#include "support.h"

static bool is_child;

struct holder {
  uint8_t* blocks[50];
  explicit holder(size_t step) {
    for (size_t i = 0; i < 50; i++) {
      blocks[i] = (uint8_t*)mi_malloc(step * i + 1);
      pattern_fill(blocks[i], 0, step * i + 1, step);
    }
    size = step;
  }
  ~holder() {
    for (size_t i = 0; i < 50; i++) {
      if (pattern_check(blocks[i], size * i + 1, size) != size * i + 1) _exit(60);
      mi_free(blocks[i]);
    }
    for (size_t n = 1; n < 3 * MiB; n *= 4) {
      void* p = mi_calloc(1, n);
      if (p == nullptr || !is_zero(p, 0, n)) _exit(61);
      mi_free(p);
    }
  }
  size_t size;
};

__attribute__((init_priority(101))) static holder   first(10);
__attribute__((init_priority(65535))) static holder last(333);
static holder                                       plain(2000);

static holder& on_first_use() {
  static holder object(40);
  return object;
}

static int run_child(const char* program) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    alarm(20);
    setenv("MI_TEST_CHILD", "1", 1);
    execl(program, program, (char*)nullptr);
    _exit(99);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int main(int argc, char** argv) {
  is_child = test_env("MI_TEST_CHILD", 0) != 0;
  on_first_use();
  std::thread([] {
    mi_free(mi_malloc(100));
    on_first_use().size = 40;
  }).join();
  if (is_child) return 7;
  test_seed(argc, argv);
  watchdog(60);
  CHECK_EQ(run_child(argv[0]), 7);
  return check_result();
}
