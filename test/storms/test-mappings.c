// Proves: a process that may have only some thousand mappings more, as many systems and containers allow, works with dozens of
// threads and large blocks as others do; at the very limit requests are refused or served, blocks stay whole, nothing is lost,
// and all works again as soon as there are mappings again.
//
// The limit is a setting of the machine: the test fills what is above it instead.
#include <sys/mman.h>

#include "base/mode.h"
#include "storm.h"

enum { os_page = 4096, limit_max = 200000, n_workers = 8 };

// Every second of its OS pages has another protection: two mappings each.
static char*  filler;
static size_t filler_size, filler_pairs;

static bool filler_take(size_t pairs) {
  for (; pairs > 0; pairs--) {
    if (mprotect(filler + (2 * filler_pairs + 1) * os_page, os_page, PROT_READ) != 0) return false;
    filler_pairs++;
  }
  return true;
}

static void filler_give(size_t pairs) {
  for (; pairs > 0 && filler_pairs > 0; pairs--) {
    mprotect(filler + (2 * --filler_pairs + 1) * os_page, os_page, PROT_NONE);
  }
}

static bool filler_begin(void) {
  char   text[32];
  size_t limit = (read_file("/proc/sys/vm/max_map_count", text, sizeof(text)) > 0 ? (size_t)atol(text) : SIZE_MAX);
  if (limit > limit_max) return false;
  filler_size = 2 * (limit + 100) * os_page;
  filler = (char*)mmap(NULL, filler_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return filler != (char*)MAP_FAILED;
}

// All mappings but so many are taken.
static void filler_leave(size_t n) {
  while (filler_take(1)) {
  }
  filler_give(n / 2);
}

static void work_for(unsigned ms, uint64_t seed) {
  storm_load_t load;
  storm_begin(&load, n_workers, seed);
  sleep_ms(ms);
  atomic_store(&storm_must_stop, true);
  for (size_t i = 0; i < load.n; i++) pthread_join(load.threads[i], NULL);
  storm_clear();
}

// What the load may leave resident: each thread has a page of each class up to 100 KiB, in all 7.75 MiB, and there are some large
// blocks.  Live are some 5 MiB at any time.
static const size_t most = n_workers * 7936 * KiB + 18 * MiB;

// As with a limit of 4096.
static void check_few(uint64_t seed) {
  filler_leave(4096);
  storm_memory_t memory = storm_memory();
  work_for(300 * (unsigned)test_scale(), seed);
  storm_look(&memory);
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
  CHECK_EQ(atomic_load(&storm_n_refused), 0);
  storm_check(&memory, most, 8 * MiB, 200);
}

// The threads are there before the last mapping is gone: their stacks need some.
static void check_none(uint64_t seed) {
  storm_load_t load;
  storm_begin(&load, n_workers, seed);
  sleep_ms(50);
  for (size_t i = 0; i < 10 * test_scale(); i++) {
    filler_leave(i % 5);
    sleep_ms(10);
    filler_give(500);
    sleep_ms(5);
  }
  atomic_store(&storm_must_stop, true);
  for (size_t i = 0; i < load.n; i++) pthread_join(load.threads[i], NULL);
  storm_clear();
  printf("%zu requests refused at the limit, %zu steps\n", atomic_load(&storm_n_refused), atomic_load(&storm_n_steps));
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
}

int main(int argc, char** argv) {
  uint64_t seed = test_seed(argc, argv);
  if (TEST_SANITIZED || MI_TRACK || MI_HARDENED || sysconf(_SC_PAGESIZE) != os_page) {
    test_skip("a limit of mappings", "tools and guard pages need many, and other OS pages other steps");
    return skip_code;
  }
  watchdog(120);
  storm_memory_t memory = storm_memory();
  if (!filler_begin()) {
    test_skip("a limit of mappings", "the system has none that can be reached");
    return skip_code;
  }
  check_few(seed);
  check_none(seed + 1);
  munmap(filler, filler_size);
  atomic_store(&storm_n_refused, 0);
  work_for(200, seed + 2);
  CHECK_EQ(atomic_load(&storm_n_wrong), 0);
  CHECK_EQ(atomic_load(&storm_n_refused), 0); // all is as before
  storm_check(&memory, most, 8 * MiB, 200);
  return check_result();
}
