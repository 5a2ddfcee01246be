// trace-record.so: a library to preload that records the calls that a program makes to its allocator.
//
//   LD_PRELOAD=trace-record.so TRACE_FILE=program.trace program ARGS...
//
// settings.h has the variables, trace.h the format. Each call goes on to the next definition, usually that of the C
// library. A free is recorded before the call and an allocation after it, so no other record can have the same address in
// between. Not recorded: what happens before the C library is ready, and memory that a program takes without these names
// (mmap, an allocator of its own, a static one).
#define _GNU_SOURCE
#include "recording.h"
#include "trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static void* (*next_malloc)(size_t);
static void* (*next_calloc)(size_t, size_t);
static void* (*next_realloc)(void*, size_t);
static void (*next_free)(void*);
static int (*next_posix_memalign)(void**, size_t, size_t);
static void* (*next_aligned_alloc)(size_t, size_t);

enum { FRESH, RESOLVING, RESOLVED, STARTING, STARTED };
static atomic_int state;

// ---- memory for calls from within dlsym: taken once, and never used again

static _Alignas(16) char early[16384];
static size_t early_used;

static void* early_malloc(size_t size) {
  size_t at = early_used;
  if (size > sizeof(early) - at) return NULL;
  early_used = at + ((size + 15) & ~(size_t)15);
  return early + at;
}

static bool is_early(const void* block) {
  return (uintptr_t)block - (uintptr_t)early < sizeof(early);
}

// ---- the start

static void resolve(void** function, const char* name) {
  *function = dlsym(RTLD_NEXT, name);
  if (*function != NULL) return;
  static const char text[] = "trace-record: the C library lacks a function of malloc's family\n";
  if (write(STDERR_FILENO, text, sizeof(text) - 1) >= 0) _exit(2);
  _exit(2);
}

// Whether the next functions can be called. The first call comes before there are threads. getenv works only after the C
// library's own constructor, so the recording may start later than that.
static bool is_ready(void) {
  int now = atomic_load_explicit(&state, memory_order_acquire);
  if (__builtin_expect(now == STARTED, 1)) return true;
  if (now == RESOLVING) return false;
  if (now == FRESH) {
    atomic_store(&state, RESOLVING);
    resolve((void**)&next_malloc, "malloc");
    resolve((void**)&next_calloc, "calloc");
    resolve((void**)&next_realloc, "realloc");
    resolve((void**)&next_free, "free");
    resolve((void**)&next_posix_memalign, "posix_memalign");
    resolve((void**)&next_aligned_alloc, "aligned_alloc");
    atomic_store(&state, RESOLVED);
  }
  if (environ != NULL && (now = RESOLVED, atomic_compare_exchange_strong(&state, &now, STARTING))) {
    recording_start();
    atomic_store(&state, STARTED);
  }
  return true;
}

// ---- the calls

static void* recorded(int kind, void* block, size_t size, size_t align) {
  if (block != NULL && recording_is_on()) recording_add(kind, block, size, align);
  return block;
}

EXPORT void* malloc(size_t size) {
  if (!is_ready()) return early_malloc(size);
  return recorded(TRACE_MALLOC, next_malloc(size), size, 0);
}

EXPORT void* calloc(size_t n, size_t size) {
  if (!is_ready()) return early_malloc(n * size);
  return recorded(TRACE_CALLOC, next_calloc(n, size), n * size, 0);
}

EXPORT void free(void* block) {
  if (block == NULL || is_early(block) || !is_ready()) return;
  if (recording_is_on()) recording_remove(block);
  int error = errno;
  next_free(block);
  errno = error;
}

static void* realloc_early(void* block, size_t size) {
  void*  fresh = malloc(size);
  size_t most = (size_t)(early + sizeof(early) - (char*)block);
  if (fresh != NULL) memcpy(fresh, block, size < most ? size : most);
  return fresh;
}

EXPORT void* realloc(void* block, size_t size) {
  if (block == NULL) return malloc(size);
  if (is_early(block)) return realloc_early(block, size);
  if (!is_ready()) return NULL;
  uint32_t slot = recording_is_on() ? recording_resize(block) : 0;
  void*    moved = next_realloc(block, size);
  if (slot == 0) return recorded(TRACE_MALLOC, moved, size, 0);
  if (moved != NULL) recording_resized(slot, moved, size);
  else if (size != 0) recording_restored(slot, block);
  else recording_freed(slot);
  return moved;
}

EXPORT void* reallocarray(void* block, size_t n, size_t size) {
  size_t total;
  if (!__builtin_mul_overflow(n, size, &total)) return realloc(block, total);
  errno = ENOMEM;
  return NULL;
}

EXPORT int posix_memalign(void** block, size_t align, size_t size) {
  if (!is_ready()) return ENOMEM;
  int error = next_posix_memalign(block, align, size);
  if (error == 0) recorded(TRACE_ALIGNED, *block, size, align);
  return error;
}

static void* aligned(size_t align, size_t size) {
  if (!is_ready()) return NULL;
  return recorded(TRACE_ALIGNED, next_aligned_alloc(align, size), size, align);
}

EXPORT void* aligned_alloc(size_t align, size_t size) {
  return aligned(align, size);
}

// The C library rounds an alignment up to a power of 2 here.
EXPORT void* memalign(size_t align, size_t size) {
  size_t power = sizeof(void*);
  while (power < align && power <= SIZE_MAX / 4) power *= 2;
  return aligned(power, size);
}

EXPORT void* valloc(size_t size) {
  return aligned((size_t)getpagesize(), size);
}

EXPORT void* pvalloc(size_t size) {
  size_t page = (size_t)getpagesize();
  return size > SIZE_MAX - page ? (errno = ENOMEM, NULL) : aligned(page, (size + page - 1) & ~(page - 1));
}
