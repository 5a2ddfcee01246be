// Natural numbers of any size, for the demo programs.
//
// Every number is an immutable block of its own, sized to its value and counted by reference: each operation allocates
// its result, and most results live for a few operations only. That is the point: a program on top of these numbers
// spends a large part of its time in malloc and free of 8 to 64 bytes.
//
// Ownership: a function borrows its arguments, and returns a reference that the caller must release (so `bn_t*` as a
// result is always owned, as a parameter never). There are no negative numbers. When memory runs out, or a number would
// need more than 65535 limbs, the program ends with a message and exit code 3.
#ifndef DEMO_BIGNUM_H
#define DEMO_BIGNUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bn_s {
  uint16_t refs;
  uint16_t length; // the number of limbs; the highest is not 0, so the number 0 has none
  uint32_t limb[]; // the lowest first
} bn_t;

extern uint64_t bn_blocks_made; // how many blocks were allocated since the start

bn_t* bn_retain(bn_t* a);
void  bn_release(bn_t* a);              // NULL is fine
void  bn_set(bn_t** slot, bn_t* value); // releases what was in the slot; the slot takes the reference to the value

bn_t* bn_from_word(uint32_t word);
bn_t* bn_from_decimal(const char* text); // NULL if the text is empty or has anything but digits
char* bn_to_decimal(bn_t* a);            // to be freed

bool     bn_is_word(bn_t* a, uint32_t word); // is a == word?
bool     bn_is_even(bn_t* a);
bool     bn_fits_word(bn_t* a);
uint32_t bn_to_word(bn_t* a);          // of a number that fits
size_t   bn_bits(bn_t* a);             // the index of the highest bit plus 1; 0 has 0 bits
int      bn_compare(bn_t* a, bn_t* b); // below, equal to or above 0, as in memcmp

bn_t* bn_add(bn_t* a, bn_t* b);
bn_t* bn_sub(bn_t* a, bn_t* b);      // a >= b
bn_t* bn_distance(bn_t* a, bn_t* b); // |a - b|
bn_t* bn_mul(bn_t* a, bn_t* b);
bn_t* bn_mul_word(bn_t* a, uint32_t word);
bn_t* bn_div(bn_t* a, bn_t* b); // b > 0 here and below
bn_t* bn_mod(bn_t* a, bn_t* b);
bn_t* bn_div_word(bn_t* a, uint32_t word, uint32_t* remainder);
bn_t* bn_mul_mod(bn_t* a, bn_t* b, bn_t* m);
bn_t* bn_power(bn_t* a, unsigned exponent);
bn_t* bn_power_mod(bn_t* a, bn_t* exponent, bn_t* m);
bn_t* bn_root(bn_t* a, unsigned degree); // floor(a^(1/degree)), degree >= 2
bn_t* bn_gcd(bn_t* a, bn_t* b);

#endif
