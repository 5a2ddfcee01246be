// Proves: a heap profile that is started by a signal loads no library for it: that happens within a malloc, and the program may hold
// locks there for which a thread waits that loads another one.
//
// Runs itself again with the option.
#define _GNU_SOURCE
#include "../check.h"
#include <mimalloc-profile.h>
#include <mimalloc.h>
#include <signal.h>
#include "base/mode.h"
#include "support.h"

#if !defined(__linux__) || !defined(__ELF__)
int main(void) {
  test_skip("everything", "the system's own unwinder needs no library, or there are no signals");
  return skip_code;
}
#else
  #include <link.h>

static int count_object(struct dl_phdr_info* info, size_t size, void* n) {
  (void)info;
  (void)size;
  ++*(size_t*)n;
  return 0;
}

static size_t n_objects(void) {
  size_t n = 0;
  dl_iterate_phdr(&count_object, &n);
  return n;
}

static size_t rate_now(void) {
  mi_profile_info_t info;
  mi_profile_get_info(&info);
  return info.rate;
}

// Requests are looked for by slow paths.
static void allocate_until_started(void) {
  double end = now_seconds() + 20;
  while (rate_now() == 0 && now_seconds() < end) mi_free(mi_malloc(3 * MiB));
}

static void check_request(void) {
  size_t n = n_objects();
  CHECK_EQ(rate_now(), 0);
  CHECK_EQ(raise(SIGUSR2), 0);
  allocate_until_started();
  CHECK(rate_now() != 0);
  CHECK_EQ(n_objects(), n);
}

int main(int argc, char** argv) {
  char number[16];
  (void)argc;
  watchdog(60);
  if (MI_TRACK || TEST_SANITIZED) {
    test_skip("everything", "the tool watches every block, or has loaded the unwinder");
    return skip_code;
  }
  if (getenv("MIMALLOC_PROFILE_SIGNAL") == NULL) {
    if (!test_can_exec()) return skip_code;
    snprintf(number, sizeof(number), "%d", SIGUSR2);
    setenv("MIMALLOC_PROFILE_SIGNAL", number, 1);
    test_exec(argv, environ);
    return 99;
  }
  check_request();
  return check_result();
}
#endif
