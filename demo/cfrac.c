// Splits a number into two factors by the continued fraction method: M. A. Morrison and J. Brillhart, "A method of
// factoring and the factorization of F7", Mathematics of Computation 29 (1975).
//
// The program is a demonstration of malloc and free: nearly all of its time goes to trial divisions of numbers of 40 to
// 80 bits, and each of them makes a new number (bignum.h). Programs of this kind are the oldest allocator benchmark.
//
//   cfrac [-v] NUMBER          prints   NUMBER = FACTOR * FACTOR   (and a power of 2 as a third factor, if it has one)
//   exit code                  0 factored, 1 a prime, 2 bad arguments, 3 no factor found or out of memory
//
// How it works. The continued fraction of sqrt(k n) gives a stream of numbers A, Q with A^2 = +-Q (mod n) and
// Q < 2 sqrt(k n). Keep the Q that are products of small primes (the base). Once the exponents of some of them add up
// to even ones, their product is X^2 = Y^2 (mod n), and gcd(X - Y, n) is a proper factor in at least half of the cases.
// Left out on purpose: the use of Q with one larger prime, which halves the work.
#include "bignum.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MULTIPLIER_MAX 127 // of k; the score falls with log(k) / 2, so larger ones win seldom
#define TRIAL_BITS     32  // below this, trial division is instant, and the expansion's period may be too short
#define BASE_MAX       UINT16_MAX
#define FACTORS_MAX    256 // prime factors of one Q: 2^256 is above any Q of 100 digits
#define DIGITS_MAX     100

// A^2 = product of base[factor[i]] (mod n), where base[0] is -1.
typedef struct relation_s {
  bn_t*    a;
  size_t   n_factors;
  uint16_t factor[]; // indices into the base, rising, each as often as it divides
} relation_t;

// A row of the matrix over GF(2), in echelon form: the one row whose lowest set column is this.
typedef struct row_s {
  uint64_t* odd;     // column i: the exponent of base[i] is odd
  uint64_t* history; // bit i: relation i is in the product
} row_t;

typedef struct expansion_s { // step i of the continued fraction of sqrt(k n)
  bn_t* n;
  bn_t* floor_root; // floor(sqrt(k n))
  bn_t *p, *q, *q_before;
  bn_t *a, *a_before; // numerators modulo n; a^2 = +-q (mod n)
  bool  is_negative;  // the sign of that
} expansion_t;

typedef struct search_s {
  bn_t*        n;
  uint32_t*    base; // -1 (not used as a number), then the primes with (k n / p) = 0 or 1
  size_t       n_base;
  size_t       abort_at[2];   // give a Q up when, after this many of the base, ...
  size_t       abort_bits[2]; // ... more bits than this are left
  relation_t** relations;     // those of the rows, in order of arrival
  size_t       n_relations;   // at most n_base, for that is the rank of the matrix
  row_t*       rows;          // per column
  uint64_t     n_tested;
} search_t;

static void fail(int code, const char* what) {
  fprintf(stderr, "cfrac: %s\n", what);
  exit(code);
}

static void* allocate(size_t count, size_t size) {
  void* block = calloc(count, size);
  if (block == NULL) fail(3, "out of memory");
  return block;
}

// ---- the continued fraction -----------------------------------------------------------------------------------------

static void expansion_start(expansion_t* e, bn_t* n, bn_t* kn) {
  e->n = n;
  e->floor_root = bn_root(kn, 2);
  e->p = bn_from_word(0);
  e->q = bn_from_word(1);
  e->q_before = bn_retain(kn);
  e->a = bn_from_word(1);
  e->a_before = bn_from_word(0);
  e->is_negative = false;
}

static void expansion_end(expansion_t* e) {
  bn_release(e->floor_root);
  bn_release(e->p);
  bn_release(e->q);
  bn_release(e->q_before);
  bn_release(e->a);
  bn_release(e->a_before);
}

// False at the end of the period: from there on everything repeats.
static bool expansion_step(expansion_t* e) {
  bn_t* sum = bn_add(e->floor_root, e->p);
  bn_t* term = bn_div(sum, e->q);
  bn_release(sum);

  bn_t* whole = bn_mul(term, e->q);
  bn_t* p = bn_sub(whole, e->p);
  bn_release(whole);

  bn_t* change = bn_distance(e->p, p);
  bn_set(&change, bn_mul(change, term));
  bn_t* q = bn_compare(e->p, p) >= 0 ? bn_add(e->q_before, change) : bn_sub(e->q_before, change);
  bn_release(change);

  bn_t* a = bn_mul(term, e->a);
  bn_set(&a, bn_add(a, e->a_before));
  bn_set(&a, bn_mod(a, e->n));
  bn_release(term);

  bn_set(&e->p, p);
  bn_set(&e->q_before, e->q);
  e->q = q;
  bn_set(&e->a_before, e->a);
  e->a = a;
  e->is_negative = !e->is_negative;
  return !bn_is_word(q, 1);
}

// ---- relations ------------------------------------------------------------------------------------------------------

static relation_t* relation_new(bn_t* a, const uint16_t* factor, size_t n_factors) {
  relation_t* r = allocate(1, sizeof(relation_t) + n_factors * sizeof(uint16_t));
  r->a = bn_retain(a);
  r->n_factors = n_factors;
  memcpy(r->factor, factor, n_factors * sizeof(uint16_t));
  return r;
}

static void relation_free(relation_t* r) {
  bn_release(r->a);
  free(r);
}

// Divides q by the primes of the base. NULL if more than 1 is left.
static relation_t* relation_find(search_t* s, expansion_t* e) {
  uint16_t factor[FACTORS_MAX];
  size_t   n_factors = 0;
  if (e->is_negative) factor[n_factors++] = 0;
  bn_t* rest = bn_retain(e->q);
  for (size_t i = 1; i < s->n_base; i++) {
    uint32_t remainder;
    bn_t*    quotient = bn_div_word(rest, s->base[i], &remainder);
    while (remainder == 0) {
      if (n_factors == FACTORS_MAX) fail(3, "a number has too many prime factors");
      factor[n_factors++] = (uint16_t)i;
      bn_set(&rest, quotient);
      quotient = bn_div_word(rest, s->base[i], &remainder);
    }
    bn_release(quotient);
    if ((i == s->abort_at[0] && bn_bits(rest) > s->abort_bits[0]) ||
        (i == s->abort_at[1] && bn_bits(rest) > s->abort_bits[1])) {
      bn_release(rest);
      return NULL;
    }
  }
  bool is_divided = bn_is_word(rest, 1);
  bn_release(rest);
  return is_divided ? relation_new(e->a, factor, n_factors) : NULL;
}

// ---- the matrix -----------------------------------------------------------------------------------------------------

static size_t words_for(size_t bits) {
  return (bits + 63) / 64;
}

static bool bit_is_set(const uint64_t* bits, size_t i) {
  return (bits[i / 64] >> i % 64 & 1) != 0;
}

static void bits_add(uint64_t* bits, const uint64_t* other, size_t count) {
  for (size_t i = 0; i < words_for(count); i++) bits[i] ^= other[i];
}

static void multiply_relation(search_t* s, const relation_t* r, bn_t** x, uint32_t* exponents) {
  bn_set(x, bn_mul_mod(*x, r->a, s->n));
  for (size_t i = 0; i < r->n_factors; i++) exponents[r->factor[i]]++;
}

// The factor that a product of relations with even exponents gives; NULL if it is a trivial one.
static bn_t* factor_from(search_t* s, const uint64_t* history, const relation_t* newest) {
  bn_t*     x = bn_from_word(1);
  bn_t*     y = bn_from_word(1);
  uint32_t* exponents = allocate(s->n_base, sizeof(uint32_t));
  multiply_relation(s, newest, &x, exponents);
  for (size_t i = 0; i < s->n_relations; i++) {
    if (bit_is_set(history, i)) multiply_relation(s, s->relations[i], &x, exponents);
  }
  for (size_t i = 1; i < s->n_base; i++) {
    bn_t* prime = bn_from_word(s->base[i]);
    bn_t* half = bn_from_word(exponents[i] / 2);
    bn_set(&prime, bn_power_mod(prime, half, s->n));
    bn_set(&y, bn_mul_mod(y, prime, s->n));
    bn_release(half);
    bn_release(prime);
  }
  free(exponents);
  bn_set(&x, bn_distance(x, y));
  bn_t* factor = bn_gcd(x, s->n);
  bn_release(x);
  bn_release(y);
  if (bn_is_word(factor, 1) || bn_compare(factor, s->n) == 0) bn_set(&factor, NULL);
  return factor;
}

// Takes a relation. It becomes a row, or depends on the rows before: then it may give a factor.
static bn_t* matrix_add(search_t* s, relation_t* r) {
  uint64_t* odd = allocate(words_for(s->n_base), sizeof(uint64_t));
  uint64_t* history = allocate(words_for(s->n_base), sizeof(uint64_t));
  for (size_t i = 0; i < r->n_factors; i++) odd[r->factor[i] / 64] ^= (uint64_t)1 << r->factor[i] % 64;
  for (size_t column = 0; column < s->n_base; column++) {
    if (!bit_is_set(odd, column)) continue;
    row_t* row = &s->rows[column];
    if (row->odd == NULL) {
      history[s->n_relations / 64] |= (uint64_t)1 << s->n_relations % 64;
      s->relations[s->n_relations++] = r;
      row->odd = odd;
      row->history = history;
      return NULL;
    }
    bits_add(odd, row->odd, s->n_base);
    bits_add(history, row->history, s->n_base);
  }
  bn_t* factor = factor_from(s, history, r);
  relation_free(r);
  free(odd);
  free(history);
  return factor;
}

// ---- the search -----------------------------------------------------------------------------------------------------

static uint32_t power_word(uint32_t a, uint32_t exponent, uint32_t m) {
  uint64_t power = 1, square = a % m;
  for (; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = power * square % m;
    square = square * square % m;
  }
  return (uint32_t)power;
}

static uint32_t mod_word(bn_t* a, uint32_t word) {
  uint32_t remainder;
  bn_release(bn_div_word(a, word, &remainder));
  return remainder;
}

static uint32_t next_prime(uint32_t p) {
  if (p == 2) return 3;
  for (;;) {
    p += 2;
    uint32_t d = 3;
    while (d * d <= p && p % d != 0) d += 2;
    if (d * d > p) return p;
  }
}

// Can p divide a Q of the expansion of sqrt(kn)?  That is: is kn a square modulo p, or 0?
static bool divides_some(uint32_t kn_mod_p, uint32_t p) {
  return p == 2 || kn_mod_p == 0 || power_word(kn_mod_p, p / 2, p) == 1;
}

// How good k is: how much of log Q the primes below 300 are expected to divide off, less what k adds to log Q.
static double multiplier_score(bn_t* n, uint32_t k) {
  uint32_t kn_mod_8 = mod_word(n, 8) * k % 8;
  double   score = -0.5 * log(k) + log(2.0) * (kn_mod_8 == 1 ? 2.0 : kn_mod_8 == 5 ? 1.0 : 0.5);
  for (uint32_t p = 3; p < 300; p = next_prime(p)) {
    uint32_t kn_mod_p = mod_word(n, p) * (k % p) % p;
    if (divides_some(kn_mod_p, p)) score += log(p) * (kn_mod_p == 0 ? 1.0 : 2.0) / (p + 1);
  }
  return score;
}

static bool is_square_free(uint32_t k) {
  for (uint32_t d = 2; d * d <= k; d++) {
    if (k % (d * d) == 0) return false;
  }
  return true;
}

// The best multiplier that was not tried yet; 0 if there is none.
static uint32_t multiplier_next(bn_t* n, bool* was_tried) {
  uint32_t best = 0;
  double   best_score = 0;
  for (uint32_t k = 1; k <= MULTIPLIER_MAX; k++) {
    if (was_tried[k] || !is_square_free(k)) continue;
    double score = multiplier_score(n, k);
    if (best == 0 || score > best_score) {
      best = k;
      best_score = score;
    }
  }
  was_tried[best] = true;
  return best;
}

// The size of the base and the two points of giving up were found by trial at 30 and 44 digits; the time changes little
// around them. Giving up after a tenth and again after three tenths of the base saves two thirds of the divisions.
static void search_start(search_t* s, bn_t* n, bn_t* kn) {
  memset(s, 0, sizeof(*s));
  s->n = n;
  double bits = (double)bn_bits(kn);
  double n_base = 10.0 * exp(0.027 * bits);
  s->n_base = n_base < BASE_MAX ? (size_t)n_base : BASE_MAX;
  s->base = allocate(s->n_base, sizeof(uint32_t));
  size_t count = 1;
  for (uint32_t p = 2; count < s->n_base; p = next_prime(p)) {
    if (divides_some(mod_word(kn, p), p)) s->base[count++] = p;
  }
  s->abort_at[0] = s->n_base / 10;
  s->abort_at[1] = s->n_base * 3 / 10;
  s->abort_bits[0] = (size_t)(bits / 2 * 0.80);
  s->abort_bits[1] = (size_t)(bits / 2 * 0.65);
  s->relations = allocate(s->n_base, sizeof(relation_t*));
  s->rows = allocate(s->n_base, sizeof(row_t));
}

static void search_end(search_t* s) {
  for (size_t i = 0; i < s->n_relations; i++) relation_free(s->relations[i]);
  for (size_t i = 0; i < s->n_base; i++) {
    free(s->rows[i].odd);
    free(s->rows[i].history);
  }
  free(s->relations);
  free(s->rows);
  free(s->base);
}

static bn_t* search_run(search_t* s, expansion_t* e) {
  bn_t* factor = NULL;
  while (factor == NULL && expansion_step(e)) {
    s->n_tested++;
    relation_t* r = relation_find(s, e);
    if (r != NULL) factor = matrix_add(s, r);
  }
  return factor;
}

// A proper factor of an odd composite n that is no power; NULL if no multiplier led to one.
static bn_t* split_by_expansion(bn_t* n, bool is_verbose) {
  bool  was_tried[MULTIPLIER_MAX + 1] = {false};
  bn_t* factor = NULL;
  for (uint32_t k; factor == NULL && (k = multiplier_next(n, was_tried)) != 0;) {
    bn_t*       kn = bn_mul_word(n, k);
    search_t    s;
    expansion_t e;
    search_start(&s, n, kn);
    expansion_start(&e, n, kn);
    factor = search_run(&s, &e);
    if (is_verbose) {
      fprintf(stderr, "multiplier %u, primes up to %u, %llu numbers tested, %zu relations of %zu columns\n", k,
              s.base[s.n_base - 1], (unsigned long long)s.n_tested, s.n_relations, s.n_base);
    }
    expansion_end(&e);
    search_end(&s);
    bn_release(kn);
  }
  return factor;
}

// ---- the easy cases -------------------------------------------------------------------------------------------------

// Is the odd n > 2 a strong probable prime to this base?  (Miller and Rabin)
static bool passes_test(bn_t* n, uint32_t base) {
  bn_t*    one = bn_from_word(1);
  bn_t*    n_minus_1 = bn_sub(n, one);
  bn_t*    odd = bn_retain(n_minus_1);
  unsigned twos = 0;
  for (uint32_t ignored; bn_is_even(odd); twos++) bn_set(&odd, bn_div_word(odd, 2, &ignored));
  bn_t* x = bn_from_word(base);
  bn_set(&x, bn_power_mod(x, odd, n));
  bool passes = bn_is_word(x, 1) || bn_compare(x, n_minus_1) == 0;
  for (unsigned i = 1; i < twos && !passes; i++) {
    bn_set(&x, bn_mul_mod(x, x, n));
    passes = bn_compare(x, n_minus_1) == 0;
  }
  bn_release(x);
  bn_release(odd);
  bn_release(n_minus_1);
  bn_release(one);
  return passes;
}

// Of n > 1. With the primes up to 41 this is a proof below 3.3 * 10^24, and no exception is known above.
static bool is_prime(bn_t* n) {
  for (uint32_t p = 2; p <= 41; p = next_prime(p)) {
    if (bn_is_word(n, p)) return true;
    if (mod_word(n, p) == 0 || !passes_test(n, p)) return false;
  }
  return true;
}

// If n is r^k with k > 1: r.
static bn_t* split_power(bn_t* n) {
  for (unsigned degree = 2; degree <= bn_bits(n); degree++) {
    bn_t* root = bn_root(n, degree);
    bn_t* power = bn_power(root, degree);
    bool  is_exact = bn_compare(power, n) == 0;
    bn_release(power);
    if (is_exact) return root;
    bn_release(root);
  }
  return NULL;
}

static bn_t* split_by_trial(bn_t* n) {
  for (uint32_t d = 3;; d += 2) {
    if (mod_word(n, d) == 0) return bn_from_word(d);
  }
}

// A proper factor of an odd composite n.
static bn_t* split(bn_t* n, bool is_verbose) {
  if (bn_bits(n) <= TRIAL_BITS) return split_by_trial(n);
  bn_t* factor = split_power(n);
  return factor != NULL ? factor : split_by_expansion(n, is_verbose);
}

// ---- the program ----------------------------------------------------------------------------------------------------

// The factors are multiplied again before they are printed.
static void print_factors(bn_t* n, bn_t* const factors[], size_t count) {
  bn_t* product = bn_from_word(1);
  for (size_t i = 0; i < count; i++) bn_set(&product, bn_mul(product, factors[i]));
  if (bn_compare(product, n) != 0) fail(3, "internal error: the product of the factors is another number");
  bn_release(product);
  char* text = bn_to_decimal(n);
  printf("%s =", text);
  free(text);
  for (size_t i = 0; i < count; i++) {
    text = bn_to_decimal(factors[i]);
    printf("%s %s", i == 0 ? "" : " *", text);
    free(text);
  }
  printf("\n");
}

// Divides n by its power of 2, and gives that.
static bn_t* take_twos(bn_t** n) {
  bn_t* twos = bn_from_word(1);
  for (uint32_t ignored; bn_is_even(*n);) {
    bn_set(n, bn_div_word(*n, 2, &ignored));
    bn_set(&twos, bn_mul_word(twos, 2));
  }
  return twos;
}

// Gives the number of factors, 0 if none was found. In the order of the output: the larger first, the power of 2 last.
static size_t find_factors(bn_t* n, bn_t* factors[3], bool is_verbose) {
  bn_t*  odd = bn_retain(n);
  bn_t*  twos = take_twos(&odd);
  size_t count = 0;
  if (bn_is_word(odd, 1)) {
    uint32_t ignored;
    factors[count++] = bn_div_word(twos, 2, &ignored);
    factors[count++] = bn_from_word(2);
  }
  else if (is_prime(odd)) {
    factors[count++] = bn_retain(odd);
    factors[count++] = bn_retain(twos);
  }
  else {
    bn_t* factor = split(odd, is_verbose);
    if (factor != NULL) {
      bn_t* other = bn_div(odd, factor);
      bool  is_larger = bn_compare(factor, other) > 0;
      factors[count++] = is_larger ? factor : other;
      factors[count++] = is_larger ? other : factor;
      if (!bn_is_word(twos, 1)) factors[count++] = bn_retain(twos);
    }
  }
  bn_release(twos);
  bn_release(odd);
  return count;
}

int main(int argc, char** argv) {
  bool is_verbose = argc == 3 && strcmp(argv[1], "-v") == 0;
  if (argc != 2 && !is_verbose) fail(2, "usage: cfrac [-v] NUMBER");
  const char* text = argv[argc - 1];
  if (strlen(text) > DIGITS_MAX) fail(2, "the number is too long: at most 100 digits (and 50 take a minute)");
  bn_t* n = bn_from_decimal(text);
  if (n == NULL) fail(2, "not a natural number: only the digits 0 to 9 are allowed");
  if (bn_is_word(n, 0) || bn_is_word(n, 1)) fail(2, "0 and 1 have no prime factors: give a number from 2");

  int code = 0;
  if (is_prime(n)) {
    printf("%s is prime\n", text);
    code = 1;
  }
  else {
    bn_t*  factors[3];
    size_t count = find_factors(n, factors, is_verbose);
    if (count == 0) fail(3, "no factor found");
    print_factors(n, factors, count);
    for (size_t i = 0; i < count; i++) bn_release(factors[i]);
  }
  bn_release(n);
  if (is_verbose) fprintf(stderr, "%llu numbers allocated\n", (unsigned long long)bn_blocks_made);
  return code;
}
