// Runs a target of libFuzzer without it: the inputs of its corpus, then random ones, of which half are inputs of the corpus with
// some bytes from others.
//
//   replay-<target> CORPUS [N]      N: how many random inputs, 2000 if not given; the seed is MI_TEST_SEED
#include <dirent.h>
#include "../check.h"
#include "input.h"

enum { input_max = 4096, known_max = 1000 };

static uint8_t bytes[input_max];
static uint8_t known_bytes[256 * 1024]; // of the corpus, one input behind the other
static size_t  known_ends[known_max];
static size_t  n_known;

static size_t known_begin(size_t i) {
  return i == 0 ? 0 : known_ends[i - 1];
}

static void known_add(size_t length) {
  size_t begin = known_begin(n_known);
  if (n_known == known_max || length > sizeof(known_bytes) - begin) return;
  memcpy(known_bytes + begin, bytes, length);
  known_ends[n_known++] = begin + length;
}

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
    known_add((size_t)length);
    LLVMFuzzerTestOneInput(bytes, (size_t)length);
    n_inputs++;
  }
  closedir(files);
  return n_inputs;
}

static size_t make_random(rng_t* rng) {
  size_t length = rng_size(rng, input_max);
  for (size_t k = 0; k < length; k++) bytes[k] = (uint8_t)rng_next(rng);
  return length;
}

static size_t make_changed(rng_t* rng) {
  size_t i = rng_below(rng, n_known), begin = known_begin(i), length = known_ends[i] - begin;
  memcpy(bytes, known_bytes + begin, length);
  for (size_t n = 1 + rng_below(rng, 6); n > 0 && length > 0; n--) {
    bytes[rng_below(rng, length)] = known_bytes[rng_below(rng, known_ends[n_known - 1])];
  }
  return length == 0 || rng_below(rng, 2) == 0 ? length : 1 + rng_below(rng, length);
}

static void replay_random(rng_t* rng, size_t n) {
  for (size_t i = 0; i < n; i++) {
    size_t length = (i % 2 == 0 || n_known == 0 ? make_random(rng) : make_changed(rng));
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
