// The shadow model driven by a fuzzer's input: each choice is the next two bytes, and the run ends with them.
//
//   clang -fsanitize=fuzzer,address fuzz-libfuzzer.c <library>
#include "model.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

typedef struct input_s {
  const uint8_t* data;
  size_t         size, at;
  rng_t          rng;
} input_t;

// Two bytes choose among what a seeded generator would have given, so small inputs reach large numbers too.
static uint64_t next_choice(void* source) {
  input_t* in = (input_t*)source;
  if (in->at + 2 > in->size) return rng_next(&in->rng);
  uint64_t x = (uint64_t)in->data[in->at] | (uint64_t)in->data[in->at + 1] << 8;
  in->at += 2;
  return x < 0x8000 ? x : mix64(x);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static model_t model;
  input_t        in = {data, size, 0, rng_make(size)};
  memset(&model, 0, sizeof(model));
  model.next = &next_choice;
  model.source = &in;
  model.max_live_bytes = 16 * MiB;
  while (in.at + 2 <= in.size) {
    model_step(&model);
    if (model.n_failed != 0) abort();
  }
  model_check_all(&model);
  model_clear(&model);
  if (model.n_failed != 0) abort();
  return 0;
}
