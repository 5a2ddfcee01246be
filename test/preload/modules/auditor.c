// A module for the tests: an auditor of the loader (rtld-audit), which watches the calls between all objects, and their returns,
// and allocates meanwhile, from the C library of its own.
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>

enum { SOMEBODY = 4711, FRAME = 128 };

unsigned     la_version(unsigned version);
unsigned     la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie);
uintptr_t    la_symbind64(Elf64_Sym* symbol, unsigned n, uintptr_t* from, uintptr_t* to, unsigned* flags,
                          const char* name);
Elf64_Addr   la_x86_64_gnu_pltenter(Elf64_Sym* symbol, unsigned n, uintptr_t* from, uintptr_t* to,
                                    La_x86_64_regs* registers, unsigned* flags, const char* name, long* frame);
unsigned int la_x86_64_gnu_pltexit(Elf64_Sym* symbol, unsigned n, uintptr_t* from, uintptr_t* to,
                                   const La_x86_64_regs* before, La_x86_64_retval* after, const char* name);

static void allocate(size_t size) {
  char* p = (char*)malloc(size);
  if (p != NULL) memset(p, 1, size);
  free(p);
}

// By this the program sees that it is audited.
static int parent_of_the_audited(void) {
  return SOMEBODY;
}

unsigned la_version(unsigned version) {
  return version < LAV_CURRENT ? version : LAV_CURRENT;
}

unsigned la_objopen(struct link_map* map, Lmid_t space, uintptr_t* cookie) {
  (void)map;
  (void)space;
  (void)cookie;
  allocate(1000);
  return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym* symbol, unsigned n, uintptr_t* from, uintptr_t* to, unsigned* flags,
                       const char* name) {
  (void)n;
  (void)from;
  (void)to;
  (void)flags;
  allocate(100);
  return strcmp(name, "getppid") == 0 ? (uintptr_t)&parent_of_the_audited : symbol->st_value;
}

Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym* symbol, unsigned n, uintptr_t* from, uintptr_t* to,
                                  La_x86_64_regs* registers, unsigned* flags, const char* name, long* frame) {
  (void)n;
  (void)from;
  (void)to;
  (void)registers;
  (void)flags;
  (void)name;
  allocate(10);
  *frame = FRAME; // so that the return is watched, too
  return symbol->st_value;
}

unsigned int la_x86_64_gnu_pltexit(Elf64_Sym* symbol, unsigned n, uintptr_t* from, uintptr_t* to,
                                   const La_x86_64_regs* before, La_x86_64_retval* after, const char* name) {
  (void)symbol;
  (void)n;
  (void)from;
  (void)to;
  (void)before;
  (void)after;
  (void)name;
  allocate(10);
  return 0;
}
