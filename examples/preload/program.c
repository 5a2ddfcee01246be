// A program that was built without the library, and runs with it.
//
// Build and run:
//   cc program.c -o program
//   ./program
//   LD_PRELOAD=$(pkg-config --variable=libdir mimalloc)/libmimalloc.so ./program
//   MIMALLOC_SHOW_STATS=1 LD_PRELOAD=$(pkg-config --variable=libdir mimalloc)/libmimalloc.so ./program 2>&1 | grep -c committed
// Prints:
//   malloc is served by libc.so.6
//   malloc is served by libmimalloc.so...
//   N
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
  Dl_info     info;
  const char* file = "an unknown file";
  // The C library and all other libraries of the process find the same malloc as this program.
  if (dladdr(dlsym(RTLD_DEFAULT, "malloc"), &info) != 0) {
    const char* slash = strrchr(info.dli_fname, '/');
    file = slash != NULL ? slash + 1 : info.dli_fname;
  }
  printf("malloc is served by %s\n", file);
  return 0;
}
