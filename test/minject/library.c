// Stands in for mimalloc.dll: it says when it is initialised.  The other library says so, too: it must come later.
#include <windows.h>

#if !defined(NAME)
  #define NAME "first"
#endif

__declspec(dllexport) int mi_version(void) {
  return 240;
}

__declspec(dllexport) int other_function(void) {
  return 1;
}

BOOL WINAPI DllMain(HINSTANCE instance, DWORD reason, LPVOID reserved) {
  (void)instance;
  (void)reserved;
  if (reason == DLL_PROCESS_ATTACH) {
    DWORD written;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), NAME "\r\n", sizeof(NAME) + 1, &written, NULL);
  }
  return TRUE;
}
