// C11 atomics and C++ <atomic> under one set of names, so that every source compiles as either.  Layer: base.
//
// An operation names its memory order at the end (`_relaxed`, `_acquire`, `_release`, `_acq_rel`); there is no default.
#pragma once

#include "compiler.h"

#if defined(__cplusplus)
  #include <atomic>
  #define mi_atomic(type)    std::atomic<type>
  #define mi_memory_order(o) std::memory_order_##o
  #define mi_atomic_ns(f)    std::f
  #define mi_atomic_init(x)  {x} // before C++17 `= x` would copy an atomic variable, which has no copies
#else
  #include <stdatomic.h>
  #define mi_atomic(type)    _Atomic(type)
  #define mi_memory_order(o) memory_order_##o
  #define mi_atomic_ns(f)    f
  #define mi_atomic_init(x)  x
#endif

// The state of a page, and counters, are words of 64 bits.  A library that makes them atomic by locks is of no use: the locks
// would be taken in signal handlers, and in the child of a fork.
#if defined(ATOMIC_LLONG_LOCK_FREE) && ATOMIC_LLONG_LOCK_FREE != 2
  #error \
      "mimalloc needs atomic operations on 64 bits: build for a processor that has them (x86: -march=i586 or newer; Arm: -march=armv7-a or newer)"
#endif

#define mi_load_relaxed(p)         mi_atomic_ns(atomic_load_explicit)(p, mi_memory_order(relaxed))
#define mi_load_acquire(p)         mi_atomic_ns(atomic_load_explicit)(p, mi_memory_order(acquire))
#define mi_store_relaxed(p, x)     mi_atomic_ns(atomic_store_explicit)(p, x, mi_memory_order(relaxed))
#define mi_store_release(p, x)     mi_atomic_ns(atomic_store_explicit)(p, x, mi_memory_order(release))
#define mi_exchange_acquire(p, x)  mi_atomic_ns(atomic_exchange_explicit)(p, x, mi_memory_order(acquire))
#define mi_exchange_acq_rel(p, x)  mi_atomic_ns(atomic_exchange_explicit)(p, x, mi_memory_order(acq_rel))
#define mi_fetch_add_relaxed(p, x) mi_atomic_ns(atomic_fetch_add_explicit)(p, x, mi_memory_order(relaxed))
#define mi_fetch_sub_relaxed(p, x) mi_atomic_ns(atomic_fetch_sub_explicit)(p, x, mi_memory_order(relaxed))
#define mi_exchange_relaxed(p, x)  mi_atomic_ns(atomic_exchange_explicit)(p, x, mi_memory_order(relaxed))
#define mi_fetch_sub_acq_rel(p, x) mi_atomic_ns(atomic_fetch_sub_explicit)(p, x, mi_memory_order(acq_rel))
#define mi_fetch_add_acq_rel(p, x) mi_atomic_ns(atomic_fetch_add_explicit)(p, x, mi_memory_order(acq_rel))
#define mi_fetch_or_acq_rel(p, x)  mi_atomic_ns(atomic_fetch_or_explicit)(p, x, mi_memory_order(acq_rel))
#define mi_fetch_and_acq_rel(p, x) mi_atomic_ns(atomic_fetch_and_explicit)(p, x, mi_memory_order(acq_rel))
#define mi_cas_weak(p, old, x, success, failure) \
  mi_atomic_ns(atomic_compare_exchange_weak_explicit)(p, old, x, mi_memory_order(success), mi_memory_order(failure))
#define mi_cas_strong(p, old, x, success, failure) \
  mi_atomic_ns(atomic_compare_exchange_strong_explicit)(p, old, x, mi_memory_order(success), mi_memory_order(failure))
// For a word of an ordinary type that only grows, where any value it ever had will do: compilers do not make an atomic
// load part of another instruction, as they do with a plain one.  x86 loads in order; others, and the thread sanitizer,
// must be told.  Relaxed: another load orders what is read with it.
#if MI_TSAN || !(defined(__x86_64__) || defined(__i386__) || defined(_M_X64) || defined(_M_IX86))
  #define mi_load_growing(p)         __atomic_load_n(p, __ATOMIC_ACQUIRE)
  #define mi_load_growing_relaxed(p) __atomic_load_n(p, __ATOMIC_RELAXED)
#else
  #define mi_load_growing(p)         (*(p))
  #define mi_load_growing_relaxed(p) (*(p))
#endif
#define mi_store_growing(p, x)          __atomic_store_n(p, x, __ATOMIC_RELEASE)
// For a word of an ordinary type that its thread changes by plain instructions, and others without asking it: they rely on
// that a processor loads and stores a whole word at once, and on what the invariants say of it (heap/bin.h, BN1).
#define mi_load_plain_relaxed(p)        __atomic_load_n(p, __ATOMIC_RELAXED)
#define mi_load_plain_acquire(p)        __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define mi_store_plain_relaxed(p, x)    __atomic_store_n(p, x, __ATOMIC_RELAXED)
#define mi_exchange_plain_acq_rel(p, x) __atomic_exchange_n(p, x, __ATOMIC_ACQ_REL)

#define mi_fence_acquire()  mi_atomic_ns(atomic_thread_fence)(mi_memory_order(acquire))
#define mi_fence_seq_cst()  mi_atomic_ns(atomic_thread_fence)(mi_memory_order(seq_cst))
#define mi_compiler_fence() mi_atomic_ns(atomic_signal_fence)(mi_memory_order(seq_cst))

static mi_always_inline void mi_cpu_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield" ::: "memory");
#else
  mi_compiler_fence();
#endif
}
