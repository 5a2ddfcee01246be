// All forms of operator new and delete, by the symbols that they are to reach, for the tests of who defines them.
//
// They are called by name: the compiler may remove a pair of expressions with new and delete, but no call.
#pragma once

#include "../check.h"
#include "entries.h"
#include <exception>
#include <new>

typedef bool (*is_ours_t)(const void* p);

struct new_form {
  const char* name;
  void* (*call)(size_t size, size_t alignment);
  bool is_aligned, is_nothrow;
};

struct delete_form {
  const char* name;
  void (*call)(void* p, size_t size, size_t alignment);
  bool is_aligned; // only for blocks of an aligned form
  bool is_array;
};

#define NEW(symbol, call_, is_aligned, is_nothrow) \
  {#symbol, \
   [](size_t n, size_t a) -> void* { \
     (void)a; \
     return call_; \
   }, \
   is_aligned, is_nothrow}
#define DELETE(symbol, call_, is_aligned, is_array) \
  {#symbol, \
   [](void* p, size_t n, size_t a) { \
     (void)n; \
     (void)a; \
     call_; \
   }, \
   is_aligned, is_array}
#define AL static_cast<std::align_val_t>(a)

// clang-format off
static const new_form new_forms[] = {
  NEW(_Znwm, ::operator new(n), false, false),
  NEW(_Znam, ::operator new[](n), false, false),
  NEW(_ZnwmRKSt9nothrow_t, ::operator new(n, std::nothrow), false, true),
  NEW(_ZnamRKSt9nothrow_t, ::operator new[](n, std::nothrow), false, true),
  NEW(_ZnwmSt11align_val_t, ::operator new(n, AL), true, false),
  NEW(_ZnamSt11align_val_t, ::operator new[](n, AL), true, false),
  NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, ::operator new(n, AL, std::nothrow), true, true),
  NEW(_ZnamSt11align_val_tRKSt9nothrow_t, ::operator new[](n, AL, std::nothrow), true, true),
};

static const delete_form delete_forms[] = {
  DELETE(_ZdlPv, ::operator delete(p), false, false),
  DELETE(_ZdaPv, ::operator delete[](p), false, true),
  DELETE(_ZdlPvRKSt9nothrow_t, ::operator delete(p, std::nothrow), false, false),
  DELETE(_ZdaPvRKSt9nothrow_t, ::operator delete[](p, std::nothrow), false, true),
  DELETE(_ZdlPvm, ::operator delete(p, n), false, false),
  DELETE(_ZdaPvm, ::operator delete[](p, n), false, true),
  DELETE(_ZdlPvSt11align_val_t, ::operator delete(p, AL), true, false),
  DELETE(_ZdaPvSt11align_val_t, ::operator delete[](p, AL), true, true),
  DELETE(_ZdlPvmSt11align_val_t, ::operator delete(p, n, AL), true, false),
  DELETE(_ZdaPvmSt11align_val_t, ::operator delete[](p, n, AL), true, true),
  DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t, ::operator delete(p, AL, std::nothrow), true, false),
  DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t, ::operator delete[](p, AL, std::nothrow), true, true),
};
// clang-format on

// Each new with each delete that may follow it; all blocks are `is_ours`.
static void check_pairs(is_ours_t is_ours) {
  for (const new_form& make : new_forms) {
    for (const delete_form& end : delete_forms) {
      if (make.is_aligned != end.is_aligned) continue;
      if ((strncmp(make.name, "_Zna", 4) == 0) != end.is_array) continue;
      for (size_t size = 0; size <= 3 * MiB; size = size * 5 + 1) {
        size_t alignment = (size_t)16 << (size % 9);
        void*  p = make.call(size, alignment);
        CHECK_FOR(p != nullptr && is_ours(p), "%s(%zu)", make.name, size);
        CHECK_FOR(is_aligned(p, make.is_aligned ? alignment : (size <= 8 ? 8 : 16)), "%s(%zu)", make.name, size);
        memset(p, 0xAB, size);
        end.call(p, size, alignment);
        end.call(nullptr, size, alignment);
      }
    }
  }
}

static void* held_address;

// What a delete gives back can be had again.
static void check_given_back() {
  for (const delete_form& end : delete_forms) {
    size_t before = rss_now();
    for (size_t i = 0; i < 300; i++) {
      held_address = (end.is_aligned ? mi_malloc_aligned(1 * MiB, 64) : mi_malloc(1 * MiB));
      memset(held_address, 0xAB, 1 * MiB);
      end.call(held_address, 1 * MiB, 64);
    }
    CHECK_FOR(!rss_is_meaningful() || minus(rss_now(), before) < 64 * MiB, "%s keeps %zu bytes", end.name,
              minus(rss_now(), before));
  }
}

static int n_handler_calls;

static void count_calls() {
  if (++n_handler_calls == 3) std::set_new_handler(nullptr);
}

// No memory: the handler is called as long as there is one, then comes std::bad_alloc or nullptr.
static void check_failures() {
  for (const new_form& make : new_forms) {
    for (size_t size : {(size_t)PTRDIFF_MAX + 1, SIZE_MAX, TEST_TOO_MUCH}) {
      for (int has_handler = 0; has_handler < 2; has_handler++) {
        bool is_thrown = false;
        n_handler_calls = 0;
        std::set_new_handler(has_handler ? &count_calls : nullptr);
        try {
          CHECK_FOR(make.call(hidden(size), 64) == nullptr && make.is_nothrow, "%s(%zu)", make.name, size);
        } catch (const std::bad_alloc&) {
          is_thrown = true;
        }
        CHECK_FOR(is_thrown == !make.is_nothrow, "%s(%zu)", make.name, size);
        CHECK_FOR(n_handler_calls == (has_handler ? 3 : 0), "%s(%zu): %d calls", make.name, size, n_handler_calls);
      }
    }
  }
}

struct thrown_by_handler {};

static void throw_own() {
  throw thrown_by_handler();
}

// What a handler throws comes through those that may throw; the others give nullptr.
static void check_handler_throws() {
  if (!TEST_CATCHES) test_skip("a handler that throws out of those that may not", "src/api/catch.h");
  for (const new_form& make : new_forms) {
    if (make.is_nothrow && !TEST_CATCHES) continue;
    bool is_thrown = false;
    std::set_new_handler(&throw_own);
    try {
      CHECK_FOR(make.call(hidden(SIZE_MAX / 2 + 1), 64) == nullptr, "%s", make.name);
    } catch (const thrown_by_handler&) {
      is_thrown = true;
    }
    std::set_new_handler(nullptr);
    CHECK_FOR(is_thrown == !make.is_nothrow && std::uncaught_exceptions() == 0, "%s", make.name);
  }
}

struct alignas(256) wide_t {
  char bytes[300];
};

struct counted_t {
  static int n_alive;
  uint64_t   x = 77;
  counted_t() { n_alive++; }
  ~counted_t() { n_alive--; }
};
int counted_t::n_alive = 0;

// The expressions of the language, which choose a form themselves.
static void check_expressions(is_ours_t is_ours) {
  wide_t*    wide = new wide_t;
  wide_t*    wides = new wide_t[10];
  counted_t* one = new counted_t;
  counted_t* many = new counted_t[100];
  int*       none = new int[hidden(0)];
  CHECK(is_aligned(wide, 256) && is_aligned(wides, 256) && is_ours(wide) && is_ours(wides));
  CHECK(is_ours(one) && is_ours(many) && is_ours(none) && counted_t::n_alive == 101 && many[99].x == 77);
  delete wide;
  delete[] wides;
  delete one;
  delete[] many;
  delete[] none;
  CHECK_EQ(counted_t::n_alive, 0);
}
