// Writes into a freed block after others have asked for such blocks: does one of them see it?  COUNT is the number of
// those: SIZE COUNT.
#include "bug.h"

int main(int argc, char** argv) {
  (void)argc;
  size_t size = number(argv, 1), n = number(argv, 2);
  char** others = (char**)malloc(n * sizeof(char*));
  char*  p = get(size);
  name_block(p, size);
  free(p);
  for (size_t i = 0; i < n; i++) others[i] = get(size);
  ((char*)hidden(p))[size / 2] = 'x';
  bool is_seen = false;
  for (size_t i = 0; i < n; i++) is_seen |= (others[i][size / 2] != 'a');
  for (size_t i = 0; i < n; i++) free(others[i]);
  go_on(size);
  return is_seen ? undetected() : prevented(true);
}
