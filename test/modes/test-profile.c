// Proves: the heap profile estimates what was allocated and what is in use, by stack, within statistical bounds, whatever the
// pattern: temporary blocks between ones that stay, threads, large blocks, realloc, heaps that end, forks.  It can be switched and
// written at any time, by several threads at once; blocks are as usable as without it; what it takes of memory is bounded.
#include "../check.h"
#include <mimalloc-profile.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "base/mode.h"
#include "support.h"

#if defined(__ELF__) && !TEST_ASAN
  #define SITE(name) __attribute__((noinline, noclone, section(#name)))
  #if defined(__clang__)
    #undef SITE
    #define SITE(name) __attribute__((noinline, section(#name)))
  #endif
#endif

enum { rate = 16 * KiB };

// ---- a reader of the format -----------------------------------------------------------------------------------------

typedef struct sums_s {
  double n_samples, allocations, allocated, blocks, live;
} sums_t;

static uint8_t file[32 * MiB];
static size_t  file_size;

static int keep_part(const void* data, size_t size, void* arg) {
  (void)arg;
  if (file_size + size > sizeof(file)) return ENOSPC;
  memcpy(file + file_size, data, size);
  file_size += size;
  return 0;
}

static uint64_t read_varint(const uint8_t** at, const uint8_t* end) {
  uint64_t n = 0;
  for (unsigned shift = 0; *at < end; shift += 7) {
    uint8_t byte = *(*at)++;
    n |= (uint64_t)(byte & 127) << shift;
    if (byte < 128) break;
  }
  return n;
}

// The next field; its contents if it is a message.
static unsigned read_field(const uint8_t** at, const uint8_t* end, uint64_t* value, const uint8_t** contents) {
  uint64_t key = read_varint(at, end);
  *value = read_varint(at, end);
  *contents = NULL;
  CHECK(key % 8 == 0 || key % 8 == 2);
  if (key % 8 == 2) {
    *contents = *at;
    *at += *value;
    CHECK(*at <= end);
  }
  return (unsigned)(key >> 3);
}

// Addresses of locations by their numbers.
enum { n_locations_max = 70000 };
static uint64_t locations[n_locations_max];

static void read_location(const uint8_t* at, const uint8_t* end) {
  uint64_t       value, number = 0, address = 0;
  const uint8_t* contents;
  while (at < end) {
    unsigned field = read_field(&at, end, &value, &contents);
    if (field == 1) number = value;
    if (field == 3) address = value;
  }
  if (number < n_locations_max) locations[number] = address;
}

static void add_sample(sums_t* sums, const uint8_t* at, const uint8_t* end, const void* start, const void* stop) {
  uint64_t       value, numbers[100] = {0}, values[4] = {0};
  size_t         n = 0;
  const uint8_t* contents;
  while (at < end) {
    unsigned field = read_field(&at, end, &value, &contents);
    size_t   k = 0;
    while (contents != NULL && contents < at) {
      uint64_t number = read_varint(&contents, at);
      if (field == 1 && n < 100) numbers[n++] = number;
      if (field == 2 && k < 4) values[k++] = number;
    }
  }
  CHECK_FOR(values[2] <= values[0] && values[3] <= values[1], "%llu blocks in use of %llu",
            (unsigned long long)values[2], (unsigned long long)values[0]);
  bool is_it = (start == NULL);
  for (size_t i = 0; i < n; i++) {
    uint64_t address = numbers[i] < n_locations_max ? locations[numbers[i]] : 0;
    if (address >= (uintptr_t)start && address < (uintptr_t)stop) is_it = true;
  }
  if (!is_it) return;
  sums->n_samples++;
  sums->allocations += (double)values[0];
  sums->allocated += (double)values[1];
  sums->blocks += (double)values[2];
  sums->live += (double)values[3];
}

// What the profile says of stacks through code between two addresses; of all if they are NULL.
static sums_t profile_of(const void* start, const void* stop) {
  sums_t sums = {0, 0, 0, 0, 0};
  file_size = 0;
  CHECK_EQ(mi_profile_dump_to(&keep_part, NULL), 0);
  for (int pass = 0; pass < 2; pass++) {
    const uint8_t *at = file, *end = file + file_size, *contents;
    while (at < end) {
      uint64_t value;
      unsigned field = read_field(&at, end, &value, &contents);
      if (pass == 0 && field == 4) read_location(contents, at);
      if (pass == 1 && field == 2) add_sample(&sums, contents, at, start, stop);
    }
  }
  return sums;
}

// ---- bounds ---------------------------------------------------------------------------------------------------------

// Six standard deviations of a sum of blocks of `size` bytes; in builds with padding a block is somewhat more likely.
static void check_about(const char* what, double got, double wanted, double size) {
  double variance = wanted * (size > rate ? size : rate), root = variance > 0 ? variance : 1;
  for (int i = 0; i < 60; i++) root = (root + variance / root) / 2; // its square root
  double bound = (wanted > 0 ? 6 * root : 0) + 3 * rate;
  CHECK_FOR(got >= wanted - bound && got <= wanted + bound, "%s: %.0f, not %.0f +- %.0f", what, got, wanted, bound);
}

static sums_t before;

static void begin(void) {
  before = profile_of(NULL, NULL);
}

static void check_since(const char* what, double allocated, double live, double size) {
  sums_t now = profile_of(NULL, NULL);
  check_about(what, now.allocated - before.allocated, allocated, size);
  check_about(what, now.live - before.live, live, size);
}

// ---- patterns -------------------------------------------------------------------------------------------------------

enum { n_kept = 100000 };
static void* kept[n_kept];

static void free_kept(size_t n) {
  for (size_t i = 0; i < n; i++) {
    mi_free(kept[i]);
    kept[i] = NULL;
  }
}

static void check_one_size(void) {
  begin();
  for (size_t i = 0; i < n_kept; i++) kept[i] = mi_malloc(100);
  check_since("one size", n_kept * 100.0, n_kept * 100.0, 112);
  free_kept(n_kept / 2);
  check_since("half of it", n_kept * 100.0, n_kept * 50.0, 112);
  free_kept(n_kept);
  check_since("none of it", n_kept * 100.0, 0, 112);
}

static void check_mixed(void) {
  double allocated = 0, live = 0;
  rng_t  rng = rng_make(1);
  begin();
  for (size_t i = 0; i < n_kept; i++) {
    size_t size = 1 + rng_below(&rng, rng_below(&rng, 100) == 0 ? 20000 : 300);
    kept[i] = (i % 3 == 0 ? mi_calloc(1, size) : mi_malloc(size));
    allocated += (double)size;
    if (i % 2 == 0) live += (double)size;
  }
  for (size_t i = 1; i < n_kept; i += 2) {
    mi_free(kept[i]);
    kept[i] = NULL;
  }
  check_since("mixed", allocated, live, 20000);
  free_kept(n_kept);
  check_since("mixed, freed", allocated, 0, 20000);
}

#if defined(SITE)
extern char __start_site_keeps[], __stop_site_keeps[], __start_site_passes[], __stop_site_passes[];

static SITE(site_keeps) void keeps(size_t i, size_t size) {
  kept[i] = mi_malloc(size);
  memset(kept[i], 1, size);
}

static SITE(site_passes) void passes(size_t size) {
  void* volatile p = mi_malloc(size);
  mi_free(p);
}

// Blocks that come and go take the same places in the lists as those that stay; the profile tells who they were.
static void check_between(size_t n, size_t n_passing, size_t size, size_t size_passing) {
  sums_t keeping = profile_of(__start_site_keeps, __stop_site_keeps);
  sums_t passing = profile_of(__start_site_passes, __stop_site_passes);
  for (size_t i = 0; i < n; i++) {
    for (size_t k = 0; k < n_passing; k++) passes(size_passing);
    keeps(i, size);
  }
  sums_t keeping_now = profile_of(__start_site_keeps, __stop_site_keeps);
  sums_t passing_now = profile_of(__start_site_passes, __stop_site_passes);
  double kept_bytes = (double)(n * size), passed = (double)(n * n_passing * size_passing);
  CHECK(keeping_now.n_samples > 0 && passing_now.n_samples > 0);
  check_about("keeps, allocated", keeping_now.allocated - keeping.allocated, kept_bytes, (double)size);
  check_about("keeps, in use", keeping_now.live - keeping.live, kept_bytes, (double)size);
  check_about("passes, allocated", passing_now.allocated - passing.allocated, passed, (double)size_passing);
  CHECK_FOR(passing_now.live == passing.live, "passing blocks: %.0f in use", passing_now.live);
  free_kept(n);
}
#endif

static void* allocate_some(void* arg) {
  size_t first = (size_t)(uintptr_t)arg;
  for (size_t i = first; i < first + n_kept / 4; i++) {
    mi_free(mi_malloc(200));
    kept[i] = mi_malloc(200);
  }
  return NULL;
}

// Blocks of threads that are gone are in use, until another thread frees them.
static void check_threads(void) {
  pthread_t threads[4];
  begin();
  for (size_t i = 0; i < 4; i++)
    pthread_create(&threads[i], NULL, &allocate_some, (void*)(uintptr_t)(i * (n_kept / 4)));
  for (size_t i = 0; i < 4; i++) pthread_join(threads[i], NULL);
  check_since("threads", n_kept * 400.0, n_kept * 200.0, 224);
  free_kept(n_kept);
  check_since("threads, freed", n_kept * 400.0, 0, 224);
}

static void check_large(void) {
  double allocated = 0;
  void*  p = NULL;
  begin();
  for (size_t i = 0; i < 60; i++) kept[i] = mi_malloc(1 * MiB + i);
  check_since("large", 60.0 * MiB, 60.0 * MiB, MiB);
  free_kept(60);
  begin();
  for (size_t size = 1000; size < 64 * MiB;
       size += size / 3) { // in classes, in slices, by page tables, with its own mapping
    p = mi_realloc(p, size);
    if (size > 700 * KiB || size < 200 * KiB) memset(p, 1, 1);
    allocated += (double)size;
  }
  sums_t now = profile_of(NULL, NULL);
  CHECK_FOR(now.allocated - before.allocated > 0.5 * allocated &&
                now.allocated - before.allocated < 1.1 * allocated + MiB,
            "%.0f of %.0f", now.allocated - before.allocated, allocated);
  double size = (double)mi_usable_size(p);
  CHECK_FOR(now.live - before.live > 0.7 * size && now.live - before.live < 1.01 * size + MiB / 4,
            "%.0f of %.0f in use", now.live - before.live, size);
  mi_free(p);
  check_about("realloc, freed", profile_of(NULL, NULL).live - before.live, 0, 1);
}

static void check_heaps(void) {
  double live = profile_of(NULL, NULL).live;
  for (int round = 0; round < 6; round++) {
    mi_heap_t* heap = mi_heap_new();
    for (size_t i = 0; i < 20000; i++) {
      kept[i] = (i % 5 == 0 ? mi_heap_malloc_aligned(heap, 300, 256) : mi_heap_zalloc(heap, 300));
      if (i % 7 == 0) memset(kept[i], 1, 300);
    }
    void* large = mi_heap_malloc(heap, 2 * MiB);
    check_about("a heap", profile_of(NULL, NULL).live - live, 20000 * 300.0 + 2 * MiB, 384);
    if (round % 2 == 0) {
      mi_heap_destroy(heap);
    }
    else {
      mi_heap_delete(heap);
      free_kept(20000);
      mi_free(large);
    }
    CHECK_FOR(profile_of(NULL, NULL).live == live, "round %d: %.0f in use, not %.0f", round,
              profile_of(NULL, NULL).live, live);
  }
}

// What a program can see of a block does not depend on whether it is sampled.
static void check_usable(void) {
  size_t n_sampled = 0;
  for (size_t size = 1; size < 300 * KiB; size += 1 + size / 16) {
    mi_profile_info_t info, now;
    mi_profile_get_info(&info);
    for (int i = 0; i < 40; i++) {
      char* p = (char*)mi_zalloc(size);
      CHECK_FOR(mi_usable_size(p) >= size && (MI_PADDING || mi_usable_size(p) == mi_good_size(size)),
                "%zu usable of %zu", mi_usable_size(p), size);
      CHECK(is_zero(p, 0, size) && mi_is_in_heap_region(p) && is_aligned(p, size >= 16 ? 16 : 8));
      memset(p, 1, size);
      p = (char*)mi_realloc(p, size + size / 4);
      CHECK(p[0] == 1 && p[size - 1] == 1);
      mi_free(p);
    }
    mi_profile_get_info(&now);
    n_sampled += now.samples - info.samples;
  }
  CHECK_FOR(n_sampled > 300, "%zu samples", n_sampled);
}

// The next runs of one and two slices are dirty.
static void make_dirty(mi_heap_t* heap) {
  static const size_t sizes[] = {60000, 60000, 120000, 120000};
  void*               p[COUNT_OF(sizes)];
  for (size_t i = 0; i < COUNT_OF(sizes); i++) memset(p[i] = mi_heap_malloc(heap, sizes[i]), 0xaa, sizes[i]);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) mi_free(p[i]);
}

// What a sampled block of zeros gets as it grows is zero, too.
static void check_growing(mi_heap_t* heap) {
  enum { large = 700000 };
  static const size_t sizes[] = {100, 1000, 5376, 10880, 13056, 21760, 87296};
  CHECK_EQ(mi_profile_start(1), 0);
  for (size_t i = 0; i < 200; i++) {
    size_t size = sizes[i % COUNT_OF(sizes)];
    make_dirty(heap);
    bool  is_moved = (i / COUNT_OF(sizes) % 2 == 1); // from a block that does not hold it
    char* p = (char*)mi_heap_zalloc(heap, is_moved ? 8 : size);
    if (is_moved) p = (char*)mi_heap_rezalloc(heap, p, size);
    size_t usable = mi_usable_size(p);
    p = (char*)mi_heap_rezalloc(heap, p, large);
    CHECK_FOR(is_zero(p, usable, large), "%zu bytes", size);
    memset(p, 0xaa, large); // for the next one
    mi_free(p);
  }
  mi_profile_stop();
}

// Shared memory keeps its contents when it is purged.
static void check_growing_shared(void) {
  const size_t  size = 64 * MiB;
  mi_arena_id_t id;
  void*         memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(memory != MAP_FAILED);
  memset(memory, 0xaa, size);
  CHECK(mi_manage_os_memory_ex(memory, size, true, false, false, -1, true, &id));
  check_growing(mi_heap_new_in_arena(id));
}

static void check_fork(void) {
  int status = -1;
  begin();
  for (size_t i = 0; i < n_kept / 4; i++) kept[i] = mi_malloc(200);
  fflush(NULL);
  pid_t child = fork();
  if (child == 0) {
    check_since("a child", n_kept * 50.0, n_kept * 50.0, 224);
    free_kept(n_kept / 4);
    check_since("a child, freed", n_kept * 50.0, 0, 224);
    check_threads();
    fflush(NULL);
    _exit(check_result());
  }
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  check_since("a parent", n_kept * 50.0, n_kept * 50.0, 224);
  free_kept(n_kept / 4);
}

static void check_switch(void) {
  mi_profile_info_t first = {0, 0, 0, 0, 0, 0}, info = first;
  for (int round = 0; round < 200; round++) {
    CHECK_EQ(mi_profile_start(rate), 0);
    for (size_t i = 0; i < 2000; i++) kept[i] = mi_malloc(500);
    mi_profile_stop();
    mi_profile_get_info(&info);
    CHECK_EQ(info.rate, 0);
    if (round % 20 == 0) profile_of(NULL, NULL);
    for (size_t i = 0; i < 2000; i++) mi_free(mi_malloc(500));
    free_kept(2000);
    mi_profile_get_info(&info);
    if (round == 20) first = info;
  }
  // Nothing grows but the number of samples.
  CHECK_FOR(info.live <= first.live && info.stacks < first.stacks + 10, "%zu live, %zu stacks; %zu, %zu", info.live,
            info.stacks, first.live, first.stacks);
  CHECK_EQ(info.dropped + info.other, 0);
  begin();
  for (size_t i = 0; i < n_kept; i++) kept[i] = mi_malloc(500);
  check_since("off", 0, 0, 1);
  free_kept(n_kept);
  CHECK_EQ(mi_profile_start(rate), 0);
}

// Whatever order two threads switch it in, it does what it says that it does.
enum { n_races = 30000 };
static atomic_int race, n_stopped;

// The two are to begin at the same time.
static void wait_for(atomic_int* number, int wanted) {
  for (unsigned n = 1; atomic_load(number) < wanted; n++) {
    if (n % 4096 == 0) sched_yield();
  }
}

static void* stop_in_races(void* arg) {
  (void)arg;
  for (int i = 1; i <= n_races; i++) {
    wait_for(&race, i);
    mi_profile_stop();
    atomic_store(&n_stopped, i);
  }
  return NULL;
}

static void check_races(void) {
  pthread_t         thread;
  mi_profile_info_t before_it, info;
  int               n_wrong = 0;
  CHECK_EQ(pthread_create(&thread, NULL, &stop_in_races, NULL), 0);
  double end = now_seconds() + 2;
  for (int i = 1; i <= n_races && now_seconds() < end; i++) {
    atomic_store(&race, i);
    mi_profile_start(rate);
    wait_for(&n_stopped, i);
    mi_profile_get_info(&before_it);
    mi_free(mi_malloc(64 * MiB)); // always sampled
    mi_profile_get_info(&info);
    n_wrong += ((info.samples > before_it.samples) != (info.rate > 0));
  }
  atomic_store(&race, n_races); // no more waiting
  pthread_join(thread, NULL);
  CHECK_EQ(n_wrong, 0);
  CHECK_EQ(mi_profile_start(rate), 0);
}

static int mi_cdecl refuse_part(const void* data, size_t size, void* arg) {
  (void)data, (void)size, (void)arg;
  errno = EPIPE;
  return EIO;
}

static void check_errors(void) {
  char path[100];
  CHECK_EQ(mi_profile_dump("no-such-folder/profile"), ENOENT);
  snprintf(path, sizeof(path), "profile-test.%d", (int)getpid());
  errno = 0;
  CHECK_EQ(mi_profile_dump(path), 0);
  CHECK_EQ(mi_profile_dump(path), EEXIST);
  CHECK_EQ(mi_profile_dump_to(&refuse_part, NULL), EIO);
  CHECK_EQ(errno, 0);
  remove(path);
}

#if defined(SITE)
// musl and static programs have none.
static bool has_stacks(void) {
  for (size_t i = 0; i < 1000; i++) keeps(i, 1000);
  bool has = (profile_of(__start_site_keeps, __stop_site_keeps).n_samples > 0);
  free_kept(1000);
  #if defined(__GLIBC__)
  CHECK(has);
  #endif
  return has;
}
#endif

int main(void) {
  watchdog(600);
  CHECK_EQ(mi_profile_dump(NULL), EINVAL);
  if (MI_TRACK) { // the tool watches every block
    CHECK_EQ(mi_profile_start(0), ENOTSUP);
    return check_result();
  }
  CHECK_EQ(mi_profile_start(rate), 0);
  check_one_size();
  check_mixed();
#if defined(SITE)
  if (has_stacks()) {
    check_between(20000, 20, 100, 100);
    check_between(2000, 300, 64, 64);
    check_between(3000, 10, 1000, 1000);
    check_between(20000, 3, 48, 900);
  }
#endif
  check_threads();
  check_large();
  check_heaps();
  check_usable();
  if (!TEST_TSAN) check_fork();
  check_switch();
  check_races();
  check_errors();
  check_growing(NULL);
  check_growing_shared();
  return check_result();
}
