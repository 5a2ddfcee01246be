// Functions that not every Windows has.  Layer: prim.
#include "windows_calls.h"

#include <string.h>

mi_windows_calls_t _mi_windows_calls;

// `call`: the pointer to a function that is looked for.
static void prim_find(const wchar_t* library, const char* name, void* call) {
  HMODULE module = GetModuleHandleW(library);
  if (module == NULL) module = LoadLibraryExW(library, NULL, 0x800 /* LOAD_LIBRARY_SEARCH_SYSTEM32 */);
  FARPROC found = (module == NULL ? NULL : GetProcAddress(module, name));
  memcpy(call, &found, sizeof(found));
}

void _mi_windows_calls_find(void) {
  mi_windows_calls_t* calls = &_mi_windows_calls;
  prim_find(L"kernelbase.dll", "WaitOnAddress", &calls->wait);
  prim_find(L"kernelbase.dll", "WakeByAddressSingle", &calls->wake_one);
  prim_find(L"kernelbase.dll", "WakeByAddressAll", &calls->wake_all);
  prim_find(L"advapi32.dll", "SystemFunction036", &calls->random); // RtlGenRandom
  prim_find(L"ntdll.dll", "RtlDllShutdownInProgress", &calls->is_ending);
  _mi_prim_random(); // loads what it needs
}
