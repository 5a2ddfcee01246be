#pragma once

#include <stddef.h>

void     abort(void);
char*    _fullpath(char* path, const char* name, size_t size);
char*    getenv(const char* name);
wchar_t* _wgetenv(const wchar_t* name);
int      atexit(void (*fun)(void));
void     free(void* p);
void*    malloc(size_t size);
