// Reports of faults.  Layer: heap.
#include "guard_fault.h"

#include "../prim/prim.h"
#include "../support/format.h"
#include "../support/message.h"
#include "guard.h"

#define REPORT_LINE_MAX 256 // with numbers of 20 digits; paths are cut off

// ---- of a fault -----------------------------------------------------------------------------------------------------

static void report_line(const char* fmt, ...) mi_printf(1, 2);
static void report_line(const char* fmt, ...) {
  char    line[REPORT_LINE_MAX];
  va_list args;
  va_start(args, fmt);
  size_t n = _mi_format_v(line, sizeof(line), fmt, args);
  va_end(args);
  _mi_prim_write_stderr(line, n);
}

// An address, its module and its place there: the name of the module is put where it belongs in the line.
static void report_place(const char* what, size_t number, uintptr_t address) {
  enum { OFFSET_MAX = 24 }; // "+0x", 16 digits, the end of the line
  char      line[REPORT_LINE_MAX];
  uintptr_t offset;
  size_t    n = _mi_format(line, sizeof(line), "mimalloc:   ");
  n += (what != NULL ? _mi_format(line + n, sizeof(line) - n, "%s %p", what, (void*)address)
                     : _mi_format(line + n, sizeof(line) - n, "#%zu %p", number, (void*)address));
  if (_mi_prim_find_module(address, line + n + 2, sizeof(line) - n - 2 - OFFSET_MAX, &offset)) {
    line[n] = line[n + 1] = ' ';
    n += _mi_format_length(line + n);
    n += _mi_format(line + n, sizeof(line) - n, "+0x%zx", (size_t)offset);
  }
  line[n++] = '\n';
  _mi_prim_write_stderr(line, n);
}

static void report_trace(const char* what, const mi_trace_t* trace) {
  report_line("mimalloc:  %s by thread %zu%s\n", what, (size_t)trace->thread,
              trace->n_frames == 0 ? ", from where is not known: the program has no backtrace()" : " from");
  for (size_t i = 0; i < trace->n_frames; i++) report_place(NULL, i, (uintptr_t)trace->frames[i]);
}

static const char* report_access(char access) {
  return access == 'w' ? "write" : access == 'r' ? "read" : "access";
}

static void report_fault(const mi_fault_t* fault) {
  const mi_guard_t* guard = _mi_guard_find(fault->address);
  if (guard == NULL) return;
  uintptr_t   block = (uintptr_t)guard->block;
  bool        is_freed = (mi_load_acquire(&guard->state) == MI_GUARD_FREED);
  bool        is_past = (fault->address >= block + guard->size);
  bool        is_data = (fault->address - (uintptr_t)guard->data < (uintptr_t)(guard->data_end - guard->data));
  const char* access = report_access(fault->access);
  if (is_data && guard->size > 0 && !is_freed) return; // not by what we did: the program has protected it (GU6)
  if (is_freed) {
    report_line("mimalloc: error: use after free: %s at %p, byte %zd of the freed block %p of %zu bytes\n", access,
                (void*)fault->address, (ptrdiff_t)(fault->address - block), (void*)block, guard->size);
  }
  else if (is_past) {
    report_line("mimalloc: error: buffer overflow: %s at %p, %zu bytes past the block %p of %zu bytes\n", access,
                (void*)fault->address, (size_t)(fault->address - block - guard->size), (void*)block, guard->size);
  }
  else {
    report_line("mimalloc: error: buffer underflow: %s at %p, %zu bytes before the block %p of %zu bytes\n", access,
                (void*)fault->address, (size_t)(block - fault->address), (void*)block, guard->size);
  }
  if (fault->instruction != 0) report_place("by the instruction at", 0, fault->instruction);
  report_trace("allocated", &guard->allocated);
  if (is_freed) report_trace("freed", &guard->freed);
}

// Several threads may be at it: each goes on when faults are watched.
void _mi_guard_fault_watch(void) {
  static mi_atomic(bool) is_started;
  if (mi_load_acquire(&is_started)) return;
  _mi_trace_know_thread();
  if (!MI_TSAN && !MI_ASAN) _mi_prim_fault_init(&report_fault); // sanitizers have a handler, and more to say
  mi_store_release(&is_started, true);
}

void _mi_guard_fault_start(void) {
  static mi_atomic(bool) is_started;
  if (mi_load_acquire(&is_started)) return;
  _mi_trace_start();
  _mi_guard_fault_watch();
  mi_store_release(&is_started, true);
}
