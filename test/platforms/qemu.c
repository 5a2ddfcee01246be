// In each test program that runs under QEMU's user-mode emulation: what QEMU (7.2) does wrong is put right.
//
// Memory whose contents mremap moves away with MREMAP_DONTUNMAP stays mapped, but QEMU takes it for unmapped.  Instructions that
// it emulates with a look at its tables then end the program (a memset of 2 MiB there on s390x, POWER and ARM 32; any access, where
// memory has tags), and MADV_DONTNEED does nothing there.  A program of ten lines that maps 2 MiB, moves their contents away, and
// clears them, fails.  A new mapping there, as empty as the old one is, sets the tables right.
//
// With -p, its tables lack what follows the contents of a file in the last OS page of a mapping, and the same instructions end the
// program there.  To protect that part anew sets the tables right.
//
// The instruction DC ZVA, by which memset of glibc clears, ends the program where memory has tags.  A handler of SIGSEGV does what
// the instruction should have done.
#define _GNU_SOURCE
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined(MREMAP_DONTUNMAP)
  #define MREMAP_DONTUNMAP 4
#endif
#define WITH_TAGS 0x20 // PROT_MTE

void* mremap(void* start, size_t size, size_t new_size, int flags, ...) {
  va_list args;
  va_start(args, flags);
  void* to = (flags & MREMAP_FIXED) != 0 ? va_arg(args, void*) : NULL;
  va_end(args);
  void* p = (void*)syscall(SYS_mremap, start, size, new_size, flags, to);
  if (p == MAP_FAILED || (flags & MREMAP_DONTUNMAP) == 0) return p;
  const int flags_again = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
  if (!MI_TEST_TAGS || mmap(start, size, PROT_READ | PROT_WRITE | WITH_TAGS, flags_again, -1, 0) == MAP_FAILED)
    mmap(start, size, PROT_READ | PROT_WRITE, flags_again, -1, 0);
  return p;
}

// The variables of a module without contents in its file begin there.
static int mend_module(struct dl_phdr_info* module, size_t size, void* arg) {
  (void)size;
  (void)arg;
  const uintptr_t known = 4096, page = (uintptr_t)getpagesize();
  for (size_t i = 0; i < module->dlpi_phnum; i++) {
    const ElfW(Phdr)* part = &module->dlpi_phdr[i];
    if (part->p_type != PT_LOAD || (part->p_flags & PF_W) == 0) continue;
    uintptr_t end = (uintptr_t)(module->dlpi_addr + part->p_vaddr + part->p_filesz);
    uintptr_t from = (end + known - 1) / known * known, to = (end + page - 1) / page * page;
    if (from < to) mprotect((void*)from, to - from, PROT_READ | PROT_WRITE);
  }
  return 0;
}

// Before the constructors of all libraries.
static void mend_modules(void) {
  dl_iterate_phdr(&mend_module, NULL);
}

__attribute__((section(".preinit_array"), used)) static void (*const first)(void) = &mend_modules;

#if MI_TEST_TAGS

  #include <ucontext.h>

static struct sigaction handler_before;

// Neither memset nor anything else of the C library, which may be where the fault is.
static void clear_line(uint64_t address) {
  uint64_t sizes;
  __asm__("mrs %0, dczid_el0" : "=r"(sizes));
  size_t             size = (size_t)4 << (sizes & 15);
  volatile uint64_t* line = (volatile uint64_t*)(address & ~(uint64_t)(size - 1));
  for (size_t i = 0; i < size / sizeof(*line); i++) line[i] = 0;
}

// A fault in `clear_line` itself is one of the program: the signal is not blocked there, and the handler gets it.
static void on_fault(int number, siginfo_t* info, void* context) {
  mcontext_t* machine = &((ucontext_t*)context)->uc_mcontext;
  uint32_t    instruction = *(const uint32_t*)machine->pc;
  unsigned    xt = instruction & 31;
  if ((instruction & ~31u) == 0xD50B7420u) { // DC ZVA, Xt
    clear_line(xt == 31 ? 0 : machine->regs[xt]);
    machine->pc += 4;
  }
  else if ((handler_before.sa_flags & SA_SIGINFO) != 0) handler_before.sa_sigaction(number, info, context);
  else sigaction(number, &handler_before, NULL); // the access happens again
}

__attribute__((constructor)) static void watch_faults(void) {
  struct sigaction handler = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
  sigaction(SIGSEGV, &handler, &handler_before);
}

#endif
