// Declarations for compiling only: test/stubs/README.md.
#pragma once
typedef struct stub_dl_info_s {
  const char* dli_fname;
  void*       dli_fbase;
  const char* dli_sname;
  void*       dli_saddr;
} Dl_info;
#define RTLD_NEXT   ((void*)-1)
#define RTLD_LAZY   1
#define RTLD_NOLOAD 4
void* dlsym(void*, const char*);
void* dlopen(const char*, int);
int   dlclose(void*);
int   dladdr(const void*, Dl_info*);
