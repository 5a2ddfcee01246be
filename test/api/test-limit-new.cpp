// Proves: at a limit operator new calls the hook of limits first, then the new-handler for as long as there is one, then throws
// std::bad_alloc; and it works again afterwards.
#include <new>
#include <vector>

#include "../check.h"
#include "../modes/support.h"
#include <mimalloc-limit.h>
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
  mi_limit_set(0, 0);
  mi_limit_hook(nullptr, nullptr);
  CHECK(!throws(40 * MiB));
  return check_result();
}
