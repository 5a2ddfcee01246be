// Proves: when the system refuses memory (here by a limit on writable memory, RLIMIT_DATA), malloc gives NULL and ENOMEM
// each time, the address space that is reserved does not grow with the number of refusals, and all is well afterwards.
#include "../check.h"
#include <mimalloc.h>
#include <sys/resource.h>
#include "support.h"

// Reserved address space in MiB, from /proc/self/statm.
static size_t address_space_mib(void) {
  size_t pages = 0;
  FILE*  f = fopen("/proc/self/statm", "r");
  if (f == NULL) return 0;
  if (fscanf(f, "%zu", &pages) != 1) pages = 0;
  fclose(f);
  return pages / 256;
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  if (TEST_SANITIZED) {
    test_skip("a limit on writable memory", "the sanitizer's shadow needs more");
    return skip_code;
  }
  struct rlimit before, limit;
  mi_free(mi_malloc(1));
  CHECK(getrlimit(RLIMIT_DATA, &before) == 0);
  limit = before;
  limit.rlim_cur = 256 * MiB;
  CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);

  size_t space = address_space_mib();
  for (size_t i = 0; i < 40; i++) {
    errno = 0;
    CHECK(mi_malloc(512 * MiB) == NULL);
    CHECK_EQ(errno, ENOMEM);
  }
  printf("address space: %zu MiB, before %zu\n", address_space_mib(), space);
  CHECK(address_space_mib() <= space + 1024);

  CHECK(setrlimit(RLIMIT_DATA, &before) == 0);
  char* p = (char*)mi_malloc(512 * MiB);
  CHECK(p != NULL);
  if (p != NULL) p[0] = p[512 * MiB - 1] = 1;
  mi_free(p);
  return check_result();
}
