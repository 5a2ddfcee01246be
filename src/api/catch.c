// Calling what may throw, from functions that must not.  Layer: api.
//
// C has no word for it, so what C++ compilers make of a try block stands here in their words: a call, the place where it
// goes on after an exception, and the table that says so, which the C++ runtime reads.  The runtime need not be there:
// then nobody throws, and its functions are NULL.
//
// They are named by .weakref, not .weak: with link-time optimisation the program's own references may be in the same
// unit, and must stay strong.
#include "catch.h"

#include "../base/compiler.h"

#if MI_HAS_EXCEPTIONS

void* _mi_catch(void* (*fun)(size_t a, size_t b), size_t a, size_t b) {
  try {
    return fun(a, b);
  } catch (...) {
    return NULL;
  }
}

#elif !defined(__cplusplus) && defined(__ELF__) && (defined(__x86_64__) && defined(__LP64__) || defined(__aarch64__))

  #if defined(__x86_64__)
    #define CATCH_CODE \
      "  endbr64\n" \
      "  subq $8, %rsp\n" \
      "  .cfi_def_cfa_offset 16\n" \
      "  movq %rdi, %rax\n" \
      "  movq %rsi, %rdi\n" \
      "  movq %rdx, %rsi\n" \
      ".Lmi_catch_try:\n" \
      "  call *%rax\n" \
      ".Lmi_catch_tried:\n" \
      "  addq $8, %rsp\n" \
      "  .cfi_def_cfa_offset 8\n" \
      "  ret\n" \
      ".Lmi_catch_caught:\n" \
      "  .cfi_def_cfa_offset 16\n" \
      "  endbr64\n" \
      "  movq %rax, %rdi\n" \
      "  call *mi_catch_begin@GOTPCREL(%rip)\n" \
      "  call *mi_catch_end@GOTPCREL(%rip)\n" \
      "  xorl %eax, %eax\n" \
      "  addq $8, %rsp\n" \
      "  .cfi_def_cfa_offset 8\n" \
      "  ret\n"
  #else
    #define CATCH_CODE \
      "  hint #34\n" /* a target of calls */ \
      "  stp x29, x30, [sp, #-16]!\n" \
      "  .cfi_def_cfa_offset 16\n" \
      "  .cfi_offset 29, -16\n" \
      "  .cfi_offset 30, -8\n" \
      "  mov x3, x0\n" \
      "  mov x0, x1\n" \
      "  mov x1, x2\n" \
      ".Lmi_catch_try:\n" \
      "  blr x3\n" \
      ".Lmi_catch_tried:\n" \
      "  b .Lmi_catch_return\n" \
      ".Lmi_catch_caught:\n" \
      "  hint #36\n" /* a target of jumps */ \
      "  bl mi_catch_begin\n" \
      "  bl mi_catch_end\n" \
      "  mov x0, xzr\n" \
      ".Lmi_catch_return:\n" \
      "  ldp x29, x30, [sp], #16\n" \
      "  .cfi_restore 30\n" \
      "  .cfi_restore 29\n" \
      "  .cfi_def_cfa_offset 0\n" \
      "  ret\n"
  #endif

// clang-format off
__asm__(
  ".weakref mi_catch_begin, __cxa_begin_catch\n"
  ".weakref mi_catch_end, __cxa_end_catch\n"
  ".weakref mi_catch_personality, __gxx_personality_v0\n"
  ".pushsection .text\n"
  ".p2align 4\n"
  ".globl _mi_catch\n"
  ".hidden _mi_catch\n"
  ".type _mi_catch, %function\n"
  "_mi_catch:\n"
  "  .cfi_startproc\n"
  "  .cfi_personality 0x9b, .Lmi_catch_personality\n" // a pointer to it, four bytes relative to their place
  "  .cfi_lsda 0x1b, .Lmi_catch_table\n"
  CATCH_CODE
  "  .cfi_endproc\n"
  ".Lmi_catch_over:\n"
  ".size _mi_catch, . - _mi_catch\n"
  ".popsection\n"
  ".pushsection .data.rel.ro, \"aw\", %progbits\n"
  ".p2align 3\n"
  ".Lmi_catch_personality: .quad mi_catch_personality\n"
  ".popsection\n"
  ".pushsection .gcc_except_table, \"a\", %progbits\n"
  ".p2align 2\n"
  ".Lmi_catch_table:\n"
  "  .byte 0xff\n" // places count from the start of the function
  "  .byte 0x9b\n" // types are pointers to pointers, relative to their place
  "  .uleb128 .Lmi_catch_types - .Lmi_catch_calls_head\n"
  ".Lmi_catch_calls_head:\n"
  "  .byte 0x01\n" // numbers of the calls are uleb128
  "  .uleb128 .Lmi_catch_calls_end - .Lmi_catch_calls\n"
  ".Lmi_catch_calls:\n" // from where, how much, where to go on, what to do: action 1; in the handler nothing, exceptions pass
  "  .uleb128 .Lmi_catch_try - _mi_catch\n"
  "  .uleb128 .Lmi_catch_tried - .Lmi_catch_try\n"
  "  .uleb128 .Lmi_catch_caught - _mi_catch\n"
  "  .uleb128 1\n"
  "  .uleb128 .Lmi_catch_caught - _mi_catch\n"
  "  .uleb128 .Lmi_catch_over - .Lmi_catch_caught\n"
  "  .uleb128 0\n"
  "  .uleb128 0\n"
  ".Lmi_catch_calls_end:\n"
  "  .byte 1, 0\n" // action 1: exceptions of type 1, and no further action
  "  .p2align 2\n"
  "  .long 0\n"    // type 1: all
  ".Lmi_catch_types:\n"
  ".popsection\n"
);
// clang-format on

#else

void* _mi_catch(void* (*fun)(size_t a, size_t b), size_t a, size_t b) {
  return fun(a, b);
}

#endif
