// mimalloc-override.h replaces malloc and its relatives by macros, in the sources that include it; the other sources of the program
// keep theirs.  It is for programs that cannot replace malloc as a whole, such as plug-ins.
//
// A block must be freed where the header is included, too: text.c here is the part of the program that uses it.  The object text.o
// refers to functions of the library, and to no malloc.
//
// Build and run:
//   cc -c text.c $(pkg-config --cflags mimalloc)
//   nm -u text.o | grep -oE '\b(mi_)?(malloc|realloc|free)$'
//   cc program.c text.o $(pkg-config --cflags --libs mimalloc) -o program
//   ./program
// Prints:
//   mi_free
//   mi_malloc
//   mi_realloc
//   one,two,three
#include "text.h"

#include <stdio.h>

int main(void) {
  text_t* text = text_new();
  if (text == NULL || !text_add(text, "one") || !text_add(text, "two") || !text_add(text, "three")) return 1;
  puts(text_chars(text));
  text_free(text);
  return 0;
}
