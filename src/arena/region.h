// Address space: where a slice lies, and where the descriptor of an address lies.  Layer: arena.
//
// A region is a range of address space, in chunks.  A table at a computed address has the descriptors of its slices.  Most
// regions are subregions of the span (subregion.h) and share its table.  A region outside of the span is one reserved range,
// or a range that the program provides and a reserved one for its tables:
//
//   base                                    table                          chunks        free_chunks  owners
//   +---------+---------+--------- - - -----+----------------- - - --------+---- - - ----+----------+---------- - - -----+
//   | chunk 0 | chunk 1 |   not yet opened  | 64 bytes a slice, read-only  | 32 bytes    | 1 bit    | 32 bytes a slice   |
//   +---------+---------+--------- - - -----+ until its chunk is opened ---+ a chunk - - + a chunk -+ where it is needed +
//   0                   n_open
//
// R1  `base` and `table` of a region do not change while it exists, and `n_slices` only grows, so every free reads them without
//     order: a thread that has a block sees `base`, and the load of n_slices (acquire) orders `table`.  A free of an address beyond
//     n_slices looks again, in order (_mi_region_search).  A free of NULL may read `base` before it is set, and n_slices afterwards.
//     It finds slice 0 then, but no page of its own thread, which has no theap yet; so the slow paths look whether it was NULL.
// R2  The descriptor of every slice below `n_slices` can be read; that of a slice that was never opened reads as zero, "not
//     in use".  Where the system charges for all that can be read, n_slices of a reservation grows as chunks are opened.
// R3  Chunks are opened from low to high addresses, so that the kernel keeps one mapping for all of them.
// R4  `base`, `table` and `n_slices` of region 0 are those of the whole span, so the fast paths, which look at region 0, find
//     the blocks of all subregions.
// R5  Memory that the program provides (GIVEN) is never unmapped or mapped by us, and pinned memory is not even purged.
//
// Huge-page regions (region 1 is the first) are for pages that will be filled soon, and for large blocks that are written all over
// (dense.h).  The system is asked to back them with huge pages, and keeping them together costs few kernel mappings.  Regions outside
// of the span are added if the span has ended or cannot be planned, for requests that fit in no region, and for memory that the program
// provides; a search on the slow path finds them.
#pragma once

#include "../base/bits.h"
#include "../base/public.h"
#include "../prim/lock.h"

#define MI_SLICE_SHIFT     16
#define MI_SLICE_SIZE      ((size_t)1 << MI_SLICE_SHIFT) // 64 KiB
#define MI_CHUNK_SLICES    32
#define MI_CHUNK_SIZE      (MI_CHUNK_SLICES * MI_SLICE_SIZE) // 2 MiB: what one huge OS page can back
#define MI_DESCRIPTOR_SIZE 64 // one cache line a slice: 0.1 % of the memory that it describes
#define MI_HEAP_LINK_SIZE  (4 * sizeof(void*))
#define MI_ADDRESS_BITS    48  // of the address of a block: the word of a page has room for as many (page/page_word.h)
#define MI_CHUNK_LONG      4   // buckets for runs that are longer than a chunk (chunk.h)
#define MI_REGION_GROUPS   128 // groups of chunks in a region, at most (chunk.h)
// As many as fit into a byte of a descriptor.  They cost nothing until they are used, except where all memory of a process is backed.
#define MI_REGION_COUNT    (MI_PRIM_VIRTUAL ? 256 : 16)
#define MI_REGION_MAPPED \
  (MI_REGION_COUNT - 1) // the number that descriptors of mapped blocks have (mapped.h); that region itself is empty

typedef enum mi_chunk_kind_e {
  MI_CHUNK_NONE,   // wholly free
  MI_CHUNK_SMALL,  // pages of one slice
  MI_CHUNK_MEDIUM, // pages of two to eight slices
  MI_CHUNK_MIXED,  // runs of any length up to a chunk, and the tails of longer ones
  MI_CHUNK_META,   // our own data
  MI_CHUNK_HUGE,   // pages of one slice that will be filled soon; in region 1
  MI_CHUNK_KINDS
} mi_chunk_kind_t;

// What slices are requested for.  The first ones take chunks of the kind that has their name (place.c).
typedef enum mi_request_e {
  MI_REQUEST_SMALL = MI_CHUNK_SMALL,
  MI_REQUEST_MEDIUM = MI_CHUNK_MEDIUM,
  MI_REQUEST_MIXED = MI_CHUNK_MIXED,
  MI_REQUEST_META = MI_CHUNK_META,
  MI_REQUEST_HUGE = MI_CHUNK_HUGE,
  MI_REQUEST_MEDIUM_HUGE = MI_CHUNK_KINDS, // a page of several slices that will be filled soon: MEDIUM, in huge pages
  MI_REQUEST_DENSE,                        // MIXED, for a large block of which all is going to be written (dense.h)
  MI_REQUEST_THIN,                         // ... of which little is
  MI_REQUEST_GROWN                         // ... that has grown and may grow again
} mi_request_t;

// A chunk with free slices is in a bucket for all of its free slices, and in one for those that are backed.
typedef enum mi_chunk_list_e { MI_CHUNK_BY_FREE, MI_CHUNK_BY_BACKED, MI_CHUNK_LISTS } mi_chunk_list_t;

// The state of a chunk; owned by the arena lock.
typedef struct mi_chunk_s {
  uint32_t free_bits;  // bit i: slice i is free
  uint32_t dirty_bits; // bit i: slice i may be backed by memory (and, if free, is not known to be zero)
  uint32_t stale_bits; // bit i: slice i is not known to be zero even if it is not dirty
  uint32_t next[MI_CHUNK_LISTS], prev[MI_CHUNK_LISTS]; // neighbours in its buckets, as chunk index + 1; 0 at the ends
  uint8_t  bucket[MI_CHUNK_LISTS];                     // how much it can still give (chunk.c); 0: in no bucket
  uint8_t  kind;                                       // mi_chunk_kind_t
  uint8_t  has_holes;                                  // hole.h; owned by the purge lock
} mi_chunk_t;

// Where the memory of a region comes from.
typedef enum mi_region_origin_e {
  MI_REGION_OWN,      // made by the allocator when it was needed; goes back when nothing of it is in use
  MI_REGION_RESERVED, // an arena that the program asked for
  MI_REGION_GIVEN,    // an arena of memory that the program provides; only the table and what follows it is ours
  MI_REGION_LOST      // address space that the system does not take back, or that may belong to somebody else by now
} mi_region_origin_t;

typedef struct mi_region_s {
  // Read by every free (R1).
  uintptr_t base;
  size_t    n_slices;
  char*     table;

  // Owned by the arena lock.
  size_t n_chunks; // does not change
  size_t n_usable; // chunks [n_usable, n_chunks) may not be handed out: somebody else's mapping is there, or no memory
  size_t n_open;   // chunks whose memory may be used
  size_t n_used;   // chunks [n_used, n_open) were never handed out
  size_t n_heap_links; // chunks whose heap links may be used
  mi_chunk_t* chunks;
  uint64_t*   free_chunks;              // bit i: chunk i < n_used is wholly free
  uint8_t     n_missing;                // slices at the end of the last open chunk that may not be used (part.h)
  uint8_t     group_shift;              // chunks of a group, as a power of two
  uint8_t group_room[MI_REGION_GROUPS]; // a bound on the number of free chunks side by side within the group (chunk.h)
  size_t  refused, refused_end;   // so many slices were not there when the region ended there, and none was freed since
  struct mi_region_s* next;       // the next one of our own, in the list of region 0 or, if it is_huge, of region 1
  char*               heap_links; // what page/page.h calls heap links
  size_t              committed;  // bytes, for the statistics

  // Set before anything is handed out.
  size_t           reserved_size; // bytes that go back with the region
  uint32_t*        uncommitted;   // of each chunk, bit i: slice i is not committed (commit.h); NULL: what is open is
  mi_commit_fun_t* commit;        // commits and decommits for the program; NULL: the system does
  void*            commit_arg;
  int              numa_node;    // -1: none in particular
  uint8_t          origin;       // mi_region_origin_t
  bool             is_planned;   // in the span, and nothing of it is mapped before it is opened
  bool             is_huge;      // for pages in huge-page chunks
  bool             is_exclusive; // only for heaps that name it
  bool             is_pinned;    // its contents do not go back
  bool             is_committed; // all of it may be used as it is
  bool             is_dirty;     // slices that were never handed out may hold something
  bool             is_fixed;     // its memory is no ordinary mapping of the library, and must not become one
  bool             is_damaged;   // chunks [n_usable, n_chunks) are LOST
  bool             wants_huge;   // huge OS pages for all of it
  bool             is_mixed_up;  // requests were served from chunks of other kinds, because there were no others

  // Owned by the arena lock.
  uint64_t nonempty[MI_CHUNK_LISTS][MI_CHUNK_KINDS];                     // bit b: bucket b has a chunk
  uint32_t buckets[MI_CHUNK_LISTS][MI_CHUNK_KINDS][MI_CHUNK_SLICES + 1]; // chunks by what they can still give
  uint32_t long_buckets[MI_CHUNK_LONG]; // chunks of the first list where a run begins that is longer than a chunk
  uint32_t nonempty_long;               // bit b: bucket b of those has one
} mi_region_t;

// Slices that are handed out together.
typedef struct mi_run_s {
  mi_region_t* region; // NULL: out of memory
  size_t       slice;  // index of the first
  size_t       n_slices;
  bool         is_zero;
} mi_run_t;

mi_static_assert(sizeof(mi_chunk_t) == 32, "a chunk's state must stay half a cache line");

#define MI_REGION_HUGE      1                          // index of the first huge-page region
#define MI_ARENA_ANY        0                          // no region in particular
#define MI_ARENA_NEAR(node) (MI_REGION_COUNT + (node)) // the same, but those of that NUMA node first

extern mi_region_t       _mi_region_all[MI_REGION_COUNT];
extern mi_lock_t         _mi_region_lock;       // guards all regions, except for what R1 says
extern mi_atomic(size_t) _mi_region_end;        // regions from here on were never used
extern mi_lock_t         _mi_region_purge_lock; // held while slices are out for purging; taken before the other

// n bytes were committed; negative: are no longer committed.
void _mi_region_count_committed(mi_region_t* region, int64_t n);

// The region has moved, or is there or not any more: for those who search.  Caller holds the arena lock.
void _mi_region_publish(const mi_region_t* region, uintptr_t base, size_t n_slices);

// The region of any address, or NULL; region 0 for all subregions of the span.  Searches the others.
mi_region_t* _mi_region_search(const void* p);

// Does any region, or its tables, have a part of this range?  Caller holds the arena lock.
mi_cold bool _mi_region_overlaps(const void* start, size_t size);

// Hides what is written here from leak checkers (prim.h).
void _mi_region_hide(void);

// Chooses the size of the groups: the smallest of at least 64 words of bits with which there are no more than MI_REGION_GROUPS.
static inline void _mi_region_set_groups(mi_region_t* region) {
  region->group_shift = 12;
  while (region->n_chunks > (size_t)MI_REGION_GROUPS << region->group_shift) region->group_shift++;
}

static inline size_t _mi_region_slice_index(const mi_region_t* region, const void* p) {
  return ((uintptr_t)p - region->base) >> MI_SLICE_SHIFT;
}

static inline void* _mi_region_descriptor(const mi_region_t* region, size_t slice) {
  return region->table + slice * MI_DESCRIPTOR_SIZE;
}

static inline void* _mi_region_heap_link(const mi_region_t* region, size_t slice) {
  return region->heap_links + slice * MI_HEAP_LINK_SIZE;
}

static inline char* _mi_region_slice_start(const mi_region_t* region, size_t slice) {
  return (char*)region->base + (slice << MI_SLICE_SHIFT);
}

// Is the slice known to read as zero?  Caller holds the arena lock.
static inline bool _mi_region_slice_is_zero(const mi_region_t* region, size_t slice) {
  const mi_chunk_t* chunk = &region->chunks[slice / MI_CHUNK_SLICES];
  return (((chunk->dirty_bits | chunk->stale_bits) >> (slice % MI_CHUNK_SLICES)) & 1) == 0;
}

static inline size_t _mi_region_index(const mi_region_t* region) {
  return (size_t)(region - _mi_region_all);
}

static inline size_t _mi_region_count(void) {
  return mi_load_acquire(&_mi_region_end);
}

// Is a huge OS page of such a system no larger than a chunk?  An OS page of a table of the processor has entries of 8 bytes,
// and a huge page is what one such table maps: 2 MiB with 4 KiB, 32 MiB with 16 KiB, 512 MiB with 64 KiB.
static inline bool _mi_region_fits_huge(size_t os_page_size) {
  return os_page_size / 8 * os_page_size <= MI_CHUNK_SIZE;
}

// May there be huge-page chunks?  Only if their memory asks for huge OS pages.
bool _mi_region_may_be_huge(void);

// Gives back what nobody needs of memory that the program does not commit itself, in the way that it prefers: with option purge_decommits=0
// the system may take it when it is short of memory.  False if that is not so, or if the system cannot: the caller gives it back at once.
bool _mi_region_discard(void* start, size_t size);

// Gives back at once what nobody needs of memory of ours: the program's locks of it (mlock) end.  A process that locks all of its memory
// keeps it.
int _mi_region_purge(void* start, size_t size);

static inline bool _mi_region_is_arena(const mi_region_t* region) {
  return region->base != 0 && region->origin != MI_REGION_OWN && region->origin != MI_REGION_LOST;
}

// Does its memory read as zero when the system has taken back the contents?
static inline bool _mi_region_purges_to_zero(const mi_region_t* region) {
  return region->origin == MI_REGION_OWN && !region->is_pinned && region->uncommitted == NULL;
}

// Do slices of the region count towards limits when they are handed out (limit.h, LI4)?  Where memory only grows, our own memory was
// counted before (window.h, WI6).
static inline bool _mi_region_is_counted(const mi_region_t* region) {
  if (region->origin == MI_REGION_OWN) return MI_PRIM_VIRTUAL;
  return region->origin != MI_REGION_GIVEN && !region->is_pinned;
}

// Is this region the only one that may serve a request?
static inline bool _mi_region_is_bound(size_t arena) {
  return arena != MI_ARENA_ANY && arena < MI_REGION_COUNT;
}
