// Proves: mi_heap_check finds every kind of damage and says what and where it is, survives it, and finds nothing else in a
// heap that is whole.  Each case damages one word of a structure, lets the check find it, and repairs it again.
#include "../check.h"
#include "../modes/support.h"
#include "../sink.h"
#include "mimalloc.h"
#include "heap/guard.h"
#include "heap/heap.h"
#include "heap/thread.h"
#include "heap/waiting.h"

#include <pthread.h>

// ---- what is reported -----------------------------------------------------------------------------------------------

static sink_t said;
static size_t n_reported, n_other;

static void on_error(int err, void* arg) {
  (void)arg;
  if (err == EFAULT) n_reported++;
  else n_other++;
}

static bool check_quietly(mi_heap_t* heap) {
  sink_clear(&said);
  n_reported = n_other = 0;
  return mi_heap_check(heap);
}

// ---- what is damaged ------------------------------------------------------------------------------------------------

enum { n_blocks = (MI_HARDENED ? 2000 : 2100), n_many = 100, size = 100, medium = 20000, large = 3000000 };

static mi_heap_t*        heap;
static mi_theap_t*       theap; // the main thread's of that heap
static size_t            cls;   // of `size`
static void*             blocks[n_blocks];
static void*             theirs[n_blocks]; // of a thread that is gone
static mi_page_t *       queued, *parked, *shared, *multi, *single, *mains;
static pthread_barrier_t barrier;

static void* leave_blocks(void* arg) {
  (void)arg;
  for (size_t i = 0; i < n_many; i++) theirs[i] = mi_heap_malloc(heap, size);
  for (size_t i = 0; i < n_many; i += 2) mi_free(theirs[i]);
  return NULL;
}

static void* stay(void* arg) {
  mi_free(mi_malloc(1));
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  mi_free(arg); // into the outbox
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  return NULL;
}

static mi_page_state_t state_of(mi_page_t* page) {
  return _mi_page_word_state(mi_load_relaxed(&page->word));
}

static mi_block_t* in_bin(size_t i) {
  mi_block_t* block = theap->bins[cls].head;
  while (block != NULL && i-- > 0) block = _mi_page_next_block(block);
  return block;
}

static mi_block_t* on_list(size_t i) {
  mi_block_t* block = queued->free;
  while (block != NULL && i-- > 0) block = _mi_page_next_block(block);
  return block;
}

// Pages in all states; the bin and the first page of the queue have free blocks.
static void build(void) {
  pthread_t thread;
  heap = mi_heap_new();
  for (size_t i = 0; i < n_blocks; i++) blocks[i] = mi_heap_malloc(heap, size);
  theap = mi_heap_theap(heap);
  cls = _mi_size_class_of(size);
  for (size_t i = 0; i < n_blocks; i++) {
    mi_page_t* page = _mi_page_of(blocks[i]);
    if (state_of(page) == MI_PAGE_PARKED) parked = page;
  }
  queued = _mi_page_of(blocks[n_blocks - 1]);
  size_t n_freed = 0;
  for (size_t i = n_blocks - 1; i-- > 1 && (n_freed < 199 || on_list(9) == NULL);) { // more than the bin takes
    if (_mi_page_of(blocks[i]) != queued) continue;
    mi_free(blocks[i]);
    n_freed++;
  }
  pthread_create(&thread, NULL, &leave_blocks, NULL);
  pthread_join(thread, NULL);
  shared = _mi_page_of(theirs[1]);
  multi = _mi_page_of(mi_heap_malloc(heap, medium));
  single = _mi_page_of(mi_heap_malloc(heap, large));
  mains = _mi_page_of(mi_malloc(size));
}

static mi_page_heap_link_t* owner_of(mi_page_t* page) {
  return _mi_page_heap_link(page);
}

// ---- damage ---------------------------------------------------------------------------------------------------------

static bool case_is_global; // it is not in one heap only

// Where the low bytes of a number are.
static const char* low_bytes(const uint64_t* value, size_t width) {
  return (const char*)value + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? sizeof(*value) - width : 0);
}

// `text`: what must be said, among other things.
static void damage(const char* name, void* at, uint64_t value, size_t width, const char* text) {
  uint64_t saved = 0;
  if (MI_TRACK) mi_track_readable(at, width);
  memcpy(&saved, at, width);
  memcpy(at, low_bytes(&value, width), width);
  bool heap_is_well = check_quietly(heap);
  bool all_is_well = check_quietly(NULL);
  if (MI_TRACK) mi_track_writable(at, width);
  memcpy(at, &saved, width);
  CHECK_FOR(!all_is_well && n_reported > 0 && n_other == 0, "%s: %zu faults", name, n_reported);
  CHECK_FOR(sink_has(&said, text), "%s: %s", name, said.text);
  bool is_of_program = (strstr(text, "overflow") != NULL || strstr(text, "next to") != NULL);
  CHECK_FOR(is_of_program || !sink_has(&said, "overflow"), "%s: %s", name, said.text);
  if (!case_is_global) CHECK_FOR(!heap_is_well, "%s: not found in its heap", name);
  CHECK_FOR(check_quietly(NULL) && n_reported == 0, "%s: after it was repaired: %s", name, said.text);
}

#define DAMAGE(field, value, text) damage(#field, (void*)&(field), (uint64_t)(value), sizeof(field), text)

// The link of a free block, such that it leads to `value`.
static void damage_link(const char* name, mi_block_t* block, uintptr_t value, const char* text) {
  uint64_t saved, coded;
  if (MI_TRACK) mi_track_readable(block, sizeof(*block));
  memcpy(&saved, block, sizeof(saved));
  _mi_block_set_next(block, (const mi_block_t*)value);
  if (MI_TRACK) mi_track_readable(block, sizeof(*block));
  memcpy(&coded, block, sizeof(coded));
  memcpy(block, &saved, sizeof(saved));
  damage(name, block, coded, sizeof(coded), text);
}

#define DAMAGE_LINK(block, value, text) damage_link(#block, block, (uintptr_t)(value), text)

static void damage_links(void) {
  uint64_t    start = (uint64_t)(uintptr_t)_mi_page_start(queued);
  uint64_t    first = (_mi_page_first_made(queued) + queued->capacity - 1) % queued->capacity; // the last that is made
  static char elsewhere[64];
  CHECK(on_list(2) != NULL && in_bin(2) != NULL && queued->extended < queued->capacity);
  DAMAGE_LINK(on_list(1), 0x4141414141414141, "a link to where no block is");
  DAMAGE_LINK(on_list(1), (uintptr_t)elsewhere, "a link to where no block is");
  DAMAGE_LINK(on_list(1), (uintptr_t)on_list(2) + 8, "a link to where no block is");
  DAMAGE_LINK(on_list(1), (uintptr_t)on_list(2) + 3, "a link to where no block is");
  DAMAGE_LINK(on_list(1), (uintptr_t)_mi_page_start(shared), "a link to where no block is");
  DAMAGE_LINK(on_list(1), start + first * _mi_page_block_size(queued), "never made");
  DAMAGE_LINK(on_list(1), (uintptr_t)on_list(0), "free twice");
  DAMAGE_LINK(on_list(1), (uintptr_t)in_bin(0), "free twice");
  DAMAGE_LINK(on_list(1), 0, "P1");
  DAMAGE(queued->free, 0, "P1");
  DAMAGE_LINK(in_bin(1), 0x4141414141414141, "a link in a bin to where no block is");
  DAMAGE_LINK(in_bin(1), (uintptr_t)elsewhere, "a link in a bin to where no block is");
  DAMAGE_LINK(in_bin(1), (uintptr_t)in_bin(2) + 8, "a link in a bin to where no block is");
  DAMAGE_LINK(in_bin(1), (uintptr_t)in_bin(2) + 2, "a link in a bin to where no block is");
  DAMAGE_LINK(in_bin(1), (uintptr_t)in_bin(0), "a bin without an end");
  DAMAGE_LINK(in_bin(1), (uintptr_t)on_list(0), "free twice");
  DAMAGE_LINK(in_bin(1), (uintptr_t)_mi_page_start(mains), "Q3: a block of another heap in a bin");
  DAMAGE(theap->bins[cls].head, (uintptr_t)single, "a link in a bin to where no block is");
  DAMAGE(theap->bins[cls].head, 0, "H3");
  DAMAGE(theap->bins[cls].slots, -1, "H3");
  DAMAGE(theap->bins[cls].slots, 100000, "H3");
  DAMAGE(theap->bins[cls].limit, 1000, "H3");
}

static void damage_descriptors(void) {
  DAMAGE(queued->used, 0, "P1");
  DAMAGE(queued->used, 10000, "P1");
  DAMAGE(queued->extended, queued->capacity + 1, "fits no size class");
  DAMAGE(queued->capacity, 8000, "fits no size class");
  DAMAGE(queued->cls, 200, "fits no size class");
  DAMAGE(queued->cls, cls + 1, "fits no size class");
  DAMAGE(queued->block_size, 16, "fits no size class");
  DAMAGE(queued->n_slices, 0, "a page that ends outside its region");
  DAMAGE(queued->n_slices, 100000000, "a page that ends outside its region");
  DAMAGE(queued->region, 3, "a descriptor of another place");
  DAMAGE(queued->region, 255, "a descriptor of another place");
  DAMAGE(queued->bin_offset, 16, "a descriptor of another class");
  DAMAGE(queued->to_first, 1, "a descriptor of another class");
  DAMAGE(queued->home, 0x4141414141414141, "H5");
  DAMAGE(queued->home, (uintptr_t)heap, "home");
  DAMAGE(queued->home, (uintptr_t)_mi_theap_backing(), "Q3: a home of another heap");
  DAMAGE(queued->flags, mi_load_relaxed(&queued->flags) ^ MI_PAGE_IS_FULL, "H4");
  DAMAGE(queued->flags, mi_load_relaxed(&queued->flags) ^ MI_PAGE_IN_HEAP,
         "Q1: a heap with a page that is not its own");
  DAMAGE(queued->kind, MI_PAGE_NONE, "a link of a heap to where no page is");
  case_is_global = true;
  DAMAGE(queued->kind, 9, "a descriptor of no kind");
  case_is_global = false;
  DAMAGE(multi[1].home, 0, "P3");
  DAMAGE(multi[1].to_first, 2, "P3");
  DAMAGE(multi[1].bin_offset, 0, "P3");
  DAMAGE(multi[1].block_size, 16, "P3");
  DAMAGE(multi[1].kind, MI_PAGE_NONE, "P3");
  case_is_global = true;
  DAMAGE(multi->kind, MI_PAGE_NONE, "a slice of no page");
  case_is_global = false;
  DAMAGE(single->cls, 3, "fits no large block");
  DAMAGE(single->block, (uintptr_t)blocks[0], "fits no large block");
  DAMAGE(single->home, (uintptr_t)theap, "fits no large block");
  DAMAGE(single->n_slices, single->n_slices + 1, "A1");
  if (!MI_HARDENED && !MI_TRACK) { // where it is not guarded
    DAMAGE(single->flags, mi_load_relaxed(&single->flags) | MI_PAGE_GUARDED, "a guarded block without a record");
    if (MI_CHECKED) DAMAGE(single->asked, POWER_OF_TWO(34), "larger than its page");
  }
  // Behind what was made: memory that nobody should have written.  Where a tool watches, it is the tool that reports the
  // write, and the check leaves that memory alone.
  size_t i = (_mi_page_first_made(queued) + queued->extended + 3) % queued->capacity;
  if (!MI_TRACK && _mi_page_has(queued, MI_PAGE_IS_ZERO))
    DAMAGE(*(uint64_t*)(void*)(_mi_page_block(queued, i) + 8), 1, "P2");
  CHECK(_mi_page_has(queued, MI_PAGE_IS_ZERO));
}

// What the program has written to behind its blocks, in builds that can know it; behind guarded blocks in all.
static void damage_ends(void) {
  uint8_t* block = (uint8_t*)blocks[0];
  uint8_t* big = (uint8_t*)mi_heap_malloc(heap, large + 1);
  size_t   block_size = _mi_page_block_size(_mi_page_of(block));
  if (MI_CHECKED && !MI_TRACK) {
    DAMAGE(block[block_size - 1], block[block_size - 1] ^ 0x41, "buffer overflow");
    DAMAGE(block[block_size - 8], block[block_size - 8] ^ 1, "buffer overflow");
    DAMAGE(block[size], 0, "buffer overflow");
    DAMAGE(big[large + 1], 0, "buffer overflow");
  }
  CHECK(mi_heap_check(heap) && block_size >= size + 8 * (MI_CHECKED ? 1 : 0));
  mi_free(big);
  if (TEST_SANITIZED) return; // nothing is guarded
  mi_heap_guarded_set_size_bound(heap, 0, GiB);
  mi_heap_guarded_set_sample_rate(heap, 1, 0);
  uint8_t* guarded = (uint8_t*)mi_heap_malloc(heap, 1001);
  mi_heap_guarded_set_sample_rate(heap, 0, 0);
  CHECK(_mi_guard_has(guarded));
  DAMAGE(guarded[1001], 0, "next to the block");
  DAMAGE(guarded[-1], 0, "next to the block");
  mi_free(guarded);
}

static uint64_t word_of(mi_page_t* page, mi_page_state_t state, size_t count, const void* first) {
  return _mi_page_word_make(
      state, count,
      (const mi_block_t*)(first != NULL ? first
                                        : (const void*)(uintptr_t)(mi_load_relaxed(&page->word) & 0xFFFFFFFFFFFF)));
}

static void damage_words(void) {
  size_t n_shared = _mi_page_word_chain(mi_load_relaxed(&shared->word)).count;
  DAMAGE(queued->word, word_of(queued, MI_PAGE_OWNED, 1, NULL), "I2");
  DAMAGE(queued->word, word_of(queued, MI_PAGE_OWNED, 1, blocks), "a link to where no block is");
  DAMAGE(queued->word, word_of(queued, MI_PAGE_OWNED, 1, on_list(0)), "free twice");
  DAMAGE(queued->word, word_of(queued, MI_PAGE_PARKED, 0, NULL), "a PARKED page");
  DAMAGE(queued->word, word_of(queued, MI_PAGE_SHARED, 5, NULL), "H4: a list with a page that is not for it");
  DAMAGE(queued->word, word_of(queued, MI_PAGE_CLAIMED, 0, NULL), "CLAIMED");
  DAMAGE(shared->word, word_of(shared, MI_PAGE_SHARED, n_shared + 1, NULL), "I2");
  DAMAGE(shared->word, word_of(shared, MI_PAGE_SHARED, 0, NULL), "full or empty");
  DAMAGE(shared->word, word_of(shared, MI_PAGE_OWNED, n_shared, NULL), "I2");
  DAMAGE(shared->pool, (uintptr_t)&_mi_heap_main.pool, "PO1: a pool with a page that is not for it");
  DAMAGE(parked->word, word_of(parked, MI_PAGE_PARKED, 1, NULL), "I2");
  DAMAGE(parked->word, word_of(parked, MI_PAGE_PARKED, 400, _mi_page_start(parked)), "should have been claimed");
  DAMAGE(parked->word, word_of(parked, MI_PAGE_OWNED, 0, NULL), "H4");
  DAMAGE(parked->used, parked->capacity - 1, "a PARKED page that is not full");
  DAMAGE(parked->next, (uintptr_t)queued, "a PARKED page in a list");
}

static void damage_lists(void) {
  mi_class_state_t* state = &theap->classes[cls];
  DAMAGE(state->queue.count, 7, "a list with another end or length");
  DAMAGE(state->queue.last, (uintptr_t)shared, "a list with another end or length");
  DAMAGE(state->queue.first, 0, "a list with another end or length");
  DAMAGE(state->queue.first, 0x4141414141414141, "a link in a list to where no page is");
  DAMAGE(state->queue.first, (uintptr_t)blocks[0], "a link in a list to where no page is");
  DAMAGE(state->queue.first, (uintptr_t)parked, "H4: a list with a page that is not for it");
  DAMAGE(state->queue.first->next, (uintptr_t)queued, "a list that goes back another way");
  DAMAGE(state->queue.first->prev, (uintptr_t)shared, "a list that goes back another way");
  DAMAGE(state->full.first, (uintptr_t)queued, "H4: a list with a page that is not for it");
  DAMAGE(heap->pool.first[cls], 0, "PO1: pages that are SHARED but in no pool");
  DAMAGE(heap->pool.first[cls], 0x4141414141414141, "a link in a pool to where no page is");
  DAMAGE(heap->pool.first[cls], (uintptr_t)parked, "PO1: a pool with a page that is not for it");
  DAMAGE(shared->next, (uintptr_t)shared, "a pool that goes back another way");
  DAMAGE(shared->prev, (uintptr_t)parked, "a pool that goes back another way");
  DAMAGE(heap->pages, 0, "a heap with another number of pages");
  DAMAGE(heap->pages, 0x4141414141414141, "a link of a heap to where no page is");
  DAMAGE(heap->pages, (uintptr_t)mains, "Q1: a heap with a page that is not its own");
  DAMAGE(heap->n_pages, 1, "a heap with another number of pages");
  DAMAGE(owner_of(queued)->next, 0, "a heap with another number of pages");
  DAMAGE(owner_of(queued)->next, (uintptr_t)queued, "a heap's list that goes back another way");
  DAMAGE(owner_of(queued)->prev, (uintptr_t)parked, "a heap's list that goes back another way");
  DAMAGE(owner_of(queued)->heap, (uintptr_t)&_mi_heap_main, "Q1: a heap with a page that is not its own");
  case_is_global = true;
  DAMAGE(owner_of(queued)->heap, 0x4141414141414141, "Q1: a page of a heap that is not in use");
  DAMAGE(owner_of(queued)->heap, (uintptr_t)theap, "Q1: a page of a heap that is not in use");
  DAMAGE(mains->flags, mi_load_relaxed(&mains->flags) | MI_PAGE_IN_HEAP, "Q1");
  case_is_global = false;
}

static void damage_slices(void) {
  size_t      slice = _mi_page_slice(multi) + 1;
  mi_chunk_t* chunk = &_mi_page_region(multi)->chunks[slice / MI_CHUNK_SLICES];
  DAMAGE(chunk->free_bits, chunk->free_bits | (1u << slice % MI_CHUNK_SLICES), "A1");
  DAMAGE(chunk->kind, MI_CHUNK_SMALL, "a page in a chunk of another kind");
  chunk = &_mi_page_region(queued)->chunks[_mi_page_slice(queued) / MI_CHUNK_SLICES];
  DAMAGE(chunk->kind, MI_CHUNK_MEDIUM, "a page in a chunk of another kind");
}

static void damage_theaps(void) {
  mi_theap_t* backing = _mi_theap_backing();
  mi_theap_t* dead = mi_load_relaxed(&shared->home);
  CHECK(dead->heap == heap && !_mi_theap_is_live(dead));
  DAMAGE(theap->thread, 0, "H6");
  DAMAGE(theap->thread, 0x4141414141414141, "H6");
  DAMAGE(backing->in_thread.next, 0, "H6: a theap that its thread does not know");
  DAMAGE(backing->in_thread.next, 0x4141414141414141, "H6: a theap that its thread does not know");
  DAMAGE(theap->is_live, 0, "a theap that no thread has is not empty");
  DAMAGE(dead->bins[5].head, (uintptr_t)blocks[0], "a theap that no thread has is not empty");
  DAMAGE(dead->thread, (uintptr_t)backing, "H6: a theap of a thread that is gone");
  DAMAGE(theap->outbox[3].page, (uintptr_t)queued, "Q4");
  DAMAGE(theap->outbox[3].page, 0x4141414141414141, "an outbox with blocks of no page");
  DAMAGE(_mi_heap_cached(backing, heap)->theap, (uintptr_t)backing, "Q5");
  case_is_global = true;
  DAMAGE(theap->heap, 0x4141414141414141, "Q3");
  DAMAGE(theap->heap, (uintptr_t)&_mi_heap_main, "Q3");
  case_is_global = false;
}

static void damage_outbox(mi_theap_t* other) {
  mi_batch_t* batch = NULL;
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    if (other->outbox[i].page != NULL) batch = &other->outbox[i];
  }
  if (MI_HARDENED) return; // what was freed waits, and is not there yet
  CHECK(batch != NULL && batch->count == 1);
  if (batch == NULL) return;
  case_is_global = true;
  DAMAGE(batch->count, 2, "a batch of another length");
  DAMAGE(batch->count, 0, "an outbox that counts wrong");
  DAMAGE(batch->first, 0x4141414141414141, "a link to where no block is");
  DAMAGE_LINK(batch->first, batch->first, "free twice");
  DAMAGE(batch->page, (uintptr_t)blocks[0], "an outbox with blocks of no page");
  case_is_global = false;
}

// ---- with so many threads that what waits is sorted (waiting.h) ---------------------------------------------------------

enum { n_idlers = 9 };

static pthread_barrier_t idlers_are_there, idlers_end;

static void* idle(void* arg) {
  mi_free(mi_malloc(1));
  pthread_barrier_wait(&idlers_are_there);
  pthread_barrier_wait(&idlers_end);
  return arg;
}

// A table that the system does not take back is address space only.
static void waiting_end_refused(uint64_t number) {
  size_t           n;
  const uintptr_t* table = _mi_waiting_find(number, NULL, (const char*)UINTPTR_MAX, &n);
  _mi_prim_fail_nth(1, false);
  _mi_waiting_end(number);
  _mi_prim_fail_nth(0, false);
  if (table == NULL) return;
  CHECK(n > 0 && !_mi_prim_is_written(table));
  _mi_prim_release((void*)(uintptr_t)table, mi_align_up(n * sizeof(*table), _mi_prim_os_page_size()));
}

// The same is found, but of batches.
static void damage_among_many(mi_theap_t* other) {
  pthread_t idlers[n_idlers];
  pthread_barrier_init(&idlers_are_there, NULL, n_idlers + 1);
  pthread_barrier_init(&idlers_end, NULL, n_idlers + 1);
  for (int i = 0; i < n_idlers; i++) pthread_create(&idlers[i], NULL, &idle, NULL);
  pthread_barrier_wait(&idlers_are_there);
  CHECK(check_quietly(NULL));
  uint64_t number = _mi_waiting_begin(NULL);
  CHECK_EQ(number != 0, MI_PRIM_VIRTUAL && !MI_TRACK);
  waiting_end_refused(number);
  mi_batch_t* batch = NULL;
  for (size_t i = 0; i < MI_OUTBOX_SIZE; i++) {
    if (other->outbox[i].page != NULL) batch = &other->outbox[i];
  }
  case_is_global = true;
  damage_links();
  case_is_global = true;
  if (batch != NULL && number != 0) {
    DAMAGE(batch->count, 2, "a batch of another length");
    DAMAGE(batch->first, 0x4141414141414141, "a batch of another length");
    DAMAGE_LINK(batch->first, batch->first, "a batch of another length");
  }
  case_is_global = false;
  pthread_barrier_wait(&idlers_end);
  for (int i = 0; i < n_idlers; i++) pthread_join(idlers[i], NULL);
}

// More faults than are kept: their number is said.
static void damage_much(void) {
  for (size_t c = 0; c < 60; c++) theap->bins[c].slots -= 10000;
  CHECK(!check_quietly(heap));
  CHECK_EQ(n_reported, 17);
  CHECK_FOR(sink_has(&said, "44 more faults"), "%s", said.text);
  for (size_t c = 0; c < 60; c++) theap->bins[c].slots += 10000;
  CHECK(check_quietly(NULL));
}

// A round has taken the blocks of a bin while its thread was in the middle of a free, which then wrote what it had read.  That is no
// damage, and what was taken is in use for nobody (bin.h, BN2).
static void check_unsettled(void) {
  mi_bin_t*         bin = &theap->bins[cls];
  mi_class_state_t* state = &theap->classes[cls];
  mi_bin_t          saved = *bin;
  CHECK(bin->head != NULL);
  state->book.taken = bin->head;
  state->book.slots_taken = bin->slots;
  bin->head = NULL;
  bin->slots = 0;
  mi_store_relaxed(&theap->is_closed, true);
  CHECK_FOR(check_quietly(heap) && said.length == 0, "%s", said.text);
  mi_store_relaxed(&theap->is_closed, false);
  *bin = saved;
  state->book.taken = NULL;
  CHECK(check_quietly(heap));
}

static mi_theap_t* find_other(void) {
  for (mi_theap_t* t = _mi_registry_first(); t != NULL; t = t->next) {
    if (_mi_theap_is_live(t) && t != _mi_theap_backing() && mi_load_relaxed(&t->thread) == t) return t;
  }
  return NULL;
}

int main(void) {
  pthread_t thread;
  if (_mi_prim_os_page_size() > 4096) {
    test_skip("damaged pages",
              "with larger OS pages all blocks of a page are made at once, and the bin takes what is freed");
    return skip_code;
  }
  watchdog(60);
  mi_option_set(mi_option_purge_delay, -1);
  mi_option_set(mi_option_max_errors, -1);
  mi_option_set(mi_option_show_errors, 1);
  mi_register_output(&sink_write, &said);
  mi_register_error(&on_error, NULL);
  void* p = mi_malloc(50);
  pthread_barrier_init(&barrier, NULL, 2);
  pthread_create(&thread, NULL, &stay, p);
  pthread_barrier_wait(&barrier);
  build();
  CHECK(state_of(queued) == MI_PAGE_OWNED && state_of(shared) == MI_PAGE_SHARED);
  CHECK(parked != NULL && state_of(parked) == MI_PAGE_PARKED);
  CHECK(check_quietly(heap) && check_quietly(NULL) && said.length == 0);
  damage_links();
  damage_descriptors();
  damage_words();
  damage_lists();
  damage_slices();
  damage_ends();
  damage_theaps();
  damage_much();
  check_unsettled();
  pthread_barrier_wait(&barrier);
  pthread_barrier_wait(&barrier);
  damage_outbox(find_other());
  damage_among_many(find_other());
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  CHECK(check_quietly(NULL));
  mi_heap_destroy(heap);
  CHECK(check_quietly(NULL));
  return check_result();
}
