// What a fuzzer gives as a source of choices: each choice is its next two bytes, and the run ends with them.
//
// A target is one function, LLVMFuzzerTestOneInput: libFuzzer calls it in builds by clang with the address sanitizer, replay.c
// with the files of corpus/<target> and with random inputs in all others.  A target aborts when something is wrong.
#pragma once

#include "../modes/support.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

typedef struct input_s {
  const uint8_t* data;
  size_t         size, at;
  rng_t          rng; // for what an operation asks for beyond the last byte
} input_t;

static inline input_t input_make(const uint8_t* data, size_t size) {
  input_t in = {data, size, 0, rng_make(size)};
  return in;
}

static inline bool input_has_more(const input_t* in) {
  return in->at + 2 <= in->size;
}

// Two bytes choose among what a seeded generator would have given, so small inputs reach large numbers too.
static inline uint64_t input_next(void* source) {
  input_t* in = (input_t*)source;
  if (!input_has_more(in)) return rng_next(&in->rng);
  uint64_t x = (uint64_t)in->data[in->at] | (uint64_t)in->data[in->at + 1] << 8;
  in->at += 2;
  return x < 0x8000 ? x : mix64(x);
}

static inline size_t input_pick(input_t* in, size_t n) {
  return n == 0 ? 0 : (size_t)(input_next(in) % n);
}
