/* The whole library, for {.compile.} of patchedstd/mimalloc.nim.  In the source tree the library is where it always is; an
   installed package has a copy of it beside this file (mimalloc.nimble). */
#if __has_include("../../nim/csource/mimalloc.c")
  #include "../../src/static.c"
#elif __has_include("src/static.c")
  #include "src/static.c"
#else
  #error "the sources of mimalloc are missing: install the package with nimble, or use the complete source tree"
#endif

/* What Nim's runtime calls: the fast paths of malloc and free alone, and calls of the ordinary functions for all else.  They are
   declared inline because they are small enough to be inlined into the program when that is optimised with the library (-d:lto):
   then the size is a constant there.  Builds that check blocks have no fast paths of this kind. */
#define NIM_FAST (!MI_CHECKED && !MI_PADDING && !MI_TAGS && !MI_TSAN)
#if defined(__cplusplus)
  #define NIM_ENTRY extern "C" __attribute__((used)) inline
#else
  #define NIM_ENTRY inline
void* mi_nim_malloc(size_t size);
void* mi_nim_zalloc(size_t size);
void  mi_nim_free(void* p);
#endif

static mi_always_inline void* nim_pop(size_t size) {
  if (!NIM_FAST || mi_unlikely(size > MI_LIFE_SMALL_MAX)) return NULL;
  return _mi_theap_pop_fast(_mi_theap_default, _mi_size_class_small[size]);
}

NIM_ENTRY void* mi_nim_malloc(size_t size) {
  void* p = nim_pop(size);
  return mi_likely(p != NULL) ? p : mi_malloc(size);
}

/* Clears `size` bytes alone, which the compiler turns into stores; mi_rezalloc, which needs more, is not called on these. */
NIM_ENTRY void* mi_nim_zalloc(size_t size) {
  void* p = nim_pop(size);
  return mi_likely(p != NULL) ? memset(p, 0, size) : mi_zalloc(size);
}

/* A block of a page whose home is the thread's theap, but its bin is full. */
static mi_noinline void nim_free_overflow(mi_theap_t* theap, mi_page_t* page, void* p) mi_attr_noexcept {
  free_overflow(theap, page, (mi_block_t*)p);
}

/* Left to itself, gcc does not inline it: then -d:lto gains nothing for frees (docs/nim.md). */
NIM_ENTRY __attribute__((always_inline)) void mi_nim_free(void* p) {
  const mi_region_t* region = &_mi_region_all[0];
  size_t             slice = ((uintptr_t)p - mi_load_growing(&region->base)) >> MI_SLICE_SHIFT;
  if (NIM_FAST && mi_likely(slice < mi_load_growing(&region->n_slices))) {
    mi_page_t*  page = (mi_page_t*)_mi_region_descriptor(region, slice);
    mi_theap_t* theap = mi_load_relaxed(&page->home);
    if (mi_likely(theap == _mi_theap_default)) {
      mi_bin_t* bin = _mi_theap_bin(theap, page->bin_offset);
      int32_t   slots = bin->slots - 1;
      if (mi_unlikely(slots < 0)) {
        nim_free_overflow(theap, page, p);
        return;
      }
      bin->slots = slots; /* H1 of src/heap/theap.h */
      mi_compiler_fence();
      _mi_block_set_next((mi_block_t*)p, bin->head);
      bin->head = (mi_block_t*)p;
      return;
    }
  }
  mi_free(p);
}
