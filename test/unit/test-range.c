// Proves: the index of ranges finds what was put into it and nothing else, by any address and by any range that meets one,
// whatever was inserted and removed before, and its depth stays of the order of log n, for ranges that come in order too.
//
// The model is a line of places, each with the number of the range that covers it.
#include "../check.h"
#include "../modes/support.h"
#include "arena/range.h"

enum { n_places = 4096, n_ranges = 1000 };

static mi_range_t  ranges[n_ranges];
static size_t      covered_by[n_places]; // number + 1; 0: by none
static mi_range_t* root;

static uintptr_t const first = POWER_OF_TWO(40);
static size_t const    place = 64 * KiB;

static bool is_free(size_t at, size_t n) {
  for (size_t i = at; i < at + n; i++) {
    if (i >= n_places || covered_by[i] != 0) return false;
  }
  return true;
}

static void cover(const mi_range_t* range, size_t by) {
  for (size_t i = 0; i < range->size / place; i++) covered_by[(range->start - first) / place + i] = by;
}

static void add_random(rng_t* r) {
  size_t which = rng_below(r, n_ranges), at = rng_below(r, n_places), n = 1 + rng_below(r, 8);
  if (_mi_range_is_in_index(&ranges[which]) || !is_free(at, n)) return;
  ranges[which].start = first + at * place;
  ranges[which].size = n * place;
  _mi_range_insert(&root, &ranges[which]);
  cover(&ranges[which], which + 1);
}

static void remove_random(rng_t* r) {
  mi_range_t* range = &ranges[rng_below(r, n_ranges)];
  if (!_mi_range_is_in_index(range)) return;
  _mi_range_remove(&root, range);
  CHECK(!_mi_range_is_in_index(range));
  cover(range, 0);
}

static mi_range_t* expected(size_t at, size_t n) {
  for (size_t i = at + n; i > at; i--) {
    if (i <= n_places && covered_by[i - 1] != 0) return &ranges[covered_by[i - 1] - 1];
  }
  return NULL;
}

static void find_random(rng_t* r) {
  size_t    at = rng_below(r, n_places), n = 1 + rng_below(r, rng_below(r, 2) == 0 ? 2 : 64);
  uintptr_t start = first + at * place;
  CHECK(_mi_range_find(root, start, 1) == expected(at, 1));
  CHECK(_mi_range_find(root, start + rng_below(r, place), 1) == expected(at, 1));
  CHECK(_mi_range_find(root, start, n * place) == expected(at, n));
  CHECK(_mi_range_find(root, start + place - 1, 1) == expected(at, 1));
}

// Also: is the tree in order?
static size_t depth(const mi_range_t* range, uintptr_t low, uintptr_t high) {
  if (range == NULL) return 0;
  CHECK(range->start >= low && range->start + range->size <= high);
  size_t left = depth(range->left, low, range->start), right = depth(range->right, range->start + range->size, high);
  return 1 + (left > right ? left : right);
}

static void check_ends(void) {
  CHECK(_mi_range_find(root, 0, 1) == NULL && _mi_range_find(root, UINTPTR_MAX, 1) == NULL);
  CHECK(_mi_range_find(root, 0, SIZE_MAX) == _mi_range_find(root, first, n_places * place));
}

// In order, as the system hands out addresses.
static void check_in_order(bool is_up) {
  for (size_t i = 0; i < n_ranges; i++) {
    ranges[i].start = first + (is_up ? i : n_ranges - i) * 4 * place;
    ranges[i].size = place;
    _mi_range_insert(&root, &ranges[i]);
  }
  CHECK_FOR(depth(root, 0, UINTPTR_MAX) <= 40, "depth %zu of %d", depth(root, 0, UINTPTR_MAX), (int)n_ranges);
  for (size_t i = 0; i < n_ranges; i++) CHECK(_mi_range_find(root, ranges[i].start + place - 1, 1) == &ranges[i]);
  for (size_t i = 0; i < n_ranges; i++) _mi_range_remove(&root, &ranges[is_up ? i : n_ranges - 1 - i]);
  CHECK(root == NULL);
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  for (size_t i = 0; i < n_ranges; i++) ranges[i].left = &ranges[i];
  check_ends();
  for (size_t i = 0; i < 200000 * test_scale(); i++) {
    bool   is_growing = (i / 10000 % 2 == 0);
    size_t op = rng_below(&r, 10);
    if (op < 2) find_random(&r);
    else if (op < (is_growing ? 7u : 4u)) add_random(&r);
    else remove_random(&r);
    if (i % 5000 == 0) CHECK(depth(root, 0, UINTPTR_MAX) <= 40);
  }
  check_ends();
  for (size_t i = 0; i < n_ranges; i++) {
    if (_mi_range_is_in_index(&ranges[i])) _mi_range_remove(&root, &ranges[i]);
  }
  CHECK(root == NULL);
  check_in_order(true);
  check_in_order(false);
  return check_result();
}
