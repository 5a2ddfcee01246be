// Proves: with MIMALLOC_DEBUG_STACKS=1, debug builds say of each error which functions of the program allocated and freed the
// block, for blocks of all kinds and for one that was allocated anew; other builds say that the option has no effect.
//
// The program starts itself again, with the option.
#include "../check.h"
#include "../sink.h"
#include <mimalloc.h>
#include <pthread.h>
#include "base/mode.h"
#include "support.h"
#include "support/trace.h"

extern char __executable_start; // by the linker: what offsets in reports count from

static sink_t said;
static int    n_errors;

static void on_error(int err, void* arg) {
  (void)err;
  (void)arg;
  n_errors++;
}

// ---- who does it ----------------------------------------------------------------------------------------------------

// A function that is in the stack.
#if defined(__clang__)
  #define NOINLINE __attribute__((noinline))
#else
  #define NOINLINE __attribute__((noinline, noclone))
#endif

NOINLINE static void* one_makes(size_t size) {
  void* volatile p = mi_malloc(size);
  return p;
}

NOINLINE static void* other_makes(size_t size) {
  void* volatile p = mi_calloc(1, size);
  return p;
}

NOINLINE static void* one_resizes(void* old, size_t size) {
  void* volatile p = mi_realloc(old, size);
  return p;
}

NOINLINE static void one_drops(void* p) {
  mi_free(p);
  __asm__ volatile("" ::: "memory"); // no tail call
}

static void* drop_elsewhere(void* p) {
  one_drops(p);
  return NULL;
}

// Is a place within that function in the part of the report that begins with `what`?
static bool is_said(const char* what, uintptr_t function) {
  const char* at = strstr(said.text, what);
  if (at == NULL) return false;
  const char* end = strstr(at + 1, "the block");
  for (; (at = strstr(at, "+0x")) != NULL && (end == NULL || at < end); at++) {
    uintptr_t place = (uintptr_t)strtoull(at + 1, NULL, 16) + (uintptr_t)&__executable_start;
    if (place > function && place < function + 100) return true;
  }
  return false;
}

static void forget_said(void) {
  sink_clear(&said);
  n_errors = 0;
}

#define ADDRESS_OF(function) ((uintptr_t)&(function))

static void check_said(const char* what, size_t size, uintptr_t maker, uintptr_t dropper) {
  CHECK_FOR(n_errors > 0, "%s of %zu: %d errors", what, size, n_errors);
  CHECK_FOR(is_said("was allocated by thread", maker), "%s of %zu: not who allocated it in\n%s", what, size, said.text);
  if (dropper != 0)
    CHECK_FOR(is_said("was freed by thread", dropper), "%s of %zu: not who freed it in\n%s", what, size, said.text);
  else CHECK_FOR(!sink_has(&said, "was freed by"), "%s of %zu: freed in\n%s", what, size, said.text);
  forget_said();
}

// ---- what goes wrong ------------------------------------------------------------------------------------------------

// Not every C library has backtrace.
static bool has_stacks(void) {
  void* p = one_makes(40);
  mi_free(p);
  mi_free(hidden_pointer(p));
  bool has = sink_has(&said, "+0x");
  CHECK_FOR(sink_has(&said, "was allocated by thread"), "%s", said.text);
  forget_said();
  return has;
}

static void check_size(size_t size) {
  uint8_t* p = (uint8_t*)one_makes(size);
  p[size] ^= 1;
  mi_free(p);
  check_said("overflow", size, ADDRESS_OF(one_makes), 0);

  p = (uint8_t*)other_makes(size);
  mi_free(p + 16);
  check_said("free of an interior pointer", size, ADDRESS_OF(other_makes), 0);
  one_drops(p);
  if (size > 100000) return; // its memory is gone
  mi_free(hidden_pointer(p));
  check_said("double free", size, ADDRESS_OF(other_makes), ADDRESS_OF(one_drops));

  // Another block at the same place.
  void*  q[20];
  size_t n = 0;
  do q[n] = one_makes(size);
  while (q[n] != p && ++n < COUNT_OF(q));
  CHECK_FOR(n < COUNT_OF(q), "size %zu is not used again", size);
  mi_free_size(p, size / 2);
  check_said("wrong size", size, ADDRESS_OF(one_makes), 0);
  while (n-- > 0) mi_free(q[n]);
}

// The system moves it, behind one that is in its way, to where another one was.
static void check_moved(void) {
  size_t   size = 1 * MiB;
  uint8_t* p = (uint8_t*)one_makes(size);
  void*    behind = one_makes(size);
  void*    former = other_makes(16 * size);
  one_drops(former);
  p = (uint8_t*)one_resizes(p, 12 * size);
  CHECK(p == former);
  p[12 * size] ^= 1;
  mi_free(p);
  check_said("overflow of a block that was moved", 12 * size, ADDRESS_OF(one_resizes), 0);
  mi_free(behind);
}

static void check_thread(void) {
  pthread_t thread;
  void*     p = one_makes(100);
  pthread_create(&thread, NULL, &drop_elsewhere, p);
  pthread_join(thread, NULL);
  mi_free(hidden_pointer(p));
  check_said("double free after another thread's", 100, ADDRESS_OF(one_makes), ADDRESS_OF(drop_elsewhere));
}

static void check_heap_check(void) {
  uint8_t* p = (uint8_t*)one_makes(100);
  p[100] ^= 1;
  CHECK(!mi_heap_check(NULL));
  check_said("heap check", 100, ADDRESS_OF(one_makes), 0);
  p[100] ^= 1;
  CHECK(mi_heap_check(NULL));
  mi_free(p);
}

int main(int argc, char** argv) {
  (void)argc;
  watchdog(60);
  if (getenv("MIMALLOC_DEBUG_STACKS") == NULL) {
    setenv("MIMALLOC_DEBUG_STACKS", "1", 1);
    setenv("MIMALLOC_SHOW_ERRORS", "1", 1);
    execv("/proc/self/exe", argv);
    return 99;
  }
  mi_free(mi_malloc(1)); // or the linker leaves most of the library out
  mi_option_set(mi_option_max_errors, -1);
  mi_option_set(mi_option_max_warnings, -1);
  mi_register_output(&sink_write, &said);
  mi_register_error(&on_error, NULL);
  CHECK_FOR(sink_has(&said, "mimalloc_debug_stacks has an effect in debug builds only") == !MI_TRACE_BLOCKS, "%s",
            said.text);
  forget_said();
  if (MI_TRACE_BLOCKS && !TEST_SANITIZED && !MI_HARDENED && has_stacks()) {
    check_size(40);
    check_size(1000);
    check_size(200000);
    check_size(3000000);
    check_moved();
    check_thread();
    check_heap_check();
  }
  return check_result();
}
