// What the tests share beyond check.h: seeded random numbers, block patterns, and what the system says of this process.
//
// Nothing here allocates, so that it may run before, during and after the life of the allocator under test.
//
//   MI_TEST_SEED=n    another seed than the fixed one (so does a first argument that is a number)
//   MI_TEST_SCALE=n   n times the work: 1 by default, 10 and more for a soak
//   MI_TEST_NO_RSS=1  memory bounds are printed but not checked (emulators, valgrind)
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#if !defined(_WIN32) && !defined(__wasi__)
  #include <sys/resource.h>
#endif

#if defined(__SANITIZE_THREAD__)
  #define TEST_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
  #define TEST_ASAN 1
#elif defined(__has_feature)
  #if __has_feature(thread_sanitizer)
    #define TEST_TSAN 1
  #elif __has_feature(address_sanitizer) || __has_feature(memory_sanitizer)
    #define TEST_ASAN 1
  #endif
#endif
#if !defined(TEST_TSAN)
  #define TEST_TSAN 0
#endif
#if !defined(TEST_ASAN)
  #define TEST_ASAN 0
#endif
#if defined(MI_TRACK_VALGRIND) && MI_TRACK_VALGRIND
  #define TEST_VALGRIND 1 // or on its own: tests take no longer for it
#else
  #define TEST_VALGRIND 0
#endif
#define TEST_SANITIZED (TEST_TSAN || TEST_ASAN || TEST_VALGRIND)

#define KiB ((size_t)1 << 10)
#define MiB ((size_t)1 << 20)
#define GiB ((size_t)1 << 30)

// 2^n, or the highest power of two that there is.
#define POWER_OF_TWO(n) ((size_t)1 << ((n) < 8 * sizeof(size_t) ? (n) : 8 * sizeof(size_t) - 1))

// More than the system will give, and with 64 bits still not more than half of all addresses.
#define TEST_TOO_MUCH POWER_OF_TWO(56)

// Compiled as C, the library keeps exceptions from leaving functions that must not throw on these processors only
// (src/api/catch.h).
#if (defined(MI_USE_CXX) && MI_USE_CXX) || (defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__)
  #define TEST_CATCHES 1
#else
  #define TEST_CATCHES 0
#endif

// Does the library start a thread of its own here (heap/background.h)?
#if defined(__linux__)
  #define TEST_HAS_BACKGROUND 1
#else
  #define TEST_HAS_BACKGROUND 0
#endif

// WASI has no realpath.
#if defined(__wasi__)
  #define TEST_HAS_REALPATH 0
#else
  #define TEST_HAS_REALPATH 1
#endif

// With Emscripten the time of the processor is the time of day.
#if defined(__EMSCRIPTEN__)
  #define TEST_HAS_CPU_TIME 0
#else
  #define TEST_HAS_CPU_TIME 1
#endif

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

// The compiler must not know this value: no folding, and no warning about an absurd size.
static inline size_t hidden(size_t x) {
  volatile size_t y = x;
  return y;
}

static inline void* hidden_pointer(const void* p) {
  void* volatile q = (void*)(uintptr_t)p;
  return q;
}

// ---- settings -------------------------------------------------------------------------------------------------------

static inline size_t test_env(const char* name, size_t otherwise) {
  const char* text = getenv(name);
  return text == NULL || *text == 0 ? otherwise : (size_t)strtoull(text, NULL, 0);
}

static inline size_t test_scale(void) {
  size_t scale = test_env("MI_TEST_SCALE", 1);
  return scale == 0 ? 1 : scale;
}

// The largest alignment for which tests ask for blocks.  QEMU takes 24 bytes for each OS page of what a program maps, touched or
// not: for a block whose alignment is 1 TiB, 12 GiB.
static inline size_t test_largest_alignment(void) {
  return POWER_OF_TWO(test_env("MI_TEST_EMULATED", 0) != 0 ? 33 : 63);
}

// Chosen, printed, and the only source of chance in a test.
static inline uint64_t test_seed(int argc, char** argv) {
  uint64_t seed = test_env("MI_TEST_SEED", 20401);
  if (argc > 1 && argv[1][0] >= '0' && argv[1][0] <= '9') seed = strtoull(argv[1], NULL, 0);
  printf("seed: %llu\n", (unsigned long long)seed);
  fflush(stdout);
  return seed;
}

enum { skip_code = 77 }; // what main returns when nothing could be tested

static inline void test_skip(const char* what, const char* why) {
  printf("skipped: %s: %s\n", what, why);
}

// Can the child of a process with threads start threads?  Under QEMU (7.2) it ends: "qemu_plugin_vcpu_init_hook: assertion failed".
static inline bool test_can_thread_in_child(void) {
  return test_env("MI_TEST_EMULATED", 0) == 0;
}

// ---- the program again --------------------------------------------------------------------------------------------------

#if !defined(_WIN32) // tests that need it are skipped there (windows/wiring.cmake)
extern char** environ;

// Can the program start programs?  Says so if not (scripts/run-emulated.sh).
static inline bool test_can_exec(void) {
  if (test_env("MI_TEST_NO_EXEC", 0) == 0) return true;
  test_skip("what needs the program to start itself again", "the emulator cannot be registered with this kernel");
  return false;
}

// Starts the program again in place of the running one.  Returns if that is refused.  An emulator needs its settings, and
// calls itself the program.
static inline void test_exec(char* const* arguments, char* const* environment) {
  static char  path[4096];
  static char* with_settings[64];
  ssize_t      length = readlink("/proc/self/exe", path, sizeof(path) - 1);
  size_t       n = 0;
  for (; environment[n] != NULL && n < 32; n++) with_settings[n] = environment[n];
  for (size_t i = 0; environment != environ && environ[i] != NULL && n < COUNT_OF(with_settings) - 1; i++) {
    if (strncmp(environ[i], "QEMU_", 5) == 0) with_settings[n++] = environ[i];
  }
  with_settings[n] = NULL;
  if (length > 0) execve(path, arguments, environment == environ ? environ : with_settings);
}
#endif

// ---- random numbers -------------------------------------------------------------------------------------------------

typedef struct rng_s {
  uint64_t state;
} rng_t;

static inline uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

static inline rng_t rng_make(uint64_t seed) {
  rng_t r;
  r.state = mix64(seed + 1);
  return r;
}

static inline uint64_t rng_next(rng_t* r) {
  return mix64(r->state += 0x9E3779B97F4A7C15u);
}

static inline size_t rng_below(rng_t* r, size_t n) {
  return n == 0 ? 0 : (size_t)(rng_next(r) % n);
}

// A size near a place where size classes usually begin or end: (8..16) * 2^k, one less, and one more.
static inline size_t boundary_size(uint64_t x, size_t max) {
  size_t n_doublings = 0;
  while (((size_t)16 << n_doublings) < max) n_doublings++;
  size_t size = ((8 + (size_t)(x & 7)) << ((x >> 3) % (n_doublings + 1))) + (size_t)((x >> 12) % 3) - 1;
  return size > max ? max : size;
}

// Log-uniform over 0..max, one time in four at a class boundary.
static inline size_t log_size(uint64_t x, size_t max) {
  if ((x & 3) == 0) return boundary_size(x >> 2, max);
  unsigned n_bits = 0;
  while (n_bits + 1 < 8 * sizeof(size_t) && ((size_t)1 << n_bits) <= max) n_bits++;
  unsigned bit = (unsigned)((x >> 2) % (n_bits + 1));
  size_t   size = bit == 0 ? 0 : ((size_t)1 << (bit - 1)) + (size_t)((x >> 10) & (((size_t)1 << (bit - 1)) - 1));
  return size > max ? max : size;
}

static inline size_t rng_size(rng_t* r, size_t max) {
  return log_size(rng_next(r), max);
}

// "/", or "C:\\" on Windows.
static inline bool is_root(const char* path) {
  return path != NULL && (strcmp(path, "/") == 0 || (path[0] != 0 && strcmp(path + 1, ":\\") == 0));
}

// ---- patterns -------------------------------------------------------------------------------------------------------
// Byte i of a block with key k is a function of (k, i) alone: a block that grew only needs its tail filled.

static inline uint64_t pattern_word(uint64_t key, size_t i) {
  uint64_t x = key + (uint64_t)(i + 1) * 0x9E3779B97F4A7C15u;
  return x ^ (x >> 29);
}

static inline uint8_t pattern_byte(uint64_t key, size_t i) {
  uint64_t w = pattern_word(key, i / 8);
  uint8_t  bytes[8];
  memcpy(bytes, &w, 8);
  return bytes[i % 8];
}

static inline void pattern_fill(void* block, size_t from, size_t to, uint64_t key) {
  uint8_t* p = (uint8_t*)block;
  size_t   i = from;
  while (i < to && i % 8 != 0) {
    p[i] = pattern_byte(key, i);
    i++;
  }
  for (; i + 8 <= to; i += 8) {
    uint64_t w = pattern_word(key, i / 8);
    memcpy(p + i, &w, 8);
  }
  for (; i < to; i++) p[i] = pattern_byte(key, i);
}

// Index of the first byte in [0, size) that differs from the pattern, `size` when none does.
static inline size_t pattern_check(const void* block, size_t size, uint64_t key) {
  const uint8_t* p = (const uint8_t*)block;
  size_t         i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t have, want = pattern_word(key, i / 8);
    memcpy(&have, p + i, 8);
    if (have != want) break;
  }
  for (; i < size; i++) {
    if (p[i] != pattern_byte(key, i)) return i;
  }
  return size;
}

static inline bool is_zero(const void* block, size_t from, size_t to) {
  const uint8_t* p = (const uint8_t*)block;
  size_t         i = from;
  for (; i < to && i % 8 != 0; i++) {
    if (p[i] != 0) return false;
  }
  for (; i + 8 <= to; i += 8) {
    uint64_t w;
    memcpy(&w, p + i, 8);
    if (w != 0) return false;
  }
  for (; i < to; i++) {
    if (p[i] != 0) return false;
  }
  return true;
}

static inline bool is_aligned(const void* p, size_t alignment) {
  return ((uintptr_t)p & (alignment - 1)) == 0;
}

// ---- time -----------------------------------------------------------------------------------------------------------

static inline double clock_seconds(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline double now_seconds(void) {
  return clock_seconds(CLOCK_MONOTONIC);
}
static inline double cpu_seconds(void) {
  return clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
}

// By how much cpu_seconds is wrong at most: its clock goes in steps of 10 ms and more on Windows.
static inline double cpu_error(void) {
  struct timespec step;
  if (clock_getres(CLOCK_PROCESS_CPUTIME_ID, &step) != 0) return 0.02;
  return 2 * ((double)step.tv_sec + (double)step.tv_nsec * 1e-9);
}

static inline void sleep_ms(unsigned ms) {
  struct timespec t;
  t.tv_sec = (time_t)(ms / 1000);
  t.tv_nsec = (long)(ms % 1000) * 1000000;
  while (nanosleep(&t, &t) != 0 && errno == EINTR) {
  }
}

// Who waits for a lock that nobody releases does nothing.  On a machine with a load of 50 all goes on, but slowly.
#if defined(RUSAGE_CHILDREN)
static pid_t    watchdog_process; // a child of it may have its handler, for an alarm of its own
static unsigned watchdog_period;
static double   watchdog_worked; // when it looked last: by the process, and by its children that have ended

static inline double watchdog_work(void) {
  struct rusage children;
  getrusage(RUSAGE_CHILDREN, &children);
  return cpu_seconds() + (double)(children.ru_utime.tv_sec + children.ru_stime.tv_sec);
}

static inline void watchdog_begin(unsigned period) {
  watchdog_process = getpid();
  watchdog_period = period;
  watchdog_worked = watchdog_work();
}

static inline bool watchdog_goes_on(void) {
  double before = watchdog_worked;
  watchdog_worked = watchdog_work();
  if (getpid() != watchdog_process || watchdog_worked <= before + 1 || watchdog_worked >= watchdog_period) return false;
  alarm(watchdog_period);
  return true;
}
#else
static inline void watchdog_begin(unsigned period) {
  (void)period;
}

static inline bool watchdog_goes_on(void) {
  return false;
}
#endif

static inline void watchdog_bark(int signal_number) {
  static const char text[] = "watchdog: the test hangs\n";
  (void)signal_number;
  if (watchdog_goes_on()) return;
  if (write(2, text, sizeof(text) - 1) < 0) {
  }
  _exit(124);
}

// On a machine with a load of 50 a second of work takes a minute: less than this is no sign of a hang.
static const unsigned watchdog_least = 240;

// Ends the process (not its children: each needs its own) with status 124 after so many seconds or more in which it hardly
// did anything, or when it has worked for as long; 0 switches it off.
static inline void watchdog(unsigned seconds) {
  signal(SIGALRM, watchdog_bark);
  unsigned factor = (TEST_SANITIZED || test_env("MI_TEST_EMULATED", 0) != 0 ? 10 : 1);
  unsigned least = (seconds > 0 && seconds < watchdog_least ? watchdog_least : seconds);
  unsigned period = least * (unsigned)test_scale() * factor;
  watchdog_begin(period);
  alarm(period);
}

// ---- what the system says -------------------------------------------------------------------------------------------

// Reads at most size-1 bytes of a file; the length, 0 when it cannot be read.
static inline size_t read_file(const char* path, char* text, size_t size) {
  size_t length = 0;
  int    fd = open(path, O_RDONLY);
  if (fd < 0) return 0;
  while (length + 1 < size) {
    ssize_t n = read(fd, text + length, size - 1 - length);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    length += (size_t)n;
  }
  close(fd);
  text[length] = 0;
  return length;
}

// The number behind `key` in a /proc file of "key: number kB" lines, in bytes.
static inline size_t proc_bytes(const char* path, const char* key) {
  char text[8192];
  if (read_file(path, text, sizeof(text)) == 0) return 0;
  const char* at = strstr(text, key);
  return at == NULL ? 0 : (size_t)strtoull(at + strlen(key), NULL, 10) * KiB;
}

// Resident bytes that are no file's, 0 where unknown: those of programs and libraries come and go as the system likes (a
// megabyte of libc at once).  smaps_rollup counts; statm and status may be off by many pages for each CPU.
static inline size_t rss_now(void) {
#if defined(_WIN32)
  return test_working_set(false);
#endif
  size_t rss = proc_bytes("/proc/self/smaps_rollup", "\nAnonymous:");
  return rss != 0 ? rss : proc_bytes("/proc/self/status", "\nRssAnon:");
}

static inline size_t rss_peak(void) {
#if defined(_WIN32)
  return test_working_set(true);
#endif
  return proc_bytes("/proc/self/status", "\nVmHWM:");
}

// How many mappings the kernel keeps for us, 0 where unknown.
static inline size_t mapping_count(void) {
  char    text[4096];
  size_t  count = 0;
  ssize_t n;
  int     fd = open("/proc/self/maps", O_RDONLY);
  if (fd < 0) return 0;
  while ((n = read(fd, text, sizeof(text))) > 0) {
    for (ssize_t i = 0; i < n; i++) count += text[i] == '\n';
  }
  close(fd);
  return count;
}

// Can memory bounds be checked in this run?  Shadow memory and emulators make resident sizes meaningless.
static inline bool rss_is_meaningful(void) {
  return !TEST_SANITIZED && test_env("MI_TEST_NO_RSS", 0) == 0 && rss_now() != 0;
}

// Prints `what` with its bound; true when it is kept or cannot be judged.
static inline bool rss_within(const char* what, size_t bytes, size_t bound) {
  printf("%s: %.2f MiB (at most %.2f)\n", what, (double)bytes / (double)MiB, (double)bound / (double)MiB);
  fflush(stdout);
  return bytes <= bound || !rss_is_meaningful();
}

static inline size_t minus(size_t a, size_t b) {
  return a > b ? a - b : 0;
}
