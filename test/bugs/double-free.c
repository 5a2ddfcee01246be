// Frees a block twice, and BETWEEN others of its size between: SIZE BETWEEN.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1), n_between = number(argv, 2);
  char** others = (char**)malloc((n_between + 1) * sizeof(char*));
  char*  p = get(size);
  for (size_t i = 0; i < n_between; i++) others[i] = get(size);
  name_block(p, size);
  free(p);
  for (size_t i = 0; i < n_between; i++) free(others[i]);
  free(hidden(p));
  free(others);
  go_on(size);
  return undetected();
}
