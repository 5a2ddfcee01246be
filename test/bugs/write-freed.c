// Writes a word into a freed block, which is later handed out again; BETWEEN others of its size are freed before the
// write.  OFFSET is where, or "middle" or "last": SIZE OFFSET BETWEEN.
#include "bug.h"

static size_t offset_from(const char* word, size_t size) {
  if (strcmp(word, "middle") == 0) return size / 2;
  if (strcmp(word, "last") == 0) return size - sizeof(void*);
  return (size_t)atoi(word);
}

int main(int argc, char** argv) {
  size_t size = number(argv, 1), n_between = number(argv, 3);
  size_t offset = offset_from(argv[argc - 2], size);
  char** others = (char**)malloc((n_between + 1) * sizeof(char*));
  char*  p = get(size);
  for (size_t i = 0; i < n_between; i++) others[i] = get(size);
  name_block(p, size);
  free(p);
  for (size_t i = 0; i < n_between; i++) free(others[i]);
  memset((char*)hidden(p) + offset, 'x', sizeof(void*));
  for (size_t i = 0; i < n_between; i++) others[i] = get(size);
  go_on(size);
  return undetected();
}
