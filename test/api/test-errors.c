// Proves: failures reach the registered handler with their codes, errno is set by what fails and left alone by what
// succeeds, and the hooks for messages and deferred frees are called as the header says.
#include "../check.h"
#include "../sink.h"
#include "entries.h"

static int    codes[64];
static size_t n_codes;

static void record_error(int code, void* arg) {
  CHECK(arg == &n_codes);
  if (n_codes < COUNT_OF(codes)) codes[n_codes++] = code;
}

static bool was_reported(int code) {
  for (size_t i = 0; i < n_codes; i++) {
    if (codes[i] == code) return true;
  }
  return false;
}

static void check_error_hook(void) {
  mi_register_error(&record_error, &n_codes);
  n_codes = 0;
  CHECK(mi_malloc(hidden((size_t)PTRDIFF_MAX + 1)) == NULL);
  CHECK_FOR(was_reported(EOVERFLOW) || was_reported(ENOMEM), "%zu reports", n_codes);
  n_codes = 0;
  CHECK(mi_malloc_aligned(hidden((size_t)PTRDIFF_MAX + 1), 64) == NULL);
  CHECK_FOR(was_reported(EOVERFLOW) || was_reported(ENOMEM), "%zu reports", n_codes);
  n_codes = 0;
  CHECK(mi_malloc(hidden(POWER_OF_TWO(60))) == NULL);
  CHECK_FOR(was_reported(ENOMEM) || was_reported(EOVERFLOW), "%zu reports", n_codes);
  n_codes = 0;
  void* p = mi_malloc(100);
  mi_free(p);
  CHECK_EQ(n_codes, 0);
  mi_register_error(NULL, NULL);
}

// What succeeds leaves errno alone: POSIX asks it of free, and programs expect it of the rest.
static void check_errno_is_kept(void) {
  for (size_t size = 0; size < 100 * MiB; size = size * 5 + 1) {
    errno = 4711;
    void* p = mi_malloc(size);
    CHECK_FOR(p != NULL && errno == 4711, "malloc(%zu)", size);
    void* z = mi_calloc(1, size);
    CHECK_FOR(z != NULL && errno == 4711, "calloc(%zu)", size);
    void* a = mi_malloc_aligned(size, 4096);
    CHECK_FOR(a != NULL && errno == 4711, "malloc_aligned(%zu)", size);
    p = mi_realloc(p, size + size / 8 + 1);
    CHECK_FOR(p != NULL && errno == 4711, "realloc(%zu)", size);
    mi_free(p);
    mi_free(z);
    mi_free(a);
    CHECK_FOR(errno == 4711, "free of %zu", size);
  }
  mi_collect(false);
  CHECK_EQ(errno, 4711);
  mi_collect(true);
  CHECK_EQ(errno, 4711);
  errno = 0;
}

// A pointer that is not ours is never freed nor crashed on, at most reported.
static void check_foreign_pointers(void) {
  static char in_data[256];
  char        on_stack[256];
  char*       ours = (char*)mi_malloc(64 * MiB);
  void* const foreign[] = {
      in_data, in_data + 64, on_stack, on_stack + 16, (void*)0x3990080, (void*)64, (void*)(UINTPTR_MAX - 63)};
  memset(in_data, 0x5A, sizeof(in_data));
  memset(on_stack, 0x5A, sizeof(on_stack));
  mi_register_error(&record_error, &n_codes);
  for (size_t i = 0; i < COUNT_OF(foreign); i++) {
    n_codes = 0;
    if ((uintptr_t)foreign[i] - (uintptr_t)ours < 64 * MiB)
      continue; // low addresses are those of blocks on some systems
    mi_free(hidden_pointer(foreign[i]));
    CHECK_FOR(n_codes == 0 || was_reported(EINVAL), "pointer %zu: code %d", i, codes[0]);
    CHECK_FOR(mi_usable_size(hidden_pointer(foreign[i])) == 0, "pointer %zu", i);
    CHECK_FOR(!mi_is_in_heap_region(foreign[i]), "pointer %zu", i);
    mi_cfree(hidden_pointer(foreign[i]));
  }
  mi_register_error(NULL, NULL);
  for (size_t i = 0; i < sizeof(in_data); i++) CHECK(in_data[i] == 0x5A && on_stack[i] == 0x5A);
  mi_free(ours);
}

static void check_output_hook(void) {
  static sink_t registered, given;
  mi_register_output(&sink_write, &registered);
  size_t before = registered.length;
  mi_stats_print(NULL);
  CHECK(registered.length > before);
  before = registered.length;
  mi_options_print();
  CHECK(registered.length > before);
  CHECK(strstr(registered.text, "purge_delay") != NULL);
  before = registered.length;
  mi_options_print_out(&sink_write, &given);
  CHECK(strstr(given.text, "purge_delay") != NULL);
  given.length = 0;
  mi_stats_print_out(&sink_write, &given);
  CHECK(given.length > 0 && registered.length == before);
  size_t had = given.length;
  mi_thread_stats_print_out(&sink_write, &given);
  CHECK(given.length > had && registered.length == before);
  mi_register_output(NULL, NULL);
  before = registered.length;
  mi_stats_print_out(&sink_write, &given);
  CHECK_EQ(registered.length, before);
}

typedef struct deferred_s {
  size_t             n_calls, n_forced;
  unsigned long long last;
  bool               is_inside;
  void*              kept;
} deferred_t;

// A deferred free may use the allocator itself and is not entered again from there.
static void run_deferred(bool force, unsigned long long heartbeat, void* arg) {
  deferred_t* d = (deferred_t*)arg;
  CHECK(!d->is_inside);
  d->is_inside = true;
  CHECK(heartbeat >= d->last);
  d->last = heartbeat;
  d->n_calls++;
  d->n_forced += force;
  mi_free(d->kept);
  d->kept = mi_malloc(500);
  for (size_t i = 0; i < 300; i++) mi_free(mi_malloc(i * 100));
  errno = EINTR;
  d->is_inside = false;
}

// From time to time, whatever the size is: who allocates large blocks alone may have much to free.
static void check_deferred_calls(const deferred_t* d, size_t n, size_t size) {
  static void* kept[60000];
  size_t       before = d->n_calls;
  for (size_t i = 0; i < n; i++) kept[i] = mi_malloc(size);
  CHECK_FOR(d->n_calls > before, "%zu allocations of %zu bytes", n, size);
  for (size_t i = 0; i < n; i++) mi_free(kept[i]);
}

static void check_deferred_hook(void) {
  static deferred_t d;
  errno = 4711;
  mi_register_deferred_free(&run_deferred, &d);
  mi_collect(true);
  CHECK(d.n_calls >= 1 && d.n_forced >= 1);
  size_t before = d.n_calls;
  mi_collect(false);
  CHECK(d.n_calls > before);
  check_deferred_calls(&d, 60000, 2000);
  check_deferred_calls(&d, 1000, 600 * KiB);
  CHECK_EQ(errno, 4711); // whatever the function has done
  mi_register_deferred_free(NULL, NULL);
  before = d.n_calls;
  mi_collect(true);
  CHECK_EQ(d.n_calls, before);
  mi_free(d.kept);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  check_error_hook();
  check_errno_is_kept();
  check_foreign_pointers();
  check_output_hook();
  check_deferred_hook();
  return check_result();
}
