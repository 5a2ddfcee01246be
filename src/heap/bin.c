// Closing, taking and opening bins.  Layer: heap.
#include "bin.h"

#include "gaps.h"

// ---- by others --------------------------------------------------------------------------------------------------------

// A bin without slots was closed by the sampler already (sampler.h, SA3): its `slots` does not count its list, so that nothing
// can be taken.
static void bin_close(mi_bin_t* bin, mi_bin_book_t* book) {
  mi_assert(book->taken == NULL); // its thread has settled what was taken before
  if (_mi_bin_has_no_slots(mi_load_plain_relaxed(&bin->slots))) {
    book->slots_taken = book->total;
    return;
  }
  book->slots_taken = mi_exchange_plain_acq_rel(&bin->slots, MI_BIN_NO_SLOTS);
  book->taken = mi_exchange_plain_acq_rel(&bin->head, (mi_block_t*)NULL);
}

void _mi_bin_close_all(mi_theap_t* theap) {
  mi_store_relaxed(&theap->is_closed, true);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) bin_close(&theap->bins[cls], &theap->classes[cls].book);
  for (size_t i = 0; i < MI_DRAINS; i++) bin_close(&theap->drains[i].bin, &theap->drains[i].book);
}

mi_page_t* _mi_bin_page_of(const mi_block_t* block, size_t cls) {
  mi_page_t* slice = _mi_page_at(block);
  if (slice == NULL || _mi_page_kind(slice) == MI_PAGE_NONE) return NULL;
  mi_page_t* page = slice - slice->to_first;
  size_t     offset = slice->to_first * MI_SLICE_SIZE + (uintptr_t)block % MI_SLICE_SIZE;
  size_t     size = _mi_size_class_block(cls);
  if (_mi_gaps_is(page)) return _mi_gaps_size(page, block) == size ? page : NULL;
  bool is_of_class = (_mi_page_kind(page) == MI_PAGE_BLOCKS && page->cls == cls);
  return is_of_class && offset % size == 0 && offset / size < page->capacity ? page : NULL;
}

// Has the list n blocks?
static bool bin_list_has(const mi_block_t* block, size_t cls, int32_t n) {
  for (; block != NULL && n > 0; n--) {
    if (_mi_bin_page_of(block, cls) == NULL) return false;
    block = _mi_block_peek(block);
  }
  return block == NULL && n == 0;
}

static bool bin_is_untouched(const mi_bin_t* bin) {
  return mi_load_plain_acquire(&bin->slots) == MI_BIN_NO_SLOTS && mi_load_plain_acquire(&bin->head) == NULL;
}

bool _mi_bin_can_tell(const mi_theap_t* theap, size_t cls) {
  return !_mi_bin_are_closed(theap) || bin_is_untouched(&theap->bins[cls]);
}

static bool bin_has_rest(const mi_bin_book_t* book) {
  return book->total != book->slots_taken; // else what was taken has been given back, or handed out
}

const mi_block_t* _mi_bin_taken(const mi_theap_t* theap, const mi_bin_t* bin, const mi_bin_book_t* book) {
  if (!_mi_bin_are_closed(theap) || !bin_has_rest(book)) return NULL;
  return bin_is_untouched(bin) ? book->taken : NULL;
}

mi_block_t* _mi_bin_take(mi_bin_t* bin, mi_bin_book_t* book, size_t cls) {
  mi_block_t* list = book->taken;
  if (list == NULL || !bin_is_untouched(bin)) return NULL;
  if (!bin_list_has(list, cls, book->total - book->slots_taken)) return NULL;
  mi_fence_seq_cst(); // what was read of the list is older than what is read now
  if (!bin_is_untouched(bin)) return NULL;
  book->taken = NULL;
  book->slots_taken = book->total;
  return list;
}

// ---- by its thread ----------------------------------------------------------------------------------------------------

static int32_t bin_length(mi_block_t* block, mi_block_t** last) {
  int32_t n = 0;
  for (; block != NULL; block = _mi_page_next_block(block), n++) *last = block;
  return n;
}

// The thread was in the middle of taking or freeing a block when the bin was closed, and has gone on with the list that it had
// read.  If that is all there should be, what was taken is in it, or was handed out.
static void bin_settle_touched(mi_bin_t* bin, mi_bin_book_t* book, int32_t slots, int32_t limit) {
  mi_block_t* last = NULL;
  int32_t     n = bin_length(bin->head, &last);
  if (n != book->total - slots && book->taken != NULL) {
    if (last != NULL) _mi_block_set_next(last, book->taken);
    else bin->head = book->taken;
    n += bin_length(book->taken, &last);
  }
  bin->slots = (n < limit ? limit - n : 0);
  book->total = bin->slots + n;
}

static void bin_settle(mi_bin_t* bin, mi_bin_book_t* book, int32_t limit) {
  bool has_rest = bin_has_rest(book);
  if (mi_likely(bin->head == NULL && bin->slots == MI_BIN_NO_SLOTS)) {
    bin->head = (has_rest ? book->taken : NULL);
    bin->slots = (has_rest ? book->slots_taken : limit);
    if (!has_rest) book->total = limit;
  }
  else {
    bool is_closed = _mi_bin_has_no_slots(bin->slots);
    bin_settle_touched(bin, book, is_closed ? book->slots_taken + (bin->slots - MI_BIN_NO_SLOTS) : bin->slots, limit);
  }
  book->taken = NULL;
}

void _mi_bin_settle_all(mi_theap_t* theap) {
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    bin_settle(&theap->bins[cls], &theap->classes[cls].book, theap->bins[cls].limit);
  }
  for (size_t i = 0; i < MI_DRAINS; i++) {
    bin_settle(&theap->drains[i].bin, &theap->drains[i].book, 0);
    theap->drains[i].last = NULL;
  }
  mi_store_release(&theap->is_closed, false); // release: a sampler's tick that sees it comes after all of that
}
