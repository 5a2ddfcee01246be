// The operating system interface on Linux (glibc, musl, Android): memory.  Layer: prim.
//
// The library's mappings grow, or are made once and then change their protection in one growing range each, so that the
// kernel keeps a handful of them however large the heap is.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/bits.h"
#include "../base/probe.h"
#include "../base/track.h"
#include "inject.h"
#include "posix_memory.h"

// Newer kernels than the headers we may be built with know these.
#ifndef MADV_COLD
  #define MADV_COLD 20
#endif
#ifndef MADV_POPULATE_READ
  #define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
  #define MADV_POPULATE_WRITE 23
#endif
#ifndef MREMAP_DONTUNMAP
  #define MREMAP_DONTUNMAP 4
#endif
// ---- tools ----------------------------------------------------------------------------------------------------------

// Memcheck looks for pointers wherever it knows that the program may read.  Processors have no memory that can be written
// and not read, but it takes the kernel's word.
void _mi_prim_hide(void* start, size_t size) {
  size_t    page = _mi_prim_os_page_size();
  uintptr_t from = mi_align_up((uintptr_t)start, page);
  uintptr_t to = mi_align_down((uintptr_t)start + size, page);
  int       saved = errno;
  if (MI_TRACK_VALGRIND && mi_track_is_on() && from < to) mprotect((void*)from, to - from, PROT_WRITE);
  errno = saved;
}

// ---- memory ---------------------------------------------------------------------------------------------------------

// Enlarges the mapping that ends at `start`.  What is added has its protection at first, which may be none.
static int prim_grow(char* start, size_t size) {
  size_t page = _mi_prim_os_page_size();
  int    saved = errno;
  int    err = (mremap(start - page, page, page + size, 0) == MAP_FAILED ? ENOMEM : 0);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.commit, 1);
  if (err == 0 && mprotect(start, size, MI_POSIX_USABLE) != 0) {
    munmap(start, size);
    err = ENOMEM;
  }
  errno = saved;
  return err;
}

// Where the process has as many mappings as it may, the kernel refuses even one that would only enlarge another; but it
// enlarges that.
int _mi_prim_map_at(void* start, size_t size, bool grows) {
  MI_PROBE2(commit, start, size);
  if (_mi_prim_must_fail()) return ENOMEM;
  int err = _mi_posix_memory_map_at(start, size, MI_POSIX_USABLE);
  return err == ENOMEM && grows ? prim_grow((char*)start, size) : err;
}

// The thread and memory sanitizers leave low addresses to the program, which has only the last range then, and end it when it
// maps others.
#define PRIM_LOW_ONLY MI_TSAN
#if defined(__has_feature)
  #if __has_feature(memory_sanitizer)
    #undef PRIM_LOW_ONLY
    #define PRIM_LOW_ONLY 1
  #endif
#endif

bool _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size) {
  if (MI_TRACK_VALGRIND && mi_track_is_on()) return false;
  return _mi_posix_memory_find_empty(PRIM_LOW_ONLY ? i + 2 : i, start, size);
}

// `to` counts with MREMAP_FIXED only.
static int prim_mremap(void** start, size_t size, size_t new_size, int flags, void* to) {
  if (_mi_prim_must_fail()) return ENOMEM;
  int   saved = errno;
  void* p = mremap(*start, size, new_size, MREMAP_MAYMOVE | flags, to);
  if (p != MAP_FAILED) *start = p;
  return _mi_posix_memory_result(p != MAP_FAILED, saved);
}

int _mi_prim_resize(void** start, size_t size, size_t new_size) {
  return prim_mremap(start, size, new_size, 0, NULL);
}

// Mappings that the system did not take back, linked in their first words.
typedef struct prim_kept_s {
  struct prim_kept_s* next;
  size_t              size;
} prim_kept_t;

static mi_atomic(prim_kept_t*) prim_kept;

// A mapping, with what it holds, that is not needed any more.
static void prim_drop(void* start, size_t size) {
  if (_mi_prim_release(start, size) == 0) return;
  _mi_prim_purge(start, size);
  prim_kept_t* kept = (prim_kept_t*)start;
  kept->size = size;
  kept->next = mi_load_relaxed(&prim_kept);
  while (!mi_cas_weak(&prim_kept, &kept->next, kept, release, relaxed)) {
  }
}

// The system is asked again with each move.
static void prim_drop_kept(void) {
  if (mi_load_relaxed(&prim_kept) == NULL) return;
  prim_kept_t* kept = mi_exchange_acquire(&prim_kept, (prim_kept_t*)NULL);
  for (prim_kept_t* next; kept != NULL; kept = next) {
    next = kept->next;
    prim_drop(kept, kept->size);
  }
}

// The new place is one mapping only if the system chooses it and then enlarges it.  If that fails, the contents are copied
// back: moving them back could be refused as well.
int _mi_prim_move_out(void* from, size_t size, size_t new_size, void** start) {
  *start = from;
  prim_drop_kept();
  int err = prim_mremap(start, size, size, MREMAP_DONTUNMAP, NULL);
  if (err != 0 || (err = _mi_prim_resize(start, size, new_size)) == 0) return err;
  memcpy(from, *start, size);
  prim_drop(*start, size);
  return err;
}

int _mi_prim_purge(void* start, size_t size) {
  MI_PROBE2(purge, start, size);
  mi_fetch_add_relaxed(&_mi_prim_calls.purge, 1);
  int err = _mi_posix_memory_advise(start, size, MADV_DONTNEED);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_purged, (int64_t)size);
  return err;
}

// This advice changes no contents, and is invalid for memory that is locked.  Kernels before 5.4 do not know it: there all of it seems to be.
static bool prim_is_locked(void* start, size_t size) {
  return _mi_posix_memory_advise(start, size, MADV_COLD) != 0;
}

// mlockall: of what is mapped, for which a page of the library's own data stands, or of what will be.
static bool prim_locks_all(void) {
  static char own;
  size_t      page = _mi_prim_os_page_size();
  void*       fresh;
  if (prim_is_locked((void*)mi_align_down((uintptr_t)&own, page), page) || _mi_prim_map(page, &fresh) != 0) return true;
  bool is_locked = prim_is_locked(fresh, page);
  return _mi_posix_memory_unmap(fresh, page) != 0 || is_locked;
}

bool _mi_prim_unlock(void* start, size_t size) {
  if (prim_locks_all()) return false;
  int saved = errno;
  return _mi_posix_memory_result(munlock(start, size) == 0, saved) == 0;
}

// Kernels before 5.14 do not know this advice, and say so for no bytes, too: they are asked once, not with each page that is extended.
// (For some memory of the program's it is invalid elsewhere as well.)
static int prim_populate(void* start, size_t size, int advice) {
  static mi_atomic(bool) is_unknown;
  if (mi_load_relaxed(&is_unknown)) return EINVAL;
  int err = _mi_posix_memory_advise(start, size, advice);
  if (err == EINVAL && _mi_posix_memory_advise(start, 0, advice) == EINVAL) mi_store_relaxed(&is_unknown, true);
  return err;
}

int _mi_prim_populate(void* start, size_t size) {
  return prim_populate(start, size, MADV_POPULATE_WRITE);
}

int _mi_prim_populate_read(void* start, size_t size) {
  return prim_populate(start, size, MADV_POPULATE_READ);
}

int _mi_prim_advise_huge(void* start, size_t size, bool enable) {
  return _mi_posix_memory_advise(start, size, enable ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

// Moves a whole mapping.  What is mapped at `to` is gone, even on failure.
static int prim_move_to(void* from, void* to, size_t size) {
  int err = prim_mremap(&from, size, size, MREMAP_FIXED, to);
  if (MI_FAULT_INJECTION && err != 0) _mi_posix_memory_unmap(to, size); // the worst that a kernel does
  return err;
}

// What cannot be mapped stays ours at least.  Where the process has more mappings than it may have, the kernel maps nothing, but it has
// not taken anything away either, before it said so.
static mi_remap_t prim_hold(void* start, size_t size) {
  if (_mi_posix_memory_map_at(start, size, PROT_NONE) == 0) return MI_REMAP_RESERVED;
  return _mi_posix_memory_advise(start, size, MADV_NORMAL) == 0 ? MI_REMAP_REFUSED : MI_REMAP_LOST;
}

// The kernel unmaps a target before it knows that it can move something there, and since 6.17 it moves one mapping
// after the other and stops where it cannot.  So the contents are moved to a place that the kernel chooses first: it
// does that with one mapping or not at all.  From there they are copied when they cannot be moved: to where they were,
// so that there is one mapping less when the target is mapped again.
mi_remap_t _mi_prim_remap(void* from, void* to, size_t size) {
  void* between = from;
  prim_drop_kept();
  if (prim_mremap(&between, size, size, MREMAP_DONTUNMAP, NULL) != 0) return MI_REMAP_REFUSED;
  if (prim_move_to(between, to, size) == 0) return MI_REMAP_DONE;
  memcpy(from, between, size);
  prim_drop(between, size);
  int err = (_mi_prim_must_fail() ? ENOMEM : _mi_posix_memory_map_at(to, size, MI_POSIX_USABLE));
  if (err != 0 && err != EEXIST) return prim_hold(to, size);
  memcpy(to, from, size); // EEXIST: it was not unmapped
  return MI_REMAP_DONE;
}

// Kernels before 6.12 take away what was there before they find that they cannot promise more memory, where that is counted.
mi_remap_t _mi_prim_unremap(void* start, size_t size) {
  void* p;
  if (_mi_posix_memory_map(start, size, MI_POSIX_USABLE, MAP_NORESERVE | MAP_FIXED, &p) == 0) return MI_REMAP_DONE;
  int err = _mi_posix_memory_map_at(start, size, MI_POSIX_USABLE);
  if (err == 0) return MI_REMAP_DONE;
  return err == EEXIST ? MI_REMAP_REFUSED : prim_hold(start, size);
}

// A mapping that fails may have taken away what was there before (older kernels), and another thread may have mapped
// something since.  So it is tried elsewhere first.
int _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost) {
  const int flags = MAP_HUGETLB | (int)(mi_ctz64(os_page_size) << 26 /* MAP_HUGE_SHIFT */);
  void*     p;
  *is_lost = false;
  int err = _mi_posix_memory_map(NULL, size, MI_POSIX_USABLE, flags, &p);
  if (err != 0) return err;
  _mi_posix_memory_unmap(p, size);
  err = _mi_posix_memory_map(start, size, MI_POSIX_USABLE, MAP_FIXED | flags, &p);
  if (err == 0) return 0;
  *is_lost = (_mi_prim_reserve_at(start, size) != 0); // or it is still reserved: the kernel does not say
  return err;
}

int _mi_prim_numa_bind(void* start, size_t size, size_t node, bool only) {
  enum { WORD_BITS = 8 * sizeof(unsigned long), N_NODES = 256 };
  enum { PREFERRED = 1, BIND = 2 }; // modes of mbind(2), which needs no libnuma
  unsigned long mask[N_NODES / WORD_BITS] = {0};
  if (node >= N_NODES) return EINVAL;
  if (_mi_prim_must_fail()) return ENOMEM;
  mask[node / WORD_BITS] = 1ul << (node % WORD_BITS);
  int saved = errno;
  return _mi_posix_memory_result(syscall(SYS_mbind, start, size, only ? BIND : PREFERRED, mask, N_NODES + 1, 0) == 0,
                                 saved);
}
