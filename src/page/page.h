// The page descriptor.  Layer: page.
//
// A page is a run of slices that holds blocks of one size class, or one large block.  Its descriptor is the entry of its
// first slice in the region's table: it is found by arithmetic, and never lies in the program's memory.
//
//   capacity blocks:   | handed out or in a bin ... | on `free` | on the chain | not yet made |
//                      |<------------ used ------------------------------->|
//                                                  (the chain's blocks count as used until they are taken)
//
// P1  used = extended - length of `free`, and used <= extended <= capacity.  (Gap pages count otherwise: heap/gaps.h, GP3 and GP4.)
// P2  `extended` blocks have been made, that is, linked once: those from _mi_page_first_made on, wrapping around at the end of the page.
//     With MI_PAGE_IS_ZERO the memory of the others has not been touched since the page was made.
// P3  `home` is the theap whose bins take blocks of this page without asking anybody.  It does not say who may touch the page: `word`
//     does, and blocks in a bin count as used.  `home`, bin_offset and block_size are the same in the descriptors of all slices of a
//     page of blocks.  `home` is NULL in descriptors of large blocks and of slices in no page.
// P4  Whoever makes a page OWNED by another theap writes `home` before `word`: a thread that reads OWNED (acquire) and
//     then its own theap in `home` is the owner.
// P5  kind, cls, capacity do not change while a block of the page is in use.  Only a page of blocks becomes a gap page, while it
//     is OWNED (heap/gaps.h), or CLAIMED by a round (heap/hollow.h).
// P6  Whoever frees reads bin_offset (acquire) before `home`: what a later owner wrote there (release) is then never taken for
//     what the thread that reads its own theap in `home` has written.
#pragma once

#include "../arena/mapped.h"
#include "../arena/slices.h"
#include "../support/assert.h"
#include "page_word.h"
#include "size_class.h"

typedef struct mi_theap_s mi_theap_t;
typedef struct mi_heap_s  mi_heap_t;
typedef struct mi_guard_s mi_guard_t;
typedef struct mi_pool_s  mi_pool_t;

typedef enum mi_page_kind_e {
  MI_PAGE_NONE,     // not in use
  MI_PAGE_BLOCKS,   // first slice of a page of blocks
  MI_PAGE_INTERIOR, // a later slice of a page
  MI_PAGE_LARGE,    // first slice of a page with one block
  MI_PAGE_GAPS      // a page of one slice with blocks of several classes (heap/gaps.h)
} mi_page_kind_t;

// Fields that share their place belong to different kinds and states of a page:
//
//   BLOCKS   free     pool if SHARED   next      prev    extended          capacity
//   GAPS     free     pool if SHARED   next      prev    gap_map           capacity (heap/gaps.h, GP4)
//   LARGE    block                     keeper    asked   was_seen_kept     is_plain
//            block, GUARDED            guard     asked
//            block, kept or deleted    next              was_seen_kept     is_plain
typedef struct mi_aligned(MI_DESCRIPTOR_SIZE) mi_page_s {
  mi_atomic(mi_theap_t*) home; // P3
  mi_page_word_t         word;
  union {
    mi_block_t* free;  // blocks freed by the owner; of GAPS only on the way to its map
    mi_pool_t*  pool;  // SHARED: in which it is
    char*       block; // LARGE
  };
  union {
    struct mi_page_s* next;   // in a queue of its owner, in a pool, or in another list of those who hold the page
    mi_guard_t*       guard;  // LARGE, GUARDED: what is known of the block (heap/guard.h)
    mi_theap_t*       keeper; // other LARGE, in use: who keeps it when it is free (heap/large.h, L3)
  };
  union {
    struct mi_page_s* prev;
    size_t asked; // LARGE, GUARDED or padded: the size that the program asked for; else SAMPLED: what is usable
  };
  mi_atomic(uint16_t)
      bin_offset;           // of its class's bin or return bin (heap/counted.h) in any theap, or a drain (heap/drain.h)
  mi_atomic(uint16_t) used; // written by the holder; statistics read it
  union {
    uint16_t extended;      // P2
    uint16_t gap_map;       // GAPS: the number of its map (heap/gap_map.h)
    uint16_t was_seen_kept; // LARGE, kept: it was at the last round (heap/kept.h, KE5)
  };
  union {
    uint16_t capacity; // P1
    uint16_t is_plain; // LARGE: the block begins where its slices do, and has no mapping of its own
  };
  mi_atomic(uint8_t)  kind; // mi_page_kind_t
  uint8_t             cls;
  uint8_t             region;
  mi_atomic(uint8_t)  flags; // written by the holder
  uint32_t            n_slices;
  mi_atomic(uint32_t) block_size; // of any slice of a page of blocks; 0: not in use, or LARGE
  uint32_t            to_first;   // of any slice of a page: how many slices before it the first one is
} mi_page_t;

mi_static_assert(sizeof(mi_page_t) == MI_DESCRIPTOR_SIZE, "a descriptor is one cache line");
mi_static_assert(MI_ADDRESS_BITS == MI_WORD_COUNT_SHIFT, "a chain begins with any block");

#define MI_PAGE_IS_ZERO   1 // the blocks that were not made yet (P2; LARGE: all of it) read as zero, and are not backed
#define MI_PAGE_IS_FULL   2 // in its owner's list of full pages, not in the queue
#define MI_PAGE_ZEROED    2 // LARGE: its block was asked for as zeros (arena/dense.h, DE4)
#define MI_PAGE_REMAPPED  4 // LARGE: its memory was moved here by the system (heap/large_resize.c)
#define MI_PAGE_IN_HEAP   8 // its heap link says which heap it belongs to; set as long as the page lives
#define MI_PAGE_GUARDED   16  // LARGE: most of its memory is inaccessible (heap/guard.h)
#define MI_PAGE_HAS_GUARD 32  // there is inaccessible memory behind its blocks
#define MI_PAGE_MAPPED    64  // LARGE: it has a mapping of its own and no slices (arena/mapped.h)
#define MI_PAGE_SAMPLED   128 // LARGE: its block is in the profile (heap/profile.h)

// The most blocks that a page has, that is of 8 bytes.
#define MI_PAGE_BLOCKS_MAX (MI_SLICE_SIZE / 8)

// The heap link: to which heap a page belongs, if that is not, or was not always, the main heap.  The links have a table of their own,
// because the descriptor has no room; a program with one heap does not use the table at all.
typedef struct mi_page_heap_link_s {
  mi_page_t*            next; // in the heap's list of pages, under the heap's lock
  mi_page_t*            prev;
  mi_atomic(mi_heap_t*) heap; // written under that lock
  size_t                unused;
} mi_page_heap_link_t;

mi_static_assert(sizeof(mi_page_heap_link_t) == MI_HEAP_LINK_SIZE, "two entries a cache line");

// ---- finding --------------------------------------------------------------------------------------------------------

// The descriptor of the slice of any address, NULL outside of our regions.  _mi_page_at_other is the part for addresses beyond region 0.
mi_page_t* _mi_page_at_other(const void* p);

static mi_always_inline mi_page_t* _mi_page_at(const void* p) {
  if (MI_TAGS) p = _mi_prim_tag_strip(p);
  const mi_region_t* region = &_mi_region_all[0];
  size_t             slice = ((uintptr_t)p - mi_load_growing_relaxed(&region->base)) >> MI_SLICE_SHIFT;
  if (mi_likely(slice < mi_load_growing(&region->n_slices))) return (mi_page_t*)_mi_region_descriptor(region, slice);
  return _mi_page_at_other(p);
}

static inline mi_page_kind_t _mi_page_kind(const mi_page_t* page) {
  return (mi_page_kind_t)mi_load_relaxed(&((mi_page_t*)page)->kind);
}

// The page of the block at p, NULL if there can be none.
static mi_always_inline mi_page_t* _mi_page_of(const void* p) {
  mi_page_t* page = _mi_page_at(p);
  if (mi_unlikely(page == NULL)) return NULL;
  return _mi_page_kind(page) == MI_PAGE_NONE ? NULL : page - page->to_first;
}

// The same for a block that there is, since the caller has just made it.
static mi_always_inline mi_page_t* _mi_page_of_made(const void* p) {
  mi_page_t* page = _mi_page_of(p);
  mi_assume(page != NULL);
  return page;
}

// The same for any address.  Where no block is in use, another thread may give back the region and its table (arena/region.h, R1): they
// stay until _mi_page_look_end, and the caller takes no lock of the arena before that.
mi_page_t* _mi_page_look(const void* p, bool* is_held);
void       _mi_page_look_end(bool is_held);

static inline mi_region_t* _mi_page_region(const mi_page_t* page) {
  return &_mi_region_all[page->region];
}

static inline size_t _mi_page_slice(const mi_page_t* page) {
  return (size_t)((const char*)page - _mi_page_region(page)->table) / MI_DESCRIPTOR_SIZE;
}

static inline bool _mi_page_has(const mi_page_t* page, uint8_t flag) {
  return (mi_load_relaxed(&((mi_page_t*)page)->flags) & flag) != 0;
}

static inline bool _mi_page_is_mapped(const mi_page_t* page) {
  return _mi_page_has(page, MI_PAGE_MAPPED);
}

static inline mi_page_heap_link_t* _mi_page_heap_link(const mi_page_t* page) {
  if (mi_unlikely(_mi_page_is_mapped(page))) return (mi_page_heap_link_t*)_mi_mapped_heap_link(page);
  return (mi_page_heap_link_t*)_mi_region_heap_link(_mi_page_region(page), _mi_page_slice(page));
}

// Sets and clears a flag.  The caller holds the page.
static inline void _mi_page_set(mi_page_t* page, uint8_t flag) {
  mi_store_relaxed(&page->flags, (uint8_t)(mi_load_relaxed(&page->flags) | flag));
}

static inline void _mi_page_clear(mi_page_t* page, uint8_t flag) {
  mi_store_relaxed(&page->flags, (uint8_t)(mi_load_relaxed(&page->flags) & ~flag));
}

// Not of a page that is mapped.
static inline char* _mi_page_start(const mi_page_t* page) {
  return _mi_region_slice_start(_mi_page_region(page), _mi_page_slice(page));
}

static inline size_t _mi_page_block_size(const mi_page_t* page) {
  return mi_load_relaxed(&((mi_page_t*)page)->block_size);
}

static inline char* _mi_page_block(const mi_page_t* page, size_t i) {
  return _mi_page_start(page) + i * _mi_page_block_size(page);
}

static inline size_t _mi_page_used(const mi_page_t* page) {
  return mi_load_relaxed(&((mi_page_t*)page)->used);
}

static inline void _mi_page_set_used(mi_page_t* page, size_t n) {
  mi_store_relaxed(&page->used, (uint16_t)n);
}

// The block that follows in a list, NULL at its end.  An overwritten link is reported, and the list ends there.
mi_block_t* _mi_page_next_any(const mi_block_t* block);

static mi_always_inline mi_block_t* _mi_page_next_block(const mi_block_t* block) {
  mi_block_t* next;
  return mi_likely(_mi_block_next_fast(block, &next)) ? next : _mi_page_next_any(block);
}

// ---- pages of blocks; the caller holds the page (I1) ----------------------------------------------------------------

// A new page of that class, OWNED by nobody's bins yet (home NULL).  `is_huge`: it will be filled soon.  `arena`: as in
// _mi_slices_alloc.  NULL: out of memory.
mi_page_t* _mi_page_new(size_t cls, size_t bin_offset, bool is_huge, size_t arena);

// Gives the page back; all its blocks are free.
void _mi_page_delete(mi_page_t* page);

// Makes the next blocks of the page and puts them on `free`, which is empty: at least one, up to the end of an OS page, or about
// `bytes` if that is more.
void _mi_page_extend(mi_page_t* page, size_t bytes);

// The index of the block that is made first; those behind it follow, and then those before it.
size_t _mi_page_first_made(const mi_page_t* page);

// Takes the blocks of `free`, at most `limit` (> 0) of them.
static inline mi_chain_t _mi_page_take_free(mi_page_t* page, size_t limit) {
  mi_chain_t chain = {page->free, page->extended - _mi_page_used(page)};
  page->free = NULL;
  if (mi_unlikely(chain.count > limit)) {
    mi_block_t* last = chain.first;
    for (size_t i = 1; i < limit; i++) {
      mi_block_t* next = _mi_page_next_block(last);
      if (MI_CHECKED && next == NULL) break; // the link was overwritten
      last = next;
    }
    page->free = _mi_page_next_block(last);
    _mi_block_set_next(last, NULL);
    chain.count = limit;
  }
  _mi_page_set_used(page, _mi_page_used(page) + chain.count);
  return chain;
}

// Puts a block onto `free`, which begins with `first`.  Returns how many blocks are still in use.
static mi_always_inline size_t _mi_page_push_free(mi_page_t* page, mi_block_t* block, mi_block_t* first) {
  _mi_block_set_next(block, first);
  page->free = block;
  size_t used = _mi_page_used(page) - 1;
  _mi_page_set_used(page, used);
  return used;
}

// The same for n blocks that are linked, from first to last.
static inline void _mi_page_put_some(mi_page_t* page, mi_block_t* first, mi_block_t* last, size_t n) {
  _mi_block_set_next(last, page->free);
  page->free = first;
  _mi_page_set_used(page, _mi_page_used(page) - n);
}

// Puts the free blocks of a page that was PARKED or SHARED back into its plain fields.
void _mi_page_unpack(mi_page_t* page, mi_chain_t free);

// Puts a chain of blocks that are not in use onto `free`.
void _mi_page_put_free(mi_page_t* page, mi_chain_t chain);

static inline bool _mi_page_has_room(const mi_page_t* page) {
  return page->free != NULL || page->extended < page->capacity;
}

static inline void _mi_page_set_home(mi_page_t* page, mi_theap_t* theap) {
  mi_page_t* end = page + page->n_slices;
  do {
    mi_store_release(&page->home, theap); // release: who walks over all pages finds it made; for others see P4
  } while (++page < end);
}

static inline void _mi_page_set_bin(mi_page_t* page, size_t bin_offset) {
  mi_page_t* end = page + page->n_slices;
  for (; page < end; page++) mi_store_release(&page->bin_offset, (uint16_t)bin_offset); // P6
}

// For a free, by the descriptor of the block's slice, before it reads `home` (P6).
static mi_always_inline size_t _mi_page_bin_offset(mi_page_t* slice) {
  return mi_load_acquire(&slice->bin_offset);
}

// Walks the page's lists and checks P1; for debug builds.
bool _mi_page_is_valid(const mi_page_t* page);

// ---- pages of one large block ---------------------------------------------------------------------------------------

// Makes a page of the run for one block at `offset` bytes from its start.  The page is CLAIMED until its heap is known, so that the block
// is not taken for one in use.  It has `flags` from the start, because a child of a fork may see it at any moment.
mi_page_t* _mi_page_new_large(mi_run_t run, size_t offset, uint8_t flags);

// The descriptor is not in use from then on; the caller gives back the slices.
void _mi_page_delete_large(mi_page_t* page);

// The descriptor of slices that are of no page any more, as that of a page that was deleted.
mi_page_t* _mi_page_new_deleted(mi_run_t run);

// A stack of deleted pages whose slices are still in use, linked by `next`, for any thread.
void       _mi_page_push(mi_atomic(mi_page_t*)* stack, mi_page_t* page);
mi_page_t* _mi_page_pop_all(mi_atomic(mi_page_t*)* stack);

// The same for a block with a mapping of its own, whose descriptor that is.
mi_page_t* _mi_page_new_mapped(void* descriptor, size_t n_slices, size_t offset);
void       _mi_page_delete_mapped(mi_page_t* page);

static inline char* _mi_page_large_start(const mi_page_t* page) {
  return mi_unlikely(_mi_page_is_mapped(page)) ? _mi_mapped_start(page) : _mi_page_start(page);
}

static inline char* _mi_page_large_block(const mi_page_t* page) {
  return page->block;
}

// The usable bytes of a large block.
static inline size_t _mi_page_large_size(const mi_page_t* page) {
  if (mi_unlikely(_mi_page_has(page, MI_PAGE_GUARDED | (MI_PADDING ? 0 : MI_PAGE_SAMPLED)))) return page->asked;
  return ((size_t)page->n_slices << MI_SLICE_SHIFT) - (size_t)(_mi_page_large_block(page) - _mi_page_large_start(page));
}

// ---- guard pages ------------------------------------------------------------------------------------------------------
// Inaccessible memory behind pages of blocks, so that no write runs on from one into the next; only in hardened builds.
//
//   a page of one slice       | blocks ...                  |####|   its last OS page
//   one of several slices     | blocks ...                       |######|   a slice more
//
// Each costs up to two of the kernel's mappings, of which a process may have 65530; so there are at most
// MI_GUARD_PAGE_MAX.  Pages in huge-page chunks have none: it would split the huge OS pages behind them (15 to 20 % of the
// time of a program with a large heap).  Nor have pages in arenas, whose memory belongs to the program.

#define MI_GUARD_PAGE_MAX ((size_t)16 * 1024)

#define MI_GUARD_PAGE_SIZE_MAX ((size_t)16 * MI_KiB) // of a page of one slice: with larger OS pages there is none

// Slices that a page takes beside its own.
static inline size_t _mi_page_guard_slices(size_t n_slices) {
  return MI_HARDENED && n_slices > 1 ? 1 : 0;
}

// Is it a page that has one, if there are not too many?
static inline bool _mi_page_guard_is_wanted(const mi_page_t* page) {
  const mi_region_t* region = _mi_page_region(page);
  bool               has_space = (page->n_slices > 1 || _mi_prim_os_page_size() <= MI_GUARD_PAGE_SIZE_MAX);
  return MI_HARDENED && region->origin == MI_REGION_OWN && (page->n_slices > 1 || !region->is_huge) && has_space;
}

// Bytes of a page that are for blocks.
static inline size_t _mi_page_guard_space(const mi_page_t* page) {
  bool is_short = (page->n_slices == 1 && _mi_page_guard_is_wanted(page));
  return page->n_slices * MI_SLICE_SIZE - (is_short ? _mi_prim_os_page_size() : 0);
}

// As those read it who free into the page, while its owner may make it a gap page.
static inline mi_page_capacity_t* _mi_page_capacity_of(mi_page_t* page) {
  return (mi_page_capacity_t*)(void*)&page->capacity;
}

// Blocks of a page of that class.
static inline uint16_t _mi_page_capacity(const mi_page_t* page, const mi_class_info_t* info) {
  return MI_HARDENED ? (uint16_t)(_mi_page_guard_space(page) / info->block_size) : info->capacity;
}
