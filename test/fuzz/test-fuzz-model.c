// Proves: under random operations through every entry each block keeps its contents, alignment and size, none overlap,
// zeroed memory is zero, and resident memory stays in proportion to what is live.
//
//   test-fuzz-model [seed [operations]]
#include "../check.h"
#include "model.h"

static uint64_t next_random(void* source) {
  return rng_next((rng_t*)source);
}

// Blocks are written whole, so live bytes are resident; the rest is fragmentation, caches, and free pages on their way
// back to the system.
static void check_resident(const model_t* m, size_t before, const char* when) {
  size_t extra = minus(rss_peak(), before);
  CHECK(rss_within(when, extra, m->n_peak_bytes + m->n_peak_bytes / 2 + 24 * MiB));
}

int main(int argc, char** argv) {
  static model_t model;
  rng_t          rng = rng_make(test_seed(argc, argv));
  size_t         n_ops = argc > 2 ? (size_t)strtoull(argv[2], NULL, 0) : 150000 * test_scale();
  if (TEST_SANITIZED) n_ops /= 8;
  memset(&model, 0, sizeof(model));
  model.next = &next_random;
  model.source = &rng;
  model.max_live_bytes = 48 * MiB;
  size_t before = rss_now();
  while (model.n_ops < n_ops && model.n_failed == 0) model_step(&model);
  model_check_all(&model);
  printf("%zu operations, %zu blocks live, peak %.1f MiB\n", model.n_ops, model.n_live,
         (double)model.n_peak_bytes / (double)MiB);
  check_resident(&model, before, "peak resident");
  model_clear(&model);
  mi_collect(true);
  CHECK(rss_within("resident at the end", minus(rss_now(), before), 8 * MiB));
  CHECK_EQ(model.n_failed, 0);
  return check_result();
}
