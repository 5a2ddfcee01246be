// espresso: minimises two-level logic functions, one thread.
//
// Pattern   The cubes of a function (product terms) are bit vectors, each a block of its own, in covers that grow by
//           realloc. Cofactors, tautology checks and complements recurse, and at every level make covers that live as
//           long as the call: blocks of 8 to about 1000 bytes, nearly all of them short-lived.
// Idea      R. Brayton, G. Hachtel, C. McMullen, A. Sangiovanni-Vincentelli, "Logic Minimization Algorithms for VLSI
//           Synthesis" (1984): expand, irredundant and reduce until nothing gets smaller, on top of the unate recursive
//           paradigm. As a benchmark of allocators: B. Zorn, D. Grunwald, "Empirical Measurements of Six
//           Allocation-intensive C Programs" (1992). The functions are computed: symmetric ones, adders, multipliers,
//           and random covers with don't cares.
// Check     The minimised cover says the same as the given one: for all minterms of up to 12 inputs, else for 4096
//           random ones.
// Usage     espresso [ROUNDS = 4]      ROUNDS: each minimises the whole set of functions
//
// A cube has two bits for each input, then one for each output. An input's bits are 01 where it must be 0, 10 where it
// must be 1, 11 where it does not matter; the bits of an input, and all output bits together, are a variable of which
// the cube admits some values: cubes meet if no variable of their AND is 00.
#include <stdbool.h>
#include <string.h>
#include "bench.h"

#define INPUTS_MAX  24
#define OUTPUTS_MAX 40
#define VALUES_MAX  (2 * INPUTS_MAX + OUTPUTS_MAX)
#define WORD_BITS   64

typedef uint64_t word_t;
typedef word_t*  cube_t; // n_words of them

typedef struct cover_s {
  cube_t* cubes;
  size_t  count;
  size_t  capacity;
} cover_t;

// The shape of the function at hand. Inputs are the variables 0 to n_inputs - 1, the outputs are the last one.
static size_t n_inputs, n_outputs, n_vars, n_values, n_words;
static cube_t universe;
static cube_t var_masks[INPUTS_MAX + 1];

static uint64_t random_state;

// ---- cubes

static cube_t cube_new(void) {
  return bench_not_null(malloc(n_words * sizeof(word_t)));
}

static cube_t cube_empty(void) {
  return bench_not_null(calloc(n_words, sizeof(word_t)));
}

static cube_t cube_copy(const word_t* a) {
  cube_t cube = cube_new();
  memcpy(cube, a, n_words * sizeof(word_t));
  return cube;
}

static bool cube_has(const word_t* a, size_t value) {
  return (a[value / WORD_BITS] >> value % WORD_BITS & 1) != 0;
}

static void cube_set(cube_t a, size_t value) {
  a[value / WORD_BITS] |= (word_t)1 << value % WORD_BITS;
}

static void cube_unset(cube_t a, size_t value) {
  a[value / WORD_BITS] &= ~((word_t)1 << value % WORD_BITS);
}

static bool cube_is_equal(const word_t* a, const word_t* b) {
  return memcmp(a, b, n_words * sizeof(word_t)) == 0;
}

static bool cube_contains(const word_t* a, const word_t* b) {
  for (size_t w = 0; w < n_words; w++) {
    if ((b[w] & ~a[w]) != 0) return false;
  }
  return true;
}

static size_t cube_weight(const word_t* a) {
  size_t n = 0;
  for (size_t w = 0; w < n_words; w++) n += (size_t)__builtin_popcountll(a[w]);
  return n;
}

// Do the cubes share no value of this variable?
static bool cube_differs_in(const word_t* a, const word_t* b, size_t var) {
  const word_t* mask = var_masks[var];
  for (size_t w = 0; w < n_words; w++) {
    if ((a[w] & b[w] & mask[w]) != 0) return false;
  }
  return true;
}

static bool cube_is_full_in(const word_t* a, size_t var) {
  const word_t* mask = var_masks[var];
  for (size_t w = 0; w < n_words; w++) {
    if ((~a[w] & mask[w]) != 0) return false;
  }
  return true;
}

static bool cube_meets(const word_t* a, const word_t* b) {
  for (size_t var = 0; var < n_vars; var++) {
    if (cube_differs_in(a, b, var)) return false;
  }
  return true;
}

static bool cube_is_void(const word_t* a) {
  return !cube_meets(a, universe);
}

static void cube_or(cube_t a, const word_t* b) {
  for (size_t w = 0; w < n_words; w++) a[w] |= b[w];
}

static void cube_and(cube_t a, const word_t* b) {
  for (size_t w = 0; w < n_words; w++) a[w] &= b[w];
}

// The order of expand and irredundant: small cubes first; equal weights by content, never by address.
static int cube_compare(const void* a, const void* b) {
  const word_t* x = *(const cube_t*)a;
  const word_t* y = *(const cube_t*)b;
  size_t        x_weight = cube_weight(x), y_weight = cube_weight(y);
  if (x_weight != y_weight) return x_weight < y_weight ? -1 : 1;
  for (size_t w = 0; w < n_words; w++) {
    if (x[w] != y[w]) return x[w] < y[w] ? -1 : 1;
  }
  return 0;
}

// ---- covers

static cover_t cover_new(void) {
  return (cover_t){NULL, 0, 0};
}

// The cover owns the cube from now on.
static void cover_add(cover_t* f, cube_t cube) {
  if (f->count == f->capacity) {
    f->capacity += f->capacity / 2 + 4;
    f->cubes = bench_not_null(realloc(f->cubes, f->capacity * sizeof(cube_t)));
  }
  f->cubes[f->count++] = cube;
}

static void cover_free(cover_t* f) {
  for (size_t i = 0; i < f->count; i++) free(f->cubes[i]);
  free(f->cubes);
  *f = cover_new();
}

static void cover_add_copies(cover_t* f, const cover_t* g, const word_t* except) {
  for (size_t i = 0; i < g->count; i++) {
    if (g->cubes[i] != except) cover_add(f, cube_copy(g->cubes[i]));
  }
}

static cover_t cover_copy(const cover_t* f) {
  cover_t copy = cover_new();
  cover_add_copies(&copy, f, NULL);
  return copy;
}

// Moves all cubes of g.
static void cover_append(cover_t* f, cover_t* g) {
  for (size_t i = 0; i < g->count; i++) cover_add(f, g->cubes[i]);
  g->count = 0;
  cover_free(g);
}

// Removes the cubes that are NULL; the others keep their order.
static void cover_compact(cover_t* f) {
  size_t count = 0;
  for (size_t i = 0; i < f->count; i++) {
    if (f->cubes[i] != NULL) f->cubes[count++] = f->cubes[i];
  }
  f->count = count;
}

static void cover_drop(cover_t* f, size_t i) {
  free(f->cubes[i]);
  f->cubes[i] = NULL;
}

static void cover_sort(cover_t* f) {
  if (f->count > 1) qsort(f->cubes, f->count, sizeof(cube_t), &cube_compare);
}

// Removes the cubes that lie within another one.
static void cover_absorb(cover_t* f) {
  cover_sort(f);
  for (size_t i = 0; i < f->count; i++) {
    for (size_t j = i + 1; j < f->count; j++) {
      if (!cube_contains(f->cubes[j], f->cubes[i])) continue;
      cover_drop(f, i);
      break;
    }
  }
  cover_compact(f);
}

// What f says within the cube c, as a function of what c leaves open.
static cover_t cover_cofactor(const cover_t* f, const word_t* c) {
  cover_t result = cover_new();
  for (size_t i = 0; i < f->count; i++) {
    if (!cube_meets(f->cubes[i], c)) continue;
    cube_t cube = cube_new();
    for (size_t w = 0; w < n_words; w++) cube[w] = f->cubes[i][w] | (universe[w] & ~c[w]);
    cover_add(&result, cube);
  }
  return result;
}

static cube_t cover_supercube(const cover_t* f) {
  cube_t super = cube_empty();
  for (size_t i = 0; i < f->count; i++) cube_or(super, f->cubes[i]);
  return super;
}

static bool cover_has_universe(const cover_t* f) {
  for (size_t i = 0; i < f->count; i++) {
    if (cube_is_equal(f->cubes[i], universe)) return true;
  }
  return false;
}

// The variable that the most cubes depend on; n_vars if none does.
static size_t cover_binate_var(const cover_t* f) {
  size_t best = n_vars, best_count = 0;
  for (size_t var = 0; var < n_vars; var++) {
    size_t count = 0;
    for (size_t i = 0; i < f->count; i++) count += !cube_is_full_in(f->cubes[i], var);
    if (count > best_count) {
      best = var;
      best_count = count;
    }
  }
  return best;
}

// Two cubes that divide the universe in this variable. The values that some cube of f excludes go left and right in
// turns, the others right: then both cofactors exclude fewer values than f does.
static void universe_split(const cover_t* f, size_t var, cube_t* left, cube_t* right) {
  *left = cube_copy(universe);
  *right = cube_copy(universe);
  size_t n_excluded = 0;
  for (size_t value = 0; value < n_values; value++) {
    if (!cube_has(var_masks[var], value)) continue;
    bool is_excluded = false;
    for (size_t i = 0; i < f->count && !is_excluded; i++) is_excluded = !cube_has(f->cubes[i], value);
    bool is_left = is_excluded && n_excluded++ % 2 == 0;
    cube_unset(is_left ? *right : *left, value);
  }
}

// ---- the unate recursive paradigm

// Drops the cubes that depend on a variable in which the cover is unate: some value is in none of the cubes that depend
// on it, so the function without them must be everything if the function with them is. Returns whether it did.
static bool tautology_reduce(cover_t* f) {
  bool   is_changed = false;
  cube_t dependent = cube_new();
  for (size_t var = 0; var < n_vars; var++) {
    bool has_dependent = false;
    memset(dependent, 0, n_words * sizeof(word_t));
    for (size_t i = 0; i < f->count; i++) {
      if (cube_is_full_in(f->cubes[i], var)) continue;
      cube_or(dependent, f->cubes[i]);
      has_dependent = true;
    }
    if (!has_dependent || cube_is_full_in(dependent, var)) continue;
    for (size_t i = 0; i < f->count; i++) {
      if (!cube_is_full_in(f->cubes[i], var)) cover_drop(f, i);
    }
    cover_compact(f);
    is_changed = true;
  }
  free(dependent);
  return is_changed;
}

// Does f cover everything? Uses f up.
static bool tautology(cover_t f) {
  bool result = false;
  while (!(result = cover_has_universe(&f)) && tautology_reduce(&f)) {
  }
  if (!result && f.count > 1) {
    size_t var = cover_binate_var(&f);
    cube_t left, right;
    universe_split(&f, var, &left, &right);
    result = tautology(cover_cofactor(&f, left)) && tautology(cover_cofactor(&f, right));
    free(left);
    free(right);
  }
  cover_free(&f);
  return result;
}

// The complement of a cube: one cube for each variable that it depends on.
static cover_t complement_of_cube(const word_t* a) {
  cover_t result = cover_new();
  for (size_t var = 0; var < n_vars; var++) {
    if (cube_is_full_in(a, var)) continue;
    cube_t cube = cube_new();
    for (size_t w = 0; w < n_words; w++) cube[w] = universe[w] & ~(a[w] & var_masks[var][w]);
    cover_add(&result, cube);
  }
  return result;
}

// Joins the cubes of both halves that are equal but for the variable of the split: they are cut out of all of it, or of
// the halves that `slots` and `right` say.
static void complement_merge(cover_t* f, cover_t* g, const word_t* left, const word_t* right) {
  cover_sort(f);
  cover_sort(g);
  size_t i = 0, j = 0;
  while (i < f->count && j < g->count) {
    int order = cube_compare(&f->cubes[i], &g->cubes[j]);
    if (order < 0) cube_and(f->cubes[i++], left);
    else if (order > 0) cube_and(g->cubes[j++], right);
    else {
      i++; // as it is
      cover_drop(g, j++);
    }
  }
  while (i < f->count) cube_and(f->cubes[i++], left);
  while (j < g->count) cube_and(g->cubes[j++], right);
  cover_compact(g);
}

// All that f does not cover. Uses f up.
static cover_t complement(cover_t f) {
  cover_t result = cover_new();
  if (f.count == 0) cover_add(&result, cube_copy(universe));
  else if (f.count == 1) result = complement_of_cube(f.cubes[0]);
  else if (!cover_has_universe(&f)) {
    cube_t super = cover_supercube(&f);
    if (!cube_is_equal(super, universe)) {
      // What lies outside of all cubes, and the rest within their common bounds.
      result = complement_of_cube(super);
      cover_t inside = complement(cover_cofactor(&f, super));
      for (size_t i = 0; i < inside.count; i++) cube_and(inside.cubes[i], super);
      cover_append(&result, &inside);
    }
    else {
      size_t var = cover_binate_var(&f);
      cube_t left, right;
      universe_split(&f, var, &left, &right);
      result = complement(cover_cofactor(&f, left));
      cover_t other = complement(cover_cofactor(&f, right));
      complement_merge(&result, &other, left, right);
      cover_append(&result, &other);
      free(left);
      free(right);
    }
    free(super);
  }
  cover_free(&f);
  return result;
}

// The smallest cube that contains all that f does not cover. Uses f up.
static cube_t complement_bounds(cover_t f) {
  cube_t bounds = NULL;
  if (f.count == 0) bounds = cube_copy(universe);
  else if (cover_has_universe(&f)) bounds = cube_empty();
  else if (f.count == 1) {
    cover_t outside = complement_of_cube(f.cubes[0]);
    bounds = cover_supercube(&outside);
    cover_free(&outside);
  }
  else {
    cube_t left, right;
    universe_split(&f, cover_binate_var(&f), &left, &right);
    bounds = complement_bounds(cover_cofactor(&f, left));
    cube_t other = complement_bounds(cover_cofactor(&f, right));
    cube_and(bounds, left);
    cube_and(other, right);
    if (cube_is_void(bounds)) memset(bounds, 0, n_words * sizeof(word_t));
    if (!cube_is_void(other)) cube_or(bounds, other);
    free(other);
    free(left);
    free(right);
  }
  cover_free(&f);
  return bounds;
}

// ---- the minimiser: `on` is the cover that shrinks, `dc` the don't cares, `off` the complement of both

// The values that keep `cube` apart from each cube of off: one row each, and in it the values of off's cube in the
// variables in which they differ. Raising a value of a row's variable ends that difference.
static cover_t blocking_rows(const word_t* cube, const cover_t* off) {
  cover_t rows = cover_new();
  for (size_t i = 0; i < off->count; i++) {
    cube_t row = cube_empty();
    for (size_t var = 0; var < n_vars; var++) {
      if (!cube_differs_in(cube, off->cubes[i], var)) continue;
      for (size_t w = 0; w < n_words; w++) row[w] |= off->cubes[i][w] & var_masks[var][w];
    }
    cover_add(&rows, row);
  }
  return rows;
}

// Forbids the values of rows that differ in a single variable, and removes those rows.
static void blocking_rows_settle(cover_t* rows, cube_t forbidden) {
  for (size_t i = 0; i < rows->count; i++) {
    size_t n_differences = 0;
    for (size_t var = 0; var < n_vars; var++) n_differences += !cube_differs_in(rows->cubes[i], universe, var);
    if (n_differences > 1) continue;
    cube_or(forbidden, rows->cubes[i]);
    cover_drop(rows, i);
  }
  cover_compact(rows);
}

// Raising this value ends the difference of the rows that have it in that variable.
static void blocking_rows_raise(cover_t* rows, size_t value, size_t var) {
  for (size_t i = 0; i < rows->count; i++) {
    if (!cube_has(rows->cubes[i], value)) continue;
    for (size_t w = 0; w < n_words; w++) rows->cubes[i][w] &= ~var_masks[var][w];
  }
}

static size_t var_of(size_t value) {
  return value < 2 * n_inputs ? value / 2 : n_inputs;
}

// Of the values that can be raised the one that most cubes have, where those count more that the cube may still grow to
// cover; n_values if none can be raised.
static size_t expand_choice(const word_t* cube, const word_t* forbidden, const cover_t* on) {
  size_t counts[VALUES_MAX] = {0};
  size_t best = n_values;
  for (size_t i = 0; i < on->count; i++) {
    const word_t* other = on->cubes[i];
    if (other == NULL) continue;
    size_t points = 16;
    for (size_t w = 0; w < n_words; w++) {
      if ((other[w] & forbidden[w]) != 0) points = 1;
    }
    for (size_t value = 0; value < n_values; value++) counts[value] += cube_has(other, value) ? points : 0;
  }
  for (size_t value = 0; value < n_values; value++) {
    if (cube_has(cube, value) || cube_has(forbidden, value)) continue;
    if (best == n_values || counts[value] > counts[best]) best = value;
  }
  return best;
}

static void cube_expand(cube_t cube, const cover_t* on, const cover_t* off) {
  cover_t rows = blocking_rows(cube, off);
  cube_t  forbidden = cube_empty();
  size_t  value;
  blocking_rows_settle(&rows, forbidden);
  while ((value = expand_choice(cube, forbidden, on)) < n_values) {
    cube_set(cube, value);
    blocking_rows_raise(&rows, value, var_of(value));
    blocking_rows_settle(&rows, forbidden);
  }
  free(forbidden);
  cover_free(&rows);
}

// Makes each cube as large as `off` permits, small ones first; those that another one covers then are gone.
static void expand(cover_t* on, const cover_t* off) {
  cover_sort(on);
  for (size_t i = 0; i < on->count; i++) {
    if (on->cubes[i] == NULL) continue;
    cube_expand(on->cubes[i], on, off);
    for (size_t j = 0; j < on->count; j++) {
      if (j != i && on->cubes[j] != NULL && cube_contains(on->cubes[i], on->cubes[j])) cover_drop(on, j);
    }
  }
  cover_compact(on);
}

// What the others and the don't cares say within one cube of `on`.
static cover_t cofactor_of_others(const cover_t* on, const cover_t* dc, const word_t* cube) {
  cover_t others = cover_new();
  cover_add_copies(&others, on, cube);
  cover_add_copies(&others, dc, NULL);
  cover_t result = cover_cofactor(&others, cube);
  cover_free(&others);
  return result;
}

// Removes cubes that the others cover, small ones first.
static void irredundant(cover_t* on, const cover_t* dc) {
  cover_sort(on);
  for (size_t i = 0; i < on->count;) {
    if (!tautology(cofactor_of_others(on, dc, on->cubes[i]))) i++;
    else {
      cover_drop(on, i);
      cover_compact(on);
    }
  }
}

// Makes each cube as small as the others permit, large ones first, so that the next expand can go another way.
static void reduce(cover_t* on, const cover_t* dc) {
  cover_sort(on);
  for (size_t i = on->count; i > 0; i--) {
    cube_t bounds = complement_bounds(cofactor_of_others(on, dc, on->cubes[i - 1]));
    cube_and(on->cubes[i - 1], bounds);
    free(bounds);
    if (cube_is_void(on->cubes[i - 1])) cover_drop(on, i - 1);
    cover_compact(on);
  }
}

// The number of cubes counts first, then how many literals they have: the fewer values are missing the better.
static size_t cost_of(const cover_t* on) {
  size_t cost = on->count * 65536;
  for (size_t i = 0; i < on->count; i++) cost += n_values - cube_weight(on->cubes[i]);
  return cost;
}

static void minimise(cover_t* on, const cover_t* dc) {
  cover_t both = cover_copy(on);
  cover_add_copies(&both, dc, NULL);
  cover_t off = complement(both);
  cover_absorb(&off);
  expand(on, &off);
  irredundant(on, dc);
  cover_t best = cover_copy(on);
  for (;;) {
    reduce(on, dc);
    expand(on, &off);
    irredundant(on, dc);
    if (cost_of(on) >= cost_of(&best)) break;
    cover_free(&best);
    best = cover_copy(on);
  }
  cover_free(on);
  cover_free(&off);
  *on = best;
}

// ---- the functions

static void shape_begin(size_t inputs, size_t outputs) {
  n_inputs = inputs;
  n_outputs = outputs;
  n_vars = inputs + 1;
  n_values = 2 * inputs + outputs;
  n_words = (n_values + WORD_BITS - 1) / WORD_BITS;
  universe = cube_empty();
  for (size_t value = 0; value < n_values; value++) cube_set(universe, value);
  for (size_t var = 0; var < n_vars; var++) var_masks[var] = cube_empty();
  for (size_t value = 0; value < n_values; value++) cube_set(var_masks[var_of(value)], value);
}

static void shape_end(void) {
  for (size_t var = 0; var < n_vars; var++) free(var_masks[var]);
  free(universe);
}

// The cube of one minterm, without outputs.
static cube_t cube_of_inputs(uint32_t inputs) {
  cube_t cube = cube_empty();
  for (size_t i = 0; i < n_inputs; i++) cube_set(cube, 2 * i + (inputs >> i & 1));
  return cube;
}

// A function given as a table: one cube for each minterm with outputs.
static cover_t cover_of_table(uint32_t (*outputs_of)(uint32_t inputs)) {
  cover_t on = cover_new();
  for (uint32_t inputs = 0; inputs < (uint32_t)1 << n_inputs; inputs++) {
    uint32_t outputs = outputs_of(inputs);
    if (outputs == 0) continue;
    cube_t cube = cube_of_inputs(inputs);
    for (size_t o = 0; o < n_outputs; o++) {
      if ((outputs >> o & 1) != 0) cube_set(cube, 2 * n_inputs + o);
    }
    cover_add(&on, cube);
  }
  return on;
}

static uint32_t count_ones(uint32_t inputs) {
  return (uint32_t)__builtin_popcount(inputs);
}

static uint32_t three_to_six_ones(uint32_t inputs) {
  return count_ones(inputs) >= 3 && count_ones(inputs) <= 6;
}

static uint32_t add_3_bits(uint32_t inputs) {
  return (inputs & 7) + (inputs >> 3 & 7) + (inputs >> 6);
}

static uint32_t add_4_bits(uint32_t inputs) {
  return (inputs & 15) + (inputs >> 4);
}

static uint32_t multiply_3_bits(uint32_t inputs) {
  return (inputs & 7) * (inputs >> 3);
}

static uint32_t multiply_4_bits(uint32_t inputs) {
  return (inputs & 15) * (inputs >> 4);
}

// Each cube depends on n_literals inputs, less where the same one is drawn again, and has up to a third of the outputs.
static cover_t cover_random(size_t count, size_t n_literals) {
  cover_t f = cover_new();
  for (size_t i = 0; i < count; i++) {
    cube_t cube = cube_copy(universe);
    for (size_t j = 0; j < n_literals; j++) {
      size_t input = bench_random_below(&random_state, n_inputs);
      if (cube_is_full_in(cube, input)) cube_unset(cube, 2 * input + bench_random_below(&random_state, 2));
    }
    for (size_t o = 0; o < n_outputs; o++) cube_unset(cube, 2 * n_inputs + o);
    for (size_t k = 0; k < 1 + n_outputs / 3; k++) {
      cube_set(cube, 2 * n_inputs + bench_random_below(&random_state, n_outputs));
    }
    cover_add(&f, cube);
  }
  return f;
}

// ---- the check

static cube_t outputs_at(const cover_t* f, const word_t* minterm) {
  cube_t outputs = cube_empty();
  for (size_t i = 0; i < f->count; i++) {
    if (cube_contains(f->cubes[i], minterm)) cube_or(outputs, f->cubes[i]);
  }
  cube_and(outputs, var_masks[n_inputs]);
  return outputs;
}

// At least what was given, except for don't cares, and at most what was given or does not matter.
static void check_at(const cover_t* given, const cover_t* dc, const cover_t* on, uint32_t inputs) {
  cube_t minterm = cube_of_inputs(inputs);
  cube_t lower = outputs_at(given, minterm);
  cube_t free_to_choose = outputs_at(dc, minterm);
  cube_t actual = outputs_at(on, minterm);
  cube_or(actual, free_to_choose);
  cube_or(lower, free_to_choose);
  if (!cube_is_equal(actual, lower)) bench_fail("the minimised function differs at %x", inputs);
  free(minterm);
  free(lower);
  free(free_to_choose);
  free(actual);
}

static void check(const cover_t* given, const cover_t* dc, const cover_t* on) {
  bool   is_sampled = n_inputs > 12;
  size_t count = is_sampled ? 4096 : (size_t)1 << n_inputs;
  for (size_t i = 0; i < count; i++) {
    check_at(given, dc, on, (uint32_t)(is_sampled ? bench_random_below(&random_state, (size_t)1 << n_inputs) : i));
  }
}

// Minimises and frees both covers; gives a sum of the result.
static uint64_t run(cover_t on, cover_t dc) {
  cover_t given = cover_copy(&on);
  minimise(&on, &dc);
  check(&given, &dc, &on);
  cover_sort(&on);
  uint64_t sum = on.count;
  for (size_t i = 0; i < on.count; i++) {
    for (size_t w = 0; w < n_words; w++) sum = sum * 31 + on.cubes[i][w];
  }
  cover_free(&on);
  cover_free(&dc);
  cover_free(&given);
  shape_end();
  return sum;
}

static uint64_t run_table(size_t inputs, size_t outputs, uint32_t (*outputs_of)(uint32_t inputs)) {
  shape_begin(inputs, outputs);
  return run(cover_of_table(outputs_of), cover_new());
}

static uint64_t run_random(size_t inputs, size_t outputs, size_t cubes, size_t literals) {
  shape_begin(inputs, outputs);
  cover_t on = cover_random(cubes, literals);
  cover_t dc = cover_random(cubes / 8, literals + 1);
  return run(on, dc);
}

int main(int argc, char** argv) {
  size_t   rounds = bench_argument(argc, argv, 1, "ROUNDS", 4, SIZE_MAX);
  uint64_t sum = 0;
  random_state = bench_random_seed(0);
  for (size_t round = 0; round < rounds; round++) {
    sum = sum * 31 + run_table(8, 4, &count_ones);
    sum = sum * 31 + run_table(9, 1, &three_to_six_ones);
    sum = sum * 31 + run_table(7, 4, &add_3_bits);
    sum = sum * 31 + run_table(8, 5, &add_4_bits);
    sum = sum * 31 + run_table(6, 6, &multiply_3_bits);
    sum = sum * 31 + run_table(8, 8, &multiply_4_bits);
    sum = sum * 31 + run_random(8, 6, 150, 10);
    sum = sum * 31 + run_random(9, 12, 150, 12);
    sum = sum * 31 + run_random(12, 4, 40, 5);
    sum = sum * 31 + run_random(14, 40, 25, 5);
    sum = sum * 31 + run_random(20, 30, 12, 6);
  }
  printf("espresso %zu: %016llx\n", rounds, (unsigned long long)sum);
  return 0;
}
