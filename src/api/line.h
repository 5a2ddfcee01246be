// Lines of text, put together in a local buffer and delivered whole.  Layer: api.
#pragma once

#include "../heap/heap.h"

#define MI_LINE_MAX 200

typedef struct mi_line_s {
  mi_output_fun* out; // NULL: where all output goes
  void*          arg;
  size_t         length;
  char           text[MI_LINE_MAX];
} mi_line_t;

void _mi_line_begin(mi_line_t* line, mi_output_fun* out, void* arg);
// A newline at the end of fmt delivers the line, and the next one begins.
void _mi_line_add(mi_line_t* line, const char* fmt, ...) mi_printf(2, 3);
// A whole line, where what the title names cannot be looked at (heap/idle.h).
void _mi_line_unknown(mi_line_t* line, const char* title);
// A whole line: which heap what follows is of.
void _mi_line_heap(mi_line_t* line, const mi_heap_t* heap);
