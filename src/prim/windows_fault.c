// Faults and stacks on Windows.  Layer: prim.
#include "windows_fault.h"

#include <errno.h>
#include <string.h>

#include "prim.h"
#include "windows_calls.h"

static void (*prim_on_fault)(const mi_fault_t* fault);
static mi_atomic(PVOID) prim_watch; // NULL: no handler

static uintptr_t prim_instruction(const CONTEXT* context) {
#if defined(__x86_64__) || defined(_M_X64)
  return (uintptr_t)context->Rip;
#elif defined(__i386__) || defined(_M_IX86)
  return (uintptr_t)context->Eip;
#elif defined(__aarch64__) || defined(_M_ARM64)
  return (uintptr_t)context->Pc;
#else
  (void)context;
  return 0;
#endif
}

// What the process would have done follows: other handlers, and its end.
static LONG WINAPI prim_fault_handler(EXCEPTION_POINTERS* pointers) {
  const EXCEPTION_RECORD* record = pointers->ExceptionRecord;
  mi_fault_t              fault;
  if (record->ExceptionCode != EXCEPTION_ACCESS_VIOLATION || record->NumberParameters < 2)
    return EXCEPTION_CONTINUE_SEARCH;
  DWORD saved = GetLastError();
  fault.address = (uintptr_t)record->ExceptionInformation[1];
  fault.instruction = prim_instruction(pointers->ContextRecord);
  fault.access = (record->ExceptionInformation[0] == 0 ? 'r' : record->ExceptionInformation[0] == 1 ? 'w' : '?');
  prim_on_fault(&fault);
  SetLastError(saved);
  return EXCEPTION_CONTINUE_SEARCH;
}

int _mi_prim_fault_init(void (*on_fault)(const mi_fault_t* fault)) {
  DWORD saved = GetLastError();
  prim_on_fault = on_fault;
  PVOID watch = AddVectoredExceptionHandler(1, &prim_fault_handler), before = NULL;
  if (!mi_cas_strong(&prim_watch, &before, watch, acq_rel, relaxed)) RemoveVectoredExceptionHandler(watch);
  SetLastError(saved);
  return mi_load_relaxed(&prim_watch) != NULL ? 0 : ENOMEM;
}

void _mi_windows_fault_end(void) {
  RemoveVectoredExceptionHandler(mi_exchange_acq_rel(&prim_watch, (PVOID)NULL)); // of NULL it does nothing
}

size_t _mi_prim_stack(void** frames, size_t max) {
  return RtlCaptureStackBackTrace(0, (DWORD)max, frames, NULL);
}

bool _mi_prim_stack_init(void) {
  return true; // there is nothing to prepare
}

// The name is what the kernel calls the file (\Device\...): to ask the loader for it would take the loader's lock.
bool _mi_prim_find_module(uintptr_t address, char* name, size_t size, uintptr_t* offset) {
  MEMORY_BASIC_INFORMATION info;
  wchar_t                  path[256];
  DWORD                    saved = GetLastError();
  int                      length = 0;
  if (VirtualQuery((const void*)address, &info, sizeof(info)) != 0 && info.Type == MEM_IMAGE) {
    DWORD n = K32GetMappedFileNameW(GetCurrentProcess(), (LPVOID)address, path, sizeof(path) / sizeof(path[0]));
    *offset = address - (uintptr_t)info.AllocationBase;
    if (n > 0 && size > 1) length = WideCharToMultiByte(CP_UTF8, 0, path, (int)n, name, (int)size - 1, NULL, NULL);
  }
  if (length > 0) name[length] = 0;
  SetLastError(saved);
  return length > 0;
}
