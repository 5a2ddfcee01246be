// Proves: each transition of the page word does what the table in page_word.h says, and nothing where it has no arrow;
// no block of a chain is lost or seen twice.  By one thread: what threads do to each other is the model checker's.
#include "../check.h"
#include "../modes/support.h"
#include "page/page_word.h"

enum { capacity = 40, claim_at = 6 };

static mi_block_t     blocks[capacity];
static mi_page_word_t word;

// What the word should be: its state, its count, and its chain, first block last.
static mi_page_state_t state;
static size_t          count, length;
static size_t          chain[capacity];
static bool            is_chained[capacity];

// These blocks lie in no region, where _mi_page_next_block would look for them.
static const mi_block_t* next_of(const mi_block_t* block) {
  return (const mi_block_t*)(uintptr_t)_mi_block_next(block);
}

static void check_chain(const mi_block_t* first, size_t n) {
  for (size_t i = n; i-- > 0; first = next_of(first)) {
    CHECK(first == &blocks[chain[i]]);
    if (first == NULL) return;
  }
  CHECK(n == 0 ? first == NULL : true);
}

static void check_word(void) {
  uint64_t   now = mi_load_relaxed(&word);
  mi_chain_t have = _mi_page_word_chain(now);
  CHECK_EQ(_mi_page_word_state(now), state);
  CHECK_EQ(have.count, count);
  CHECK((have.first == NULL) == (length == 0));
  check_chain(have.first, length);
}

static void forget_chain(void) {
  memset(is_chained, 0, sizeof(is_chained));
  count = length = 0;
}

static void set_word(mi_page_state_t to, size_t n_unmade) {
  forget_chain();
  state = to;
  count = n_unmade;
  mi_store_relaxed(&word, _mi_page_word_make(to, n_unmade, NULL));
}

static void check_taken(mi_chain_t taken, size_t n_counted) {
  CHECK_EQ(taken.count, n_counted);
  CHECK((taken.first == NULL) == (length == 0));
  check_chain(taken.first, length);
  const mi_block_t* last = taken.first;
  for (size_t i = 1; i < length; i++) last = next_of(last);
  CHECK(last == NULL || next_of(last) == NULL);
}

// ---- the transitions ------------------------------------------------------------------------------------------------

// n blocks that are on no chain, linked; false if there are not so many.
static bool link_blocks(rng_t* r, size_t n, mi_block_t** first, mi_block_t** last) {
  size_t picked[capacity], n_picked = 0;
  size_t start = rng_below(r, capacity);
  for (size_t i = 0; i < capacity && n_picked < n; i++) {
    size_t at = (start + i * 7) % capacity;
    if (!is_chained[at]) picked[n_picked++] = at;
  }
  if (n_picked < n) return false;
  for (size_t i = 0; i < n; i++) {
    size_t at = picked[n - 1 - i];
    _mi_block_set_next(&blocks[at], i == 0 ? &blocks[0] : &blocks[picked[n - i]]);
    chain[length + i] = at;
    is_chained[at] = true;
  }
  *first = &blocks[picked[0]];
  *last = &blocks[picked[n - 1]];
  return true;
}

static void do_push(rng_t* r, size_t n) {
  mi_block_t *    first, *last;
  mi_page_state_t was, before = state;
  size_t          limit = (state == MI_PAGE_SHARED ? capacity - count : capacity - length);
  if (n > limit || !link_blocks(r, n, &first, &last)) return;
  mi_page_capacity_t all = capacity;
  mi_page_state_t    now = _mi_page_word_push(&word, first, last, n, claim_at, &all, &was);
  length += n;
  count += n;
  if (before == MI_PAGE_PARKED && count >= claim_at) state = MI_PAGE_CLAIMED;
  if (before == MI_PAGE_SHARED && count == capacity) state = MI_PAGE_CLAIMED;
  CHECK_EQ(was, before);
  CHECK_EQ(now, before == MI_PAGE_CLAIMED ? MI_PAGE_OWNED : state);
}

static void do_take(void) {
  if (state != MI_PAGE_OWNED && state != MI_PAGE_CLAIMED) return;
  check_taken(_mi_page_word_take(&word, state), count);
  forget_chain();
}

static void do_own(void) {
  if (state != MI_PAGE_CLAIMED) return;
  check_taken(_mi_page_word_own(&word), count);
  forget_chain();
  state = MI_PAGE_OWNED;
}

static void do_park(void) {
  bool want = (state == MI_PAGE_OWNED && length == 0);
  CHECK_EQ(_mi_page_word_park(&word), want);
  if (want) state = MI_PAGE_PARKED;
}

// With n blocks of its own and some that are not yet made.  Tried in any state: nothing happens but from `held`.
static void do_share(rng_t* r, mi_page_state_t held, size_t n) {
  mi_chain_t  free = {NULL, 0};
  mi_block_t* last = NULL;
  bool        want = (state == held && length == 0);
  if (!want) {
    free.first = &blocks[0];
    free.count = n + 1;
    CHECK(!_mi_page_word_share(&word, held, free));
    return;
  }
  if (n > 0 && link_blocks(r, n, &free.first, &last)) _mi_block_set_next(last, NULL);
  free.count = n + 1 + rng_below(r, capacity - n - 1);
  CHECK(_mi_page_word_share(&word, held, free));
  state = MI_PAGE_SHARED;
  count = free.count;
  length = n;
}

static void do_adopt(void) {
  mi_chain_t free = {NULL, 12345};
  bool       want = (state == MI_PAGE_SHARED);
  CHECK_EQ(_mi_page_word_adopt(&word, MI_PAGE_OWNED, &free), want);
  if (!want) return;
  check_taken(free, count);
  forget_chain();
  state = MI_PAGE_OWNED;
}

// ---- checks ---------------------------------------------------------------------------------------------------------

static void check_packing(void) {
  static const size_t    counts[] = {0, 1, 8192, MI_WORD_COUNT_MAX};
  static const uintptr_t addresses[] = {0, 8, POWER_OF_TWO(47) - 8, POWER_OF_TWO(48) - 8};
  for (int s = MI_PAGE_OWNED; s <= MI_PAGE_CLAIMED; s++) {
    for (size_t i = 0; i < COUNT_OF(counts) * COUNT_OF(addresses); i++) {
      size_t     n = counts[i / COUNT_OF(addresses)];
      uintptr_t  address = addresses[i % COUNT_OF(addresses)];
      uint64_t   made = _mi_page_word_make((mi_page_state_t)s, n, (mi_block_t*)address);
      mi_chain_t got = _mi_page_word_chain(made);
      CHECK_EQ(_mi_page_word_state(made), s);
      CHECK_EQ(got.count, n);
      CHECK((uintptr_t)got.first == address);
    }
  }
  CHECK_EQ(_mi_page_word_make(MI_PAGE_OWNED, 0, NULL), 0);
}

// A push at each count, from each state, of one block and of several: the table, line by line.
static void check_pushes(rng_t* r) {
  for (int s = MI_PAGE_OWNED; s <= MI_PAGE_CLAIMED; s++) {
    for (size_t have = 0; have < capacity; have++) {
      for (size_t n = 1; have + n <= capacity; n++) {
        set_word((mi_page_state_t)s, s == MI_PAGE_SHARED ? have : 0);
        if (s == MI_PAGE_PARKED && have >= claim_at) continue; // it would not be PARKED any more
        mi_block_t *first = NULL, *last = NULL;
        if (s != MI_PAGE_SHARED && have > 0 && link_blocks(r, have, &first, &last)) {
          _mi_block_set_next(last, NULL);
          length = count = have;
          mi_store_relaxed(&word, _mi_page_word_make(state, have, first));
        }
        do_push(r, n);
        check_word();
        if (s == MI_PAGE_PARKED) CHECK_EQ(state, have + n >= claim_at ? MI_PAGE_CLAIMED : MI_PAGE_PARKED);
        else if (s == MI_PAGE_SHARED) CHECK_EQ(state, have + n == capacity ? MI_PAGE_CLAIMED : MI_PAGE_SHARED);
        else CHECK_EQ(state, s);
      }
    }
  }
}

static void check_no_arrow(rng_t* r) {
  for (int s = MI_PAGE_OWNED; s <= MI_PAGE_CLAIMED; s++) {
    for (size_t have = 0; have < 2; have++) {
      for (int op = 0; op < 4; op++) {
        set_word((mi_page_state_t)s, 0);
        if (have > 0) do_push(r, 1);
        if (op == 0) do_park();
        else if (op == 1) do_adopt();
        else do_share(r, op == 2 ? MI_PAGE_OWNED : MI_PAGE_CLAIMED, 3);
        check_word();
      }
    }
  }
}

static void check_random(rng_t* r) {
  set_word(MI_PAGE_OWNED, 0);
  for (size_t i = 0; i < 100000 * test_scale(); i++) {
    switch (rng_below(r, 12)) {
      case 0: do_take(); break;
      case 1: do_own(); break;
      case 2:
      case 3: do_park(); break;
      case 4: do_share(r, MI_PAGE_OWNED, rng_below(r, 5)); break;
      case 5: do_share(r, MI_PAGE_CLAIMED, rng_below(r, 5)); break;
      case 6:
        if (rng_below(r, 4) == 0) do_adopt();
        break;
      default: do_push(r, 1 + rng_below(r, 4)); break;
    }
    check_word();
  }
}

int main(int argc, char** argv) {
  rng_t r = rng_make(test_seed(argc, argv));
  _mi_block_init();
  check_packing();
  check_pushes(&r);
  check_no_arrow(&r);
  check_random(&r);
  return check_result();
}
