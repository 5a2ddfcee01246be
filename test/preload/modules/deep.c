// A library for test-deepbind: it allocates and frees for the program.
#include <stdlib.h>
#include <string.h>

char* deep_copy(const char* text);
void  deep_free(void* p);

char* deep_copy(const char* text) {
  char* p = malloc(strlen(text) + 1);
  return p == NULL ? NULL : strcpy(p, text);
}

void deep_free(void* p) {
  free(p);
}
