// Proves: where the system has no memory left to commit, a purge gives memory back and the program goes on: what was purged is
// refused with ENOMEM until there is memory again, and everything else stays as it was.
//
// The test stands in for VirtualAlloc, which the library imports, and refuses to commit when it is told to.
#include <windows.h>

#include "../check.h"
#include "../modes/support.h"
#include "prim/prim.h"
#include <mimalloc.h>

typedef LPVOID(WINAPI alloc_fun_t)(LPVOID at, SIZE_T size, DWORD type, DWORD protection);

static volatile bool is_short;
static volatile LONG n_refused;

static LPVOID WINAPI alloc(LPVOID at, SIZE_T size, DWORD type, DWORD protection) {
  if ((type & MEM_COMMIT) != 0 && is_short) {
    InterlockedIncrement(&n_refused);
    SetLastError(ERROR_COMMITMENT_LIMIT);
    return NULL;
  }
  FARPROC      found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "VirtualAlloc");
  alloc_fun_t* real;
  memcpy((void*)&real, (const void*)&found, sizeof(real));
  return real(at, size, type, protection);
}

extern alloc_fun_t* const __imp_VirtualAlloc;
alloc_fun_t* const        __imp_VirtualAlloc = &alloc;

enum { n_blocks = 48, size = 1 << 20 };

static uint8_t* blocks[n_blocks];

static DWORD state_of(const void* p) {
  MEMORY_BASIC_INFORMATION info;
  return VirtualQuery(p, &info, sizeof(info)) == 0 ? 0 : info.State;
}

static size_t count(DWORD state) {
  size_t n = 0;
  for (size_t i = 0; i < n_blocks; i++) n += (state_of(blocks[i]) == state);
  return n;
}

static void allocate_all(void) {
  for (size_t i = 0; i < n_blocks; i++) {
    blocks[i] = (uint8_t*)mi_malloc(size);
    CHECK(blocks[i] != NULL);
    pattern_fill(blocks[i], 0, size, i);
  }
}

// Every second block goes, and all of them are looked at: the others are as they were.
static void check_purge(bool decommits) {
  mi_option_set(mi_option_purge_decommits, decommits);
  allocate_all();
  is_short = true;
  LONG before = n_refused;
  for (size_t i = 0; i < n_blocks; i += 2) mi_free(blocks[i]);
  mi_collect(true);
  CHECK_EQ(n_refused, before); // a purge asks for nothing
  CHECK_EQ(count(MEM_COMMIT), decommits ? n_blocks / 2 : n_blocks);
  CHECK_EQ(count(MEM_RESERVE), decommits ? n_blocks / 2 : 0);
  for (size_t i = 1; i < n_blocks; i += 2) CHECK_EQ(pattern_check(blocks[i], size, i), size);
}

static void check_refusal(void) {
  size_t n_null = 0;
  for (size_t i = 0; i < n_blocks; i += 2) {
    errno = 0;
    blocks[i] = (uint8_t*)mi_malloc(size);
    CHECK(blocks[i] != NULL || errno == ENOMEM);
    n_null += (blocks[i] == NULL);
  }
  CHECK_EQ(n_null, n_blocks / 2);
  CHECK(n_refused > 0);
}

static void check_end(void) {
  is_short = false;
  for (size_t i = 0; i < n_blocks; i += 2) {
    uint8_t* p = (uint8_t*)mi_zalloc(size);
    CHECK(p != NULL && is_zero(p, 0, size));
    mi_free(p);
  }
  for (size_t i = 1; i < n_blocks; i += 2) {
    CHECK_EQ(pattern_check(blocks[i], size, i), size);
    mi_free(blocks[i]);
  }
  mi_collect(true);
}

// Small blocks find pages that are there, or are refused; and threads that come and go change nothing.
static DWORD WINAPI small_blocks(void* arg) {
  size_t n_there = 0;
  for (size_t i = 0; i < 20000; i++) {
    void* p = mi_malloc(i % 3000);
    n_there += (p != NULL);
    mi_free(p);
  }
  *(size_t*)arg = n_there;
  return 0;
}

static void check_small(void) {
  size_t n_there = 0;
  HANDLE thread = CreateThread(NULL, 0, &small_blocks, &n_there, 0, NULL);
  CHECK(thread != NULL && WaitForSingleObject(thread, 50000) == WAIT_OBJECT_0);
  CloseHandle(thread);
  printf("%zu of 20000 small blocks\n", n_there);
}

// Each call to the system fails in turn, also those that decommit: what is not given back then is given back later.
static void check_each_call(void) {
  uint8_t* p[8];
  for (size_t n = 1; n <= 120; n++) {
    size_t n_calls;
    for (size_t i = 0; i < COUNT_OF(p); i++) {
      p[i] = (uint8_t*)mi_malloc(size / 2 + i);
      CHECK(p[i] != NULL);
      pattern_fill(p[i], 0, size / 2, n + i);
    }
    _mi_prim_fail_nth(n, n % 3 == 0);
    for (size_t i = 0; i < COUNT_OF(p); i += 2) mi_free(p[i]);
    mi_collect(true);
    for (size_t i = 0; i < COUNT_OF(p); i += 2) p[i] = (uint8_t*)mi_malloc(size / 2 + i);
    n_calls = _mi_prim_fail_nth(0, false);
    CHECK(n_calls > 0);
    for (size_t i = 0; i < COUNT_OF(p); i++) {
      CHECK(i % 2 == 0 || pattern_check(p[i], size / 2, n + i) == size / 2);
      if (p[i] != NULL) memset(p[i], 1, size / 2);
      mi_free(p[i]);
    }
    CHECK(mi_heap_check(NULL));
  }
  uint8_t* last = (uint8_t*)mi_malloc(size);
  CHECK(last != NULL);
  mi_free(last);
  mi_collect(true);
  CHECK_EQ(state_of(last), MEM_RESERVE);
}

int main(void) {
  watchdog(120);
  mi_option_disable(mi_option_show_errors);
  mi_option_set(mi_option_purge_delay, 1000);
  for (int i = 0; i < 3; i++) {
    check_purge(true);
    check_refusal();
    check_small();
    check_end();
  }
  check_each_call();
  check_purge(false); // what is only reset stays charged, and can be had again
  check_end();
  return check_result();
}
