#define _GNU_SOURCE // REG_RIP

#include "stepper.h"

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "outside.h"

#if defined(__x86_64__)

extern const char __executable_start[], etext[];

static long n_steps; // threads take turns
static bool is_step_counted;

// What clears or copies by one instruction with a prefix traps after each repetition.
static bool is_repeated(uintptr_t address) {
  const unsigned char* code = (const unsigned char*)address;
  if (code[0] != 0xF2 && code[0] != 0xF3) return false;
  code += (code[1] & 0xF0) == 0x40 ? 2 : 1;
  return (*code >= 0xA4 && *code <= 0xA7) || (*code >= 0xAA && *code <= 0xAF);
}

static bool is_own(uintptr_t address) {
  return address >= (uintptr_t)__executable_start && address < (uintptr_t)etext;
}

// After an instruction; the context has the address of the next one.
static void on_step(int signal, siginfo_t* info, void* context) {
  uintptr_t at = (uintptr_t)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  (void)signal, (void)info;
  n_steps += is_step_counted;
  is_step_counted = !is_own(at) && !outside_is_string(at) && !is_repeated(at);
}

void stepper_prepare(void) {
  struct sigaction action = {.sa_sigaction = &on_step, .sa_flags = SA_SIGINFO};
  if (sigaction(SIGTRAP, &action, NULL) != 0) exit(2);
}

// The trap flag is bit 8 of the flags.
void stepper_start(void) {
  is_step_counted = false;
  __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n orq $0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                       : "memory", "cc");
}

void stepper_stop(void) {
  __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n andq $-257, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp" ::
                       : "memory", "cc");
}

#else

static long n_steps;

void stepper_prepare(void) {
  fputs("landscape: instructions can be stepped through on x86-64 only\n", stderr);
  exit(2);
}

void stepper_start(void) {}
void stepper_stop(void) {}

#endif

long stepper_count(void) {
  return n_steps;
}

void stepper_reset(void) {
  n_steps = 0;
}
