// Every way to get, resize and give back a block, as tables: a test that must hold for all of them walks these.
#pragma once

#include <mimalloc.h>
#include "../modes/support.h"
#include "base/mode.h"

enum {
  E_ZERO = 1,     // the result is zeroed
  E_ALIGN = 2,    // honours `alignment`
  E_OFFSET = 4,   // ... at `offset`
  E_SMALL = 8,    // only for sizes up to MI_SMALL_SIZE_MAX
  E_WORD = 16,    // the alignment must be a multiple of the word size
  E_CODE = 32,    // returns its error code, errno stays as it was
  E_NEW = 64,     // throws or aborts where others return NULL
  E_RESIZE = 128, // a resize of NULL: an alignment up to the word size is no alignment
  E_PAGES = 256   // the size is rounded up to OS pages
};

// ---- getting --------------------------------------------------------------------------------------------------------

typedef struct get_s {
  const char* name;
  void* (*call)(size_t size, size_t alignment, size_t offset);
  unsigned flags;
} get_t;

#define GET(name, expression) \
  static inline void* get_##name(size_t size, size_t alignment, size_t offset) { \
    (void)size; \
    (void)alignment; \
    (void)offset; \
    return expression; \
  }

static inline void* posix_memalign_result(size_t size, size_t alignment) {
  void* p = NULL;
  return mi_posix_memalign(&p, alignment, size) == 0 ? p : NULL;
}

GET(malloc, mi_malloc(size))
GET(calloc, mi_calloc(size, 1))
GET(calloc_2, mi_calloc(1, size))
GET(realloc, mi_realloc(NULL, size))
GET(zalloc, mi_zalloc(size))
GET(malloc_small, mi_malloc_small(size))
GET(zalloc_small, mi_zalloc_small(size))
GET(mallocn, mi_mallocn(size, 1))
GET(reallocn, mi_reallocn(NULL, 1, size))
GET(reallocf, mi_reallocf(NULL, size))
GET(rezalloc, mi_rezalloc(NULL, size))
GET(recalloc, mi_recalloc(NULL, size, 1))
GET(malloc_aligned, mi_malloc_aligned(size, alignment))
GET(malloc_aligned_at, mi_malloc_aligned_at(size, alignment, offset))
GET(zalloc_aligned, mi_zalloc_aligned(size, alignment))
GET(zalloc_aligned_at, mi_zalloc_aligned_at(size, alignment, offset))
GET(calloc_aligned, mi_calloc_aligned(1, size, alignment))
GET(calloc_aligned_at, mi_calloc_aligned_at(size, 1, alignment, offset))
GET(realloc_aligned, mi_realloc_aligned(NULL, size, alignment))
GET(realloc_aligned_at, mi_realloc_aligned_at(NULL, size, alignment, offset))
GET(rezalloc_aligned, mi_rezalloc_aligned(NULL, size, alignment))
GET(rezalloc_aligned_at, mi_rezalloc_aligned_at(NULL, size, alignment, offset))
GET(recalloc_aligned, mi_recalloc_aligned(NULL, size, 1, alignment))
GET(recalloc_aligned_at, mi_recalloc_aligned_at(NULL, 1, size, alignment, offset))
GET(aligned_recalloc, mi_aligned_recalloc(NULL, size, 1, alignment))
GET(aligned_offset_recalloc, mi_aligned_offset_recalloc(NULL, size, 1, alignment, offset))
GET(umalloc, mi_umalloc(size, NULL))
GET(ucalloc, mi_ucalloc(1, size, NULL))
GET(urealloc, mi_urealloc(NULL, size, NULL, NULL))
GET(umalloc_small, mi_umalloc_small(size, NULL))
GET(uzalloc_small, mi_uzalloc_small(size, NULL))
GET(umalloc_aligned, mi_umalloc_aligned(size, alignment, NULL))
GET(uzalloc_aligned, mi_uzalloc_aligned(size, alignment, NULL))
GET(posix_memalign, posix_memalign_result(size, alignment))
GET(memalign, mi_memalign(alignment, size))
GET(aligned_alloc, mi_aligned_alloc(alignment, size))
GET(valloc, mi_valloc(size))
GET(pvalloc, mi_pvalloc(size))
GET(reallocarray, mi_reallocarray(NULL, size, 1))
GET(new, mi_new(size))
GET(new_n, mi_new_n(size, 1))
GET(new_aligned, mi_new_aligned(size, alignment))
GET(new_nothrow, mi_new_nothrow(size))
GET(new_aligned_nothrow, mi_new_aligned_nothrow(size, alignment))
GET(new_realloc, mi_new_realloc(NULL, size))
GET(new_reallocn, mi_new_reallocn(NULL, 1, size))

static const get_t all_gets[] = {
    {"malloc", get_malloc, 0},
    {"calloc", get_calloc, E_ZERO},
    {"calloc(1,n)", get_calloc_2, E_ZERO},
    {"realloc", get_realloc, 0},
    {"zalloc", get_zalloc, E_ZERO},
    {"malloc_small", get_malloc_small, E_SMALL},
    {"zalloc_small", get_zalloc_small, E_ZERO | E_SMALL},
    {"mallocn", get_mallocn, 0},
    {"reallocn", get_reallocn, 0},
    {"reallocf", get_reallocf, 0},
    {"rezalloc", get_rezalloc, E_ZERO},
    {"recalloc", get_recalloc, E_ZERO},
    {"malloc_aligned", get_malloc_aligned, E_ALIGN},
    {"malloc_aligned_at", get_malloc_aligned_at, E_ALIGN | E_OFFSET},
    {"zalloc_aligned", get_zalloc_aligned, E_ZERO | E_ALIGN},
    {"zalloc_aligned_at", get_zalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"calloc_aligned", get_calloc_aligned, E_ZERO | E_ALIGN},
    {"calloc_aligned_at", get_calloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"realloc_aligned", get_realloc_aligned, E_ALIGN | E_RESIZE},
    {"realloc_aligned_at", get_realloc_aligned_at, E_ALIGN | E_OFFSET | E_RESIZE},
    {"rezalloc_aligned", get_rezalloc_aligned, E_ZERO | E_ALIGN | E_RESIZE},
    {"rezalloc_aligned_at", get_rezalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET | E_RESIZE},
    {"recalloc_aligned", get_recalloc_aligned, E_ZERO | E_ALIGN | E_RESIZE},
    {"recalloc_aligned_at", get_recalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET | E_RESIZE},
    {"aligned_recalloc", get_aligned_recalloc, E_ZERO | E_ALIGN | E_RESIZE},
    {"aligned_offset_recalloc", get_aligned_offset_recalloc, E_ZERO | E_ALIGN | E_OFFSET | E_RESIZE},
    {"umalloc", get_umalloc, 0},
    {"ucalloc", get_ucalloc, E_ZERO},
    {"urealloc", get_urealloc, 0},
    {"umalloc_small", get_umalloc_small, E_SMALL},
    {"uzalloc_small", get_uzalloc_small, E_ZERO | E_SMALL},
    {"umalloc_aligned", get_umalloc_aligned, E_ALIGN},
    {"uzalloc_aligned", get_uzalloc_aligned, E_ZERO | E_ALIGN},
    {"posix_memalign", get_posix_memalign, E_ALIGN | E_WORD | E_CODE},
    {"memalign", get_memalign, E_ALIGN},
    {"aligned_alloc", get_aligned_alloc, E_ALIGN},
    {"valloc", get_valloc, 0},
    {"pvalloc", get_pvalloc, E_PAGES},
    {"reallocarray", get_reallocarray, 0},
    {"new", get_new, E_NEW},
    {"new_n", get_new_n, E_NEW},
    {"new_aligned", get_new_aligned, E_ALIGN | E_NEW},
    {"new_nothrow", get_new_nothrow, 0},
    {"new_aligned_nothrow", get_new_aligned_nothrow, E_ALIGN},
    {"new_realloc", get_new_realloc, E_NEW},
    {"new_reallocn", get_new_reallocn, E_NEW},
};

// May `g` be asked for this?  Offsets go with the functions that take one only.
static inline bool get_allows(const get_t* g, size_t size, size_t alignment, size_t offset) {
  if ((g->flags & E_SMALL) != 0 && size > MI_SMALL_SIZE_MAX) return false;
  if ((g->flags & E_WORD) != 0 && alignment < sizeof(void*)) return false;
  if ((g->flags & E_RESIZE) != 0 && alignment <= sizeof(void*) && offset != 0) return false;
  return offset == 0 || (g->flags & E_OFFSET) != 0;
}

// ---- resizing -------------------------------------------------------------------------------------------------------

typedef struct resize_s {
  const char* name;
  void* (*call)(void* p, size_t size, size_t alignment, size_t offset);
  unsigned flags;
} resize_t;

#define RESIZE(name, expression) \
  static inline void* resize_##name(void* p, size_t size, size_t alignment, size_t offset) { \
    (void)alignment; \
    (void)offset; \
    return expression; \
  }

static inline void* reallocarr_result(void* p, size_t size) {
  return mi_reallocarr(&p, 1, size) == 0 ? p : NULL;
}

RESIZE(realloc, mi_realloc(p, size))
RESIZE(reallocn, mi_reallocn(p, 1, size))
RESIZE(urealloc, mi_urealloc(p, size, NULL, NULL))
RESIZE(reallocarray, mi_reallocarray(p, size, 1))
RESIZE(reallocarr, reallocarr_result(p, size))
RESIZE(new_realloc, mi_new_realloc(p, size))
RESIZE(new_reallocn, mi_new_reallocn(p, 1, size))
RESIZE(rezalloc, mi_rezalloc(p, size))
RESIZE(recalloc, mi_recalloc(p, 1, size))
RESIZE(realloc_aligned, mi_realloc_aligned(p, size, alignment))
RESIZE(realloc_aligned_at, mi_realloc_aligned_at(p, size, alignment, offset))
RESIZE(rezalloc_aligned, mi_rezalloc_aligned(p, size, alignment))
RESIZE(rezalloc_aligned_at, mi_rezalloc_aligned_at(p, size, alignment, offset))
RESIZE(recalloc_aligned, mi_recalloc_aligned(p, 1, size, alignment))
RESIZE(recalloc_aligned_at, mi_recalloc_aligned_at(p, size, 1, alignment, offset))
RESIZE(aligned_recalloc, mi_aligned_recalloc(p, size, 1, alignment))
RESIZE(aligned_offset_recalloc, mi_aligned_offset_recalloc(p, 1, size, alignment, offset))

static const resize_t all_resizes[] = {
    {"realloc", resize_realloc, 0},
    {"reallocn", resize_reallocn, 0},
    {"urealloc", resize_urealloc, 0},
    {"reallocarray", resize_reallocarray, 0},
    {"reallocarr", resize_reallocarr, 0},
    {"new_realloc", resize_new_realloc, E_NEW},
    {"new_reallocn", resize_new_reallocn, E_NEW},
    {"rezalloc", resize_rezalloc, E_ZERO},
    {"recalloc", resize_recalloc, E_ZERO},
    {"realloc_aligned", resize_realloc_aligned, E_ALIGN},
    {"realloc_aligned_at", resize_realloc_aligned_at, E_ALIGN | E_OFFSET},
    {"rezalloc_aligned", resize_rezalloc_aligned, E_ZERO | E_ALIGN},
    {"rezalloc_aligned_at", resize_rezalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"recalloc_aligned", resize_recalloc_aligned, E_ZERO | E_ALIGN},
    {"recalloc_aligned_at", resize_recalloc_aligned_at, E_ZERO | E_ALIGN | E_OFFSET},
    {"aligned_recalloc", resize_aligned_recalloc, E_ZERO | E_ALIGN},
    {"aligned_offset_recalloc", resize_aligned_offset_recalloc, E_ZERO | E_ALIGN | E_OFFSET},
};

// ---- giving back ----------------------------------------------------------------------------------------------------

typedef struct put_s {
  const char* name;
  void (*call)(void* p, size_t size, size_t alignment);
  unsigned flags; // E_ALIGN: only for blocks that were got with this alignment; E_SMALL: from *_small only
} put_t;

#define PUT(name, statement) \
  static inline void put_##name(void* p, size_t size, size_t alignment) { \
    (void)size; \
    (void)alignment; \
    statement; \
  }

PUT(free, mi_free(p))
PUT(free_size, mi_free_size(p, size))
PUT(cfree, mi_cfree(p))
PUT(ufree, mi_ufree(p, NULL))
PUT(realloc, mi_free(mi_realloc(p, 0)))
PUT(free_aligned, mi_free_aligned(p, alignment))
PUT(free_size_aligned, mi_free_size_aligned(p, size, alignment))
PUT(free_small, mi_free_small(p))

static const put_t all_puts[] = {
    {"free", put_free, 0},
    {"free_size", put_free_size, 0},
    {"cfree", put_cfree, 0},
    {"ufree", put_ufree, 0},
    {"realloc(p,0)", put_realloc, 0},
    {"free_aligned", put_free_aligned, E_ALIGN},
    {"free_size_aligned", put_free_size_aligned, E_ALIGN},
    {"free_small", put_free_small, E_SMALL},
};

// May a block from `g` go back through `put`?
static inline bool put_allows(const put_t* put, const get_t* g) {
  if ((put->flags & E_SMALL) != 0) return (g->flags & E_SMALL) != 0;
  if ((put->flags & E_ALIGN) != 0) return (g->flags & E_ALIGN) != 0 && (g->flags & E_OFFSET) == 0;
  return true;
}

// How many bytes a block of this size from `g` was asked for: what its usable size is where blocks are padded, and what
// has to be said there when it is freed.
static inline size_t get_asked(const get_t* g, size_t size) {
  size_t page = (g->flags & E_PAGES) != 0 ? (size_t)sysconf(_SC_PAGESIZE) : 1;
  return size == 0 ? page - (page == 1) : (size + page - 1) / page * page;
}

// Does the usable size of a block agree with what was asked for?
static inline bool size_is_right(size_t usable, size_t asked) {
  return MI_PADDING ? usable == asked : usable >= asked;
}

// In hardened builds blocks of such a size are guarded: when those are resized they may stay or move.
static inline bool may_move(size_t size) {
  return MI_HARDENED && size >= 256 * KiB;
}

// The largest size that a block of `size` bytes can be resized to where it is.
static inline size_t room_of(size_t size) {
  void*  p = mi_malloc(size);
  size_t room = MI_PADDING ? mi_good_size(size) - MI_PADDING_SIZE : mi_usable_size(p);
  mi_free(p);
  return room;
}
