// malloc and its relatives as the C runtimes of Windows have them.  Layer: override.
//
// A block may be one of ours or foreign (windows_heap.h); any of these functions takes both.  What a runtime allocates inside
// and hands out (_getcwd, _dupenv_s, ...) is foreign where only imports are redirected, and stays the runtime's to allocate:
// its environment, its current directory and its locale are its own.
#include "windows_crt.h"

#include <errno.h>
#include <string.h>

#include "../base/bits.h"
#include "../base/public.h"
#include "windows_heap.h"

// Every allocation ends so: a runtime may have a handler that makes room.
#define CRT_TRY(result, size, expression) \
  do { \
    (result) = (expression); \
  } while (mi_unlikely((result) == NULL) && _mi_windows_runtime_retries(size))

static bool crt_is_ours(const void* p) {
  return mi_likely(mi_is_in_heap_region(p));
}

// ---- plain blocks -----------------------------------------------------------------------------------------------------

static void* crt_malloc(size_t size) {
  void* p;
  CRT_TRY(p, size, mi_malloc(size));
  return p;
}

// The bytes of both; what no block can have if that overflows.
static size_t crt_product(size_t count, size_t size) {
  size_t total;
  return mi_mul_overflows(count, size, &total) ? SIZE_MAX : total;
}

static void* crt_calloc(size_t count, size_t size) {
  void* p;
  CRT_TRY(p, crt_product(count, size), mi_calloc(count, size));
  return p;
}

static void crt_free(void* p) {
  void* heap = NULL;
  if (p != NULL && !crt_is_ours(p)) heap = _mi_windows_heap_of(p);
  if (mi_unlikely(heap != NULL)) _mi_windows_heap_free(heap, p);
  else mi_free(p); // which also says what is wrong
}

// A foreign block becomes one of ours.  What is added reads as zero.
static void* crt_adopt(void* heap, void* p, size_t size) {
  size_t old_size = _mi_windows_heap_size(heap, p);
  void*  q;
  CRT_TRY(q, size, mi_zalloc(size));
  if (q == NULL) return NULL;
  memcpy(q, p, mi_min(old_size, size));
  _mi_windows_heap_free(heap, p);
  return q;
}

// These runtimes free a block that is to have no size, and return NULL.
static void* crt_realloc(void* p, size_t size) {
  if (p == NULL) return crt_malloc(size);
  if (size == 0) {
    crt_free(p);
    return NULL;
  }
  void* heap = (crt_is_ours(p) ? NULL : _mi_windows_heap_of(p));
  if (mi_unlikely(heap != NULL)) return crt_adopt(heap, p, size);
  void* q;
  CRT_TRY(q, size, mi_realloc(p, size));
  return q;
}

static void* crt_recalloc(void* p, size_t count, size_t size) {
  size_t total;
  if (p == NULL || mi_mul_overflows(count, size, &total)) return crt_calloc(count, size);
  if (total == 0) return crt_realloc(p, 0);
  void* heap = (crt_is_ours(p) ? NULL : _mi_windows_heap_of(p));
  if (mi_unlikely(heap != NULL)) return crt_adopt(heap, p, total);
  void* q;
  CRT_TRY(q, total, mi_recalloc(p, count, size));
  return q;
}

static void* crt_expand(void* p, size_t size) {
  void* heap = (p == NULL || crt_is_ours(p) ? NULL : _mi_windows_heap_of(p));
  if (mi_unlikely(heap != NULL)) return _mi_windows_heap_expand(heap, p, size) ? p : NULL;
  return mi_expand(p, size);
}

static size_t crt_msize(void* p) {
  void* heap = (p == NULL || crt_is_ours(p) ? NULL : _mi_windows_heap_of(p));
  if (mi_unlikely(heap != NULL)) return _mi_windows_heap_size(heap, p);
  return p == NULL ? SIZE_MAX : mi_usable_size(p);
}

// ---- blocks with an alignment -----------------------------------------------------------------------------------------

// These runtimes take 0, too, and refuse at once what is no power of two: no handler makes room for that.
static bool crt_take_alignment(size_t* align) {
  bool is_possible = (*align == 0 || mi_is_pow2(*align));
  if (mi_unlikely(!is_possible)) _mi_windows_runtime_fails(EINVAL);
  *align = mi_max(*align, sizeof(void*));
  return is_possible;
}

static void* crt_aligned_offset_malloc(size_t size, size_t align, size_t offset) {
  void* p;
  if (!crt_take_alignment(&align)) return NULL;
  CRT_TRY(p, size, mi_malloc_aligned_at(size, align, offset));
  return p;
}

static void* crt_aligned_malloc(size_t size, size_t align) {
  return crt_aligned_offset_malloc(size, align, 0);
}

static void crt_aligned_free(void* p) {
  void* block = NULL;
  void* heap = NULL;
  if (p != NULL && !crt_is_ours(p)) heap = _mi_windows_heap_of_aligned(p, &block);
  if (mi_unlikely(heap != NULL)) _mi_windows_heap_free(heap, block);
  else mi_free(p);
}

// The same for both kinds of contents: what is added to a foreign block reads as zero.
static void* crt_aligned_adopt(void* heap, void* block, void* p, size_t size, size_t align, size_t offset) {
  size_t old_size = _mi_windows_heap_size(heap, block) - (size_t)((char*)p - (char*)block);
  void*  q;
  CRT_TRY(q, size, mi_zalloc_aligned_at(size, align, offset));
  if (q == NULL) return NULL;
  memcpy(q, p, mi_min(old_size, size));
  _mi_windows_heap_free(heap, block);
  return q;
}

static void* crt_aligned_resize(void* p, size_t size, size_t align, size_t offset, bool zero) {
  void* q;
  if (p != NULL && size == 0) {
    crt_aligned_free(p);
    return NULL;
  }
  if (!crt_take_alignment(&align)) return NULL;
  if (p != NULL && !crt_is_ours(p)) {
    void* block = NULL;
    void* heap = _mi_windows_heap_of_aligned(p, &block);
    if (heap != NULL) return crt_aligned_adopt(heap, block, p, size, align, offset);
  }
  if (zero) CRT_TRY(q, size, mi_rezalloc_aligned_at(p, size, align, offset));
  else CRT_TRY(q, size, mi_realloc_aligned_at(p, size, align, offset));
  return q;
}

static void* crt_aligned_offset_realloc(void* p, size_t size, size_t align, size_t offset) {
  return crt_aligned_resize(p, size, align, offset, false);
}

static void* crt_aligned_realloc(void* p, size_t size, size_t align) {
  return crt_aligned_resize(p, size, align, 0, false);
}

static void* crt_aligned_offset_recalloc(void* p, size_t count, size_t size, size_t align, size_t offset) {
  return crt_aligned_resize(p, crt_product(count, size), align, offset, true);
}

static void* crt_aligned_recalloc(void* p, size_t count, size_t size, size_t align) {
  return crt_aligned_offset_recalloc(p, count, size, align, 0);
}

static size_t crt_aligned_msize(void* p, size_t align, size_t offset) {
  (void)align;
  (void)offset;
  void* block = NULL;
  void* heap = (p == NULL || crt_is_ours(p) ? NULL : _mi_windows_heap_of_aligned(p, &block));
  if (heap != NULL) return _mi_windows_heap_size(heap, block) - (size_t)((char*)p - (char*)block);
  return p == NULL ? SIZE_MAX : mi_usable_size(p);
}

// ---- copies of strings ------------------------------------------------------------------------------------------------

static void* crt_copy(const void* s, size_t n) {
  void* t = crt_malloc(n);
  return t == NULL ? NULL : memcpy(t, s, n);
}

static char* crt_strdup(const char* s) {
  return s == NULL ? NULL : (char*)crt_copy(s, strlen(s) + 1);
}

static wchar_t* crt_wcsdup(const wchar_t* s) {
  size_t n = 0;
  while (s != NULL && s[n] != 0) n++;
  return s == NULL ? NULL : (wchar_t*)crt_copy(s, (n + 1) * sizeof(wchar_t));
}

// ---- C++: operators that a C runtime exports --------------------------------------------------------------------------
// Where there is no memory the runtime's own does what it has to: it calls a handler, or throws in its way.

typedef void* (*crt_new_t)(size_t size);

static mi_cold void* crt_new_failed(const char* name, size_t size) {
  void*     original = _mi_windows_runtime_original(name);
  crt_new_t fun;
  memcpy(&fun, &original, sizeof(fun));
  return fun == NULL ? NULL : fun(size);
}

#if SIZE_MAX == UINT64_MAX
  #define CRT_NEW             "??2@YAPEAX_K@Z"
  #define CRT_NEW_ARRAY       "??_U@YAPEAX_K@Z"
  #define CRT_NEW_DEBUG       "??2@YAPEAX_KHPEBDH@Z" // with a kind, the name of a file and a line
  #define CRT_NEW_ARRAY_DEBUG "??_U@YAPEAX_KHPEBDH@Z"
  #define CRT_DELETE          "??3@YAXPEAX@Z"
  #define CRT_DELETE_ARRAY    "??_V@YAXPEAX@Z"
#else
  #define CRT_NEW             "??2@YAPAXI@Z"
  #define CRT_NEW_ARRAY       "??_U@YAPAXI@Z"
  #define CRT_NEW_DEBUG       "??2@YAPAXIHPBDH@Z"
  #define CRT_NEW_ARRAY_DEBUG "??_U@YAPAXIHPBDH@Z"
  #define CRT_DELETE          "??3@YAXPAX@Z"
  #define CRT_DELETE_ARRAY    "??_V@YAXPAX@Z"
#endif

static void* crt_new(size_t size) {
  void* p = mi_malloc(size);
  return mi_likely(p != NULL) ? p : crt_new_failed(CRT_NEW, size);
}

static void* crt_new_debug(size_t size, int kind, const char* file, int line) {
  (void)kind;
  (void)file;
  (void)line;
  return crt_new(size);
}

// ---- the functions to call at exit ------------------------------------------------------------------------------------
// The table is a block of the program, which gives it to the runtime to be made larger.

typedef int (*crt_onexit_t)(void);

static crt_onexit_t crt_dllonexit(crt_onexit_t fun, crt_onexit_t** start, crt_onexit_t** end) {
  if (start == NULL || end == NULL || *start == NULL || *end < *start) return NULL;
  size_t        n = (size_t)(*end - *start);
  crt_onexit_t* table = (crt_onexit_t*)crt_realloc(*start, (n + 1) * sizeof(*table));
  if (table == NULL) return NULL;
  table[n] = fun;
  *start = table;
  *end = table + n + 1;
  return fun;
}

// ---- the list ---------------------------------------------------------------------------------------------------------

#define CRT_IS(name, own)     {name, (void*)&(own), false}
#define CRT_CALLER(name, own) {name, (void*)&(own), true}

// ucrtbase.dll has the same under a name with _o_ before it, for modules of the system.
#define CRT_BOTH(name, own) CRT_IS(name, own), CRT_IS("_o_" name, own)

const mi_windows_hook_t _mi_windows_crt_hooks[] = {
    CRT_BOTH("malloc", crt_malloc),
    CRT_BOTH("calloc", crt_calloc),
    CRT_BOTH("realloc", crt_realloc),
    CRT_BOTH("free", crt_free),
    CRT_BOTH("_recalloc", crt_recalloc),
    CRT_BOTH("_expand", crt_expand),
    CRT_BOTH("_msize", crt_msize),
    CRT_BOTH("_malloc_base", crt_malloc),
    CRT_BOTH("_calloc_base", crt_calloc),
    CRT_BOTH("_realloc_base", crt_realloc),
    CRT_BOTH("_free_base", crt_free),
    CRT_IS("_expand_base", crt_expand),
    CRT_IS("_msize_base", crt_msize),
    CRT_IS("_recalloc_base", crt_recalloc),
    CRT_IS("_malloc_crt", crt_malloc),
    CRT_IS("_calloc_crt", crt_calloc),
    CRT_IS("_realloc_crt", crt_realloc),
    CRT_IS("_recalloc_crt", crt_recalloc),
    CRT_BOTH("_aligned_malloc", crt_aligned_malloc),
    CRT_BOTH("_aligned_realloc", crt_aligned_realloc),
    CRT_BOTH("_aligned_recalloc", crt_aligned_recalloc),
    CRT_BOTH("_aligned_msize", crt_aligned_msize),
    CRT_BOTH("_aligned_free", crt_aligned_free),
    CRT_BOTH("_aligned_offset_malloc", crt_aligned_offset_malloc),
    CRT_BOTH("_aligned_offset_realloc", crt_aligned_offset_realloc),
    CRT_BOTH("_aligned_offset_recalloc", crt_aligned_offset_recalloc),
    CRT_BOTH("_strdup", crt_strdup),
    CRT_BOTH("_wcsdup", crt_wcsdup),
    CRT_IS("_mbsdup", crt_strdup),
    CRT_CALLER(CRT_NEW, crt_new),
    CRT_CALLER(CRT_NEW_ARRAY, crt_new),
    CRT_CALLER(CRT_NEW_DEBUG, crt_new_debug),
    CRT_CALLER(CRT_NEW_ARRAY_DEBUG, crt_new_debug),
    CRT_CALLER(CRT_DELETE, crt_free),
    CRT_CALLER(CRT_DELETE_ARRAY, crt_free),
    CRT_CALLER("__dllonexit", crt_dllonexit),
};
const size_t _mi_windows_crt_n_hooks = sizeof(_mi_windows_crt_hooks) / sizeof(_mi_windows_crt_hooks[0]);
mi_static_assert(sizeof(_mi_windows_crt_hooks) / sizeof(_mi_windows_crt_hooks[0]) <= MI_WINDOWS_HOOKS_MAX,
                 "room for all");
