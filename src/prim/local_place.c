// Places for copies of the thread-local variables.  Layer: prim.
#include "local_place.h"

#if MI_LOCAL_COPIED

  #include <string.h>

  #include "../base/bits.h"

// ---- the section ----------------------------------------------------------------------------------------------------

  #if defined(__cplusplus)
extern "C" {
  #endif
  #if defined(__APPLE__)
extern mi_hidden char local_section_start[] __asm__("section$start$__DATA$__mi_local");
extern mi_hidden char local_section_stop[] __asm__("section$end$__DATA$__mi_local");
  #else
extern mi_hidden char local_section_start[] __asm__("__start_mi_local");
extern mi_hidden char local_section_stop[] __asm__("__stop_mi_local");
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

void _mi_local_place_fail(const char* text) {
  _mi_prim_write_stderr(text, strlen(text));
  _mi_prim_abort();
}

static void* local_chunk_new(void) {
  void* memory = NULL;
  if (local_chunk_get(&memory) != 0) _mi_local_place_fail("mimalloc: no memory for the variables of a thread\n");
  local_chunk_t* chunk = (local_chunk_t*)memory;
  mi_store_relaxed(&chunk->taken, (uint64_t)1);
  chunk->next = mi_load_relaxed(&local_chunks);
  while (!mi_cas_weak(&local_chunks, &chunk->next, chunk, release, relaxed)) {
  }
  return local_chunk_place(chunk, 0);
}

uintptr_t _mi_local_place_take(void) {
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

void _mi_local_place_give_back(uintptr_t distance) {
  for (local_chunk_t* c = mi_load_acquire(&local_chunks); c != NULL; c = c->next) {
    uint64_t bit = local_chunk_bit(c, distance);
    if (bit != 0) mi_atomic_ns(atomic_fetch_and_explicit)(&c->taken, ~bit, mi_memory_order(release));
  }
}

void _mi_local_place_keep(uintptr_t distance, uintptr_t other) {
  for (local_chunk_t* c = mi_load_relaxed(&local_chunks); c != NULL; c = c->next) {
    uint64_t taken = 0;
    if (distance != 0) taken |= local_chunk_bit(c, distance);
    if (other != 0) taken |= local_chunk_bit(c, other);
    mi_store_relaxed(&c->taken, taken);
  }
}

#endif
