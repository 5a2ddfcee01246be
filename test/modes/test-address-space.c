// Proves: a process maps what it uses and little more.  A small one is small, so it starts under a low limit on address
// space, may lock all that it has, and keeps room for mappings of its own when it sets a limit later; malloc keeps to such a
// limit, uses what it leaves to less than a chunk, the heap is sound there, and what is freed can be mapped again.  Mappings of
// others that are in our way are left alone, and allocation goes on;
// our own stay few however large the heap is, also in the child of a fork, and grow where there may be no more.
#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "../check.h"
#include <mimalloc.h>
#include "base/mode.h"
#include "support.h"

static size_t vm_size(void) {
  return proc_bytes("/proc/self/status", "\nVmSize:");
}

typedef struct link_s {
  struct link_s* next;
  size_t         size;
} link_t;

// Blocks of that size until so many bytes are allocated, or there are no more.
static size_t allocate(link_t** list, size_t size, size_t bytes) {
  size_t sum = 0;
  while (sum < bytes) {
    link_t* p = (link_t*)mi_malloc(size);
    if (p == NULL) break;
    p->next = *list;
    p->size = size;
    ((char*)p)[size - 1] = 1;
    *list = p;
    sum += size;
  }
  return sum;
}

static void release(link_t** list) {
  while (*list != NULL) {
    link_t* p = *list;
    *list = p->next;
    CHECK(((char*)p)[p->size - 1] == 1);
    mi_free(p);
  }
}

static bool can_map(size_t size) {
  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p != MAP_FAILED && munmap(p, size) == 0;
}

static void in_child(void (*check)(void)) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    check_n_failed = 0;
    check();
    fflush(stdout);
    _exit(check_result());
  }
  int status = -1;
  waitpid(pid, &status, 0);
  CHECK_EQ(status, 0);
}

// ---- small processes ------------------------------------------------------------------------------------------------

static void allocate_a_few(void) {
  static const size_t sizes[] = {1, 16, 100, 1000, 5000, 40000};
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    char* p = (char*)mi_malloc(sizes[i]);
    CHECK(p != NULL);
    if (p != NULL) p[0] = 1;
  }
}

static void check_small(size_t before) {
  allocate_a_few();
  printf("address space: %zu KiB, before %zu\n", vm_size() / KiB, before / KiB);
  CHECK(vm_size() <= before + 8 * MiB);
  CHECK(vm_size() <= 48 * MiB);
}

// With so little address space from the beginning.
static int run_limited(size_t limit, const char* program, const char* child) {
  fflush(stdout);
  pid_t pid = fork();
  if (pid == 0) {
    struct rlimit r = {limit, limit};
    setenv("MI_TEST_CHILD", child, 1);
    if (setrlimit(RLIMIT_AS, &r) == 0) execl("/proc/self/exe", program, (char*)NULL);
    _exit(99);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}

// ---- limits ---------------------------------------------------------------------------------------------------------

static void set_limit(int which, size_t limit) {
  struct rlimit r;
  CHECK(getrlimit((__rlimit_resource_t)which, &r) == 0);
  r.rlim_cur = limit;
  CHECK(setrlimit((__rlimit_resource_t)which, &r) == 0);
}

static void* do_nothing(void* arg) {
  return arg;
}

static bool can_start_thread(void) {
  pthread_t      thread;
  pthread_attr_t attr;
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, MiB);
  if (pthread_create(&thread, &attr, &do_nothing, NULL) != 0) return false;
  return pthread_join(thread, NULL) == 0;
}

// The program sets one when it has allocated already.
static void check_limit(int which, const char* key) {
  static const size_t sizes[] = {1000 * KiB, 20 * MiB, 3000, 100 * KiB};
  link_t*             list = NULL;
  const size_t        room = (MI_HARDENED ? 512 : 256) * MiB; // freed guarded blocks keep some for a while
  size_t              limit = proc_bytes("/proc/self/status", key) + room;
  set_limit(which, limit);
  CHECK(can_map(room / 2) && can_start_thread());
  errno = 0;
  CHECK(mi_malloc(hidden(room + 64 * MiB)) == NULL && errno == ENOMEM);
  CHECK(can_map(room / 2));
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    errno = 0;
    size_t got = allocate(&list, sizes[i], SIZE_MAX);
    CHECK_FOR(errno == ENOMEM && got > room / 2 && got <= room, "%zu MiB of %zu bytes", got / MiB, sizes[i]);
    CHECK(proc_bytes("/proc/self/status", key) <= limit);
    CHECK(mi_heap_check(NULL));
    release(&list);
    if (sizes[i] < MiB / 2) mi_collect(true); // threads keep some pages, wherever they are
    CHECK_FOR(can_map(room / 2), "after blocks of %zu bytes, %zu MiB", sizes[i], vm_size() / MiB);
    CHECK(can_start_thread());
  }
  // What goes back although nothing was refused counts no longer when it was purged.
  size_t before = vm_size();
  allocate(&list, 100 * KiB, room / 4 * 3);
  CHECK(list != NULL && vm_size() >= before + room / 2);
  release(&list);
  mi_collect(true);
  CHECK_FOR(can_map(room / 2), "after a collection, %zu MiB", vm_size() / MiB);
}

static void check_address_limit(void) {
  check_limit(RLIMIT_AS, "\nVmSize:");
}

static void check_data_limit(void) {
  check_limit(RLIMIT_DATA, "\nVmData:");
}

// What is free, but still ours, makes room for a block that grows.
static void check_growth_limit(void) {
  const size_t size = 150 * MiB;
  link_t*      list = NULL;
  char*        p = (char*)mi_malloc(size);
  set_limit(RLIMIT_AS, vm_size() + 106 * MiB);
  CHECK(allocate(&list, 1000 * KiB, 83 * MiB) >= 83 * MiB);
  release(&list);
  p[0] = p[size - 1] = 1;
  char* q = (char*)mi_realloc(p, size + 50 * MiB);
  CHECK(q != NULL && q[0] == 1 && q[size - 1] == 1);
  mi_free(q);
}

// As a user who may lock so much.
static void check_lock(void) {
  struct rlimit r;
  link_t*       list = NULL;
  getrlimit(RLIMIT_MEMLOCK, &r);
  r.rlim_cur = (r.rlim_max < 48 * MiB ? r.rlim_max : 48 * MiB);
  size_t limit = (size_t)r.rlim_cur, size = vm_size();
  if (size + MiB / 2 > limit || setrlimit(RLIMIT_MEMLOCK, &r) != 0 || (geteuid() == 0 && setuid(65534) != 0)) {
    test_skip("locked memory", "this user may lock less than a small process has");
    return;
  }
  CHECK_EQ(mlockall(MCL_CURRENT), 0);
  CHECK_EQ(mlockall(MCL_CURRENT | MCL_FUTURE), 0);
  size_t got = allocate(&list, 500 * KiB, (limit - size) / 4);
  got += allocate(&list, 2000, SIZE_MAX);
  printf("locked: %zu KiB with blocks of %zu KiB, of %zu, at most %zu\n",
         proc_bytes("/proc/self/status", "\nVmLck:") / KiB, got / KiB, size / KiB, limit / KiB);
  CHECK(got <= limit);
  if (limit - size >= 16 * MiB) CHECK(got >= (limit - size) / 4 * 3);
  release(&list);
  CHECK(mi_malloc(1000) != NULL);
}

// ---- less than a chunk -------------------------------------------------------------------------------------------------

static bool   is_locked; // or is it address space that is short?
static size_t left;

// Of what is left small blocks get all but a few slices; and what is freed goes back.
static void check_left(void) {
  const char*  key = (is_locked ? "\nVmLck:" : "\nVmSize:");
  const size_t slack = (MI_HARDENED ? 512 : 128) * KiB; // what describes blocks
  link_t*      list = NULL;
  link_t*      others = NULL;
  allocate(&others, 100 * KiB, 3 * MiB); // so that the last chunk has room
  if (is_locked) {
    set_limit(RLIMIT_MEMLOCK, left);
    if ((geteuid() == 0 && setuid(65534) != 0) || mlockall(MCL_FUTURE) != 0) {
      test_skip("locked memory", "this user may not lock any");
      return;
    }
  }
  else {
    set_limit(RLIMIT_AS, vm_size() + left);
  }
  for (int i = 0; i < 3; i++) {
    size_t before = proc_bytes("/proc/self/status", key), size = 2000;
    allocate(&list, size, SIZE_MAX);
    size_t more = proc_bytes("/proc/self/status", key) - before;
    CHECK_FOR(i > 0 || (more + slack >= left && more <= left), "%zu KiB of %zu are used", more / KiB, left / KiB);
    CHECK(mi_heap_check(NULL));
    release(&list);
    mi_collect(true);
    size_t now = proc_bytes("/proc/self/status", key);
    // The table for huge pages, of 1 MiB, may stay, if there is room for it when the first chunk is refused.
    size_t stays = (left > MiB ? 1280 : 256) * KiB;
    CHECK_FOR(MI_HARDENED || now <= before + stays, "%zu KiB are still mapped", (now - before) / KiB);
  }
  // When there is more, whole chunks are opened again.
  if (!is_locked) {
    allocate(&list, 2000, SIZE_MAX);
    set_limit(RLIMIT_AS, vm_size() + 100 * MiB);
    CHECK(allocate(&others, 1000 * KiB, 80 * MiB) >= 80 * MiB);
    CHECK(mi_heap_check(NULL));
    release(&list);
  }
  release(&others);
}

// What is free between blocks is there for heaps, too: there the library's own data is not in chunks of its own.
static void check_heaps_between(void) {
  mi_heap_t* heaps[200];
  link_t*    list = NULL;
  link_t*    kept = NULL;
  size_t     n = 0;
  set_limit(RLIMIT_AS, vm_size() + 8 * MiB);
  allocate(&list, 1000, SIZE_MAX);
  for (size_t i = 0; list != NULL; i++) {
    link_t* p = list;
    list = p->next;
    p->next = kept;
    if (i % 1000 == 0) kept = p; // one in each chunk
    else mi_free(p);
  }
  mi_collect(true);
  while (n < COUNT_OF(heaps) && (heaps[n] = mi_heap_new()) != NULL && mi_heap_malloc(heaps[n], 100) != NULL) n++;
  CHECK_FOR(n >= 30, "%zu heaps", n);
  CHECK(mi_heap_check(NULL));
  while (n > 0) mi_heap_destroy(heaps[--n]);
  release(&kept);
}

static bool is_first_said;

static void note_message(const char* text, void* arg) {
  (void)arg;
  if (strstr(text, "first block") != NULL) is_first_said = true;
}

// From the start; who had blocks is not told that there was no first one.
static void check_left_at_start(void) {
  link_t* list = NULL;
  mi_register_output(&note_message, NULL);
  set_limit(RLIMIT_AS, vm_size() + 3500 * KiB);
  size_t got = allocate(&list, 500, SIZE_MAX);
  CHECK_FOR(MI_HARDENED || got >= 3000 * KiB, "%zu KiB", got / KiB);
  CHECK(got == 0 || !is_first_said);
  release(&list);
}

static void check_parts(void) {
  static const size_t sizes[] = {300 * KiB, 700 * KiB, 1400 * KiB, 3500 * KiB};
  for (size_t i = 0; i < 2 * COUNT_OF(sizes); i++) {
    is_locked = (i % 2 != 0);
    left = sizes[i / 2];
    in_child(&check_left);
  }
}

// ---- mappings -------------------------------------------------------------------------------------------------------

// Gaps behind pages cost mappings, where there are any: two each (MI_GUARD_PAGE_MAX in src/page/page.h).
enum { gaps_max = MI_HARDENED ? 2 * 16 * 1024 : 0 };

// Where the last of the mappings ends that begin with the one in which p lies.
static uintptr_t mapping_end(const void* p) {
  char          line[512];
  unsigned long start, end;
  uintptr_t     found = 0;
  FILE*         f = fopen("/proc/self/maps", "r");
  if (f == NULL) return 0;
  while (fgets(line, sizeof(line), f) != NULL) {
    if (sscanf(line, "%lx-%lx", &start, &end) != 2) continue;
    bool is_here = ((uintptr_t)p >= start && (uintptr_t)p < end);
    if (is_here || found == start) found = end;
  }
  fclose(f);
  return found;
}

// A mapping of somebody else right behind ours, again and again.
static void check_neighbours(void) {
  char*   foreign[4] = {NULL};
  link_t* list = NULL;
  for (size_t i = 0; i < COUNT_OF(foreign); i++) {
    uintptr_t end = mapping_end(mi_malloc(300 * KiB));
    char*     p =
        (char*)mmap((void*)end, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if ((uintptr_t)p == end) {
      foreign[i] = p;
      memset(p, 0x5A, 4096);
    }
    CHECK(allocate(&list, 300 * KiB, 100 * MiB) >= 100 * MiB);
    CHECK(allocate(&list, 500, 20 * MiB) >= 20 * MiB);
  }
  release(&list);
  mi_collect(true);
  CHECK(foreign[0] != NULL);
  for (size_t i = 0; i < COUNT_OF(foreign); i++) {
    for (size_t k = 0; foreign[i] != NULL && k < 4096; k++) CHECK(foreign[i][k] == 0x5A);
  }
}

// Builds that fill blocks touch all of them.
enum { n_steps = MI_FILL ? 5 : 20 };

static void check_mapping_count(void) {
  link_t* list = NULL;
  size_t  before = mapping_count();
  allocate(&list, 100 * KiB, n_steps * 100 * MiB);
  allocate(&list, 1000, 64 * MiB);
  size_t after = mapping_count();
  printf("mappings with %d MiB: %zu, before %zu\n", n_steps * 100, after, before);
  CHECK(after <= before + 12 + gaps_max);
  release(&list);
}

static void check_child_count(void) {
  link_t* list = NULL;
  size_t  before = mapping_count();
  for (size_t i = 0; i < n_steps; i++) allocate(&list, 100 * KiB, 50 * MiB);
  printf("mappings in a child with %d MiB: %zu, before %zu\n", n_steps * 50, mapping_count(), before);
  CHECK(mapping_count() <= before + 12 + gaps_max);
}

// Two mappings each, until the system refuses more.
static size_t use_up_mappings(void) {
  size_t n = 0;
  while (n < 200000 && mmap(NULL, 4096, n % 2 == 0 ? PROT_READ : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                            -1, 0) != MAP_FAILED)
    n++;
  return n;
}

static void check_no_more_mappings(void) {
  link_t* list = NULL;
  allocate(&list, 1000, MiB);
  allocate(&list, 100 * KiB, MiB);
  allocate(&list, 3 * MiB, 3 * MiB);
  size_t n = use_up_mappings();
  if (n == 200000) {
    test_skip("the limit of mappings", "there is none");
    return;
  }
  size_t small = allocate(&list, 1000, 30 * MiB), medium = allocate(&list, 100 * KiB, 30 * MiB);
  size_t large = allocate(&list, 3 * MiB, 30 * MiB);
  printf("with all %zu mappings in use: %zu, %zu, %zu MiB\n", n, small / MiB, medium / MiB, large / MiB);
  CHECK(small >= 30 * MiB && medium >= 30 * MiB && large >= 30 * MiB);
  release(&list);
}

int main(int argc, char** argv) {
  size_t before = vm_size();
  if (test_env("MI_TEST_CHILD", 0) != 0) {
    if (test_env("MI_TEST_CHILD", 0) == 1) allocate_a_few();
    else check_left_at_start();
    return check_result();
  }
  watchdog(240);
  test_seed(argc, argv);
  in_child(&check_neighbours);
  if (TEST_SANITIZED) {
    test_skip("address space", "the sanitizer's shadow needs more");
    return check_result();
  }
  check_small(before);
  CHECK_EQ(run_limited(32 * MiB, argv[0], "1"), 0);
  CHECK_EQ(run_limited(RLIM_INFINITY, argv[0], "2"), 0);
  in_child(&check_address_limit);
  if (!MI_HARDENED)
    in_child(&check_data_limit); // freed large blocks are inaccessible for a while, and then may stay so
  if (!MI_HARDENED) in_child(&check_growth_limit);
  in_child(&check_lock);
  check_parts();
  in_child(&check_heaps_between);
  check_mapping_count();
  in_child(&check_child_count);
  if (!MI_HARDENED) in_child(&check_no_more_mappings); // gaps and guarded blocks need some
  return check_result();
}
