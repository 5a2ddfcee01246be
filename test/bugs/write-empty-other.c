// Writes through what another call than malloc gives for no bytes: CALL is calloc, realloc or posix_memalign.
#include "aligned.h"

static char* get_empty(const char* call) {
  void* p = NULL;
  if (strcmp(call, "calloc") == 0) return (char*)calloc(0, 8);
  if (strcmp(call, "realloc") == 0) return (char*)realloc(NULL, 0);
  if (posix_memalign(&p, 64, 0) != 0) _exit(3);
  return (char*)p;
}

int main(int argc, char** argv) {
  blocks_t all = {{NULL}, BUG_N_MAX, 0};
  for (size_t i = 0; i < all.n; i++) all.p[i] = get_empty(argv[argc - 1]);
  name_blocks(&all);
  *(char*)hidden(middle_of(&all)) = 'x';
  free_all(&all);
  go_on(1);
  return undetected();
}
