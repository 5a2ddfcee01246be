// The pages that a theap owns, by class: those that had room when last seen, and those that were full.  Layer: heap.
//
// All functions are called between enter and leave (presence.h).
#pragma once

#include "heap.h"
#include "presence.h"

// Is the page OWNED by this theap?  The order of the two loads matters (page.h, P4).
static inline bool _mi_queue_owns(const mi_theap_t* theap, mi_page_t* page) {
  if (_mi_page_word_state(mi_load_acquire(&page->word)) != MI_PAGE_OWNED) return false;
  return mi_load_relaxed(&page->home) == theap;
}

// Frees of the page's blocks go to the theap's bin or return bin from now on (counted.h, CN1).
void _mi_queue_set_bin(const mi_theap_t* theap, mi_page_t* page);

// Appends a page with room to the queue of its class.  At the end, so that a page that just got its first free block back has time to
// collect more of them before it is used.
void _mi_queue_add(mi_theap_t* theap, mi_page_t* page);

// The pages behind this one in its queue come to the front; it is the last one then.
void _mi_queue_bring_forward(mi_theap_t* theap, mi_page_t* page);

// Takes a page with room out of its queue; the class has one page less.
void _mi_queue_remove(mi_theap_t* theap, mi_page_t* page);

// The page, which is in its queue, has no free block: it goes to the list of full pages, or is parked.
void _mi_queue_is_full(mi_theap_t* theap, mi_page_t* page);

// A full page that has free blocks now, because other threads have freed some; NULL if none is found.  A few full pages are looked at, in
// turn, because nobody tells which of them have.
mi_page_t* _mi_queue_refreed(mi_theap_t* theap, size_t cls);

// The page got a free block: it may have been full before, and it may be empty now.
void _mi_queue_freed_one(mi_theap_t* theap, mi_page_t* page);

// The page, which is in its queue, is empty: it becomes a spare page or is deleted, unless the class needs it.
void _mi_queue_is_empty(mi_theap_t* theap, mi_page_t* page);

// Takes off what has left the theap (theap.h, H8).
mi_cold void _mi_queue_note_left_any(mi_theap_t* theap);

static inline void _mi_queue_note_left(mi_theap_t* theap) {
  if (mi_unlikely(mi_load_relaxed(&theap->left.any))) _mi_queue_note_left_any(theap);
}

// Its home loses an empty page that the caller has claimed.  `theap` NULL: a thread without one.
void _mi_queue_leave_home(mi_theap_t* theap, mi_page_t* page);

// Deletes the class's last page with room if it is empty.
void _mi_queue_delete_empty(mi_theap_t* theap, size_t cls);

// Lets go of all pages: empty ones go back, full ones are parked, the rest is shared.
void _mi_queue_release_all(mi_theap_t* theap);

// The same for at most *n pages of one class; *n is reduced by their number.
void _mi_queue_release(mi_theap_t* theap, size_t cls, size_t* n);

// For a class that is in use: takes the blocks that other threads have freed into up to *n of its pages, in turn.  Empty pages go back,
// full ones are parked; *n is reduced by the number of pages.
void _mi_queue_collect(mi_theap_t* theap, size_t cls, size_t* n);
