// A program without a C library, for linkers other than those of MinGW.
__declspec(dllimport) void __stdcall ExitProcess(unsigned);

void mainCRTStartup(void) {
  ExitProcess(42);
}
