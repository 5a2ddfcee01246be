// Giving free slices back to the system: which, and how.  Layer: arena.
//
// Wholly free chunks come first, with their neighbours in one call, then parts of the chunks that have the most backed free slices.  The
// policy (purge.h) chooses when, and how many.
#pragma once

#include "recall.h"

// Gives n slices back, or a few more, but so that `stay` are left; O(n), however many there are.  `splits_huge`: also parts of chunks
// with huge pages.  Returns how many went back; *is_refused is set if the system has refused any.  They are noted in
// `recall`, unless it is NULL.  Takes locks.
size_t _mi_give_slices(mi_recall_t* recall, size_t n, size_t stay, bool splits_huge, bool* is_refused);
