#include "text.h"

#include <stdlib.h>
#include <string.h>

#include <mimalloc-override.h> // after all other headers

struct text_s {
  char*  chars;
  size_t length;
};

text_t* text_new(void) {
  text_t* text = (text_t*)malloc(sizeof(text_t)); // mi_malloc
  if (text == NULL) return NULL;
  text->length = 0;
  text->chars = (char*)malloc(1);
  if (text->chars == NULL) {
    free(text);
    return NULL;
  }
  text->chars[0] = '\0';
  return text;
}

bool text_add(text_t* text, const char* word) {
  size_t length = strlen(word);
  char*  chars = (char*)realloc(text->chars, text->length + length + 2); // mi_realloc
  if (chars == NULL) return false;
  text->chars = chars;
  if (text->length > 0) chars[text->length++] = ',';
  memcpy(chars + text->length, word, length + 1);
  text->length += length;
  return true;
}

const char* text_chars(const text_t* text) {
  return text->chars;
}

void text_free(text_t* text) {
  free(text->chars); // mi_free
  free(text);
}
