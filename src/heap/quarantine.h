// Freed blocks wait before they can be used again.  Layer: heap; only in secure full builds.
//
// A thread's freed blocks each take a place that is chosen at random among 64, and what was there goes on to its bin or
// page.  So memory that a dangling pointer still leads to is not handed out at once, nor at a foreseeable time; until
// then it is all zero, which is checked when it is handed out.
//
// Blocks over 8 KiB do not wait (512 KiB at most wait for a thread), and those of heaps that can be destroyed cannot
// (heap/heap.h, Q4).
#pragma once

#include "theap.h"

#define MI_QUARANTINE_BLOCK_MAX (8 * MI_KiB)

// Frees a block of a class by the descriptor of any of its page's slices; it was retired.
void _mi_quarantine_free(mi_page_t* slice, void* p);

// All of the theap's blocks go on; by its own thread.
void _mi_quarantine_flush(mi_theap_t* theap);

// All go to their pages; by whoever has revoked the theap, for its bins are its thread's.  Blocks of a thread that sleeps would
// else keep a page each, 4 MiB.
void _mi_quarantine_take_back(mi_theap_t* theap);
