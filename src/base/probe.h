// Static tracepoints for bpftrace, perf, gdb, SystemTap (USDT), provider `mimalloc`.  Layer: base.
//
// With MI_TRACK_USDT each is one no-operation and a note in the binary that says where its arguments are; without, it is
// nothing.  They are on slow paths only, and say what is there to be said without computing anything for them.
// docs/design/tools.md lists them all; a test holds the list against the library.
#pragma once

#if !defined(MI_TRACK_USDT)
  #define MI_TRACK_USDT 0
#endif

#if MI_TRACK_USDT
  #include <sys/sdt.h>

  #define MI_PROBE1(name, a)          DTRACE_PROBE1(mimalloc, name, a)
  #define MI_PROBE2(name, a, b)       DTRACE_PROBE2(mimalloc, name, a, b)
  #define MI_PROBE3(name, a, b, c)    DTRACE_PROBE3(mimalloc, name, a, b, c)
  #define MI_PROBE4(name, a, b, c, d) DTRACE_PROBE4(mimalloc, name, a, b, c, d)
#else
  #define MI_PROBE1(name, a)          ((void)sizeof(a))
  #define MI_PROBE2(name, a, b)       ((void)sizeof(a), (void)sizeof(b))
  #define MI_PROBE3(name, a, b, c)    ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c))
  #define MI_PROBE4(name, a, b, c, d) ((void)sizeof(a), (void)sizeof(b), (void)sizeof(c), (void)sizeof(d))
#endif
