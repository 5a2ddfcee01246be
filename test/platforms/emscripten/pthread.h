// Under Emscripten without threads a thread runs to its end when it is made, as under WASI (test/platforms/wasi/pthread.h).
#pragma once

#include_next <pthread.h>

static inline int test_pthread_create(pthread_t* thread, const pthread_attr_t* attr, void* (*run)(void*), void* arg) {
  (void)attr;
  *thread = (pthread_t)run(arg);
  return 0;
}

static inline int test_pthread_join(pthread_t thread, void** result) {
  if (result != NULL) *result = (void*)thread;
  return 0;
}

#define pthread_create test_pthread_create
#define pthread_join   test_pthread_join
