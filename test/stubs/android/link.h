// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <stddef.h>
#include <stdint.h>
typedef struct {
  uint32_t p_type, p_flags;
  uint64_t p_offset, p_vaddr, p_paddr, p_filesz, p_memsz, p_align;
} Elf64_Phdr;
typedef struct {
  uint32_t n_namesz, n_descsz, n_type;
} Elf64_Nhdr;
typedef uint64_t Elf64_Addr;
#define ElfW(name)      Elf64_##name
#define PT_LOAD         1
#define PT_NOTE         4
#define PF_X            1
#define PF_W            2
#define NT_GNU_BUILD_ID 3
struct dl_phdr_info {
  Elf64_Addr        dlpi_addr;
  const char*       dlpi_name;
  const Elf64_Phdr* dlpi_phdr;
  uint16_t          dlpi_phnum;
};
int dl_iterate_phdr(int (*)(struct dl_phdr_info*, size_t, void*), void*);
