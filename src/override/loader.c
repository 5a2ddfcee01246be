// dlopen and dlmopen of the shared library: RTLD_DEEPBIND is dropped.  Layer: override.
//
// A library that is opened with this flag finds malloc and free in what it is linked with, which is libc, before it finds
// ours.  Then each block that goes from the program to that library, or back, is freed by an allocator that does not know it.
// Without the flag it uses the functions that everybody uses.  Option keep_deepbind keeps the flag.
//
// LD1  libc looks at the return address, to know whose search path counts (RUNPATH, $ORIGIN) and in which namespace the caller
//      is.  So these functions are no callers of libc's: they change the flag and jump there, with the stack as they found
//      it.  C cannot promise that; so they are in assembly, and processors for which there is none keep libc's dlopen.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "../api/names.h"
#include "../support/message.h"
#include "../support/option.h"

#if defined(MI_SHARED_LIB) && defined(MI_MALLOC_OVERRIDE) && defined(__GLIBC__) && \
    ((defined(__x86_64__) && defined(__LP64__)) || defined(__aarch64__))

  #include <dlfcn.h>

MI_NAMES_BEGIN

// Where to go on, and with which flags: two words that a function returns in two registers.
typedef struct loader_next_s {
  void*     function;
  uintptr_t flags;
} loader_next_t;

mi_hidden loader_next_t _mi_loader_open(unsigned flags) __attribute__((used));
mi_hidden loader_next_t _mi_loader_open_in(Lmid_t space, unsigned flags) __attribute__((used));

extern void* loader_visible_malloc(size_t size) __asm__("malloc");
extern void  loader_visible_free(void* p) __asm__("free");

// Do programs allocate from us?  Another allocator may come before this one.
static bool loader_is_malloc_ours(void) {
  void* p = loader_visible_malloc(1);
  bool  is_ours = mi_is_in_heap_region(p);
  loader_visible_free(p);
  return is_ours;
}

static uintptr_t loader_flags(unsigned flags) {
  static mi_atomic(bool) is_said;
  if ((flags & RTLD_DEEPBIND) == 0 || _mi_option_get_fast(mi_option_keep_deepbind) != 0) return flags;
  if (!loader_is_malloc_ours()) return flags;
  if (!mi_exchange_acq_rel(&is_said, true)) {
    _mi_message_print(1, "RTLD_DEEPBIND is dropped from calls of dlopen; mimalloc_keep_deepbind=1 keeps it.\n");
  }
  return flags & ~(unsigned)RTLD_DEEPBIND;
}

// Where libc has no such function (a C library whose libdl is not loaded).
static void* loader_nothing(void) {
  return NULL;
}

static loader_next_t loader_next(mi_atomic(void*)* found, const char* name, uintptr_t flags) {
  loader_next_t next = {mi_load_relaxed(found), flags};
  if (next.function == NULL) {
    void* (*volatile find)(void*, const char*) = &dlsym; // as in prim/linux_thread.c
    next.function = find(RTLD_NEXT, name);
    if (next.function == NULL) next.function = (void*)&loader_nothing;
    mi_store_relaxed(found, next.function);
  }
  return next;
}

loader_next_t _mi_loader_open(unsigned flags) {
  static mi_atomic(void*) found;
  return loader_next(&found, "dlopen", loader_flags(flags));
}

// Libraries in a namespace of their own have a libc of their own, and not us: they share no blocks with the program.
loader_next_t _mi_loader_open_in(Lmid_t space, unsigned flags) {
  static mi_atomic(void*) found;
  return loader_next(&found, "dlmopen", space == LM_ID_BASE ? loader_flags(flags) : flags);
}

MI_NAMES_END

  // Each keeps its arguments, calls the function of ours above, and jumps to libc's.
  #define LOADER_BEGIN(name) \
    ".pushsection .text\n.balign 16\n.globl " name "\n.type " name ", %function\n" name ":\n.cfi_startproc\n"
  #define LOADER_END(name) ".cfi_endproc\n.size " name ", . - " name "\n.popsection\n"

  #if defined(__x86_64__)

// dlopen(file: rdi, flags: esi)
__asm__(LOADER_BEGIN("dlopen") "endbr64\n"
                               "pushq %rdi\n.cfi_adjust_cfa_offset 8\n"
                               "movl %esi, %edi\n"
                               "call _mi_loader_open\n"
                               "popq %rdi\n.cfi_adjust_cfa_offset -8\n"
                               "movl %edx, %esi\n"
                               "jmp *%rax\n" LOADER_END("dlopen"));

// dlmopen(space: rdi, file: rsi, flags: edx)
__asm__(LOADER_BEGIN("dlmopen") "endbr64\n"
                                "pushq %rdi\n.cfi_adjust_cfa_offset 8\n"
                                "pushq %rsi\n.cfi_adjust_cfa_offset 8\n"
                                "subq $8, %rsp\n.cfi_adjust_cfa_offset 8\n"
                                "movl %edx, %esi\n"
                                "call _mi_loader_open_in\n"
                                "addq $8, %rsp\n.cfi_adjust_cfa_offset -8\n"
                                "popq %rsi\n.cfi_adjust_cfa_offset -8\n"
                                "popq %rdi\n.cfi_adjust_cfa_offset -8\n"
                                "jmp *%rax\n" LOADER_END("dlmopen"));

  #else

    // The first is a landing pad for indirect branches (bti c), where processors ask for one.
    #define LOADER_SAVE \
      "hint #34\n" \
      "stp x29, x30, [sp, #-32]!\n.cfi_def_cfa_offset 32\n.cfi_offset 29, -32\n.cfi_offset 30, -24\n" \
      "mov x29, sp\n" \
      "stp x0, x1, [sp, #16]\n"
    #define LOADER_RESTORE \
      "mov x16, x0\n" \
      "mov w2, w1\n" \
      "ldp x0, x1, [sp, #16]\n" \
      "ldp x29, x30, [sp], #32\n.cfi_restore 29\n.cfi_restore 30\n.cfi_def_cfa_offset 0\n"

// dlopen(file: x0, flags: w1)
__asm__(LOADER_BEGIN("dlopen") LOADER_SAVE "mov w0, w1\n"
                                           "bl _mi_loader_open\n" LOADER_RESTORE "mov w1, w2\n"
                                           "br x16\n" LOADER_END("dlopen"));

// dlmopen(space: x0, file: x1, flags: w2)
__asm__(LOADER_BEGIN("dlmopen") LOADER_SAVE "mov w1, w2\n"
                                            "bl _mi_loader_open_in\n" LOADER_RESTORE "br x16\n" LOADER_END("dlmopen"));

  #endif

#endif
