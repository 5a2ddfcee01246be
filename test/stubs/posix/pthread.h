// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <sched.h>
#if defined(__linux__)
typedef long pthread_t;
#else
typedef struct stub_thread_s* pthread_t;
#endif
#if defined(__APPLE__)
typedef unsigned long pthread_key_t;
#else
typedef int pthread_key_t;
#endif
typedef struct stub_attr_s {
  long words[7];
} pthread_attr_t;
pthread_t pthread_self(void);
int       pthread_equal(pthread_t, pthread_t);
int       pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int       pthread_join(pthread_t, void**);
int       pthread_detach(pthread_t);
int       pthread_key_create(pthread_key_t*, void (*)(void*));
int       pthread_key_delete(pthread_key_t);
void*     pthread_getspecific(pthread_key_t);
int       pthread_setspecific(pthread_key_t, const void*);
int       pthread_atfork(void (*)(void), void (*)(void), void (*)(void));
#if !defined(__ANDROID__)
  #define PTHREAD_CANCEL_ENABLE  0
  #define PTHREAD_CANCEL_DISABLE 1
int pthread_setcancelstate(int, int*);
#endif
