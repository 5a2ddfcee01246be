// Words, joined by commas.
#pragma once
#include <stdbool.h>

typedef struct text_s text_t;

text_t*     text_new(void); // NULL: no memory
bool        text_add(text_t* text, const char* word);
const char* text_chars(const text_t* text);
void        text_free(text_t* text);
