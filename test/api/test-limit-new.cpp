// Proves: at a limit operator new calls the hook of limits first, then the new-handler for as long as there is one, then throws
// std::bad_alloc; and it works again afterwards.  When a handler has helped, errno is as it was.
#include <memory_resource>
#include <new>
#include <vector>

#include "../check.h"
#include "../modes/support.h"
#include <mimalloc-limit.h>
#include <mimalloc-pmr.h>
#include <mimalloc.h>

static int   n_hooks, n_handlers;
static void* reserves[2];

static void on_limit(mi_limit_event_t event, mi_heap_t*, size_t, void*) {
  if (event != mi_limit_hard) return;
  n_hooks++;
  if (n_hooks == 1) CHECK_EQ(n_handlers, 0);
}

// Gives up a reserve each time, and then itself.
static void on_new() {
  void** reserve = &reserves[n_handlers++];
  mi_free(*reserve);
  *reserve = nullptr;
  if (n_handlers == 2) std::set_new_handler(nullptr);
}

static void set_limit(size_t more) {
  mi_collect(true);
  CHECK_EQ(mi_limit_set(mi_limit_used() + more, 0), 0);
}

static bool throws(size_t size) {
  try {
    mi_free(mi_new(size));
  } catch (const std::bad_alloc&) {
    return true;
  }
  return false;
}

// ---- errno ----------------------------------------------------------------------------------------------------------

struct alignas(64) line {
  char bytes[64];
};

static const size_t most = 14 * MiB;
static mi_heap_t*   heap;

struct helped_t {
  const char* name;
  void* (*call)();
};

static const helped_t helped[] = {
    {"mi_new", [] { return mi_new(most); }},
    {"mi_new_nothrow", [] { return mi_new_nothrow(most); }},
    {"mi_new_aligned", [] { return mi_new_aligned(most, 64); }},
    {"mi_new_aligned_nothrow", [] { return mi_new_aligned_nothrow(most, 64); }},
    {"mi_new_n", [] { return mi_new_n(most / 2, 2); }},
    {"mi_new_realloc", [] { return mi_new_realloc(mi_malloc(100), most); }},
    {"mi_new_reallocn", [] { return mi_new_reallocn(mi_malloc(100), most / 2, 2); }},
    {"mi_heap_alloc_new", [] { return mi_heap_alloc_new(heap, most); }},
    {"mi_heap_alloc_new_n", [] { return mi_heap_alloc_new_n(heap, most / 2, 2); }},
    {"mi_heap_try_new", [] { return mi_heap_try_new(heap, most, true); }},
    {"mi_stl_allocator", [] { return (void*)mi_stl_allocator<line>().allocate(most / sizeof(line)); }},
    {"mi_heap_stl_allocator", [] { return (void*)mi_heap_stl_allocator<line>(heap).allocate(most / sizeof(line)); }},
    {"mi_heap_memory_resource", [] { return mi_heap_memory_resource(heap).allocate(most, 64); }},
};

// Fails itself before it helps, and leaves another errno.
static void on_new_errno() {
  CHECK(mi_malloc(100 * MiB) == nullptr);
  errno = EINTR;
  on_new();
}

static void check_errno() {
  heap = mi_heap_new();
  for (const helped_t& h : helped) {
    n_handlers = 0;
    reserves[0] = mi_malloc(3 * MiB);
    reserves[1] = mi_malloc(3 * MiB);
    std::set_new_handler(&on_new_errno);
    errno = 4711;
    void* p = h.call();
    CHECK_FOR(p != nullptr && errno == 4711 && n_handlers == 2, "%s: errno %d, %d calls", h.name, errno, n_handlers);
    mi_free(p);
  }
  mi_heap_delete(heap);
}

// There is room for the block as it is to be, but not for a quarter more.
static void check_errno_of_realloc() {
  for (size_t more = 320 * KiB; more <= 512 * KiB; more += 32 * KiB) {
    mi_limit_set(0, 0);
    void* p = mi_malloc(320 * KiB);
    set_limit(more);
    errno = 4711;
    void* q = mi_realloc(p, 330 * KiB);
    CHECK_FOR(errno == (q == nullptr ? ENOMEM : 4711), "%zu KiB: errno %d", more / KiB, errno);
    mi_free(q == nullptr ? p : q);
  }
}

int main() {
  watchdog(60);
  mi_option_set(mi_option_show_errors, 0);
  set_limit(16 * MiB);
  mi_limit_hook(&on_limit, nullptr);
  reserves[0] = mi_malloc(3 * MiB);
  reserves[1] = mi_malloc(3 * MiB);
  std::set_new_handler(&on_new);
  void* p = mi_new(14 * MiB); // both reserves are needed
  CHECK(p != nullptr);
  CHECK_EQ(n_handlers, 2);
  CHECK(n_hooks >= 1);
  CHECK(throws(14 * MiB));
  CHECK(mi_new_nothrow(14 * MiB) == nullptr);
  CHECK_EQ(n_handlers, 2);
  std::vector<void*> blocks; // of the system's allocator, or of ours: then it stops where the limit is
  for (size_t i = 0; i < 10 && !throws(100 * KiB); i++) {
    try {
      blocks.push_back(mi_new(100 * KiB));
    } catch (const std::bad_alloc&) {
      break;
    }
  }
  for (void* q : blocks) mi_free(q);
  mi_free(p);
  CHECK(!throws(14 * MiB));
  check_errno();
  check_errno_of_realloc();
  mi_limit_set(0, 0);
  mi_limit_hook(nullptr, nullptr);
  CHECK(!throws(40 * MiB));
  return check_result();
}
