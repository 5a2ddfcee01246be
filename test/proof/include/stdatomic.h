// For proofs, which have one thread: atomic operations are plain ones.
#pragma once

#define _Atomic(type)                  type
#define ATOMIC_LLONG_LOCK_FREE         2
#define atomic_load_explicit(p, o)     (*(p))
#define atomic_thread_fence(o)         ((void)0)
#define atomic_signal_fence(o)         ((void)0)
#define atomic_store_explicit(p, x, o) ((void)(*(p) = (x)))

#define proof_change(p, x, made) \
  ({ \
    __typeof__(*(p)) old = *(p); \
    *(p) = (made); \
    old; \
  })
#define atomic_exchange_explicit(p, x, o)  proof_change(p, x, x)
#define atomic_fetch_add_explicit(p, x, o) proof_change(p, x, old + (x))
#define atomic_fetch_sub_explicit(p, x, o) proof_change(p, x, old - (x))
#define atomic_fetch_and_explicit(p, x, o) proof_change(p, x, old&(x))
#define atomic_fetch_or_explicit(p, x, o)  proof_change(p, x, old | (x))

#define atomic_compare_exchange_strong_explicit(p, expected, x, success, failure) \
  ({ \
    bool is_same = (*(p) == *(expected)); \
    if (is_same) *(p) = (x); \
    else *(expected) = *(p); \
    is_same; \
  })
// Nobody else changed it.
#define atomic_compare_exchange_weak_explicit(p, expected, x, success, failure) \
  ({ \
    ENSURE(*(p) == *(expected)); \
    *(p) = (x); \
    true; \
  })
