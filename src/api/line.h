// Lines of text with numbers in columns, put together in a local buffer and delivered whole.  Layer: api.
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
void _mi_line_add(mi_line_t* line, const char* fmt, ...) mi_printf(2, 3);
// Delivers the line; the next one begins.
void _mi_line_end(mi_line_t* line);

// A cell 12 characters wide: "   1.5 MiB  " or "    12.3 K  ".  `unit` is 1024 for bytes, 1000 for a count.
void _mi_line_add_cell(mi_line_t* line, int64_t n, int64_t unit);
// "1.5 MiB" without the blanks around it.
void _mi_line_add_bytes(mi_line_t* line, const char* label, int64_t n);

// A label, and peak, total and current; without a history, only what is current.
void _mi_line_add_count(mi_line_t* line, const char* label, const mi_stat_count_t* n, int64_t unit, bool has_history);
// Whole lines: a label, and a total; which heap what follows is of.
void _mi_line_counter(mi_line_t* line, const char* label, int64_t n, int64_t unit);
void _mi_line_heap(mi_line_t* line, const mi_heap_t* heap);
