// Natural numbers of any size: schoolbook algorithms on limbs of 32 bits.
//
// A result whose length is not known beforehand is computed into a block of the most that it can need, and copied into
// an exact one when it came out shorter: one more short-lived block, rather than a realloc.
#include "bignum.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t bn_blocks_made;

static void bn_fail(const char* what) {
  fprintf(stderr, "bignum: %s\n", what);
  exit(3);
}

// A number with uninitialised limbs.
static bn_t* bn_new(size_t length) {
  if (length > UINT16_MAX) bn_fail("a number became too large");
  bn_t* a = malloc(sizeof(bn_t) + length * sizeof(uint32_t));
  if (a == NULL) bn_fail("out of memory");
  bn_blocks_made++;
  a->refs = 1;
  a->length = (uint16_t)length;
  return a;
}

bn_t* bn_retain(bn_t* a) {
  if (a->refs == UINT16_MAX) bn_fail("a number is referred to too often");
  a->refs++;
  return a;
}

void bn_release(bn_t* a) {
  if (a != NULL && --a->refs == 0) free(a);
}

void bn_set(bn_t** slot, bn_t* value) {
  bn_t* old = *slot;
  *slot = value;
  bn_release(old);
}

// Takes a number that may have zero limbs on top, gives the exact one.
static bn_t* bn_trim(bn_t* a) {
  size_t length = a->length;
  while (length > 0 && a->limb[length - 1] == 0) length--;
  if (length == a->length) return a;
  bn_t* exact = bn_new(length);
  memcpy(exact->limb, a->limb, length * sizeof(uint32_t));
  bn_release(a);
  return exact;
}

// ---- conversions and tests ------------------------------------------------------------------------------------------

bn_t* bn_from_word(uint32_t word) {
  bn_t* a = bn_new(word != 0);
  if (word != 0) a->limb[0] = word;
  return a;
}

bn_t* bn_from_decimal(const char* text) {
  if (*text == 0) return NULL;
  bn_t* a = bn_from_word(0);
  for (; *text != 0; text++) {
    if (*text < '0' || *text > '9') {
      bn_release(a);
      return NULL;
    }
    bn_t* digit = bn_from_word((uint32_t)(*text - '0'));
    bn_set(&a, bn_mul_word(a, 10));
    bn_set(&a, bn_add(a, digit));
    bn_release(digit);
  }
  return a;
}

char* bn_to_decimal(bn_t* a) {
  size_t room = bn_bits(a) * 31 / 100 + 2; // log10(2) = 0.30103, so at most 0.31 digits per bit, one more and the end
  char*  text = malloc(room);
  if (text == NULL) bn_fail("out of memory");
  size_t at = room;
  text[--at] = 0;
  bn_t* rest = bn_retain(a);
  do {
    uint32_t digit;
    bn_set(&rest, bn_div_word(rest, 10, &digit));
    text[--at] = (char)('0' + digit);
  } while (rest->length > 0);
  bn_release(rest);
  memmove(text, text + at, room - at);
  return text;
}

bool bn_is_word(bn_t* a, uint32_t word) {
  return word == 0 ? a->length == 0 : a->length == 1 && a->limb[0] == word;
}

bool bn_is_even(bn_t* a) {
  return a->length == 0 || a->limb[0] % 2 == 0;
}

bool bn_fits_word(bn_t* a) {
  return a->length <= 1;
}

uint32_t bn_to_word(bn_t* a) {
  return a->length == 0 ? 0 : a->limb[0];
}

static unsigned word_bits(uint32_t word) {
  unsigned bits = 0;
  for (; word != 0; word >>= 1) bits++;
  return bits;
}

size_t bn_bits(bn_t* a) {
  return a->length == 0 ? 0 : 32 * (a->length - (size_t)1) + word_bits(a->limb[a->length - 1]);
}

int bn_compare(bn_t* a, bn_t* b) {
  if (a->length != b->length) return a->length < b->length ? -1 : 1;
  for (size_t i = a->length; i-- > 0;) {
    if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
  }
  return 0;
}

// ---- arithmetic -----------------------------------------------------------------------------------------------------

bn_t* bn_add(bn_t* a, bn_t* b) {
  if (a->length < b->length) return bn_add(b, a);
  bn_t*    sum = bn_new(a->length + (size_t)1);
  uint64_t carry = 0;
  for (size_t i = 0; i < a->length; i++) {
    carry += (uint64_t)a->limb[i] + (i < b->length ? b->limb[i] : 0);
    sum->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
  sum->limb[a->length] = (uint32_t)carry;
  return bn_trim(sum);
}

bn_t* bn_sub(bn_t* a, bn_t* b) {
  bn_t*    difference = bn_new(a->length);
  uint64_t borrow = 0;
  for (size_t i = 0; i < a->length; i++) {
    uint64_t limb = (uint64_t)a->limb[i] - (i < b->length ? b->limb[i] : 0) - borrow;
    difference->limb[i] = (uint32_t)limb;
    borrow = limb >> 63;
  }
  return bn_trim(difference);
}

bn_t* bn_distance(bn_t* a, bn_t* b) {
  return bn_compare(a, b) >= 0 ? bn_sub(a, b) : bn_sub(b, a);
}

bn_t* bn_mul(bn_t* a, bn_t* b) {
  bn_t* product = bn_new((size_t)a->length + b->length);
  memset(product->limb, 0, product->length * sizeof(uint32_t));
  for (size_t i = 0; i < a->length; i++) {
    uint64_t carry = 0;
    for (size_t j = 0; j < b->length; j++) {
      carry += (uint64_t)a->limb[i] * b->limb[j] + product->limb[i + j];
      product->limb[i + j] = (uint32_t)carry;
      carry >>= 32;
    }
    product->limb[i + b->length] = (uint32_t)carry;
  }
  return bn_trim(product);
}

bn_t* bn_mul_word(bn_t* a, uint32_t word) {
  bn_t* factor = bn_from_word(word);
  bn_t* product = bn_mul(a, factor);
  bn_release(factor);
  return product;
}

bn_t* bn_div_word(bn_t* a, uint32_t word, uint32_t* remainder) {
  size_t   length = a->length;
  uint64_t rest = 0;
  if (length > 0 && a->limb[length - 1] < word) rest = a->limb[--length]; // so the quotient's length is exact
  bn_t* quotient = bn_new(length);
  for (size_t i = length; i-- > 0;) {
    rest = rest << 32 | a->limb[i];
    quotient->limb[i] = (uint32_t)(rest / word);
    rest %= word;
  }
  *remainder = (uint32_t)rest;
  return quotient;
}

// a << bits, with one limb more than a, for bits < 32.
static bn_t* shift_up(bn_t* a, unsigned bits) {
  bn_t*    shifted = bn_new(a->length + (size_t)1);
  uint64_t carry = 0;
  for (size_t i = 0; i < a->length; i++) {
    carry |= (uint64_t)a->limb[i] << bits;
    shifted->limb[i] = (uint32_t)carry;
    carry >>= 32;
  }
  shifted->limb[a->length] = (uint32_t)carry;
  return shifted;
}

// a >> bits, for bits < 32.
static bn_t* shift_down(bn_t* a, unsigned bits) {
  bn_t* shifted = bn_new(a->length);
  for (size_t i = 0; i < a->length; i++) {
    uint64_t pair = a->limb[i] | (i + 1 < a->length ? (uint64_t)a->limb[i + 1] << 32 : 0);
    shifted->limb[i] = (uint32_t)(pair >> bits);
  }
  return bn_trim(shifted);
}

// rest -= digit * b << 32 * at, where the result is known to be no more than one b too low; true if it is too low.
static bool subtract_multiple(bn_t* rest, bn_t* b, uint64_t digit, size_t at) {
  uint64_t carry = 0, borrow = 0;
  for (size_t i = 0; i <= b->length; i++) {
    if (i < b->length) carry += digit * b->limb[i];
    uint64_t limb = (uint64_t)rest->limb[at + i] - (uint32_t)carry - borrow;
    rest->limb[at + i] = (uint32_t)limb;
    borrow = limb >> 63;
    carry >>= 32;
  }
  return borrow != 0;
}

static void add_back(bn_t* rest, bn_t* b, size_t at) {
  uint64_t carry = 0;
  for (size_t i = 0; i <= b->length; i++) {
    carry += (uint64_t)rest->limb[at + i] + (i < b->length ? b->limb[i] : 0);
    rest->limb[at + i] = (uint32_t)carry;
    carry >>= 32;
  }
}

// One digit of long division (Knuth, The Art of Computer Programming 4.3.1, algorithm D): the two highest limbs of
// the rest by the highest of b, which has its top bit set, corrected with the next limb of each.
static uint32_t divide_digit(bn_t* rest, bn_t* b, size_t at) {
  size_t   n = b->length;
  uint64_t top = (uint64_t)rest->limb[at + n] << 32 | rest->limb[at + n - 1];
  uint64_t digit = top / b->limb[n - 1];
  uint64_t left = top % b->limb[n - 1];
  while (left <= UINT32_MAX && (digit > UINT32_MAX || digit * b->limb[n - 2] > (left << 32 | rest->limb[at + n - 2]))) {
    digit--;
    left += b->limb[n - 1];
  }
  if (subtract_multiple(rest, b, digit, at)) {
    digit--;
    add_back(rest, b, at);
  }
  return (uint32_t)digit;
}

// Gives the quotient; the remainder too if there is a place for it.
static bn_t* bn_divide(bn_t* a, bn_t* b, bn_t** remainder) {
  if (b->length == 0) bn_fail("division by zero");
  if (bn_compare(a, b) < 0) {
    if (remainder != NULL) *remainder = bn_retain(a);
    return bn_from_word(0);
  }
  if (b->length == 1) {
    uint32_t word;
    bn_t*    quotient = bn_div_word(a, b->limb[0], &word);
    if (remainder != NULL) *remainder = bn_from_word(word);
    return quotient;
  }
  unsigned shift = 32 - word_bits(b->limb[b->length - 1]);
  bn_t*    rest = shift_up(a, shift);
  bn_t*    divisor = bn_trim(shift_up(b, shift));
  bn_t*    quotient = bn_new((size_t)(a->length - b->length) + 1);
  for (size_t i = quotient->length; i-- > 0;) quotient->limb[i] = divide_digit(rest, divisor, i);
  bn_release(divisor);
  if (remainder != NULL) *remainder = shift_down(rest, shift);
  bn_release(rest);
  return bn_trim(quotient);
}

bn_t* bn_div(bn_t* a, bn_t* b) {
  return bn_divide(a, b, NULL);
}

bn_t* bn_mod(bn_t* a, bn_t* b) {
  bn_t* remainder;
  bn_release(bn_divide(a, b, &remainder));
  return remainder;
}

bn_t* bn_mul_mod(bn_t* a, bn_t* b, bn_t* m) {
  bn_t* product = bn_mul(a, b);
  bn_set(&product, bn_mod(product, m));
  return product;
}

bn_t* bn_power(bn_t* a, unsigned exponent) {
  bn_t* power = bn_from_word(1);
  for (; exponent > 0; exponent--) bn_set(&power, bn_mul(power, a));
  return power;
}

bn_t* bn_power_mod(bn_t* a, bn_t* exponent, bn_t* m) {
  bn_t* power = bn_from_word(1);
  for (size_t bit = bn_bits(exponent); bit-- > 0;) {
    bn_set(&power, bn_mul_mod(power, power, m));
    if ((exponent->limb[bit / 32] >> bit % 32 & 1) != 0) bn_set(&power, bn_mul_mod(power, a, m));
  }
  return power;
}

// Newton's iteration from above: it falls until it reaches the floor of the root.
bn_t* bn_root(bn_t* a, unsigned degree) {
  if (a->length == 0) return bn_from_word(0);
  bn_t* two = bn_from_word(2);
  bn_t* root = bn_power(two, (unsigned)((bn_bits(a) + degree - 1) / degree));
  bn_release(two);
  for (;;) {
    bn_t* power = bn_power(root, degree - 1);
    bn_t* next = bn_div(a, power);
    bn_t* weighted = bn_mul_word(root, degree - 1);
    bn_set(&next, bn_add(next, weighted));
    uint32_t ignored;
    bn_set(&next, bn_div_word(next, degree, &ignored));
    bn_release(power);
    bn_release(weighted);
    if (bn_compare(next, root) >= 0) {
      bn_release(next);
      return root;
    }
    bn_set(&root, next);
  }
}

bn_t* bn_gcd(bn_t* a, bn_t* b) {
  bn_t* x = bn_retain(a);
  bn_t* y = bn_retain(b);
  while (y->length > 0) {
    bn_t* rest = bn_mod(x, y);
    bn_release(x);
    x = y;
    y = rest;
  }
  bn_release(y);
  return x;
}
