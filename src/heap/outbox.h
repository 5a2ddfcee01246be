// Blocks on their way back to their pages.  Layer: heap.
//
// OB1  Each push to a page of another thread costs an atomic operation on a cache line which another processor uses.  So the outbox
//      collects blocks of the same page and pushes them as one chain.  Programs that hand blocks from thread to thread free
//      neighbours together, so most batches get large.  No block waits long: a batch is closed at 32 blocks or 4 KiB
//      (`outbox_limit`), when another page wants its slot, and whenever the theap is released.
#pragma once

#include "queue.h"

// ---- between enter and leave ------------------------------------------------------------------------------------------

static mi_always_inline mi_batch_t* _mi_outbox_batch(mi_theap_t* theap, const mi_page_t* page) {
  return &theap->outbox[((uintptr_t)page / MI_DESCRIPTOR_SIZE) % MI_OUTBOX_SIZE];
}

static mi_always_inline void _mi_outbox_link(mi_batch_t* batch, mi_block_t* block) {
  _mi_block_set_next(block, batch->first);
  batch->first = block;
  batch->count++;
}

// Adds a block of a page that the theap does not own.
void _mi_outbox_add(mi_theap_t* theap, mi_page_t* page, mi_block_t* block);

// Gives all blocks of a bin, or of a list, back: to their pages if the theap owns those, otherwise by the outbox.
void _mi_outbox_return_bin(mi_theap_t* theap, size_t cls);
void _mi_outbox_return_list(mi_theap_t* theap, mi_block_t* first);

// The same for the return bin of the class (counted.h).
void _mi_outbox_flush_returns(mi_theap_t* theap, size_t cls);

// Closes all batches: pushes each to its page.
void _mi_outbox_flush(mi_theap_t* theap);

// ---- anywhere ---------------------------------------------------------------------------------------------------------

// Pushes one block to its page, for a thread without a theap.
void _mi_outbox_push(mi_page_t* page, mi_block_t* block);
