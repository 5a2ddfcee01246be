// The provider of events (windows_etw.h).  Layer: prim.
//
// WE1  The functions are those of ntdll, which is always there; they are looked up, so that no library is needed to link with.
// WE2  GetLastError stays as it was, and writing an event allocates nothing: its data is on the stack.
#include "windows_etw.h"

#include <string.h>

#include "windows_calls.h"

#include <evntprov.h>

mi_atomic(uint32_t) _mi_windows_etw_is_on;

typedef struct prim_etw_s {
  ULONG(NTAPI* begin)(LPCGUID provider, PENABLECALLBACK changed, PVOID context, PREGHANDLE handle);
  ULONG(NTAPI* end)(REGHANDLE handle);
  ULONG(NTAPI* write)(REGHANDLE handle, PCEVENT_DESCRIPTOR event, ULONG n, PEVENT_DATA_DESCRIPTOR data);
  REGHANDLE handle; // 0: not registered
} prim_etw_t;
static prim_etw_t prim_etw;

static const GUID prim_etw_provider = {0x53e6c9f1, 0x0b8d, 0x4a57, {0x9c, 0x3e, 0x7d, 0x2a, 0x41, 0xb8, 0x6f, 0x05}};

// The system calls this when sessions begin and end to listen, on any thread.  `any`, `all`: the keywords that they want, as
// EventRegister's documentation has it.
static VOID NTAPI prim_etw_changed(LPCGUID session, ULONG what, UCHAR level, ULONGLONG any, ULONGLONG all,
                                   PEVENT_FILTER_DESCRIPTOR filter, PVOID context) {
  (void)session;
  (void)filter;
  (void)context;
  if (what > 1) return; // a session asks for state, of which we have none
  const ULONGLONG keyword = MI_ETW_KEYWORD_BLOCK;
  bool            is_on = what == 1 && (level == 0 || level >= MI_ETW_LEVEL);
  is_on = is_on && (any == 0 || ((any & keyword) != 0 && (all & keyword) == all));
  mi_store_relaxed(&_mi_windows_etw_is_on, is_on ? 1u : 0u);
}

void _mi_windows_etw_begin(void) {
  HMODULE const ntdll = GetModuleHandleW(L"ntdll.dll");
  if (ntdll == NULL) return;
  FARPROC const begin = GetProcAddress(ntdll, "EtwEventRegister");
  FARPROC const end = GetProcAddress(ntdll, "EtwEventUnregister");
  FARPROC const write = GetProcAddress(ntdll, "EtwEventWrite");
  if (begin == NULL || end == NULL || write == NULL) return;
  memcpy((void*)&prim_etw.begin, (const void*)&begin, sizeof(begin));
  memcpy((void*)&prim_etw.end, (const void*)&end, sizeof(end));
  memcpy((void*)&prim_etw.write, (const void*)&write, sizeof(write));
  if (prim_etw.begin(&prim_etw_provider, &prim_etw_changed, NULL, &prim_etw.handle) != 0) prim_etw.handle = 0;
}

void _mi_windows_etw_end(void) {
  mi_store_relaxed(&_mi_windows_etw_is_on, 0u);
  if (prim_etw.handle != 0) prim_etw.end(prim_etw.handle);
  prim_etw.handle = 0;
}

mi_cold void _mi_windows_etw_write(uint16_t id, const void* p, size_t size) {
  EVENT_DESCRIPTOR event;
  memset(&event, 0, sizeof(event));
  event.Id = id;
  event.Level = MI_ETW_LEVEL;
  event.Keyword = MI_ETW_KEYWORD_BLOCK;
  uint64_t              values[2] = {(uintptr_t)p, size}; // the same in programs of 32 bits
  EVENT_DATA_DESCRIPTOR data[2];
  for (int i = 0; i < 2; i++) EventDataDescCreate(&data[i], &values[i], sizeof(values[i]));
  const DWORD     saved = GetLastError();
  const REGHANDLE handle = prim_etw.handle;
  if (handle != 0) prim_etw.write(handle, &event, 2, data);
  SetLastError(saved);
}
