// What is looked up when the library is loaded: functions that not every Windows has, and the environment.  Layer: prim.
#include "windows_calls.h"

#include <string.h>
#include <wchar.h>

mi_windows_calls_t _mi_windows_calls;

// `call`: the pointer to a function that is looked for.
static void prim_find(const wchar_t* library, const char* name, void* call) {
  HMODULE module = GetModuleHandleW(library);
  if (module == NULL) module = LoadLibraryExW(library, NULL, 0x800 /* LOAD_LIBRARY_SEARCH_SYSTEM32 */);
  FARPROC found = (module == NULL ? NULL : GetProcAddress(module, name));
  memcpy(call, &found, sizeof(found));
}

// The environment is in UTF-16, and moves when somebody changes it.  So what may be ours is copied: the entries
// whose names begin with MIMALLOC_, in capitals or not, after an empty one, which says that there is an environment.
#define PRIM_ENTRIES_MAX 128
#define PRIM_TEXT_MAX    8192

static const char* prim_entries[PRIM_ENTRIES_MAX + 1];
static char        prim_text[PRIM_TEXT_MAX];

static bool prim_is_ours(const wchar_t* entry) {
  return wcslen(entry) >= 9 && CompareStringOrdinal(entry, 9, L"MIMALLOC_", 9, TRUE) == CSTR_EQUAL;
}

// An entry for which there is no room is left out.
static void prim_read_environment(void) {
  size_t   n = 1, used = 1;
  wchar_t* block = GetEnvironmentStringsW();
  prim_entries[0] = prim_text;
  for (wchar_t* entry = block; block != NULL && *entry != 0 && n < PRIM_ENTRIES_MAX; entry += wcslen(entry) + 1) {
    char* to = prim_text + used;
    if (!prim_is_ours(entry)) continue;
    int length = WideCharToMultiByte(CP_UTF8, 0, entry, -1, to, (int)(PRIM_TEXT_MAX - used), NULL, NULL);
    if (length <= 0) continue;
    prim_entries[n++] = to;
    used += (size_t)length;
  }
  if (block != NULL) FreeEnvironmentStringsW(block);
}

const char* _mi_prim_environment_entry(size_t i) {
  return i < PRIM_ENTRIES_MAX ? prim_entries[i] : NULL;
}

void _mi_windows_calls_find(void) {
  mi_windows_calls_t* calls = &_mi_windows_calls;
  prim_find(L"kernelbase.dll", "VirtualAlloc2", &calls->alloc);
  prim_find(L"kernelbase.dll", "WaitOnAddress", &calls->wait);
  prim_find(L"kernelbase.dll", "WakeByAddressSingle", &calls->wake_one);
  prim_find(L"kernelbase.dll", "WakeByAddressAll", &calls->wake_all);
  prim_find(L"advapi32.dll", "SystemFunction036", &calls->random); // RtlGenRandom
  prim_find(L"ntdll.dll", "RtlDllShutdownInProgress", &calls->is_ending);
  prim_read_environment();
  _mi_prim_random(); // loads what it needs
}
