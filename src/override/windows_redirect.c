// Redirection: malloc of the C runtimes is ours, in the program and in all modules that it has loaded or will load.
// Layer: override.  In mimalloc.dll only.
//
//   imports   the addresses that a module has imported are looked at one by one; what is the address of a C runtime's function
//             becomes that of ours.  So it does not matter under which name or number, or through which other DLL it came.
//   inline    besides, the functions themselves begin with a jump to ours (windows_inline.h): with MIMALLOC_REDIRECT=inline.
//
// Modules that come later are seen by a notification of the loader.  Should that come before the module's imports are there, or
// not at all, they are found when the LoadLibrary that brought them returns: it is redirected too, and so is GetProcAddress,
// which would hand out the runtime's functions.
//
// docs/design/windows-redirect.md has the reasons and the limits.
#include <string.h>
#include <windows.h>
#include <psapi.h>

#include "../api/process.h"
#include "../base/bits.h"
#include "../support/message.h"
#include "../support/options.h"
#include "windows_crt.h"
#include "windows_inline.h"
#include "windows_threads.h"

#if defined(MI_MALLOC_OVERRIDE) && defined(MI_SHARED_LIB_EXPORT)

  #define REDIRECT_MODULES_MAX 1024

extern IMAGE_DOS_HEADER __ImageBase; // the linker's: where this module begins

// For what is written.  The loader's notification takes it, so whoever holds it must not wait for the loader.
static SRWLOCK         redirect_lock = SRWLOCK_INIT;
static bool            redirect_is_inline;
static bool            redirect_is_told; // of modules that are loaded
static size_t          redirect_n_slots, redirect_n_functions;
static mi_atomic(bool) redirect_has_news; // modules were loaded, and perhaps had no imports yet

// ---- imports ----------------------------------------------------------------------------------------------------------

// A slot may lie in a page that is read-only, or one with code, which must remain executable meanwhile.
static void redirect_slot(void** slot, void* arg) {
  MEMORY_BASIC_INFORMATION info;
  DWORD                    old;
  void*                    own = _mi_windows_runtime_own(*slot);
  (void)arg;
  if (own == NULL || VirtualQuery(slot, &info, sizeof(info)) == 0) return;
  DWORD code = PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE | PAGE_EXECUTE_WRITECOPY;
  DWORD writable = (info.Protect & code) != 0 ? PAGE_EXECUTE_READWRITE : PAGE_READWRITE;
  if (!VirtualProtect(slot, sizeof(void*), writable, &old)) return;
  *(void* volatile*)slot = own; // one store: other threads call the one or the other
  VirtualProtect(slot, sizeof(void*), old, &old);
  redirect_n_slots++;
}

// The modules whose functions we stand in for are left alone: ours would call themselves through them.
static void redirect_module(const void* base) {
  mi_windows_image_t image;
  if (base == (const void*)&__ImageBase || _mi_windows_runtime_has(base)) return;
  if (_mi_windows_pe_open(&image, base)) _mi_windows_pe_imports(&image, redirect_slot, NULL);
}

// ---- C runtimes -------------------------------------------------------------------------------------------------------
// Those for debugging (msvcr120d.dll, ucrtbased.dll) are not among them: their blocks have headers, and their programs ask for
// these.

static const char* const redirect_runtimes[] = {
    "msvcrt.dll",  "ucrtbase.dll", "msvcr70.dll",  "msvcr71.dll",  "msvcr80.dll",
    "msvcr90.dll", "msvcr100.dll", "msvcr110.dll", "msvcr120.dll", "msvcr120_app.dll",
};
  #define REDIRECT_RUNTIMES (sizeof(redirect_runtimes) / sizeof(redirect_runtimes[0]))

static void redirect_runtime(const void* base, const char* name) {
  const char* reason = NULL;
  AcquireSRWLockExclusive(&redirect_lock);
  mi_windows_runtime_t* runtime = _mi_windows_runtime_add(base, _mi_windows_crt_hooks, _mi_windows_crt_n_hooks);
  if (runtime != NULL && redirect_is_inline) reason = _mi_windows_inline_apply(runtime, &redirect_n_functions);
  ReleaseSRWLockExclusive(&redirect_lock);
  if (reason != NULL) _mi_message_warning("redirection of %s is by imports only: it %s.", name, reason);
}

// ---- all modules ------------------------------------------------------------------------------------------------------

// The modules of the process, which stay while we hold them.
static size_t redirect_hold(HMODULE modules[REDIRECT_MODULES_MAX]) {
  HMODULE all[REDIRECT_MODULES_MAX];
  DWORD   n_bytes = 0;
  size_t  n_held = 0;
  if (!K32EnumProcessModules(GetCurrentProcess(), all, sizeof(all), &n_bytes)) return 0;
  for (size_t i = 0; i < mi_min(n_bytes, sizeof(all)) / sizeof(all[0]); i++) {
    if (GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS, (LPCWSTR)all[i], &modules[n_held])) n_held++;
  }
  return n_held;
}

// A thread that called malloc through a slot that is patched and then free through one that is not would give our block to the
// runtime.  So threads stand still until all slots are patched.
static void redirect_all(void) {
  HMODULE modules[REDIRECT_MODULES_MAX];
  for (size_t i = 0; i < REDIRECT_RUNTIMES; i++) {
    HMODULE runtime; // which stays while we look
    if (!GetModuleHandleExA(0, redirect_runtimes[i], &runtime)) continue;
    redirect_runtime(runtime, redirect_runtimes[i]);
    FreeLibrary(runtime);
  }
  size_t n = redirect_hold(modules);
  AcquireSRWLockExclusive(&redirect_lock);
  bool is_stopped = _mi_windows_threads_stop(NULL, NULL);
  for (size_t i = 0; i < n; i++) redirect_module(modules[i]);
  if (is_stopped) _mi_windows_threads_resume();
  ReleaseSRWLockExclusive(&redirect_lock);
  for (size_t i = 0; i < n; i++) FreeLibrary(modules[i]);
}

// ---- what loads modules -----------------------------------------------------------------------------------------------

static void redirect_loaded(void) {
  DWORD error = GetLastError();
  if (mi_exchange_acq_rel(&redirect_has_news, false) || !redirect_is_told) redirect_all();
  SetLastError(error);
}

static HMODULE WINAPI redirect_LoadLibraryA(LPCSTR name) {
  HMODULE module = LoadLibraryA(name);
  redirect_loaded();
  return module;
}

static HMODULE WINAPI redirect_LoadLibraryW(LPCWSTR name) {
  HMODULE module = LoadLibraryW(name);
  redirect_loaded();
  return module;
}

static HMODULE WINAPI redirect_LoadLibraryExA(LPCSTR name, HANDLE file, DWORD flags) {
  HMODULE module = LoadLibraryExA(name, file, flags);
  redirect_loaded();
  return module;
}

static HMODULE WINAPI redirect_LoadLibraryExW(LPCWSTR name, HANDLE file, DWORD flags) {
  HMODULE module = LoadLibraryExW(name, file, flags);
  redirect_loaded();
  return module;
}

static bool redirect_is_load(const void* own) {
  return own == (void*)&redirect_LoadLibraryA || own == (void*)&redirect_LoadLibraryW ||
         own == (void*)&redirect_LoadLibraryExA || own == (void*)&redirect_LoadLibraryExW;
}

// A program gives the address of LoadLibrary to other processes (CreateRemoteThread), in which the system's is the same and this
// module is not.  What is loaded through it here is seen by the notification, or by the next call of this function.
static FARPROC WINAPI redirect_GetProcAddress(HMODULE module, LPCSTR name) {
  FARPROC fun = GetProcAddress(module, name);
  void*   own = (fun == NULL ? NULL : _mi_windows_runtime_own((void*)fun));
  if (mi_load_relaxed(&redirect_has_news)) redirect_loaded();
  return own == NULL || (redirect_is_told && redirect_is_load(own)) ? fun : (FARPROC)own;
}

static const mi_windows_hook_t redirect_loader[] = {
    {"LoadLibraryA", (void*)&redirect_LoadLibraryA, true},
    {"LoadLibraryW", (void*)&redirect_LoadLibraryW, true},
    {"LoadLibraryExA", (void*)&redirect_LoadLibraryExA, true},
    {"LoadLibraryExW", (void*)&redirect_LoadLibraryExW, true},
    {"GetProcAddress", (void*)&redirect_GetProcAddress, true},
};

// ---- the loader's notifications ---------------------------------------------------------------------------------------

typedef struct redirect_text_s { // the system's UNICODE_STRING
  USHORT         n_bytes, room;
  const wchar_t* text;
} redirect_text_t;

typedef struct redirect_news_s {
  ULONG                  flags;
  const redirect_text_t* path;
  const redirect_text_t* name;
  void*                  base;
  ULONG                  size;
} redirect_news_t;

enum { REDIRECT_LOADED = 1, REDIRECT_UNLOADED = 2 };

typedef void(CALLBACK* redirect_notify_t)(ULONG reason, const redirect_news_t* news, void* arg);
typedef LONG(NTAPI* redirect_register_t)(ULONG flags, redirect_notify_t notify, void* arg, void** cookie);

static bool redirect_is_named(const redirect_text_t* name, const char* runtime) {
  size_t n = name->n_bytes / sizeof(wchar_t);
  for (size_t i = 0; i < n; i++) {
    wchar_t c = name->text[i];
    if (c >= 'A' && c <= 'Z') c = (wchar_t)(c + ('a' - 'A'));
    if (c != (wchar_t)runtime[i]) return false; // also at its end
  }
  return runtime[n] == 0;
}

// Runs inside the loader: nothing here asks the loader for anything.
static void CALLBACK redirect_notify(ULONG reason, const redirect_news_t* news, void* arg) {
  (void)arg;
  if (reason == REDIRECT_UNLOADED) {
    _mi_windows_runtime_remove(news->base);
    return;
  }
  if (reason != REDIRECT_LOADED) return;
  for (size_t i = 0; i < REDIRECT_RUNTIMES; i++) {
    if (redirect_is_named(news->name, redirect_runtimes[i])) redirect_runtime(news->base, redirect_runtimes[i]);
  }
  AcquireSRWLockExclusive(&redirect_lock);
  redirect_module(news->base); // no thread executes it yet
  ReleaseSRWLockExclusive(&redirect_lock);
  mi_store_release(&redirect_has_news, true);
}

static bool redirect_register(void) {
  static void*        cookie;
  redirect_register_t fun;
  FARPROC             found = GetProcAddress(GetModuleHandleA("ntdll.dll"), "LdrRegisterDllNotification");
  memcpy(&fun, &found, sizeof(fun));
  return fun != NULL && fun(0, redirect_notify, NULL, &cookie) >= 0;
}

// ---- the start --------------------------------------------------------------------------------------------------------

static bool redirect_is_disabled(void) {
  long        value = 0;
  const char* text = _mi_option_text("disable_redirect");
  const char* what = (text == NULL ? NULL : _mi_value_parse(MI_VALUE_SWITCH, text, &value));
  if (what != NULL) _mi_options_warn_text("disable_redirect", text, what, "0");
  return value != 0;
}

static bool redirect_wants_inline(void) {
  const char* text = _mi_option_text("redirect");
  const char* after_inline = _mi_option_skip(text, "inline");
  const char* after_iat = _mi_option_skip(text, "iat");
  if (after_inline != NULL && *after_inline == 0) return true;
  if (text != NULL && (after_iat == NULL || *after_iat != 0)) {
    _mi_options_warn_text("redirect", text, "is neither iat nor inline", "iat");
  }
  return false;
}

// After the library's own constructor, which has the number 101.  The module stays from now on: others have its addresses.
__attribute__((constructor(102))) static void redirect_attach(void) {
  HMODULE own;
  if (redirect_is_disabled()) {
    _mi_message_print(1, "redirection is disabled.");
    return;
  }
  redirect_is_inline = redirect_wants_inline();
  if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_PIN, (LPCWSTR)&__ImageBase,
                          &own))
    return;
  size_t n = sizeof(redirect_loader) / sizeof(redirect_loader[0]);
  _mi_windows_runtime_add(GetModuleHandleA("kernel32.dll"), redirect_loader, n);
  _mi_windows_runtime_add(GetModuleHandleA("kernelbase.dll"), redirect_loader, n);
  _mi_windows_threads_find();
  redirect_is_told = redirect_register();
  redirect_all();
  mi_store_release(&_mi_process_is_redirected, true);
  _mi_message_print(1, "redirection: %zu imports, %zu functions.", redirect_n_slots, redirect_n_functions);
}

#endif
