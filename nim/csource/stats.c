/* What getOccupiedMem and getTotalMem of Nim return. */
#if __has_include("../../nim/csource/stats.c")
  #include "../../include/mimalloc-inline.h"
  #include "../../include/mimalloc-stats.h"
#else
  #include "include/mimalloc-inline.h"
  #include "include/mimalloc-stats.h"
#endif

/* A shared library may be another implementation of mimalloc, with other statistics or none: mi_inline_of is ours alone. */
#if defined(MI_NIM_DYNAMIC) && defined(__ELF__)
  #pragma weak mi_inline_of
  #pragma weak mi_stats_get
  #define HAS_STATS (mi_inline_of != NULL && mi_stats_get != NULL)
#elif defined(MI_NIM_DYNAMIC)
  #define HAS_STATS 0
#else
  #define HAS_STATS 1
#endif

size_t mi_nim_occupied(void);
size_t mi_nim_total(void);

/* Bytes in blocks in use; 0: unknown. */
size_t mi_nim_occupied(void) {
  mi_stats_t_decl(stats);
  return HAS_STATS && mi_stats_get(&stats) ? (size_t)stats.malloc_requested.current : 0;
}

/* Bytes that the library has from the system. */
size_t mi_nim_total(void) {
  size_t committed = 0;
  mi_process_info(NULL, NULL, NULL, NULL, NULL, &committed, NULL, NULL);
  return committed;
}
