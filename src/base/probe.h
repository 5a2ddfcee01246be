// Static tracepoints for bpftrace, perf, gdb, SystemTap (USDT), provider `mimalloc`.  Layer: base.
//
// With MI_TRACK_USDT each is one no-operation and a note in the binary that says where its arguments are; without, it is
// nothing.  They are on slow paths only, and say what is there to be said without computing anything for them.
// docs/design/tools.md lists them all; a test holds the list against the library.
#pragma once

#include <stdint.h>

#if !defined(MI_TRACK_USDT)
  #define MI_TRACK_USDT 0
#endif

#if MI_TRACK_USDT
  #include <sys/sdt.h>

  // Compilers take an assembly text of many lines for a long one, and inline less around it, unless it says `inline`: so
  // there would be other code also where nobody traces.
  #if defined(STAP_PROBE_ASM) && (__GNUC__ >= 9 || defined(__clang__)) && !defined(__cplusplus)
    #define MI_PROBE(name, n, ...) \
      __asm__ __inline__ __volatile__(STAP_PROBE_ASM(mimalloc, name, STAP_PROBE_ASM_TEMPLATE(n)) \
                                      : \
                                      : STAP_PROBE_ASM_OPERANDS(n, __VA_ARGS__))
  #else
    #define MI_PROBE(name, n, ...) STAP_PROBE##n(mimalloc, name, __VA_ARGS__)
  #endif

  // All are words: gdb does not know the names of all narrower registers.
  #define MI_PROBE_WORD(a)         ((uintptr_t)(a))
  #define MI_PROBE1(name, a)       MI_PROBE(name, 1, MI_PROBE_WORD(a))
  #define MI_PROBE2(name, a, b)    MI_PROBE(name, 2, MI_PROBE_WORD(a), MI_PROBE_WORD(b))
  #define MI_PROBE3(name, a, b, c) MI_PROBE(name, 3, MI_PROBE_WORD(a), MI_PROBE_WORD(b), MI_PROBE_WORD(c))
  #define MI_PROBE4(name, a, b, c, d) \
    MI_PROBE(name, 4, MI_PROBE_WORD(a), MI_PROBE_WORD(b), MI_PROBE_WORD(c), MI_PROBE_WORD(d))
#else
  #define MI_PROBE1(name, a)          ((void)sizeof(a))
  #define MI_PROBE2(name, a, b)       ((void)sizeof(a), (void)sizeof(b))
  #define MI_PROBE3(name, a, b, c)    ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))
  #define MI_PROBE4(name, a, b, c, d) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c), (void)sizeof(d))
#endif
