// Proves of page/page_word.h and page/block.h, for all values: a word gives back what it is made of, each transition is one of
// those in the drawing, and a link is decoded to what was encoded.
#include "proof.h"

#define MI_SECURE 4
#include "page/page_word.h"

mi_block_keys_t _mi_block_keys;

static mi_block_t* any_block(void) {
  uint64_t address = nondet_u64();
  REQUIRE(address < (uint64_t)1 << MI_WORD_COUNT_SHIFT);
  return (mi_block_t*)(uintptr_t)address;
}

static size_t any_count(void) {
  size_t n = nondet_size();
  REQUIRE(n <= MI_WORD_COUNT_MAX);
  return n;
}

static mi_page_state_t any_state(void) {
  uint32_t state = nondet_u32();
  REQUIRE(state <= MI_PAGE_CLAIMED);
  return (mi_page_state_t)state;
}

static bool word_is(uint64_t word, mi_page_state_t state, size_t count, const mi_block_t* first) {
  mi_chain_t chain = _mi_page_word_chain(word);
  return _mi_page_word_state(word) == state && chain.count == count && chain.first == first;
}

void proof_word(void) {
  mi_page_state_t state = any_state();
  size_t          count = any_count();
  mi_block_t*     first = any_block();
  ENSURE(word_is(_mi_page_word_make(state, count, first), state, count, first));
}

void proof_push(void) {
  mi_page_state_t before = any_state(), was;
  mi_block_t      block, *chained = any_block();
  size_t          n_before = any_count(), n = any_count(), claim_at = any_count(), capacity = any_count();
  REQUIRE(n >= 1 && n_before + n <= capacity && claim_at >= 1 &&
          (uintptr_t)&block < (uint64_t)1 << MI_WORD_COUNT_SHIFT);
  mi_page_word_t     word = _mi_page_word_make(before, n_before, chained);
  mi_page_capacity_t of_page = (uint16_t)capacity;
  mi_page_state_t    told = _mi_page_word_push(&word, &block, &block, n, claim_at, &of_page, &was);
  bool               claims =
      (before == MI_PAGE_PARKED && n_before + n >= claim_at) || (before == MI_PAGE_SHARED && n_before + n == capacity);
  ENSURE(was == before && (told == MI_PAGE_CLAIMED) == claims);
  ENSURE(_mi_page_word_state(word) == (claims ? MI_PAGE_CLAIMED : before));
  ENSURE(_mi_page_word_chain(word).count == n_before + n);
}

void proof_take(void) {
  mi_page_state_t state = any_state(), held = any_state();
  size_t          count = any_count();
  mi_block_t*     first = any_block();
  mi_page_word_t  word = _mi_page_word_make(state, count, first);
  mi_chain_t      taken = _mi_page_word_take(&word, held);
  ENSURE(taken.count == count && taken.first == first && word_is(word, held, 0, NULL));
}

void proof_let_go(void) {
  mi_page_state_t state = any_state(), held = any_state();
  size_t          count = any_count();
  mi_block_t*     first = any_block();
  REQUIRE((count == 0) == (first == NULL));
  mi_chain_t     free = {any_block(), any_count()}, adopted = {NULL, 0};
  mi_page_word_t parked = _mi_page_word_make(state, count, first), shared = parked, owned = parked;
  ENSURE(_mi_page_word_park(&parked) == (state == MI_PAGE_OWNED && count == 0));
  ENSURE(_mi_page_word_share(&shared, held, free) == (state == held && count == 0));
  ENSURE(_mi_page_word_adopt(&owned, MI_PAGE_OWNED, &adopted) == (state == MI_PAGE_SHARED));
  ENSURE(state != held || count != 0 || word_is(shared, MI_PAGE_SHARED, free.count, free.first));
  ENSURE(state != MI_PAGE_SHARED ||
         (word_is(owned, MI_PAGE_OWNED, 0, NULL) && adopted.count == count && adopted.first == first));
}

// B1: whatever the key and wherever the block is.
void proof_link(void) {
  mi_block_t* block = (mi_block_t*)(uintptr_t)nondet_u64();
  mi_block_t* next = (mi_block_t*)(uintptr_t)nondet_u64();
  _mi_block_keys.link = nondet_u64();
  ENSURE(MI_MIX * MI_MIX_INVERSE == 1);
  ENSURE(_mi_block_decode(block, _mi_block_code(block, next)) == (uintptr_t)next);
}
