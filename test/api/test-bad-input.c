// Proves: what no program should ask for does what the header says: result, errno, the code that the handler gets and the
// message, one row for each; and nothing is lost: blocks are as they were, and a hundred thousand times later there is no more
// memory in use.
//
// What depends on the kind of build is said in the row: builds that check blocks see more.
#include "../check.h"
#include "../sink.h"
#include "heap-entries.h"
#include <mimalloc-stats.h>

enum { kept = 4711, n_small = 100, n_large = 3 * 1024 * 1024 };

static const size_t n_beyond = (size_t)PTRDIFF_MAX + 1;
static const size_t n_half = SIZE_MAX / 2 + 2; // times 2 overflows

static uint8_t*   small; // of n_small bytes, aligned to 64
static uint8_t*   large;
static void*      freed; // a block that was free'd, and nobody has allocated since
static mi_heap_t* heap;
static mi_heap_t* deleted; // a heap that was
static char       foreign[256];

static sink_t said;
static int    code; // the first one that was reported
static size_t n_codes;

static void record_error(int err, void* arg) {
  (void)arg;
  if (n_codes++ == 0) code = err;
}

typedef struct bad_s {
  const char* name;
  bool (*call)(void); // is the result right?
  int         error;  // errno afterwards; `kept`
  int         code;   // of the report; 0 none
  const char* text;   // in the message; of a warning, where there is no code and errno is kept ("": any or none)
} bad_t;

#define IN_CHECKED(code) (MI_CHECKED ? (code) : 0)
#define IN_DEBUG(code)   (MI_DEBUG > 0 ? (code) : 0)

#define BAD(name, expression) \
  static bool bad_##name(void) { \
    return expression; \
  }

static void check_row(const bad_t* row) {
  sink_clear(&said);
  n_codes = 0;
  code = 0;
  errno = kept;
  bool is_right = row->call();
  int  error = errno;
  bool is_warned = (row->code == 0 && row->error == kept && row->text != NULL);
  CHECK_FOR(is_right, "%s: the result", row->name);
  CHECK_FOR(error == row->error, "%s: errno %d, not %d", row->name, error, row->error);
  CHECK_FOR(code == row->code, "%s: %zu reports, code %d, not %d", row->name, n_codes, code, row->code);
  if (row->code != 0 || is_warned)
    CHECK_FOR(sink_has(&said, row->text), "%s: says '%s', not '%s'", row->name, said.text, row->text);
  else CHECK_FOR(said.length == 0, "%s: says '%s'", row->name, said.text);
  CHECK_FOR(pattern_check(small, n_small, 1) == n_small, "%s: the small block", row->name);
  CHECK_FOR(pattern_check(large, n_large, 2) == n_large, "%s: the large block", row->name);
}

// ---- sizes, counts ----------------------------------------------------------------------------------------------------

BAD(malloc, mi_malloc(hidden(n_beyond)) == NULL)
BAD(zalloc, mi_zalloc(hidden(SIZE_MAX)) == NULL)
BAD(calloc_1, mi_calloc(1, hidden(n_beyond)) == NULL)
BAD(calloc, mi_calloc(hidden(n_half), 2) == NULL)
BAD(mallocn, mi_mallocn(2, hidden(n_half)) == NULL)
BAD(realloc, mi_realloc(small, hidden(n_beyond)) == NULL)
BAD(realloc_large, mi_realloc(large, hidden(SIZE_MAX)) == NULL)
BAD(reallocn, mi_reallocn(small, hidden(n_half), 2) == NULL)
BAD(rezalloc, mi_rezalloc(large, hidden(n_beyond)) == NULL)
BAD(recalloc, mi_recalloc(small, hidden(n_half), 2) == NULL)
BAD(reallocarray, mi_reallocarray(small, hidden(n_half), 2) == NULL)
BAD(heap_malloc, mi_heap_malloc(heap, hidden(n_beyond)) == NULL)
BAD(heap_calloc, mi_heap_calloc(heap, hidden(n_half), 2) == NULL)
BAD(heap_realloc, mi_heap_realloc(heap, small, hidden(n_beyond)) == NULL)
BAD(new_nothrow, mi_new_nothrow(hidden(n_beyond)) == NULL)
BAD(try_new, mi_heap_try_new(heap, hidden(n_beyond), true) == NULL)
BAD(valloc, mi_valloc(hidden(n_beyond)) == NULL)
BAD(pvalloc, mi_pvalloc(hidden(SIZE_MAX)) == NULL)
BAD(expand, mi_expand(small, hidden(SIZE_MAX)) == NULL)
BAD(expand_errno, mi__expand(small, hidden(SIZE_MAX)) == NULL)
BAD(good_size, mi_good_size(hidden(SIZE_MAX)) == SIZE_MAX)
BAD(strndup, mi_strndup(NULL, hidden(SIZE_MAX)) == NULL && mi_heap_strndup(heap, NULL, 7) == NULL)

static bool bad_reallocarr(void) {
  void* p = small;
  return mi_reallocarr(&p, hidden(n_half), 2) == EOVERFLOW && p == small;
}

static bool bad_reallocarr_size(void) {
  void* p = small;
  return mi_reallocarr(&p, 1, hidden(0)) == EINVAL && p == small;
}

static bool bad_reallocf(void) {
  return mi_reallocf(mi_malloc(50), hidden(n_beyond)) == NULL;
}

static const bad_t bad_sizes[] = {
    {"malloc", bad_malloc, ENOMEM, EOVERFLOW, "too large"},
    {"zalloc", bad_zalloc, ENOMEM, EOVERFLOW, "too large"},
    {"calloc(1,n)", bad_calloc_1, ENOMEM, EOVERFLOW, "too large"},
    {"calloc", bad_calloc, ENOMEM, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"mallocn", bad_mallocn, ENOMEM, IN_DEBUG(EOVERFLOW), "2 times"},
    {"realloc", bad_realloc, ENOMEM, EOVERFLOW, "too large"},
    {"realloc of large", bad_realloc_large, ENOMEM, EOVERFLOW, "too large"},
    {"reallocn", bad_reallocn, ENOMEM, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"rezalloc", bad_rezalloc, ENOMEM, EOVERFLOW, "too large"},
    {"recalloc", bad_recalloc, ENOMEM, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"reallocarray", bad_reallocarray, EOVERFLOW, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"reallocarr", bad_reallocarr, EOVERFLOW, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"reallocarr, size", bad_reallocarr_size, EINVAL, 0, NULL},
    {"reallocf", bad_reallocf, ENOMEM, EOVERFLOW, "too large"},
    {"heap_malloc", bad_heap_malloc, ENOMEM, EOVERFLOW, "too large"},
    {"heap_calloc", bad_heap_calloc, ENOMEM, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"heap_realloc", bad_heap_realloc, ENOMEM, EOVERFLOW, "too large"},
    {"new_nothrow", bad_new_nothrow, ENOMEM, EOVERFLOW, "too large"},
    {"heap_try_new", bad_try_new, ENOMEM, EOVERFLOW, "too large"},
    {"valloc", bad_valloc, ENOMEM, EOVERFLOW, "too large"},
    {"pvalloc", bad_pvalloc, ENOMEM, EOVERFLOW, "too large"},
    {"expand", bad_expand, kept, 0, NULL},
    {"_expand", bad_expand_errno, ENOMEM, 0, NULL},
    {"good_size", bad_good_size, kept, 0, NULL},
    {"strndup", bad_strndup, kept, 0, NULL},
};

// ---- alignments, offsets ----------------------------------------------------------------------------------------------

static const size_t a_highest = ~(SIZE_MAX >> 1);
static const size_t n_highest = (sizeof(void*) > 4 ? 100 : PTRDIFF_MAX - MiB); // with 32 bits there is such an address

BAD(align_0, mi_malloc_aligned(100, hidden(0)) == NULL)
BAD(align_3, mi_malloc_aligned(100, hidden(3)) == NULL)
BAD(align_max, mi_zalloc_aligned(100, hidden(SIZE_MAX)) == NULL)
BAD(align_highest, mi_malloc_aligned(n_highest, hidden(a_highest)) == NULL)
BAD(align_size, mi_malloc_aligned(hidden(n_beyond), 64) == NULL)
BAD(align_both, mi_malloc_aligned(hidden(SIZE_MAX), hidden(24)) == NULL)
BAD(align_calloc, mi_calloc_aligned(hidden(n_half), 2, 64) == NULL)
BAD(align_realloc, mi_realloc_aligned(small, 200, hidden(24)) == NULL)
BAD(align_realloc_at, mi_realloc_aligned_at(small, 200, hidden(3), 1) == NULL)
BAD(align_rezalloc_at_0, mi_rezalloc_aligned_at(small, 200, hidden(0), 1) == NULL)
BAD(align_realloc_highest, mi_realloc_aligned(small, n_highest, hidden(a_highest)) == NULL)
BAD(align_recalloc, mi_recalloc_aligned(small, hidden(n_half), 2, 64) == NULL)
BAD(align_heap, mi_heap_malloc_aligned(heap, 100, hidden(48)) == NULL)
BAD(align_alloc, mi_aligned_alloc(hidden(48), 100) == NULL && mi_memalign(hidden(48), 100) == NULL)
BAD(align_nothrow, mi_new_aligned_nothrow(100, hidden(3)) == NULL)
BAD(align_umalloc, mi_umalloc_aligned(100, hidden(0), NULL) == NULL)

static bool bad_posix(size_t alignment, size_t size, int wanted) {
  void* p = &said;
  return mi_posix_memalign(&p, alignment, size) == wanted && p == &said;
}

BAD(posix_0, bad_posix(0, 100, EINVAL))
BAD(posix_4, bad_posix(sizeof(void*) / 2, 100, EINVAL))
BAD(posix_24, bad_posix(24, 100, EINVAL))
BAD(posix_null, mi_posix_memalign((void**)hidden_pointer(NULL), 64, 100) == EINVAL)
BAD(posix_size, bad_posix(64, hidden(n_beyond), ENOMEM))
BAD(posix_highest, bad_posix(a_highest, n_highest, ENOMEM))

// An offset may be anything.
static bool bad_offset(size_t offset) {
  uint8_t* p = (uint8_t*)mi_malloc_aligned_at(100, 256, offset);
  uint8_t* q = (uint8_t*)mi_heap_zalloc_aligned_at(heap, 100, 4096, offset);
  bool     is_right = p != NULL && is_aligned((void*)((uintptr_t)p + offset), 256) && q != NULL &&
                  is_aligned((void*)((uintptr_t)q + offset), 4096) && is_zero(q, 0, 100);
  mi_free(p);
  mi_free(q);
  return is_right;
}

BAD(offset_beyond, bad_offset(4711))
BAD(offset_max, bad_offset(SIZE_MAX))
BAD(offset_half, bad_offset(n_beyond))

static const bad_t bad_alignments[] = {
    {"alignment 0", bad_align_0, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"alignment 3", bad_align_3, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"alignment SIZE_MAX", bad_align_max, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"the highest alignment", bad_align_highest, ENOMEM, ENOMEM, "unable to allocate"},
    {"size", bad_align_size, ENOMEM, EOVERFLOW, "too large"},
    {"size and alignment", bad_align_both, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"calloc_aligned", bad_align_calloc, ENOMEM, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"realloc_aligned", bad_align_realloc, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"realloc_aligned_at", bad_align_realloc_at, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"rezalloc_aligned_at", bad_align_rezalloc_at_0, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"realloc_aligned, highest", bad_align_realloc_highest, ENOMEM, ENOMEM, "unable to allocate"},
    {"recalloc_aligned", bad_align_recalloc, ENOMEM, IN_DEBUG(EOVERFLOW), "times 2 bytes"},
    {"heap_malloc_aligned", bad_align_heap, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"aligned_alloc, memalign", bad_align_alloc, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"new_aligned_nothrow", bad_align_nothrow, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"umalloc_aligned", bad_align_umalloc, EINVAL, IN_DEBUG(EOVERFLOW), "power of two"},
    {"posix_memalign 0", bad_posix_0, kept, 0, NULL},
    {"posix_memalign, half a pointer", bad_posix_4, kept, 0, NULL},
    {"posix_memalign 24", bad_posix_24, kept, 0, NULL},
    {"posix_memalign NULL", bad_posix_null, kept, 0, NULL},
    {"posix_memalign, size", bad_posix_size, kept, EOVERFLOW, "too large"},
    {"posix_memalign, highest", bad_posix_highest, kept, ENOMEM, "unable to allocate"},
    {"offset beyond the block", bad_offset_beyond, kept, 0, NULL},
    {"offset SIZE_MAX", bad_offset_max, kept, 0, NULL},
    {"offset PTRDIFF_MAX + 1", bad_offset_half, kept, 0, NULL},
};

// ---- pointers ---------------------------------------------------------------------------------------------------------

static bool bad_free(void* p) {
  mi_free((void*)hidden_pointer(p));
  return true;
}

// All functions that take a block, with something that is none in any build.
static bool bad_others(const void* p) {
  void* q = (void*)hidden_pointer(p);
  mi_cfree(q);
  return mi_usable_size(q) == 0 && mi_malloc_usable_size(q) == 0 && mi_expand(q, 1) == NULL && mi_heap_of(q) == NULL &&
         !mi_heap_contains(heap, q) && !mi_any_heap_contains(q) && !mi_is_in_heap_region(q) && !mi_check_owned(q) &&
         !mi_heap_contains_block(heap, q) && !mi_heap_check_owned(heap, q);
}

static bool bad_resizes(void* p) {
  size_t n = 0;
  for (size_t i = 0; i < COUNT_OF(all_resizes); i++) {
    if ((all_resizes[i].flags & E_NEW) == 0) n += (all_resizes[i].call((void*)hidden_pointer(p), 200, 64, 0) == NULL);
    else n++;
  }
  for (size_t i = 0; i < COUNT_OF(all_heap_resizes); i++) {
    n += (all_heap_resizes[i].call(heap, (void*)hidden_pointer(p), 200, 64, 0) == NULL);
  }
  return n == COUNT_OF(all_resizes) + COUNT_OF(all_heap_resizes);
}

// The code that reallocarr gives, if it leaves the pointer alone.
static int resize_in_place(void* p) {
  void* q = (void*)hidden_pointer(p);
  int   result = mi_reallocarr(&q, 50, 4);
  return q == p ? result : -1;
}

static bool bad_null(void) {
  void*  null = (void*)hidden_pointer(NULL);
  size_t n = 77;
  mi_free(null);
  mi_free_size(null, 100);
  mi_free_aligned(null, 64);
  mi_free_size_aligned(null, 100, 64);
  mi_free_small(null);
  mi_ufree(null, &n);
  mi_cfree(null);
  return n == 77 && bad_others(null);
}

static bool bad_strings(void) {
  char* null = (char*)hidden_pointer(NULL);
  return mi_strdup(null) == NULL && mi_strndup(null, 3) == NULL && mi_heap_strdup(heap, null) == NULL &&
         mi_wcsdup((wchar_t*)(void*)null) == NULL && mi_mbsdup((unsigned char*)null) == NULL &&
         mi_dupenv_s(NULL, NULL, "HOME") == EINVAL && mi_dupenv_s(&null, NULL, NULL) == EINVAL;
}

BAD(free_static, bad_free(foreign + 16))
BAD(free_low, bad_free((void*)64))
BAD(free_high, bad_free((void*)(UINTPTR_MAX - 63)))
BAD(free_in_large, bad_free(large + 64))
BAD(free_far_in_large, bad_free(large + 1 * MiB))
BAD(free_in_small, bad_free(small + 16))
BAD(free_odd, bad_free(small + 3))
BAD(free_freed, bad_free(freed))
BAD(others_foreign, bad_others(foreign + 16))
BAD(others_high, bad_others((void*)(UINTPTR_MAX - 63)))
BAD(resize_foreign, bad_resizes(foreign + 16))
BAD(resize_in_large, bad_resizes(large + 64))
BAD(resize_far_in_large, bad_resizes(large + 1 * MiB))
BAD(resize_in_small, bad_resizes(small + 16))
BAD(resize_freed, bad_resizes(freed))
BAD(usable_in_large, mi_usable_size(hidden_pointer(large + 64)) == 0)
BAD(usable_far_in_large, mi_usable_size(hidden_pointer(large + 1 * MiB)) == 0)
BAD(usable_freed, mi_usable_size(hidden_pointer(freed)) == 0)
BAD(expand_in_large, mi_expand((void*)hidden_pointer(large + 64), 1) == NULL)
BAD(expand_in_small, mi_expand((void*)hidden_pointer(small + 16), 1) == NULL)
BAD(expand_freed, mi_expand((void*)hidden_pointer(freed), 1) == NULL)
BAD(reallocf_foreign, mi_reallocf((void*)hidden_pointer(foreign + 16), 100) == NULL)
BAD(reallocarr_foreign, resize_in_place(foreign + 16) == EINVAL)
BAD(wrong_size, (mi_free_size(small, n_small + 1), true))
BAD(wrong_size_large, (mi_free_size(large, n_large - 1), true))
BAD(wrong_size_aligned, (mi_free_size_aligned(small, n_small / 2, 64), true))
BAD(wrong_alignment, (mi_free_aligned(small, hidden(POWER_OF_TWO(40))), true))

static const bad_t bad_pointers[] = {
    {"NULL", bad_null, kept, 0, NULL},
    {"NULL strings", bad_strings, kept, 0, NULL},
    {"free of static data", bad_free_static, kept, EINVAL, "no block of this allocator"},
    {"free of a low address", bad_free_low, kept, EINVAL, "no block of this allocator"},
    {"free of a high address", bad_free_high, kept, EINVAL, "no block of this allocator"},
    {"free within a large block", bad_free_in_large, kept, EINVAL, "lies within the block"},
    {"free far within a large block", bad_free_far_in_large, kept, EINVAL, "lies within the block"},
    {"asking about static data", bad_others_foreign, kept, 0, NULL},
    {"asking about a high address", bad_others_high, kept, 0, NULL},
    {"resize of static data", bad_resize_foreign, EINVAL, EINVAL, "no block of this allocator"},
    {"resize within a large block", bad_resize_in_large, EINVAL, EINVAL, "within the block"},
    {"resize far within a large block", bad_resize_far_in_large, EINVAL, EINVAL, "within the block"},
    {"reallocf of static data", bad_reallocf_foreign, EINVAL, EINVAL, "no block of this allocator"},
    {"reallocarr of static data", bad_reallocarr_foreign, EINVAL, EINVAL, "no block of this allocator"},
    {"usable size within a large block", bad_usable_in_large, kept, IN_CHECKED(EINVAL),
     MI_CHECKED ? "within the block" : NULL},
    {"usable size far within a large block", bad_usable_far_in_large, kept, IN_CHECKED(EINVAL),
     MI_CHECKED ? "within the block" : NULL},
    {"expand within a large block", bad_expand_in_large, kept, IN_CHECKED(EINVAL),
     MI_CHECKED ? "within the block" : NULL},
};

// Where blocks are not checked these do damage.
static const bad_t bad_checked[] = {
    {"free within a block", bad_free_in_small, kept, EINVAL, "lies 16 bytes into the block"},
    {"free of an odd address", bad_free_odd, kept, EINVAL, "lies 3 bytes into the block"},
    {"free of a freed block", bad_free_freed, kept, EAGAIN, "double free"},
    {"resize within a block", bad_resize_in_small, EINVAL, EINVAL, "lies 16 bytes into the block"},
    {"resize of a freed block", bad_resize_freed, EINVAL, EAGAIN, "which is free already"},
    {"usable size of a freed block", bad_usable_freed, kept, EAGAIN, "which is free already"},
    {"expand within a block", bad_expand_in_small, kept, EINVAL, "expand of an invalid pointer"},
    {"expand of a freed block", bad_expand_freed, kept, EAGAIN, "expand of the block"},
    {"free with the wrong size", bad_wrong_size, kept, EINVAL, "wrong size"},
    {"free of a large block with the wrong size", bad_wrong_size_large, kept, EINVAL, "wrong size"},
    {"aligned free with the wrong size", bad_wrong_size_aligned, kept, EINVAL, "wrong size"},
    {"free with the wrong alignment", bad_wrong_alignment, kept, EINVAL, "wrong alignment"},
};

// Frees that name a size or an alignment, of a pointer that is no block of a page, or may lie behind all of them.
static void free_wrongly(uint8_t* p, size_t size) {
  n_codes = 0;
  code = 0;
  mi_free_size((void*)hidden_pointer(p), size);
  mi_free_aligned((void*)hidden_pointer(p), 8);
  mi_free_size_aligned((void*)hidden_pointer(p), size, 8);
  CHECK_FOR(n_codes == 3 && code == EINVAL, "%p, %zu bytes: %zu reports, code %d", (void*)p, size, n_codes, code);
}

// Into each block of at least a page; behind the last one memory may be inaccessible.
static void check_whole_pages(size_t size) {
  static uint8_t* blocks[2 * 64 * KiB / 40];
  size_t          n = 2 * 64 * KiB / size;
  for (size_t i = 0; i < n; i++) blocks[i] = (uint8_t*)mi_malloc(size);
  for (size_t i = 0; i < n; i++) {
    free_wrongly(blocks[i] + 8, size);
    free_wrongly(blocks[i] + size - 8, size);
    if (MI_HARDENED) free_wrongly((uint8_t*)((uintptr_t)blocks[i] | (64 * KiB - 1)) - 7, size); // behind the last
  }
  sink_clear(&said);
  n_codes = 0;
  for (size_t i = 0; i < n; i++) mi_free_size(blocks[i], size);
  CHECK_EQ(n_codes, 0);
}

// The thread may keep a freed one for its next request: then it is no block for all that.
static void check_freed_large(size_t size) {
  const size_t sizes[] = {200, size / 2 + 1, size - 1, size, size + 100 * KiB, 2 * size, 20 * MiB};
  void*        p = mi_malloc(size);
  mi_free(p);
  for (size_t i = 0; i < COUNT_OF(sizes); i++) {
    n_codes = 0;
    errno = kept;
    void* q = mi_realloc((void*)hidden_pointer(p), sizes[i]);
    CHECK_FOR(q == NULL && errno == EINVAL && n_codes == 1, "%zu to %zu: %p, errno %d, %zu reports", size, sizes[i], q,
              errno, n_codes);
  }
  void *a = mi_malloc(size), *b = mi_malloc(size);
  CHECK_FOR(a != b, "%zu", size);
  mi_free(a);
  mi_free(b);
  sink_clear(&said);
}

// ---- heaps, arenas, subprocesses, options, statistics -------------------------------------------------------------------

static bool bad_null_heap(void) {
  void* p = mi_heap_malloc(NULL, 100);
  bool  is_right = (p != NULL && mi_heap_contains(NULL, p) && mi_heap_contains(mi_heap_main(), p));
  p = mi_heap_realloc(NULL, p, 1000);
  is_right = is_right && p != NULL && mi_heap_of(p) == mi_heap_main();
  mi_free(p);
  mi_heap_delete(NULL);
  mi_heap_destroy(NULL);
  mi_heap_collect(NULL, false);
  mi_heap_set_numa_affinity(NULL, -1);
  return is_right && mi_heap_set_default(NULL) == NULL && mi_heap_get_default() == mi_heap_main();
}

static bool bad_no_visitor(void) {
  return !mi_heap_visit_blocks(heap, true, NULL, NULL) && !mi_heap_visit_abandoned_blocks(heap, true, NULL, NULL) &&
         !mi_unsafe_heap_page_is_under_utilized(heap, NULL, 50);
}

static bool bad_deleted_gets(void) {
  size_t n = 0;
  for (size_t i = 0; i < COUNT_OF(all_heap_gets); i++) {
    if ((all_heap_gets[i].flags & (E_NEW | E_SMALL)) != 0 || strncmp(all_heap_gets[i].name, "theap", 5) == 0) continue;
    n += (all_heap_gets[i].call(deleted, 100, 64, 0) != NULL);
  }
  return n == 0;
}

BAD(deleted_delete, (mi_heap_delete(deleted), true))
BAD(deleted_destroy, (mi_heap_destroy(deleted), true))
BAD(deleted_realloc, mi_heap_realloc(deleted, small, 1000) == NULL)
BAD(deleted_default, mi_heap_set_default(deleted) == NULL && mi_heap_get_default() == mi_heap_main())
BAD(deleted_theap, MI_API_LEVEL < 3 || mi_heap_theap(deleted) == NULL) // at level 2 the heap itself
BAD(deleted_contains, !mi_heap_contains(deleted, small))

static bool bad_arenas(void) {
  for (long id = -3; id < 300; id += (id < 0 || id > 250 ? 1 : 50)) {
    if (id == 0) continue;
    size_t        n = 77;
    mi_arena_id_t none = (mi_arena_id_t)(intptr_t)(id < 0 ? id : id + 1000);
    if (mi_arena_area(none, &n) != NULL || n != 0 || mi_arena_contains(none, small)) return false;
  }
  return true;
}

static bool bad_reserve(void) {
  mi_arena_id_t id;
  memset(&id, 0xAA, sizeof(id));
  return mi_reserve_os_memory_ex(hidden(SIZE_MAX), false, false, true, &id) == ENOMEM &&
         mi_arena_area(id, NULL) == NULL && mi_reserve_huge_os_pages_at(0, -1, 0) == 0 &&
         mi_reserve_huge_os_pages_interleave(0, 0, 0) == 0 && !mi_manage_os_memory(NULL, 0, true, false, false, -1) &&
         !mi_manage_os_memory(foreign, 256, true, false, false, -1);
}

static bool bad_options(void) {
  static const int none[] = {-1,        -1000,    _mi_option_last, _mi_option_last + 1, _mi_option_last + 1000,
                             INT32_MAX, INT32_MIN};
  bool             is_right = true;
  for (size_t i = 0; i < COUNT_OF(none); i++) {
    mi_option_t option = (mi_option_t)none[i];
    mi_option_set(option, 1);
    mi_option_set_default(option, 1);
    mi_option_enable(option);
    mi_option_set_enabled_default(option, true);
    is_right = is_right && mi_option_get(option) == 0 && !mi_option_is_enabled(option) &&
               mi_option_get_size(option) == 0 && mi_option_get_clamp(option, 5, 9) == 5;
  }
  return is_right;
}

static bool bad_stats(void) {
  static mi_stats_t stats;
  stats.size = sizeof(stats) - 8;
  stats.version = MI_STAT_VERSION;
  bool is_right = !mi_stats_get(&stats) && !mi_stats_get(NULL) && !mi_heap_stats_get(heap, NULL);
  stats.size = sizeof(stats);
  stats.version = MI_STAT_VERSION + 1;
  return is_right && !mi_stats_get(&stats) && mi_stats_as_json(&stats, 0, NULL) == NULL &&
         mi_stats_as_json(NULL, 0, NULL) == NULL && mi_stats_get_bin_size(hidden(SIZE_MAX)) == 0;
}

static const bad_t bad_handles[] = {
    {"NULL heap", bad_null_heap, kept, 0, NULL},
    {"no visitor", bad_no_visitor, kept, 0, NULL},
    {"allocation from a deleted heap", bad_deleted_gets, ENOMEM, ENOMEM, "unable to allocate"},
    {"resize into a deleted heap", bad_deleted_realloc, ENOMEM, ENOMEM, "unable to allocate"},
    {"a second delete of a heap", bad_deleted_delete, kept, EINVAL, "not in use"},
    {"destroy of a deleted heap", bad_deleted_destroy, kept, EINVAL, "not in use"},
    {"a deleted heap as default", bad_deleted_default, kept, 0, NULL},
    {"theap of a deleted heap", bad_deleted_theap, kept, 0, NULL},
    {"contents of a deleted heap", bad_deleted_contains, kept, 0, NULL},
    {"arenas that do not exist", bad_arenas, kept, 0, NULL},
    {"memory that cannot be reserved", bad_reserve, kept, 0, "cannot be managed"},
    {"options that do not exist", bad_options, kept, 0, ""},
    {"statistics of another version", bad_stats, kept, 0, NULL},
};

// ---- all of it ----------------------------------------------------------------------------------------------------------

#define CHECK_ROWS(rows) \
  for (size_t row_i = 0; row_i < COUNT_OF(rows); row_i++) check_row(&(rows)[row_i])

static void check_all(void) {
  CHECK_ROWS(bad_sizes);
  CHECK_ROWS(bad_alignments);
  CHECK_ROWS(bad_pointers);
  if (MI_CHECKED) CHECK_ROWS(bad_checked);
  for (size_t size = 40; MI_CHECKED && size <= 5000; size *= 5) check_whole_pages(size);
  for (size_t size = 600 * KiB; size <= 4 * MiB; size *= 2) check_freed_large(size);
  CHECK_ROWS(bad_handles);
}

// What fails fast, very often.
static void repeat(const bad_t* rows, size_t n_rows, size_t times) {
  for (size_t i = 0; i < times; i++) rows[i % n_rows].call();
}

static void check_nothing_is_lost(void) {
  mi_option_disable(mi_option_show_errors);
  repeat(bad_sizes, COUNT_OF(bad_sizes), 2000);
  repeat(bad_alignments, COUNT_OF(bad_alignments), 2000);
  repeat(bad_pointers, COUNT_OF(bad_pointers), 2000);
  size_t before = rss_now();
  size_t times = (MI_DEBUG > 0 || MI_HARDENED || TEST_SANITIZED ? 20000 : 100000);
  repeat(bad_sizes, COUNT_OF(bad_sizes), times);
  repeat(bad_alignments, COUNT_OF(bad_alignments), times / 10); // each maps and unmaps
  repeat(bad_pointers, COUNT_OF(bad_pointers), times);
  if (MI_CHECKED) repeat(bad_checked, COUNT_OF(bad_checked), times);
  repeat(bad_handles, COUNT_OF(bad_handles), times / 10);
  CHECK(rss_within("resident after all that was refused", minus(rss_now(), before), 4 * MiB));
  CHECK(pattern_check(small, n_small, 1) == n_small && pattern_check(large, n_large, 2) == n_large);
}

int main(int argc, char** argv) {
  test_seed(argc, argv);
  mi_option_enable(mi_option_show_errors);
  mi_option_set(mi_option_max_errors, -1);
  mi_register_output(&sink_write, &said);
  mi_register_error(&record_error, NULL);
  heap = mi_heap_new();
  deleted = mi_heap_new();
  small = (uint8_t*)mi_malloc_aligned(n_small, 64);
  large = (uint8_t*)mi_malloc(n_large);
  freed = mi_malloc(7000);
  void* beside = mi_malloc(7000); // keeps the page what it is
  pattern_fill(small, 0, n_small, 1);
  pattern_fill(large, 0, n_large, 2);
  mi_heap_delete(deleted);
  mi_free(freed);
  check_all();
  check_nothing_is_lost();
  mi_free(beside);
  mi_free_size(small, n_small);
  mi_free_size_aligned(large, n_large, 16);
  mi_heap_delete(heap);
  mi_register_error(NULL, NULL);
  mi_register_output(NULL, NULL);
  return check_result();
}
