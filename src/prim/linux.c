// The operating system interface on Linux (glibc, musl, Android): memory.  Layer: prim.
//
// The library's mappings grow, or are made once and then change their protection in one growing range each, so that the
// kernel keeps a handful of them however large the heap is.  errno is saved around every libc call: malloc's callers see it.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "prim.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../base/bits.h"
#include "../base/probe.h"
#include "../base/track.h"
#include "inject.h"
#include "tag.h"

// Newer kernels than the headers we may be built with know these.
#ifndef MADV_POPULATE_WRITE
  #define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_FREE
  #define MADV_FREE 8
#endif
#ifndef MREMAP_DONTUNMAP
  #define MREMAP_DONTUNMAP 4
#endif
#ifndef MAP_FIXED_NOREPLACE
  #define MAP_FIXED_NOREPLACE 0x100000
#endif

// errno as it was before a call of libc; returns what the call has set it to, 0 if it succeeded.
static int prim_result(bool ok, int saved) {
  int err = (ok ? 0 : errno);
  errno = saved;
  return err;
}

// ---- tools ----------------------------------------------------------------------------------------------------------

// Valgrind begins with low addresses: each number of 32 bits somewhere in memory could be a pointer for its leak checker.
static void* prim_reserve_hint(void) {
  bool wanted = (MI_TRACK_VALGRIND && sizeof(void*) > 4 && mi_track_is_on());
  return wanted ? (void*)(uintptr_t)(4 * (uint64_t)MI_GiB) : NULL;
}

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

mi_prim_calls_t _mi_prim_calls;

static mi_atomic(size_t) prim_page_size;

size_t _mi_prim_os_page_size(void) {
#if defined(__x86_64__) || defined(__i386__)
  return 4096; // there is no other; asking would cost each process a page fault
#endif
  size_t size = mi_load_relaxed(&prim_page_size);
  if (mi_unlikely(size == 0)) {
    size = (size_t)sysconf(_SC_PAGESIZE);
    mi_store_relaxed(&prim_page_size, size);
  }
  return size;
}

#define PRIM_USABLE (PROT_READ | PROT_WRITE | (MI_TAGS ? _mi_prim_tag_protection() : 0))

static int prim_mmap(void* hint, size_t size, int protection, int flags, void** start) {
  int saved = errno;
  mi_fetch_add_relaxed(&_mi_prim_calls.map, 1);
  void* p = mmap(hint, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (p != MAP_FAILED) *start = p;
  return prim_result(p != MAP_FAILED, saved);
}

static int prim_map(void* hint, size_t size, int protection, int flags, void** start) {
  return _mi_prim_must_fail() ? ENOMEM : prim_mmap(hint, size, protection, flags, start);
}

static int prim_unmap(void* start, size_t size) {
  int saved = errno;
  return prim_result(munmap(start, size) == 0, saved);
}

// A kernel that does not know the flag takes `start` for a hint.
static int prim_map_at(void* start, size_t size, int protection) {
  void* p;
  int   err = prim_mmap(start, size, protection, MAP_NORESERVE | MAP_FIXED_NOREPLACE, &p);
  if (err != 0 || p == start) return err;
  prim_unmap(p, size);
  return EEXIST;
}

// Enlarges the mapping that ends at `start`.  What is added has its protection at first, which may be none.
static int prim_grow(char* start, size_t size) {
  size_t page = _mi_prim_os_page_size();
  int    saved = errno;
  int    err = (mremap(start - page, page, page + size, 0) == MAP_FAILED ? ENOMEM : 0);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.commit, 1);
  if (err == 0 && mprotect(start, size, PRIM_USABLE) != 0) {
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
  int err = prim_map_at(start, size, PRIM_USABLE);
  return err == ENOMEM && grows ? prim_grow((char*)start, size) : err;
}

int _mi_prim_reserve_at(void* start, size_t size) {
  return _mi_prim_must_fail() ? ENOMEM : prim_map_at(start, size, PROT_NONE);
}

// The thread and memory sanitizers leave low addresses to the program, and end it when it maps others.
#define PRIM_LOW_ONLY MI_TSAN
#if defined(__has_feature)
  #if __has_feature(memory_sanitizer)
    #undef PRIM_LOW_ONLY
    #define PRIM_LOW_ONLY 1
  #endif
#endif

// With 47 bits or more the kernel puts programs from 2/3 of the address space on, mappings below its end or, in a process
// whose stack has no limit, from 1/3 on (0x2AAA... with 47 bits).  The address sanitizer has its shadow below 0x1001...
// (x86-64) or 0x2010... (AArch64), runtimes with coloured pointers use single bits up to 0x2000...  The second range suits 42
// bits, the third 39 and 38.
bool _mi_prim_find_empty(size_t i, uintptr_t* start, size_t* size) {
  static const struct {
    uint64_t start, size; // in GiB
  } ranges[] = {{0x8400, 0x2000}, {320, 384}, {36, 44}};
  enum { n_ranges = sizeof(ranges) / sizeof(ranges[0]) };
  if (PRIM_LOW_ONLY) i += n_ranges - 1;
  if (sizeof(void*) < 8 || i >= n_ranges || (MI_TRACK_VALGRIND && mi_track_is_on())) return false;
  *start = (uintptr_t)(ranges[i].start * MI_GiB);
  *size = (size_t)(ranges[i].size * MI_GiB);
  return true;
}

int _mi_prim_reserve(size_t size, size_t align, void** start) {
  size_t extra = (align > _mi_prim_os_page_size() ? align : 0);
  if (size + extra < size) return ENOMEM;
  void* p;
  int   err = prim_map(prim_reserve_hint(), size + extra, PROT_NONE, MAP_NORESERVE, &p);
  if (err != 0) return err;
  uintptr_t aligned = ((uintptr_t)p + align - 1) & ~(uintptr_t)(align - 1);
  size_t    before = aligned - (uintptr_t)p;
  if (before > 0) prim_unmap(p, before);
  if (extra > before) prim_unmap((char*)aligned + size, extra - before);
  *start = (void*)aligned;
  return 0;
}

int _mi_prim_release(void* start, size_t size) {
  return _mi_prim_must_fail() ? ENOMEM : prim_unmap(start, size);
}

int _mi_prim_map(size_t size, void** start) {
  return prim_map(prim_reserve_hint(), size, PRIM_USABLE, MAP_NORESERVE, start);
}

// `to` counts with MREMAP_FIXED only.
static int prim_mremap(void** start, size_t size, size_t new_size, int flags, void* to) {
  if (_mi_prim_must_fail()) return ENOMEM;
  int   saved = errno;
  void* p = mremap(*start, size, new_size, MREMAP_MAYMOVE | flags, to);
  if (p != MAP_FAILED) *start = p;
  return prim_result(p != MAP_FAILED, saved);
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

static int prim_protect(void* start, size_t size, int protection) {
  if (_mi_prim_must_fail()) return ENOMEM;
  int saved = errno;
  return prim_result(mprotect(start, size, protection) == 0, saved);
}

int _mi_prim_commit(void* start, size_t size) {
  MI_PROBE2(commit, start, size);
  mi_fetch_add_relaxed(&_mi_prim_calls.commit, 1);
  return prim_protect(start, size, PRIM_USABLE);
}

int _mi_prim_protect(void* start, size_t size) {
  return prim_protect(start, size, PROT_NONE);
}

int _mi_prim_make_readable(void* start, size_t size) {
  return prim_protect(start, size, PROT_READ);
}

// EAGAIN is not tried again: the system says so each time when there are too many mappings already to split one.
static int prim_advise(void* start, size_t size, int advice) {
  if (_mi_prim_must_fail()) return ENOMEM;
  int saved = errno;
  return prim_result(madvise(start, size, advice) == 0, saved);
}

int _mi_prim_purge(void* start, size_t size) {
  MI_PROBE2(purge, start, size);
  mi_fetch_add_relaxed(&_mi_prim_calls.purge, 1);
  int err = prim_advise(start, size, MADV_DONTNEED);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_purged, (int64_t)size);
  return err;
}

void _mi_prim_give_up(void* start, size_t size) {
  _mi_prim_purge(start, size);
}

int _mi_prim_discard(void* start, size_t size) {
  mi_fetch_add_relaxed(&_mi_prim_calls.discard, 1);
  int err = prim_advise(start, size, MADV_FREE);
  if (err == 0) mi_fetch_add_relaxed(&_mi_prim_calls.n_discarded, (int64_t)size);
  return err;
}

int _mi_prim_decommit(void* start, size_t size) {
  void* p;
  int   err = prim_map(start, size, PROT_NONE, MAP_NORESERVE | MAP_FIXED, &p);
  if (err == 0) return 0;
  prim_unmap(start, size); // the memory goes back in any case
  return _mi_prim_reserve_at(start, size);
}

int _mi_prim_populate(void* start, size_t size) {
  return prim_advise(start, size, MADV_POPULATE_WRITE);
}

int _mi_prim_advise_huge(void* start, size_t size, bool enable) {
  return prim_advise(start, size, enable ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
}

// Moves a whole mapping.  What is mapped at `to` is gone, even on failure.
static int prim_move_to(void* from, void* to, size_t size) {
  int err = prim_mremap(&from, size, size, MREMAP_FIXED, to);
  if (MI_FAULT_INJECTION && err != 0) prim_unmap(to, size); // the worst that a kernel does
  return err;
}

// What cannot be mapped stays ours at least.
static mi_remap_t prim_hold(void* start, size_t size) {
  return prim_map_at(start, size, PROT_NONE) == 0 ? MI_REMAP_RESERVED : MI_REMAP_LOST;
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
  int err = (_mi_prim_must_fail() ? ENOMEM : prim_map_at(to, size, PRIM_USABLE));
  if (err != 0 && err != EEXIST) return prim_hold(to, size);
  memcpy(to, from, size); // EEXIST: it was not unmapped
  return MI_REMAP_DONE;
}

// Kernels before 6.12 take away what was there before they find that they cannot promise more memory, where that is counted.
mi_remap_t _mi_prim_unremap(void* start, size_t size) {
  void* p;
  if (prim_map(start, size, PRIM_USABLE, MAP_NORESERVE | MAP_FIXED, &p) == 0) return MI_REMAP_DONE;
  int err = prim_map_at(start, size, PRIM_USABLE);
  if (err == 0) return MI_REMAP_DONE;
  return err == EEXIST ? MI_REMAP_REFUSED : prim_hold(start, size);
}

// A mapping that fails may have taken away what was there before (older kernels), and another thread may have mapped
// something since.  So it is tried elsewhere first.
int _mi_prim_map_large(void* start, size_t size, size_t os_page_size, bool* is_lost) {
  const int flags = MAP_HUGETLB | (int)(mi_ctz64(os_page_size) << 26 /* MAP_HUGE_SHIFT */);
  void*     p;
  *is_lost = false;
  int err = prim_map(NULL, size, PRIM_USABLE, flags, &p);
  if (err != 0) return err;
  prim_unmap(p, size);
  err = prim_map(start, size, PRIM_USABLE, MAP_FIXED | flags, &p);
  if (err == 0) return 0;
  *is_lost = (_mi_prim_reserve_at(start, size) != 0); // or it is still reserved: the kernel does not say
  return err;
}

int _mi_prim_map_large_apart(size_t size, size_t os_page_size, void** start) {
  (void)size, (void)os_page_size, (void)start;
  return ENOTSUP;
}

int _mi_prim_numa_bind(void* start, size_t size, size_t node, bool only) {
  enum { WORD_BITS = 8 * sizeof(unsigned long), N_NODES = 256 };
  enum { PREFERRED = 1, BIND = 2 }; // modes of mbind(2), which needs no libnuma
  unsigned long mask[N_NODES / WORD_BITS] = {0};
  if (node >= N_NODES) return EINVAL;
  if (_mi_prim_must_fail()) return ENOMEM;
  mask[node / WORD_BITS] = 1ul << (node % WORD_BITS);
  int saved = errno;
  return prim_result(syscall(SYS_mbind, start, size, only ? BIND : PREFERRED, mask, N_NODES + 1, 0) == 0, saved);
}
