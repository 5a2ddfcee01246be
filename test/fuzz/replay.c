// Runs a target of libFuzzer without it: the inputs of its corpus, and random ones.
//
//   replay-<target> CORPUS [N]      N: how many random inputs, 2000 if not given; the seed is MI_TEST_SEED
#include <dirent.h>
#include "../check.h"
#include "input.h"

enum { input_max = 4096 };

static uint8_t bytes[input_max];

static size_t replay_corpus(const char* directory) {
  char   path[4096];
  size_t n_inputs = 0;
  DIR*   files = opendir(directory);
  CHECK_FOR(files != NULL, "%s", directory);
  if (files == NULL) return 0;
  for (const struct dirent* entry; (entry = readdir(files)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof(path), "%s/%s", directory, entry->d_name);
    int     fd = open(path, O_RDONLY);
    ssize_t length = (fd < 0 ? -1 : read(fd, bytes, sizeof(bytes)));
    CHECK_FOR(length >= 0, "%s", path);
    if (fd >= 0) close(fd);
    if (length < 0) continue;
    LLVMFuzzerTestOneInput(bytes, (size_t)length);
    n_inputs++;
  }
  closedir(files);
  return n_inputs;
}

static void replay_random(rng_t* rng, size_t n) {
  for (size_t i = 0; i < n; i++) {
    size_t length = rng_size(rng, input_max);
    for (size_t k = 0; k < length; k++) bytes[k] = (uint8_t)rng_next(rng);
    LLVMFuzzerTestOneInput(bytes, length);
  }
}

int main(int argc, char** argv) {
  rng_t  rng = rng_make(test_seed(0, NULL));
  size_t n_random = (argc > 2 ? (size_t)strtoull(argv[2], NULL, 0) : 2000) * test_scale();
  if (argc < 2) {
    fprintf(stderr, "usage: %s CORPUS [N]\n", argv[0]);
    return 2;
  }
  size_t n_inputs = replay_corpus(argv[1]);
  replay_random(&rng, n_random);
  printf("%zu inputs of the corpus, %zu random ones\n", n_inputs, n_random);
  CHECK(n_inputs > 0); // an input that is wrong has ended the process before this
  return check_result();
}
