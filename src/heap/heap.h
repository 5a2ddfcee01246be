// Heaps: sets of pages that can be given back at once.  Layer: heap.
//
// The main heap is what malloc uses.  A heap that the program makes has theaps of its own, one for each thread that
// allocates from it, a pool of its own, and a list of its pages; everything else it shares with the main heap.
//
// Q1  Each page belongs to one heap.  Pages that were made for the main heap have no mark.  All others have MI_PAGE_IN_HEAP and a heap
//     link: they are in their heap's list, or, if that heap was deleted, they belong to the main heap and are in no list.
// Q2  The heap of a page is written under the lock of the heap that it belonged to.  Whoever has read it and then taken
//     that heap's lock (or that of its pool) reads it again: a heap may be deleted meanwhile.
// Q3  A theap serves one heap until no page has it as home any more, or until the heap ends: then it serves the main heap,
//     with what it has if the heap is deleted, and with nothing if it is destroyed.  So no bin ever has blocks of two heaps.
// Q4  Blocks of pages with MI_PAGE_IN_HEAP are not collected in outboxes: a block that was freed before its heap is destroyed is back
//     in its page.
// Q5  A heap's id is never used again, although its memory is: a handle that was cached with the id cannot match another heap.
// Q6  Heap memory is never given back, so the lock of a heap that is gone can be taken (Q2).
// Q7  A heap link names a heap other than the main one only while the page is in that heap's list.  It names none while
//     the page is being given back.
// Q8  The memory of a heap that has ended is used for another heap only when no thread has a theap any more that served it.  Such a
//     thread may have read `heap` from its theap before, and go on with it: it finds an empty pool, and a page that it makes becomes
//     one of the main heap.
//
// Making a heap, and ending one without theaps and pages, take constant time; otherwise it is proportional to the number of
// theaps, pages and large blocks.  To visit n heaps takes n steps.
//
// Locks, in the order in which they are taken (fork.c takes all of them): rounds (background.h), adoption (fork.c), idle (idle.h),
// ended (ended.h), late (late.h), registry, a heap's, those of the main heap's pools, guard, spare pages, gap maps, purge, arena, mapped,
// profile.
#pragma once

#include "../arena/limit.h"
#include "../support/stat.h"
#include "registry.h"

// A pool has a list for each class, and one for gap pages (pool.h, PO3).
#define MI_POOL_GAPS  MI_CLASS_COUNT
#define MI_POOL_LISTS (MI_CLASS_COUNT + 1)

// Shared pages (pool.h).
struct mi_aligned(64) mi_pool_s {
  mi_lock_t             lock;    // of the main heap's pools; the others are under their heap's lock
  mi_live_count_t       n_pages; // changed under the lock; not of other heaps
  mi_atomic(mi_page_t*) first[MI_POOL_LISTS];
};

// A heap is in two lists, each in order of age, which is that of ids.
typedef enum mi_heap_order_e { MI_HEAP_OF_SUBPROC, MI_HEAP_OF_ALL, MI_HEAP_ORDERS } mi_heap_order_t;

typedef struct mi_heap_link_s {
  mi_heap_t *next, *prev;
} mi_heap_link_t;

typedef struct mi_heap_list_s {
  mi_heap_t *first, *last;
} mi_heap_list_t;

struct mi_heap_s {
  mi_atomic(uint64_t) id;   // Q5; 0: not in use
  mi_pool_t           pool; // not of the main heap (pool.h, PO4)
  // Under `lock`:
  mi_lock_t           lock;
  mi_page_t*          pages; // not of the main heap
  size_t              n_pages;
  mi_atomic(size_t)   n_guarded; // of these; read without the lock
  mi_limit_t          limit;     // not of the main heap; what it counts changes with that list
  // Under the registry lock:
  mi_theap_t*         theaps;  // that a thread has, and orphans
  mi_theap_t*         vacant;  // that nobody has (vacant.h)
  mi_theap_t*         late;    // for threads past their exit (late.h)
  size_t              n_users; // after its end: theaps that served it and that a thread has (Q8), and who ends it
  mi_heap_link_t      links[MI_HEAP_ORDERS]; // or the next that is not in use
  mi_atomic(size_t)   arena;                 // the only one that it uses; or what else _mi_slices_alloc takes
  // Constant while it is in use:
  mi_subproc_t*       subproc;
  int                 tag;
  bool                allow_destroy;
};

// A part of the process whose threads share no memory with the others, unless they pass blocks on.
struct mi_subproc_s {
  mi_heap_t*        main; // what malloc uses in its threads
  // Under the registry lock:
  mi_heap_list_t    heaps;       // all of its heaps but the process's main heap
  mi_atomic(size_t) n_threads;   // read without the lock by statistics
  bool              is_listed;   // it has not ended
  mi_subproc_t *    next, *prev; // among those that have not ended, but the main one; or the next of those not in use
};

#define MI_HEAP_MAIN_ID 1

extern mi_heap_t    _mi_heap_main;
extern mi_subproc_t _mi_heap_subproc_main;

// ---- pages ----------------------------------------------------------------------------------------------------------

// The heap of a page; it may change at any time unless the caller keeps it from being deleted (Q2).  NULL: see Q7.
static inline mi_heap_t* _mi_heap_of(const mi_page_t* page) {
  if (mi_likely(!_mi_page_has(page, MI_PAGE_IN_HEAP))) return &_mi_heap_main;
  return mi_load_acquire(&_mi_page_heap_link(page)->heap);
}

// Makes a new page the heap's, or the main heap's if the heap has ended.  False when there is no memory for its heap link, or
// when it is more than the heap's limit allows.
bool _mi_heap_add_page(mi_heap_t* heap, mi_page_t* page);

// The same for a large block that moves from another page: the heap of that page, which may change meanwhile.  Its limit is not
// asked: there is no way back once contents have moved (_mi_heap_may_grow).
bool _mi_heap_add_page_beside(const mi_page_t* other, mi_page_t* page);

// May the heap have so many slices more?  Who asks before he takes them need not give them back.  False when its limit refuses.
bool _mi_heap_ask_limit(mi_heap_t* heap, size_t n);

static inline bool _mi_heap_may_take(mi_heap_t* heap, size_t n) {
  return mi_likely(heap == &_mi_heap_main || n == 0 || !_mi_limit_is_set(&heap->limit)) || _mi_heap_ask_limit(heap, n);
}

// May the large block of that page have n slices?  False when its heap's limit refuses.
bool _mi_heap_may_grow(const mi_page_t* page, size_t n);

// That page has n slices from now on.
void _mi_heap_resize_page(mi_page_t* page, size_t n);

// A page is about to be given back.
void _mi_heap_remove_page(mi_page_t* page);

// The same in the child of a fork, for a page that may be in no list.
void _mi_heap_forget_page(mi_page_t* page);

// The page is the main heap's from then on: another thread may give it back at once.  Caller holds the heap's lock.
void _mi_heap_hand_over_page(mi_heap_t* heap, mi_page_t* page);

// Gives back a page of blocks.
static inline void _mi_heap_delete_page(mi_page_t* page) {
  if (mi_unlikely(_mi_page_has(page, MI_PAGE_IN_HEAP))) _mi_heap_remove_page(page);
  _mi_page_delete(page);
}

// The arena from which memory for the heap of a page comes.
size_t _mi_heap_arena_of(const mi_page_t* page);

// ---- heaps ----------------------------------------------------------------------------------------------------------

// The main heap, at the start of the process.
void _mi_heap_init(void);

// A heap without a page; NULL when out of memory.  Caller holds the registry lock.
mi_heap_t* _mi_heap_new(mi_subproc_t* subproc, int tag, bool allow_destroy, size_t arena);

// Is it in use?  Wrong only for a heap that another thread ends just now.
static inline bool _mi_heap_is_live(const mi_heap_t* heap) {
  return mi_load_relaxed(&((mi_heap_t*)heap)->id) != 0;
}

// From then on no handle to it is valid.  False when it is not in use: somebody was faster.  Caller holds the registry lock.
bool _mi_heap_retire(mi_heap_t* heap);

// A user less of a heap that has ended (Q8).  Caller holds the registry lock.
void _mi_heap_drop_user(mi_heap_t* heap);

// Where the backing theap of a thread remembers that thread's theap of a heap.
static mi_always_inline mi_theap_cached_t* _mi_heap_cached(mi_theap_t* backing, mi_heap_t* heap) {
  return &backing->cache[mi_load_relaxed(&heap->id) % MI_THEAP_CACHE_SIZE];
}

// Calls visit for each heap of a subprocess (NULL: of all), its main heap first, until it returns false.  The registry lock
// is not held: visit may allocate, and make and end heaps; of those that are made meanwhile, some are visited.
bool _mi_heap_visit(mi_subproc_t* subproc, bool (*visit)(mi_heap_t* heap, void* arg), void* arg);

// All heaps but the main one, by age: the one that follows, or the first (NULL).  Under the registry lock.
mi_heap_t* _mi_heap_next(const mi_heap_t* heap);

// Around a fork; the registry lock is held.
void _mi_heap_lock_all(void);
void _mi_heap_unlock_all(void);
