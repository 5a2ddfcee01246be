#pragma once

#include <stddef.h>

void*  memcpy(void* to, const void* from, size_t n);
void*  memmove(void* to, const void* from, size_t n);
void*  memset(void* to, int c, size_t n);
int    memcmp(const void* a, const void* b, size_t n);
void*  memchr(const void* p, int c, size_t n);
size_t strlen(const char* s);
size_t strnlen(const char* s, size_t max);
int    strcmp(const char* a, const char* b);
int    strncmp(const char* a, const char* b, size_t n);
char*  strchr(const char* s, int c);
char*  strrchr(const char* s, int c);
char*  strstr(const char* s, const char* what);
