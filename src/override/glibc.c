// glibc's extras: without them a program would ask an allocator that it does not use.  Layer: override.
#include <errno.h>
#include <stdio.h>

#include "../api/names.h"
#include "../arena/purge.h"
#include "../prim/prim.h"
#include "../support/message.h"
#include "../support/stat.h"

#if defined(MI_MALLOC_OVERRIDE) && defined(__GLIBC__)

  #include <malloc.h>

MI_NAMES_BEGIN

// What has gone back since the start.
static int64_t glibc_returned(void) {
  return mi_load_relaxed(&_mi_prim_calls.n_purged) + mi_load_relaxed(&_mi_prim_calls.n_discarded);
}

// As glibc has it: `pad` bytes that are free stay, as far as there are so many, and a purge may take up to a chunk more than it
// has to.
MI_NAMES_PUBLIC int malloc_trim(size_t pad) mi_attr_noexcept {
  int64_t before = glibc_returned();
  size_t  stay = (pad == 0 ? 0 : mi_div_up(mi_min(pad, SIZE_MAX / 2), MI_SLICE_SIZE) + MI_CHUNK_SLICES - 1);
  mi_collect(false);
  size_t given = _mi_purge_to(stay);
  return given > 0 || glibc_returned() != before ? 1 : 0;
}

// glibc's parameters tune what there is none of here.  Those that it has are accepted without effect, so that programs which
// ask for them go on; verbose output names them.
MI_NAMES_PUBLIC int mallopt(int param, int value) mi_attr_noexcept {
  static const int known[] = {M_MXFAST,  M_TRIM_THRESHOLD, M_TOP_PAD,    M_MMAP_THRESHOLD, M_MMAP_MAX,
                              M_PERTURB, M_CHECK_ACTION,   M_ARENA_TEST, M_ARENA_MAX};
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    if (known[i] != param) continue;
    _mi_message_print(1, "mallopt(%d, %d) has no effect here.\n", param, value);
    return 1;
  }
  return 0;
}

// Free blocks within pages are not told apart: they count as in use.
static size_t glibc_in_use(void) {
  int64_t n =
      mi_load_relaxed(&_mi_stat_live.page_committed.current) + mi_load_relaxed(&_mi_stat_live.malloc_huge.current);
  return n < 0 ? 0 : (size_t)n;
}

static size_t glibc_free(void) {
  return _mi_chunk_purgeable() * MI_SLICE_SIZE;
}

// All is in the arena, and nothing is mapped apart: so what is in use is `uordblks`, and what the system has given is `arena`, whether a
// program adds `hblkhd` to them or not.
  #if __GLIBC_PREREQ(2, 33)
MI_NAMES_PUBLIC struct mallinfo2 mallinfo2(void) mi_attr_noexcept {
  struct mallinfo2 info = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  info.uordblks = glibc_in_use();
  info.fordblks = info.keepcost = glibc_free();
  info.arena = info.uordblks + info.fordblks;
  return info;
}
  #endif

MI_NAMES_PUBLIC struct mallinfo mallinfo(void) mi_attr_noexcept {
  struct mallinfo info = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
  size_t          in_use = glibc_in_use(), free_bytes = glibc_free();
  info.uordblks = (int)in_use;
  info.fordblks = info.keepcost = (int)free_bytes;
  info.arena = (int)(in_use + free_bytes);
  return info;
}

MI_NAMES_PUBLIC void malloc_stats(void) mi_attr_noexcept {
  mi_stats_print(NULL);
}

MI_NAMES_PUBLIC int malloc_info(int options, FILE* file) mi_attr_noexcept {
  if (options != 0 || file == NULL) {
    errno = EINVAL;
    return -1;
  }
  char* json = mi_stats_get_json(0, NULL);
  if (json == NULL) return -1;
  fputs("<malloc version=\"1\"><statistics format=\"json\"><![CDATA[\n", file);
  fputs(json, file);
  fputs("]]></statistics></malloc>\n", file);
  mi_free(json);
  return 0;
}


MI_NAMES_END

#endif
