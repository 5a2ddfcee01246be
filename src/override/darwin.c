// malloc and its relatives on macOS: a table of functions that the loader replaces, and a zone.  Layer: override.
//
// Libraries refer to malloc of libSystem by the library's name, so a definition under the same name changes nothing for them.
// The shared library has a table (`__DATA,__interpose`) by which the loader binds the calls of all other images to ours.  Both it
// and a program that contains the library register a zone and make it the default one: that is where the system's malloc goes
// then, and how the system finds the owner of a block.  operator new and delete of the C++ library call malloc and free.
//
// MZ1  A block that is not ours goes back to the zone it came from.  There are such blocks from before the zone was registered,
//      and from zones of others.
// MZ2  The zone has no lock of its own: the handlers around fork hold those of the library (heap/fork.h), and the thread that
//      forks may allocate meanwhile.
#include "../prim/system.h"

#if defined(MI_MALLOC_OVERRIDE) && MI_SYSTEM_DARWIN

  #include <TargetConditionals.h>

  #if TARGET_OS_OSX

    #include <errno.h>
    #include <mach/mach.h>
    #include <malloc/malloc.h>
    #include <stdlib.h>

    #include "../api/names.h"
    #include "../prim/prim.h"
    #include "../support/stat.h"

    #if !defined(MI_OSX_INTERPOSE)
      #define MI_OSX_INTERPOSE 1
    #endif
    #if !defined(MI_OSX_ZONE)
      #define MI_OSX_ZONE 1
    #endif

// ---- blocks of others (MZ1) --------------------------------------------------------------------------------------------
// An address with a tag in its highest byte lies in none of our regions; so it counts as another's, and its owner knows better.

static inline bool darwin_is_own(const void* p) {
  return mi_is_in_heap_region(p);
}

// NULL for what is nobody's, and for NULL.
static malloc_zone_t* darwin_owner(const void* p) {
  return p == NULL || darwin_is_own(p) ? NULL : malloc_zone_from_ptr(p);
}

static void darwin_free(void* p) {
  malloc_zone_t* owner = darwin_owner(p);
  if (mi_unlikely(owner != NULL)) malloc_zone_free(owner, p);
  else mi_free(p);
}

static void* darwin_realloc(void* p, size_t size) {
  malloc_zone_t* owner = darwin_owner(p);
  return mi_unlikely(owner != NULL) ? malloc_zone_realloc(owner, p, size) : mi_realloc(p, size);
}

  // ---- the table --------------------------------------------------------------------------------------------------------

    #if MI_OSX_INTERPOSE && defined(MI_SHARED_LIB)

static void* darwin_reallocf(void* p, size_t size) {
  void* q = darwin_realloc(p, size);
  if (q == NULL && size != 0) darwin_free(p);
  return q;
}

static size_t darwin_size(const void* p) {
  return darwin_is_own(p) ? mi_usable_size(p) : malloc_size(p);
}

typedef struct darwin_pair_s {
  const void* ours;
  const void* theirs;
} darwin_pair_t;

      #define DARWIN_PAIR(ours, theirs) {(const void*)&(ours), (const void*)&(theirs)}

// clang-format off
__attribute__((used, section("__DATA,__interpose"))) static const darwin_pair_t darwin_pairs[] = {
  DARWIN_PAIR(mi_malloc,         malloc),
  DARWIN_PAIR(mi_calloc,         calloc),
  DARWIN_PAIR(darwin_realloc,    realloc),
  DARWIN_PAIR(darwin_reallocf,   reallocf),
  DARWIN_PAIR(darwin_free,       free),
  DARWIN_PAIR(mi_valloc,         valloc),
  DARWIN_PAIR(mi_aligned_alloc,  aligned_alloc),
  DARWIN_PAIR(mi_posix_memalign, posix_memalign),
  DARWIN_PAIR(darwin_size,       malloc_size),
  DARWIN_PAIR(mi_good_size,      malloc_good_size),
};
    // clang-format on

    #endif

  // ---- the zone ---------------------------------------------------------------------------------------------------------

    #if MI_OSX_ZONE

static size_t zone_size(malloc_zone_t* zone, const void* p) {
  (void)zone;
  return darwin_is_own(p) ? mi_usable_size(p) : 0;
}

static void* zone_malloc(malloc_zone_t* zone, size_t size) {
  (void)zone;
  return mi_malloc(size);
}

static void* zone_calloc(malloc_zone_t* zone, size_t count, size_t size) {
  (void)zone;
  return mi_calloc(count, size);
}

static void* zone_valloc(malloc_zone_t* zone, size_t size) {
  (void)zone;
  return mi_valloc(size);
}

static void* zone_memalign(malloc_zone_t* zone, size_t align, size_t size) {
  (void)zone;
  return mi_memalign(align, size);
}

static void zone_free(malloc_zone_t* zone, void* p) {
  (void)zone;
  darwin_free(p);
}

static void zone_free_size(malloc_zone_t* zone, void* p, size_t size) {
  (void)zone, (void)size;
  darwin_free(p);
}

static void* zone_realloc(malloc_zone_t* zone, void* p, size_t size) {
  (void)zone;
  return darwin_realloc(p, size);
}

static void zone_destroy(malloc_zone_t* zone) {
  (void)zone; // it lives as long as the process
}

static unsigned zone_batch_malloc(malloc_zone_t* zone, size_t size, void** blocks, unsigned count) {
  unsigned n = 0;
  while (n < count && (blocks[n] = zone_malloc(zone, size)) != NULL) n++;
  return n;
}

static void zone_batch_free(malloc_zone_t* zone, void** blocks, unsigned count) {
  for (unsigned i = 0; i < count; i++) zone_free(zone, blocks[i]);
}

static size_t zone_pressure_relief(malloc_zone_t* zone, size_t goal) {
  (void)zone, (void)goal;
  int64_t before = mi_load_relaxed(&_mi_prim_calls.n_purged);
  mi_collect(true);
  return (size_t)(mi_load_relaxed(&_mi_prim_calls.n_purged) - before);
}

static boolean_t zone_claimed_address(malloc_zone_t* zone, void* p) {
  (void)zone;
  return darwin_is_own(p);
}

// ---- what tools ask the zone ------------------------------------------------------------------------------------------

// For tools that look into another process: they would have to find all pages of it there.  mi_heap_visit_blocks is for the
// process itself.
static kern_return_t zone_enumerate(task_t task, void* context, unsigned types, vm_address_t zone,
                                    memory_reader_t reader, vm_range_recorder_t recorder) {
  (void)task, (void)context, (void)types, (void)zone, (void)reader, (void)recorder;
  return KERN_NOT_SUPPORTED;
}

static size_t zone_good_size(malloc_zone_t* zone, size_t size) {
  (void)zone;
  return mi_good_size(size);
}

static boolean_t zone_check(malloc_zone_t* zone) {
  (void)zone;
  return true; // errors are reported when they are found (MIMALLOC_SHOW_ERRORS)
}

static void zone_print(malloc_zone_t* zone, boolean_t is_verbose) {
  (void)zone, (void)is_verbose;
  mi_stats_print(NULL);
}

static void zone_log(malloc_zone_t* zone, void* p) {
  (void)zone, (void)p;
}

static void zone_lock(malloc_zone_t* zone) {
  (void)zone; // MZ2
}

static size_t zone_bytes(mi_live_count_t* count, size_t other) {
  int64_t n = mi_load_relaxed(&count->current);
  return other + (n < 0 ? 0 : (size_t)n);
}

static void zone_statistics(malloc_zone_t* zone, malloc_statistics_t* stats) {
  (void)zone;
  size_t large = zone_bytes(&_mi_stat_live.malloc_huge, 0);
  stats->blocks_in_use = 0; // not counted
  stats->size_in_use = stats->max_size_in_use = stats->size_allocated =
      zone_bytes(&_mi_stat_live.page_committed, large);
}

static boolean_t zone_is_locked(malloc_zone_t* zone) {
  (void)zone;
  return false;
}

// ---- its registration -------------------------------------------------------------------------------------------------

static malloc_introspection_t zone_introspection;
static malloc_zone_t          zone_own;

static void zone_fill(void) {
  zone_introspection.enumerator = &zone_enumerate;
  zone_introspection.good_size = &zone_good_size;
  zone_introspection.check = &zone_check;
  zone_introspection.print = &zone_print;
  zone_introspection.log = &zone_log;
  zone_introspection.force_lock = &zone_lock;
  zone_introspection.force_unlock = &zone_lock;
  zone_introspection.reinit_lock = &zone_lock;
  zone_introspection.statistics = &zone_statistics;
  zone_introspection.zone_locked = &zone_is_locked;
  zone_own.size = &zone_size;
  zone_own.malloc = &zone_malloc;
  zone_own.calloc = &zone_calloc;
  zone_own.valloc = &zone_valloc;
  zone_own.free = &zone_free;
  zone_own.realloc = &zone_realloc;
  zone_own.destroy = &zone_destroy;
  zone_own.zone_name = "mimalloc";
  zone_own.batch_malloc = &zone_batch_malloc;
  zone_own.batch_free = &zone_batch_free;
  zone_own.introspect = &zone_introspection;
  zone_own.version = 10; // what is declared up to claimed_address is there
  zone_own.memalign = &zone_memalign;
  zone_own.free_definite_size = &zone_free_size;
  zone_own.pressure_relief = &zone_pressure_relief;
  zone_own.claimed_address = &zone_claimed_address;
}

// The first of all zones; NULL if the system does not say.
static malloc_zone_t* zone_first(void) {
  vm_address_t* zones = NULL;
  unsigned      n = 0;
  if (malloc_get_all_zones(mach_task_self(), NULL, &zones, &n) != KERN_SUCCESS || n == 0) return NULL;
  return (malloc_zone_t*)zones[0];
}

// The first zone is the default one.  One that is taken out leaves its place to the last, which is ours.  (The zone of purgeable
// memory is made from the first one, and so before.)
__attribute__((constructor)) static void zone_register(void) {
  enum { TRIES = 8 };
  int saved = errno;
  zone_fill();
  malloc_default_purgeable_zone();
  malloc_zone_register(&zone_own);
  for (int i = 0; i < TRIES; i++) {
    malloc_zone_t* first = zone_first();
    if (first == NULL || first == &zone_own) break;
    malloc_zone_unregister(first);
    malloc_zone_register(first);
  }
  errno = saved;
}

    #endif
  #endif
#endif
