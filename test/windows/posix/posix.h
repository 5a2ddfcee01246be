// What tests use of POSIX and MinGW's headers lack; every test includes it first on Windows.
#pragma once

#include <pthread.h> // includes <windows.h>, whose macros are names of ours
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#undef near
#undef far

#if defined(__cplusplus)
extern "C" {
#endif

#define SIGALRM              14
#define _SC_PAGESIZE         30
#define _SC_NPROCESSORS_ONLN 84

// Ends the process after so many seconds, with status 124, whatever handler there is; 0 switches that off.
unsigned alarm(unsigned seconds);
long     sysconf(int name);
int      setenv(const char* name, const char* value, int overwrite);
int      unsetenv(const char* name);
char*    strndup(const char* s, size_t n);
int      pipe(int files[2]);
// Resident bytes of the process, now or at most.
size_t   test_working_set(bool is_peak);

#if defined(__cplusplus)
}
#endif
