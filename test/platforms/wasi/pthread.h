// What tests use of POSIX threads, under WASI, which has none: a thread runs to its end when it is made.  Tests whose threads wait
// for each other are left out (test/platforms/wiring.cmake).
#pragma once

#include <errno.h>
#include <stddef.h>

typedef void* pthread_t;
typedef int   pthread_attr_t;
typedef int   pthread_mutex_t;
#define PTHREAD_MUTEX_INITIALIZER 0

static inline int pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg) {
  (void)attr;
  *thread = run(arg);
  return 0;
}

static inline int pthread_join(pthread_t thread, void** result) {
  if (result != NULL) *result = thread;
  return 0;
}

static inline int pthread_mutex_lock(pthread_mutex_t* mutex) {
  (void)mutex;
  return 0;
}

static inline int pthread_mutex_unlock(pthread_mutex_t* mutex) {
  (void)mutex;
  return 0;
}
