// What the library says, kept: an output function for mi_register_output and the functions that print, with a sink_t as its
// argument.  Does not allocate.  What does not fit is counted but not kept; `text` ends with 0 in any case.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct sink_s {
  size_t n_calls, length;
  char   text[64 * 1024];
} sink_t;

static inline void sink_write(const char* text, void* arg) {
  sink_t* sink = (sink_t*)arg;
  size_t  n = strlen(text);
  if (sink->length + n < sizeof(sink->text)) memcpy(sink->text + sink->length, text, n + 1);
  sink->n_calls++;
  sink->length += n;
}

static inline void sink_clear(sink_t* sink) {
  sink->n_calls = sink->length = 0;
  sink->text[0] = 0;
}

static inline bool sink_has(const sink_t* sink, const char* text) {
  return strstr(sink->text, text) != NULL;
}
