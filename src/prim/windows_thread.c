// Threads of Windows.  Layer: prim.
//
// WT1  The loader calls prim_on_event, which lies in the table of such functions that a program and each DLL have, for every
//      thread that ends by itself, however it was started, after the DLLs that were loaded later have been told.  The table is
//      sorted by the name of the section: ours comes behind those of the C runtime, which destroy the program's thread-local
//      variables.  (Callbacks of fiber-local storage would come for each fiber, which is no thread.)
// WT2  A thread that is ended by force leaves its blocks behind, and so do all threads but one when the process ends.  Locks
//      that they held stay taken: from then on nobody waits for one.
// WT3  The DLL stays loaded: threads that outlive FreeLibrary still have blocks, and tell of their end.
#include "prim.h"

#include <errno.h>
#include <string.h>

#include "windows_calls.h"
#include "windows_etw.h"
#include "windows_fault.h"

// ---- exit -----------------------------------------------------------------------------------------------------------

enum { PRIM_UNARMED, PRIM_ARMED, PRIM_ENDED };

static void (*prim_exit_done)(void);
static MI_LOCAL(char, prim_exit_state) = PRIM_UNARMED;
static DWORD prim_main; // the thread with which the process began; 0: unknown

void _mi_prim_thread_exit_init(void (*done)(void)) {
  prim_exit_done = done;
}

void _mi_prim_thread_exit_stop(void) {
  prim_exit_done = NULL;
}

int _mi_prim_thread_exit_arm(void) {
  if (mi_local(prim_exit_state) == PRIM_ENDED) return ENOTSUP;
  mi_local(prim_exit_state) = PRIM_ARMED;
  return 0;
}

bool _mi_prim_thread_exit_is_armed(void) {
  return mi_local(prim_exit_state) == PRIM_ARMED;
}

bool _mi_prim_thread_exit_is_sure(void) {
  return _mi_prim_thread_exit_is_armed();
}

static void prim_thread_ends(void) {
  bool is_armed = _mi_prim_thread_exit_is_armed();
  mi_local(prim_exit_state) = PRIM_ENDED;
  if (is_armed && prim_exit_done != NULL) prim_exit_done();
}

static void prim_process_begins(void* module, bool is_by_program) {
  HMODULE self;
  _mi_windows_calls_find();
  if (MI_TRACK_ETW) _mi_windows_etw_begin();
  if (is_by_program || module == (void*)GetModuleHandleW(NULL)) prim_main = GetCurrentThreadId();
#if defined(MI_SHARED_LIB_EXPORT)
  GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (LPCWSTR)module,
                     &self); // WT3
#endif
  (void)self;
}

// A DLL that contains the library goes, and the process goes on.
static void prim_is_unloaded(void) {
  if (MI_TRACK_ETW) _mi_windows_etw_end();
  _mi_windows_fault_end();
}

static void NTAPI prim_on_event(PVOID module, DWORD reason, PVOID is_by_program) {
  DWORD saved = GetLastError();
  if (reason == DLL_PROCESS_ATTACH) prim_process_begins(module, is_by_program != NULL);
  else if (reason == DLL_THREAD_DETACH) prim_thread_ends();
  else if (reason == DLL_PROCESS_DETACH && is_by_program == NULL) prim_is_unloaded();
  SetLastError(saved);
}

#if defined(_MSC_VER)
  #if defined(_WIN64)
    #pragma comment(linker, "/include:_tls_used")
    #pragma comment(linker, "/include:_mi_prim_tls_event")
  #else
    #pragma comment(linker, "/include:__tls_used")
    #pragma comment(linker, "/include:__mi_prim_tls_event")
  #endif
  #pragma section(".CRT$XLY", long, read)
  #define PRIM_TLS_TABLE __declspec(allocate(".CRT$XLY"))
#else
  #define PRIM_TLS_TABLE __attribute__((section(".CRT$XLY"), used))
#endif

#if defined(__cplusplus)
extern "C" {
#endif
extern const PIMAGE_TLS_CALLBACK         _mi_prim_tls_event;
PRIM_TLS_TABLE const PIMAGE_TLS_CALLBACK _mi_prim_tls_event = &prim_on_event;
#if defined(__cplusplus)
}
#endif

// WT2
bool _mi_prim_is_ending(void) {
  return _mi_windows_calls.is_ending != NULL && _mi_windows_calls.is_ending();
}

// ---- threads that are not told of their end: a handle tells -----------------------------------------------------------

static HANDLE* prim_handle(mi_prim_pulse_t* pulse) {
  return (HANDLE*)(void*)pulse;
}

int _mi_prim_thread_pulse_begin(mi_prim_pulse_t* pulse) {
  DWORD  saved = GetLastError();
  HANDLE process = GetCurrentProcess();
  bool   ok = DuplicateHandle(process, GetCurrentThread(), process, prim_handle(pulse), SYNCHRONIZE, FALSE, 0);
  SetLastError(saved);
  return ok ? 0 : ENOMEM;
}

void _mi_prim_thread_pulse_end(mi_prim_pulse_t* pulse) {
  DWORD saved = GetLastError();
  CloseHandle(*prim_handle(pulse));
  SetLastError(saved);
}

bool _mi_prim_thread_has_ended(mi_prim_pulse_t* pulse) {
  DWORD saved = GetLastError();
  bool  has_ended = (WaitForSingleObject(*prim_handle(pulse), 0) == WAIT_OBJECT_0);
  SetLastError(saved);
  if (has_ended) _mi_prim_thread_pulse_end(pulse);
  return has_ended;
}

// ---- waiting ------------------------------------------------------------------------------------------------------------

// Windows 7 cannot wait for a word: there whoever waits looks again after a millisecond, or whatever the system takes for one.
void _mi_prim_wait(mi_atomic(uint32_t)* word, uint32_t expected, int64_t timeout_ms) {
  DWORD saved = GetLastError();
  DWORD ms = (timeout_ms < 0 || timeout_ms >= (int64_t)INFINITE ? INFINITE : (DWORD)timeout_ms);
  if (_mi_prim_is_ending()) return;
  if (_mi_windows_calls.wait != NULL) _mi_windows_calls.wait((volatile VOID*)word, &expected, sizeof(expected), ms);
  else Sleep(ms > 0 ? 1 : 0);
  SetLastError(saved);
}

void _mi_prim_wake(mi_atomic(uint32_t)* word, bool all) {
  DWORD saved = GetLastError();
  if (_mi_windows_calls.wait != NULL) (all ? _mi_windows_calls.wake_all : _mi_windows_calls.wake_one)((PVOID)word);
  SetLastError(saved);
}

// ---- identity -----------------------------------------------------------------------------------------------------------

// The loader has made it before it runs anything of ours in a thread.
bool _mi_prim_has_thread_storage(void) {
  return true;
}

uintptr_t _mi_prim_thread_id(void) {
  return GetCurrentThreadId();
}

bool _mi_prim_thread_is_main(void) {
  return GetCurrentThreadId() == prim_main;
}
