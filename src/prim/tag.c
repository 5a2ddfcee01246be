// Memory tags: switching them on (Linux), and setting them (AArch64).  Layer: prim.  tag.h has the invariants.
#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE
#endif
#include "tag.h"

bool _mi_prim_has_tags;

#if MI_TAGS

  #include <errno.h>
  #include <sys/auxv.h>
  #include <sys/prctl.h>

  #include "../base/bits.h"

// Newer kernels than the headers we may be built with know these.
  #define TAG_SLICE       ((size_t)1 << 16) // a block's neighbours are looked at within so many bytes
  #define TAG_HWCAP2      (1ul << 18)       // HWCAP2_MTE
  #define TAG_PROTECTION  0x20              // PROT_MTE
  #define TAG_SET_CTRL    55                // PR_SET_TAGGED_ADDR_CTRL
  #define TAG_GET_CTRL    56                // PR_GET_TAGGED_ADDR_CTRL
  #define TAG_CTRL_ENABLE 1ul               // system calls take pointers with tags
  #define TAG_CTRL_SYNC   2ul               // a fault at the very access
  #define TAG_CTRL_MODES  6ul               // that, and a fault some time after it
  #define TAG_CTRL_ALL    (0xFFFEul << 3)   // all tags but 0 may be chosen

// Keeps the kind of faults that the program, or libc, has chosen.
static bool tag_set_thread(void) {
  int           saved = errno;
  long          old = prctl(TAG_GET_CTRL, 0, 0, 0, 0);
  unsigned long modes = (old < 0 ? 0 : (unsigned long)old & TAG_CTRL_MODES);
  unsigned long wanted = TAG_CTRL_ENABLE | TAG_CTRL_ALL | (modes == 0 ? TAG_CTRL_SYNC : modes);
  bool          ok = (prctl(TAG_SET_CTRL, wanted, 0, 0, 0) == 0);
  errno = saved;
  return ok;
}

void _mi_prim_tag_init(void) {
  int  saved = errno;
  bool has = ((getauxval(AT_HWCAP2) & TAG_HWCAP2) != 0);
  errno = saved;
  _mi_prim_has_tags = has && tag_set_thread();
}

void _mi_prim_tag_thread(void) {
  if (_mi_prim_has_tags) tag_set_thread();
}

int _mi_prim_tag_protection(void) {
  return _mi_prim_has_tags ? TAG_PROTECTION : 0;
}

  #define TAG_ASM(text, ...) __asm__ volatile(".arch armv8.5-a+memtag\n\t" text __VA_ARGS__)

static void* tag_read(void* p) {
  TAG_ASM("ldg %0, [%0]", : "+r"(p) : : "memory");
  return p;
}

static uintptr_t tag_bit(void* p) {
  return (uintptr_t)1 << (((uintptr_t)tag_read(p) >> 56) & 15);
}

static void tag_write(char* start, size_t size) {
  char* end = start + size;
  for (; end - start >= (ptrdiff_t)(2 * MI_TAG_GRANULE); start += 2 * MI_TAG_GRANULE)
    TAG_ASM("st2g %0, [%0]", : : "r"(start) : "memory");
  if (start < end) TAG_ASM("stg %0, [%0]", : : "r"(start) : "memory");
}

void _mi_prim_tag_clear(void* start, size_t size) {
  if (_mi_prim_has_tags) tag_write((char*)start, size);
}

// TG2.  Memory that the program brought need not hold tags: then it has tag 0 still.
void* _mi_prim_tag_block(void* p, size_t size) {
  if (!_mi_prim_has_tags) return p;
  char*     first = (char*)p;
  uintptr_t excluded = 1;
  if (!mi_is_aligned(first, TAG_SLICE)) excluded |= tag_bit(first - MI_TAG_GRANULE);
  if (!mi_is_aligned(first + size, TAG_SLICE)) excluded |= tag_bit(first + size);
  TAG_ASM("irg %0, %0, %1", : "+r"(first) : "r"(excluded) : "memory");
  tag_write(first, size);
  return tag_read(p);
}

void* _mi_prim_tag_pointer(const void* p) {
  return _mi_prim_has_tags ? tag_read((void*)p) : (void*)p;
}

#else

void _mi_prim_tag_init(void) {}

void _mi_prim_tag_thread(void) {}

int _mi_prim_tag_protection(void) {
  return 0;
}

void* _mi_prim_tag_block(void* p, size_t size) {
  (void)size;
  return p;
}

void _mi_prim_tag_clear(void* start, size_t size) {
  (void)start;
  (void)size;
}

void* _mi_prim_tag_pointer(const void* p) {
  return (void*)p;
}

#endif
