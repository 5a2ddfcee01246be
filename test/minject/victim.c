// A program that is changed by minject: its output and exit status must stay.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  char* text = NULL;
  for (int i = 0; i < 100; i++) {
    char* const more = (char*)realloc(text, 1000u * (unsigned)(i + 1));
    if (more == NULL) return 1;
    text = more;
    memset(text + 1000 * i, 'a' + i % 26, 1000);
  }
  printf("victim: %c %c %d\n", text[0], text[99999], argc);
  for (int i = 1; i < argc; i++) printf("argument %s\n", argv[i]);
  free(text);
  return 7;
}
