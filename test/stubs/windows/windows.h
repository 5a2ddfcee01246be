// What the library uses of <windows.h>, with the types of the MSVC ABI.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define WINAPI     __stdcall
#define NTAPI      __stdcall
#define CALLBACK   __stdcall
#define WINBASEAPI __declspec(dllimport)
#define TRUE       1
#define FALSE      0
#define near
#define far
#define MAX_PATH 260
#define CP_UTF8  65001

typedef int                 BOOL;
typedef unsigned char       BYTE, BOOLEAN, UCHAR;
typedef unsigned short      WORD, USHORT;
typedef long                LONG;
typedef unsigned long       DWORD, ULONG;
typedef unsigned long long  DWORD64, ULONGLONG, ULONG64;
typedef long long           LONGLONG;
typedef size_t              SIZE_T;
typedef uintptr_t           ULONG_PTR, DWORD_PTR;
typedef void                VOID;
typedef void *              PVOID, *LPVOID, *HANDLE;
typedef const void*         LPCVOID;
typedef HANDLE*             PHANDLE;
typedef DWORD *             LPDWORD, *PDWORD;
typedef BOOL*               LPBOOL;
typedef ULONG*              PULONG;
typedef USHORT*             PUSHORT;
typedef wchar_t *           LPWSTR, *LPWCH;
typedef const wchar_t *     LPCWSTR, *LPCWCH;
typedef char*               LPSTR;
typedef const char *        LPCSTR, *LPCCH;
typedef DWORD               ACCESS_MASK;
typedef struct HINSTANCE__* HMODULE;
typedef intptr_t(WINAPI* FARPROC)(void);

typedef union _LARGE_INTEGER {
  struct {
    DWORD LowPart;
    LONG  HighPart;
  } u;
  LONGLONG QuadPart;
} LARGE_INTEGER;

typedef struct _FILETIME {
  DWORD dwLowDateTime, dwHighDateTime;
} FILETIME;

typedef struct _GUID {
  unsigned long  Data1;
  unsigned short Data2, Data3;
  unsigned char  Data4[8];
} GUID;
typedef const GUID* LPCGUID;

// ---- errors, memory -------------------------------------------------------------------------------------------------

#define ERROR_SUCCESS           0L
#define ERROR_INVALID_PARAMETER 87L
#define ERROR_INVALID_ADDRESS   487L

#define PAGE_NOACCESS          0x01
#define PAGE_READWRITE         0x04
#define PAGE_EXECUTE           0x10
#define PAGE_EXECUTE_READ      0x20
#define PAGE_EXECUTE_READWRITE 0x40
#define PAGE_EXECUTE_WRITECOPY 0x80
#define PAGE_GUARD             0x100
#define MEM_COMMIT             0x1000
#define MEM_RESERVE            0x2000
#define MEM_DECOMMIT           0x4000
#define MEM_RELEASE            0x8000
#define MEM_FREE               0x10000
#define MEM_RESET              0x80000
#define MEM_IMAGE              0x1000000
#define MEM_LARGE_PAGES        0x20000000

typedef struct _MEMORY_BASIC_INFORMATION {
  PVOID  BaseAddress, AllocationBase;
  DWORD  AllocationProtect;
  SIZE_T RegionSize;
  DWORD  State, Protect, Type;
} MEMORY_BASIC_INFORMATION, *PMEMORY_BASIC_INFORMATION;

typedef struct _MEM_ADDRESS_REQUIREMENTS {
  PVOID  LowestStartingAddress, HighestEndingAddress;
  SIZE_T Alignment;
} MEM_ADDRESS_REQUIREMENTS;

enum { MemExtendedParameterAddressRequirements = 1 };

typedef struct MEM_EXTENDED_PARAMETER {
  struct {
    DWORD64 Type     : 8;
    DWORD64 Reserved : 56;
  };
  union {
    DWORD64 ULong64;
    PVOID   Pointer;
  };
} MEM_EXTENDED_PARAMETER;

WINBASEAPI DWORD WINAPI  GetLastError(void);
WINBASEAPI VOID WINAPI   SetLastError(DWORD error);
WINBASEAPI LPVOID WINAPI VirtualAlloc(LPVOID at, SIZE_T size, DWORD type, DWORD protection);
WINBASEAPI BOOL WINAPI   VirtualFree(LPVOID at, SIZE_T size, DWORD type);
WINBASEAPI BOOL WINAPI   VirtualProtect(LPVOID at, SIZE_T size, DWORD protection, PDWORD old);
WINBASEAPI SIZE_T WINAPI VirtualQuery(LPCVOID at, PMEMORY_BASIC_INFORMATION info, SIZE_T size);
WINBASEAPI BOOL WINAPI   VirtualUnlock(LPVOID at, SIZE_T size);
WINBASEAPI SIZE_T WINAPI GetLargePageMinimum(void);

#define HEAP_REALLOC_IN_PLACE_ONLY 0x10

WINBASEAPI HANDLE WINAPI GetProcessHeap(void);
WINBASEAPI BOOL WINAPI   HeapFree(HANDLE heap, DWORD flags, LPVOID p);
WINBASEAPI SIZE_T WINAPI HeapSize(HANDLE heap, DWORD flags, LPCVOID p);
WINBASEAPI LPVOID WINAPI HeapReAlloc(HANDLE heap, DWORD flags, LPVOID p, SIZE_T size);
WINBASEAPI BOOL WINAPI   HeapValidate(HANDLE heap, DWORD flags, LPCVOID p);

// ---- rights ---------------------------------------------------------------------------------------------------------

#define TOKEN_ADJUST_PRIVILEGES 0x20
#define SE_PRIVILEGE_ENABLED    2

typedef struct _LUID {
  DWORD LowPart;
  LONG  HighPart;
} LUID;

typedef struct _LUID_AND_ATTRIBUTES {
  LUID  Luid;
  DWORD Attributes;
} LUID_AND_ATTRIBUTES;

typedef struct _TOKEN_PRIVILEGES {
  DWORD               PrivilegeCount;
  LUID_AND_ATTRIBUTES Privileges[1];
} TOKEN_PRIVILEGES;

WINBASEAPI BOOL WINAPI OpenProcessToken(HANDLE process, DWORD access, PHANDLE token);
WINBASEAPI BOOL WINAPI AdjustTokenPrivileges(HANDLE token, BOOL none, TOKEN_PRIVILEGES* wanted, DWORD size,
                                             TOKEN_PRIVILEGES* before, PDWORD size_before);

// ---- process, threads, time -----------------------------------------------------------------------------------------

#define INFINITE                         0xFFFFFFFF
#define SYNCHRONIZE                      0x100000
#define WAIT_OBJECT_0                    0
#define STD_ERROR_HANDLE                 ((DWORD) - 12)
#define CSTR_EQUAL                       2
#define DLL_PROCESS_DETACH               0
#define DLL_PROCESS_ATTACH               1
#define DLL_THREAD_DETACH                3
#define THREAD_SUSPEND_RESUME            0x0002
#define THREAD_GET_CONTEXT               0x0008
#define THREAD_QUERY_LIMITED_INFORMATION 0x0800
#define EXCEPTION_CONTINUE_SEARCH        0
#define EXCEPTION_ACCESS_VIOLATION       ((DWORD)0xC0000005)
#define EXCEPTION_MAXIMUM_PARAMETERS     15

typedef struct _SYSTEM_INFO {
  DWORD     dwOemId, dwPageSize;
  LPVOID    lpMinimumApplicationAddress, lpMaximumApplicationAddress;
  DWORD_PTR dwActiveProcessorMask;
  DWORD     dwNumberOfProcessors, dwProcessorType, dwAllocationGranularity;
  WORD      wProcessorLevel, wProcessorRevision;
} SYSTEM_INFO;

typedef struct _PROCESSOR_NUMBER {
  WORD Group;
  BYTE Number, Reserved;
} PROCESSOR_NUMBER;

typedef struct _SRWLOCK {
  PVOID Ptr;
} SRWLOCK;
#define SRWLOCK_INIT {0}

#define CONTEXT_CONTROL 1
typedef struct _CONTEXT {
  DWORD ContextFlags;
#if defined(_M_X64)
  DWORD64 Rip;
#elif defined(_M_IX86)
  DWORD Eip;
#else
  DWORD64 Pc;
#endif
} CONTEXT;

typedef struct _EXCEPTION_RECORD {
  DWORD                     ExceptionCode, ExceptionFlags;
  struct _EXCEPTION_RECORD* ExceptionRecord;
  PVOID                     ExceptionAddress;
  DWORD                     NumberParameters;
  ULONG_PTR                 ExceptionInformation[EXCEPTION_MAXIMUM_PARAMETERS];
} EXCEPTION_RECORD;

typedef struct _EXCEPTION_POINTERS {
  EXCEPTION_RECORD* ExceptionRecord;
  CONTEXT*          ContextRecord;
} EXCEPTION_POINTERS;

typedef LONG(NTAPI* PVECTORED_EXCEPTION_HANDLER)(EXCEPTION_POINTERS* pointers);
typedef struct _MEMORYSTATUSEX {
  DWORD     dwLength, dwMemoryLoad;
  ULONGLONG ullTotalPhys, ullAvailPhys, ullTotalPageFile, ullAvailPageFile, ullTotalVirtual, ullAvailVirtual,
      ullAvailExtendedVirtual;
} MEMORYSTATUSEX;
BOOL WINAPI GlobalMemoryStatusEx(MEMORYSTATUSEX* status);
typedef VOID(NTAPI* PIMAGE_TLS_CALLBACK)(PVOID module, DWORD reason, PVOID reserved);

WINBASEAPI HANDLE WINAPI GetCurrentProcess(void);
WINBASEAPI HANDLE WINAPI GetCurrentThread(void);
WINBASEAPI DWORD WINAPI  GetCurrentProcessId(void);
WINBASEAPI DWORD WINAPI  GetCurrentThreadId(void);
WINBASEAPI DWORD WINAPI  GetThreadId(HANDLE thread);
WINBASEAPI DWORD WINAPI  SuspendThread(HANDLE thread);
WINBASEAPI DWORD WINAPI  ResumeThread(HANDLE thread);
WINBASEAPI BOOL WINAPI   GetThreadContext(HANDLE thread, CONTEXT* context);
WINBASEAPI BOOL WINAPI   DuplicateHandle(HANDLE from_process, HANDLE from, HANDLE to_process, PHANDLE to, DWORD access,
                                         BOOL inherit, DWORD options);
WINBASEAPI BOOL WINAPI   CloseHandle(HANDLE handle);
WINBASEAPI DWORD WINAPI  WaitForSingleObject(HANDLE handle, DWORD timeout_ms);
WINBASEAPI VOID WINAPI   Sleep(DWORD ms);
WINBASEAPI VOID WINAPI   AcquireSRWLockExclusive(SRWLOCK* lock);
WINBASEAPI VOID WINAPI   ReleaseSRWLockExclusive(SRWLOCK* lock);
WINBASEAPI BOOL WINAPI   QueryPerformanceCounter(LARGE_INTEGER* now);
WINBASEAPI BOOL WINAPI   QueryPerformanceFrequency(LARGE_INTEGER* frequency);
WINBASEAPI VOID WINAPI   GetSystemTimeAsFileTime(FILETIME* now);
WINBASEAPI BOOL WINAPI   GetProcessTimes(HANDLE process, FILETIME* started, FILETIME* ended, FILETIME* system,
                                         FILETIME* user);
WINBASEAPI VOID WINAPI   GetSystemInfo(SYSTEM_INFO* info);
WINBASEAPI BOOL WINAPI   GetNumaHighestNodeNumber(PULONG highest);
WINBASEAPI VOID WINAPI   GetCurrentProcessorNumberEx(PROCESSOR_NUMBER* processor);
WINBASEAPI BOOL WINAPI   GetNumaProcessorNodeEx(PROCESSOR_NUMBER* processor, PUSHORT node);
WINBASEAPI LPWCH WINAPI  GetEnvironmentStringsW(void);
WINBASEAPI BOOL WINAPI   FreeEnvironmentStringsW(LPWCH block);
WINBASEAPI int WINAPI    WideCharToMultiByte(ULONG page, DWORD flags, LPCWCH from, int n, LPSTR to, int size,
                                             LPCCH otherwise, LPBOOL used);
WINBASEAPI int WINAPI    CompareStringOrdinal(LPCWCH a, int n_a, LPCWCH b, int n_b, BOOL ignore_case);
WINBASEAPI HANDLE WINAPI GetStdHandle(DWORD which);
WINBASEAPI BOOL WINAPI   WriteFile(HANDLE file, LPCVOID from, DWORD size, LPDWORD written, void* overlapped);
WINBASEAPI PVOID WINAPI  AddVectoredExceptionHandler(ULONG first, PVECTORED_EXCEPTION_HANDLER handler);
WINBASEAPI ULONG WINAPI  RemoveVectoredExceptionHandler(PVOID handler);
WINBASEAPI WORD NTAPI    RtlCaptureStackBackTrace(DWORD skip, DWORD n, PVOID* frames, PDWORD hash);
WINBASEAPI BOOL WINAPI   FlushInstructionCache(HANDLE process, LPCVOID at, SIZE_T size);

// ---- modules --------------------------------------------------------------------------------------------------------

#define GET_MODULE_HANDLE_EX_FLAG_PIN          1
#define GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS 4

WINBASEAPI HMODULE WINAPI GetModuleHandleA(LPCSTR name);
WINBASEAPI HMODULE WINAPI GetModuleHandleW(LPCWSTR name);
WINBASEAPI BOOL WINAPI    GetModuleHandleExA(DWORD flags, LPCSTR name, HMODULE* module);
WINBASEAPI BOOL WINAPI    GetModuleHandleExW(DWORD flags, LPCWSTR name, HMODULE* module);
WINBASEAPI HMODULE WINAPI LoadLibraryA(LPCSTR name);
WINBASEAPI HMODULE WINAPI LoadLibraryW(LPCWSTR name);
WINBASEAPI HMODULE WINAPI LoadLibraryExA(LPCSTR name, HANDLE file, DWORD flags);
WINBASEAPI HMODULE WINAPI LoadLibraryExW(LPCWSTR name, HANDLE file, DWORD flags);
WINBASEAPI BOOL WINAPI    FreeLibrary(HMODULE module);
WINBASEAPI FARPROC WINAPI GetProcAddress(HMODULE module, LPCSTR name);

#define IMAGE_DOS_SIGNATURE                0x5A4D
#define IMAGE_NT_SIGNATURE                 0x4550
#define IMAGE_DIRECTORY_ENTRY_EXPORT       0
#define IMAGE_DIRECTORY_ENTRY_IMPORT       1
#define IMAGE_DIRECTORY_ENTRY_DELAY_IMPORT 13
#if defined(_WIN64)
  #define IMAGE_NT_OPTIONAL_HDR_MAGIC 0x20B
#else
  #define IMAGE_NT_OPTIONAL_HDR_MAGIC 0x10B
#endif

typedef struct _IMAGE_DOS_HEADER {
  WORD e_magic;
  WORD e_others[29];
  LONG e_lfanew;
} IMAGE_DOS_HEADER;

typedef struct _IMAGE_DATA_DIRECTORY {
  DWORD VirtualAddress, Size;
} IMAGE_DATA_DIRECTORY;

typedef struct _IMAGE_OPTIONAL_HEADER {
  WORD                 Magic;
  DWORD                SizeOfImage, NumberOfRvaAndSizes;
  IMAGE_DATA_DIRECTORY DataDirectory[16];
} IMAGE_OPTIONAL_HEADER;

typedef struct _IMAGE_FILE_HEADER {
  WORD Machine, NumberOfSections;
} IMAGE_FILE_HEADER;

typedef struct _IMAGE_NT_HEADERS {
  DWORD                 Signature;
  IMAGE_FILE_HEADER     FileHeader;
  IMAGE_OPTIONAL_HEADER OptionalHeader;
} IMAGE_NT_HEADERS;

typedef struct _IMAGE_EXPORT_DIRECTORY {
  DWORD NumberOfFunctions, NumberOfNames, AddressOfFunctions, AddressOfNames, AddressOfNameOrdinals;
} IMAGE_EXPORT_DIRECTORY;

typedef struct _IMAGE_IMPORT_DESCRIPTOR {
  DWORD Name, FirstThunk;
} IMAGE_IMPORT_DESCRIPTOR;

typedef struct _IMAGE_DELAYLOAD_DESCRIPTOR {
  union {
    DWORD AllAttributes;
    struct {
      DWORD RvaBased : 1;
      DWORD Others   : 31;
    };
  } Attributes;
  DWORD DllNameRVA, ImportAddressTableRVA;
} IMAGE_DELAYLOAD_DESCRIPTOR;
