// Fuzzes: operations of one thread through every entry, against the shadow model.
#include "input.h"
#include "model.h"

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static model_t model;
  input_t        in = input_make(data, size);
  memset(&model, 0, sizeof(model));
  model.next = &input_next;
  model.source = &in;
  model.max_live_bytes = 16 * MiB;
  while (input_has_more(&in)) {
    model_step(&model);
    if (model.n_failed != 0) abort();
  }
  model_check_all(&model);
  model_visit(&model, mi_heap_main(), 0);
  model_clear(&model);
  if (model.n_failed != 0) abort();
  return 0;
}
