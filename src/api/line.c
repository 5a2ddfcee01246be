// Lines of text.  Layer: api.
#include "line.h"

#include "../support/format.h"
#include "../support/message.h"

void _mi_line_begin(mi_line_t* line, mi_output_fun* out, void* arg) {
  line->out = out;
  line->arg = arg;
  line->length = 0;
}

void _mi_line_add(mi_line_t* line, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  line->length += _mi_format_v(line->text + line->length, sizeof(line->text) - line->length, fmt, args);
  va_end(args);
  if (line->length == 0 || line->text[line->length - 1] != '\n') return;
  _mi_message_write(line->out, line->arg, line->text);
  line->length = 0;
}

void _mi_line_unknown(mi_line_t* line, const char* title) {
  _mi_line_add(line, "%10s: not known, the process ends within a call of the allocator\n", title);
}

void _mi_line_heap(mi_line_t* line, const mi_heap_t* heap) {
  _mi_line_add(line, "%10s: %p%s\n", "heap", (const void*)heap, heap == heap->subproc->main ? " (main)" : "");
}
