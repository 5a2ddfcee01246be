// System calls without libc, for linux.c and linux_fault.c.  Layer: prim.
//
// A function of libc may be bound at its first call: by the loader, which saves all registers of the processor on the stack
// meanwhile (2.7 KiB with AVX-512, 11 KiB with AMX).  Many are also places where a thread can be cancelled.  These are not, and
// they leave errno alone.
#pragma once

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

// What the system returns: -errno if it failed.
static inline long _mi_syscall(long number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d) {
#if defined(__x86_64__) && defined(__LP64__)
  long               result;
  register uintptr_t fourth __asm__("r10") = d;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "0"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
                   : "rcx", "r11", "memory");
  return result;
#elif defined(__aarch64__) && defined(__LP64__)
  register uintptr_t eighth __asm__("x8") = (uintptr_t)number;
  register uintptr_t first __asm__("x0") = a;
  register uintptr_t second __asm__("x1") = b;
  register uintptr_t third __asm__("x2") = c;
  register uintptr_t fourth __asm__("x3") = d;
  __asm__ volatile("svc 0" : "+r"(first) : "r"(eighth), "r"(second), "r"(third), "r"(fourth) : "memory");
  return (long)first;
#else
  int  saved = errno; // these two are bound: the library's first system calls went this way
  long result = syscall(number, a, b, c, d);
  if (result == -1) result = -errno;
  errno = saved;
  return result;
#endif
}
