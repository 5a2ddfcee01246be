// Thread-local variables where the compiler's way may allocate, or is gone before malloc is done.  Layer: prim.
//
// LK1  A copy of the section is a place in a chunk of memory of our own: bits of a word say which places are taken.
// LK2  A thread's copy is its own from its first use of a variable until _mi_local_end, or until the last of the passes in which
//     the system calls destructors where the exit of the thread is not noticed (thread_exit.c).  What such a thread of a worker
//     leaves, the next thread of the worker has.
// LK3  Threads between _mi_local_end and their end share one copy.  It is that of the first of them: it says that there is no
//     theap any more, and the rest of it is not worth an order among those threads.
// LK4  The system may allocate when it stores the first value of a key (OpenBSD does, glibc for most keys).  Meanwhile the thread
//     finds its copy in a table.
// LK5  A worker runs one thread after the other.  Before a thread runs, and after the last destructor of its thread-specific data,
//     the system allocates and frees for it.  That this is a thread which has ended, the number of the thread says, which is not
//     used again; outside of threads there is none.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE // gettid
#endif
#include "local.h"

#if MI_LOCAL_COPIED

  #include <errno.h>
  #include <limits.h>
  #include <pthread.h>
  #include <sched.h>
  #include <string.h>
  #include <unistd.h>

  #include "../base/bits.h"
  #include "prim.h"

// ---- the section ----------------------------------------------------------------------------------------------------

  #if defined(__cplusplus)
extern "C" {
  #endif
  #if defined(__APPLE__)
extern mi_hidden char local_section_start[] __asm__("section$start$__DATA$__mi_local");
extern mi_hidden char local_section_stop[] __asm__("section$end$__DATA$__mi_local");
  #else
// Weak: a program may have no variable, and so no section.
extern mi_hidden mi_weak char local_section_start[] __asm__("__start_mi_local");
extern mi_hidden mi_weak char local_section_stop[] __asm__("__stop_mi_local");
  #endif
  #if defined(__cplusplus)
}
  #endif

  #define LOCAL_ALIGN 16 // of all variables at most

static uintptr_t local_start(void) {
  return mi_align_down((uintptr_t)local_section_start, LOCAL_ALIGN);
}

static size_t local_size(void) {
  return mi_align_up((uintptr_t)local_section_stop - local_start(), LOCAL_ALIGN);
}

// ---- places ---------------------------------------------------------------------------------------------------------

typedef struct local_chunk_s {
  struct local_chunk_s* next; // of those that were made before
  mi_atomic(uint64_t)   taken;
} local_chunk_t;

  #define LOCAL_CHUNK_SIZE 4096 // or an OS page, if that is larger

static mi_atomic(local_chunk_t*) local_chunks;

static size_t local_chunk_size(void) {
  return MI_PRIM_VIRTUAL ? mi_max(_mi_prim_os_page_size(), (size_t)LOCAL_CHUNK_SIZE) : (size_t)LOCAL_CHUNK_SIZE;
}

static int local_chunk_get(void** memory) {
  return MI_PRIM_VIRTUAL ? _mi_prim_map(local_chunk_size(), memory)
                         : _mi_prim_reserve(local_chunk_size(), LOCAL_ALIGN, memory);
}

static size_t local_chunk_places(void) {
  return mi_min((local_chunk_size() - sizeof(local_chunk_t)) / local_size(), (size_t)64);
}

static void* local_chunk_place(local_chunk_t* chunk, size_t i) {
  return (char*)(chunk + 1) + i * local_size();
}

static void* local_chunk_take(local_chunk_t* chunk) {
  uint64_t taken = mi_load_relaxed(&chunk->taken);
  while (~taken != 0) {
    size_t i = mi_ctz64(~taken);
    if (i >= local_chunk_places()) return NULL;
    if (mi_cas_weak(&chunk->taken, &taken, taken | ((uint64_t)1 << i), acquire, relaxed))
      return local_chunk_place(chunk, i);
  }
  return NULL;
}

// Without memory for a thread's variables nothing can go on.
static void local_fail(const char* text) {
  _mi_prim_write_stderr(text, strlen(text));
  _mi_prim_abort();
}

static void* local_chunk_new(void) {
  void* memory = NULL;
  if (local_chunk_get(&memory) != 0) local_fail("mimalloc: no memory for the variables of a thread\n");
  local_chunk_t* chunk = (local_chunk_t*)memory;
  mi_store_relaxed(&chunk->taken, (uint64_t)1);
  chunk->next = mi_load_relaxed(&local_chunks);
  while (!mi_cas_weak(&local_chunks, &chunk->next, chunk, release, relaxed)) {
  }
  return local_chunk_place(chunk, 0);
}

static uintptr_t local_take(void) {
  void* place = NULL;
  for (local_chunk_t* c = mi_load_acquire(&local_chunks); c != NULL && place == NULL; c = c->next)
    place = local_chunk_take(c);
  if (place == NULL) place = local_chunk_new();
  memcpy(place, (const void*)local_start(), local_size());
  return (uintptr_t)place - local_start();
}

// The bit of a thread's place in its chunk, 0 if it is in another one.
static uint64_t local_chunk_bit(local_chunk_t* chunk, uintptr_t distance) {
  uintptr_t offset = local_start() + distance - (uintptr_t)(chunk + 1);
  return offset < local_chunk_size() - sizeof(*chunk) ? (uint64_t)1 << (offset / local_size()) : 0;
}

static void local_give_back(uintptr_t distance) {
  for (local_chunk_t* c = mi_load_acquire(&local_chunks); c != NULL; c = c->next) {
    uint64_t bit = local_chunk_bit(c, distance);
    if (bit != 0) mi_atomic_ns(atomic_fetch_and_explicit)(&c->taken, ~bit, mi_memory_order(release));
  }
}

// ---- threads that have ended ------------------------------------------------------------------------------------------

static mi_atomic(uintptr_t) local_of_ended; // LK3

  #if MI_LOCAL_BY_KEY

    #if !defined(PTHREAD_DESTRUCTOR_ITERATIONS)
      #define PTHREAD_DESTRUCTOR_ITERATIONS 4 // what POSIX demands at least
    #endif

mi_atomic(uintptr_t) _mi_local_key;
mi_atomic(uintptr_t) _mi_local_direct;

static MI_LOCAL(size_t, local_n_passes); // of destructors

// ---- threads while the system stores their value (LK4) -----------------------------------------------------------------

typedef struct local_making_s {
  mi_atomic(uintptr_t) thread; // 0: free
  uintptr_t            distance;
} local_making_t;

    #define LOCAL_MAKING_MAX 16

static local_making_t local_making[LOCAL_MAKING_MAX];

static uintptr_t local_making_find(void) {
  uintptr_t self = (uintptr_t)pthread_self();
  for (size_t i = 0; i < LOCAL_MAKING_MAX; i++) {
    if (mi_load_relaxed(&local_making[i].thread) == self) return local_making[i].distance;
  }
  return 0;
}

static local_making_t* local_making_begin(uintptr_t distance) {
  for (;;) {
    for (size_t i = 0; i < LOCAL_MAKING_MAX; i++) {
      uintptr_t none = 0;
      if (!mi_cas_strong(&local_making[i].thread, &none, (uintptr_t)pthread_self(), acquire, relaxed)) continue;
      local_making[i].distance = distance; // only this thread reads it
      return &local_making[i];
    }
    sched_yield(); // more threads than places begin now
  }
}

// ---- the key --------------------------------------------------------------------------------------------------------

static void local_store(uintptr_t distance) {
  if (pthread_setspecific((pthread_key_t)(mi_load_relaxed(&_mi_local_key) - 1), (void*)distance) != 0) {
    local_fail("mimalloc: the system cannot store where the variables of a thread are\n");
  }
}

// In each pass the value is stored again: other destructors free.
static void local_destructor(void* value) {
  uintptr_t distance = (uintptr_t)value;
  local_store(distance);
  if (distance == mi_load_relaxed(&local_of_ended) || _mi_prim_thread_exit_is_armed()) return;
  if (++mi_local(local_n_passes) < PTHREAD_DESTRUCTOR_ITERATIONS) return;
  local_store(0);
  local_give_back(distance);
}

// Two threads may be the first to use a variable.
static void local_key_make(void) {
  pthread_key_t key;
  uintptr_t     none = 0;
  if (pthread_key_create(&key, &local_destructor) != 0) {
    local_fail("mimalloc: all keys of thread-specific data are in use\n");
  }
  if (!mi_cas_strong(&_mi_local_key, &none, (uintptr_t)key + 1, acq_rel, relaxed)) pthread_key_delete(key);
}

static uintptr_t local_key_value(void) {
  uintptr_t key = mi_load_acquire(&_mi_local_key);
  return key == 0 ? 0 : (uintptr_t)pthread_getspecific((pthread_key_t)(key - 1));
}

// Does the system keep the value where we think?
static void local_key_check(uintptr_t distance) {
  uintptr_t key = mi_load_relaxed(&_mi_local_key);
  if (MI_LOCAL_HAS_DIRECT && _mi_local_read(key - 1) == distance) mi_store_relaxed(&_mi_local_direct, key);
}

mi_cold uintptr_t _mi_local_make(void) {
  int       saved = errno;
  uintptr_t distance = local_key_value();
  if (distance == 0) distance = local_making_find();
  if (distance == 0) {
    if (mi_load_acquire(&_mi_local_key) == 0) local_key_make();
    distance = local_take();
    local_making_t* making = local_making_begin(distance);
    local_store(distance);
    mi_store_release(&making->thread, (uintptr_t)0);
    local_key_check(distance);
  }
  errno = saved;
  return distance;
}

// ---- the end of a thread, and fork ------------------------------------------------------------------------------------

void _mi_local_end(void) {
  uintptr_t distance = local_key_value();
  uintptr_t none = 0;
  if (distance == 0 || distance == mi_load_acquire(&local_of_ended)) return;
  if (mi_cas_strong(&local_of_ended, &none, distance, acq_rel, acquire)) return;
  local_store(none);
  local_give_back(distance);
}

// All places are free but these two; 0: none.
static void local_keep(uintptr_t distance, uintptr_t other) {
  for (local_chunk_t* c = mi_load_relaxed(&local_chunks); c != NULL; c = c->next) {
    uint64_t taken = 0;
    if (distance != 0) taken |= local_chunk_bit(c, distance);
    if (other != 0) taken |= local_chunk_bit(c, other);
    mi_store_relaxed(&c->taken, taken);
  }
}

// There is one thread now.  Places that others had are free, but for that of threads that have ended.
void _mi_local_after_fork(void) {
  for (size_t i = 0; i < LOCAL_MAKING_MAX; i++) mi_store_relaxed(&local_making[i].thread, (uintptr_t)0);
  local_keep(local_key_value(), mi_load_relaxed(&local_of_ended));
}

  #else

  // ---- variables of the worker ------------------------------------------------------------------------------------------

    #if defined(__wasm64__)
      #define LOCAL_WORD "i64"
    #else
      #define LOCAL_WORD "i32"
    #endif

// The second is the number of the last thread of the worker that has ended (LK5).
__asm__(".globl _mi_local_worker\n"
        "_mi_local_worker:\n"
        ".globaltype local_worker_ended, " LOCAL_WORD "\n"
        "local_worker_ended:\n");

static uintptr_t local_worker_get(void) {
  uintptr_t distance;
  __asm__ volatile("global.get _mi_local_worker\n\tlocal.set %0" : "=r"(distance));
  return distance;
}

static void local_worker_set(uintptr_t distance) {
  __asm__ volatile("local.get %0\n\tglobal.set _mi_local_worker" : : "r"(distance));
}

static uintptr_t local_ended_get(void) {
  uintptr_t thread;
  __asm__ volatile("global.get local_worker_ended\n\tlocal.set %0" : "=r"(thread));
  return thread;
}

static void local_ended_set(uintptr_t thread) {
  __asm__ volatile("local.get %0\n\tglobal.set local_worker_ended" : : "r"(thread));
}

static bool local_has_ended(void) {
  return (uintptr_t)pthread_self() == 0 || (uintptr_t)gettid() == local_ended_get();
}

mi_cold uintptr_t _mi_local_make(void) {
  uintptr_t distance = mi_load_acquire(&local_of_ended);
  if (distance != 0 && local_has_ended()) return distance;
  distance = local_take();
  local_worker_set(distance);
  return distance;
}

void _mi_local_end(void) {
  uintptr_t distance = local_worker_get(), none = 0;
  if (distance == 0) return;
  local_worker_set(0);
  local_ended_set((uintptr_t)gettid());
  if (!mi_cas_strong(&local_of_ended, &none, distance, acq_rel, acquire)) local_give_back(distance);
}

// There is no fork.
void _mi_local_after_fork(void) {}

  #endif
#endif
