// What we need from the compiler, under one name each.  Layer: base.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
  #define mi_likely(x)     (__builtin_expect(!!(x), 1))
  #define mi_unlikely(x)   (__builtin_expect(!!(x), 0))
  #define mi_noinline      __attribute__((noinline))
  #define mi_always_inline inline __attribute__((always_inline))
  #define mi_cold          __attribute__((noinline, cold))
  #define mi_hidden        __attribute__((visibility("hidden")))
  #define mi_weak          __attribute__((weak))
  #define mi_aligned(n)    __attribute__((aligned(n)))
  #define mi_unused        __attribute__((unused))
  #define mi_prefetch_w(p) __builtin_prefetch((p), 1)
  #define mi_assume(cond)  ((cond) ? (void)0 : __builtin_unreachable())
#else
  #define mi_likely(x)   (x)
  #define mi_unlikely(x) (x)
  #define mi_noinline
  #define mi_always_inline inline
  #define mi_cold
  #define mi_hidden
  #define mi_weak
  #define mi_aligned(n)
  #define mi_unused
  #define mi_prefetch_w(p) ((void)(p))
  #define mi_assume(cond)  ((void)0)
#endif

// Of messages, which we format ourselves, the same way on every system.
#if defined(__clang__)
  #define mi_printf(f, a) __attribute__((format(printf, f, a)))
#elif defined(__GNUC__)
  #define mi_printf(f, a) __attribute__((format(gnu_printf, f, a)))
#else
  #define mi_printf(f, a)
#endif

// Is the first byte of a word its highest?
#if defined(__BYTE_ORDER__) && defined(__ORDER_BIG_ENDIAN__)
  #define MI_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
#else
  #define MI_BIG_ENDIAN 0
#endif

// For functions that run before there is thread-local storage and before the loader has bound what they call: nothing that the compiler
// adds to a function may be there.  -fstack-protector has its secret in such storage on some processors, -fsanitize=safe-stack its stack,
// and -finstrument-functions calls others.
#if defined(__has_attribute)
  #if __has_attribute(no_stack_protector)
    #define mi_no_stack_protector __attribute__((no_stack_protector))
  #endif
#endif
#if !defined(mi_no_stack_protector) && defined(__GNUC__) && !defined(__clang__)
  #define mi_no_stack_protector __attribute__((optimize("no-stack-protector")))
#elif !defined(mi_no_stack_protector)
  #define mi_no_stack_protector
#endif
#if defined(__clang__)
  #define mi_bare mi_no_stack_protector __attribute__((no_instrument_function, no_sanitize("safe-stack")))
#elif defined(__GNUC__)
  #define mi_bare mi_no_stack_protector __attribute__((no_instrument_function))
#else
  #define mi_bare
#endif

// For large variables of which most is never touched: they lie behind the small ones, so that these share OS pages.
#if defined(__ELF__) && (defined(__GNUC__) || defined(__clang__))
  #define mi_mostly_unused __attribute__((section(".bss.mi_mostly_unused")))
#else
  #define mi_mostly_unused
#endif

// Is a function that nobody defines NULL, or an error of the linker?
#if defined(__APPLE__)
  #define MI_HAS_WEAK_REFERENCES 0
#else
  #define MI_HAS_WEAK_REFERENCES 1
#endif

#if defined(__cplusplus)
  #define mi_static_assert(cond, text) static_assert(cond, text)
#else
  #define mi_static_assert(cond, text) _Static_assert(cond, text)
#endif

// Compiled as C++: may there be a throw and a try?
#if defined(__cplusplus) && (defined(__cpp_exceptions) || defined(__EXCEPTIONS) || defined(_CPPUNWIND))
  #define MI_HAS_EXCEPTIONS 1
#else
  #define MI_HAS_EXCEPTIONS 0
#endif

// Is this build run under ThreadSanitizer?  It cannot see an order that a system call imposes (heap/presence.h).  Or under
// AddressSanitizer, which has a handler of faults of its own?
#if defined(__SANITIZE_ADDRESS__)
  #define MI_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
  #define MI_TSAN 1
#elif defined(__has_feature)
  #if __has_feature(thread_sanitizer)
    #define MI_TSAN 1
  #endif
  #if __has_feature(address_sanitizer) && !defined(MI_ASAN)
    #define MI_ASAN 1
  #endif
  #if __has_feature(address_sanitizer) || __has_feature(memory_sanitizer) || __has_feature(undefined_behavior_sanitizer)
    #define MI_NO_IFUNC 1
  #endif
#endif
#if !defined(MI_TSAN)
  #define MI_TSAN 0
#endif
#if !defined(MI_ASAN)
  #define MI_ASAN 0
#endif

// Sanitizers with a malloc of their own call it before code that they have changed can run, and see nothing of another one.
#if MI_ASAN || MI_TSAN || defined(__SANITIZE_HWADDRESS__)
  #undef MI_MALLOC_OVERRIDE
#elif defined(__has_feature)
  #if __has_feature(memory_sanitizer) || __has_feature(hwaddress_sanitizer)
    #undef MI_MALLOC_OVERRIDE
  #endif
#endif

// Can a function be chosen when the program is loaded?  (Sanitizers do not bear code that runs so early, nor does a key of
// thread-specific data: prim/local.h.)
#if defined(__ELF__) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__)) && !MI_TSAN && \
    !defined(__SANITIZE_ADDRESS__) && !defined(MI_NO_IFUNC)
  #define MI_HAS_IFUNC 1
#else
  #define MI_HAS_IFUNC 0
#endif

// For a function that reads a number while others write it, where any number that was there will do.
#if MI_TSAN
  #define mi_may_race __attribute__((no_sanitize("thread")))
#else
  #define mi_may_race
#endif

// For a function that calls one that the compiler does not see: clang's control-flow integrity (-fsanitize=cfi) would end there.
#if defined(__clang__)
  #define mi_no_icall_check __attribute__((no_sanitize("cfi-icall")))
#else
  #define mi_no_icall_check
#endif

#define MI_KiB ((size_t)1 << 10)
#define MI_MiB ((size_t)1 << 20)
#define MI_GiB ((size_t)1 << 30)
