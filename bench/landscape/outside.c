#define _GNU_SOURCE // RTLD_NEXT

#include "outside.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include "counting.h"

// Such a function and the others beside it of which it uses parts.
static const uintptr_t near = 4096;

static void* (*libc_memset)(void*, int, size_t);
static void* (*libc_memcpy)(void*, const void*, size_t);
static void* (*libc_memmove)(void*, const void*, size_t);
static int (*libc_clock_gettime)(clockid_t, struct timespec*);
static bool is_clock_stopped;

// The dynamic loader gives addresses of functions as those of objects.
static void find(void* function, const char* name) {
  void* found = dlsym(RTLD_NEXT, name);
  *(void**)function = found;
}

void outside_prepare(bool stop_clock) {
  find(&libc_memset, "memset");
  find(&libc_memcpy, "memcpy");
  find(&libc_memmove, "memmove");
  is_clock_stopped = stop_clock;
}

bool outside_is_string(unsigned long address) {
  const uintptr_t functions[] = {(uintptr_t)libc_memset, (uintptr_t)libc_memcpy, (uintptr_t)libc_memmove};
  for (size_t i = 0; i < 3; i++) {
    if (address + near >= functions[i] && address < functions[i] + near) return true;
  }
  return false;
}

void outside_print(void) {
  const uintptr_t functions[] = {(uintptr_t)libc_memset, (uintptr_t)libc_memcpy, (uintptr_t)libc_memmove};
  for (size_t i = 0; i < 3; i++) {
    Dl_info info;
    if (dladdr((void*)functions[i], &info) == 0) continue;
    uintptr_t offset = functions[i] - (uintptr_t)info.dli_fbase;
    printf("outside %s %lu %lu\n", info.dli_fname, (unsigned long)(offset - near), (unsigned long)(offset + near));
  }
}

// ---- in the place of libc's -----------------------------------------------------------------------------------------

void* memset(void* to, int value, size_t n) {
  if (libc_memset == NULL) { // the library starts
    for (size_t i = 0; i < n; i++) ((volatile char*)to)[i] = (char)value;
    return to;
  }
  bool was_counting = counting_pause();
  libc_memset(to, value, n);
  if (was_counting) counting_resume();
  return to;
}

void* memmove(void* to, const void* from, size_t n) {
  if (libc_memmove == NULL) {
    volatile char*       t = to;
    const volatile char* f = from;
    bool                 is_upwards = (uintptr_t)to < (uintptr_t)from;
    for (size_t i = 0; i < n; i++) {
      size_t k = is_upwards ? i : n - 1 - i;
      t[k] = f[k];
    }
    return to;
  }
  bool was_counting = counting_pause();
  libc_memmove(to, from, n);
  if (was_counting) counting_resume();
  return to;
}

void* memcpy(void* to, const void* from, size_t n) {
  return memmove(to, from, n);
}

int clock_gettime(clockid_t clock, struct timespec* now) {
  if (is_clock_stopped) {
    now->tv_sec = 1000;
    now->tv_nsec = 0;
    return 0;
  }
  if (libc_clock_gettime == NULL) find(&libc_clock_gettime, "clock_gettime");
  return libc_clock_gettime(clock, now);
}
