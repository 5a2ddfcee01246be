// Declarations for compiling only: test/stubs/README.md.
#pragma once
typedef struct stub_ucontext_s {
  struct {
    unsigned long fault_address, regs[31], sp, pc, pstate;
  } uc_mcontext;
} ucontext_t;
