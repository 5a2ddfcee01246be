// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <stddef.h>
void*              malloc(size_t);
void*              calloc(size_t, size_t);
void*              realloc(void*, size_t);
void               free(void*);
void               abort(void) __attribute__((noreturn));
int                atexit(void (*)(void));
char*              getenv(const char*);
char*              realpath(const char*, char*);
unsigned long long strtoull(const char*, char**, int);
int                posix_memalign(void**, size_t, size_t);
