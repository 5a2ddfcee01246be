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
}

void _mi_line_end(mi_line_t* line) {
  _mi_line_add(line, "\n");
  _mi_message_write(line->out, line->arg, line->text);
  line->length = 0;
}

void _mi_line_add_cell(mi_line_t* line, int64_t n, int64_t unit) {
  static const char* const units[2][6] = {
      {"", "K", "M", "G", "T", "P"},
      {"B", "KiB", "MiB", "GiB", "TiB", "PiB"},
  };
  int64_t scale = 1;
  size_t  power = 0;
  while (n / scale >= (unit == 1000 && power == 0 ? 10000 : unit) && power < 5) {
    scale *= unit;
    power++;
  }
  const char* name = units[unit == 1024][power];
  long long   whole = n / scale, tenths = n % scale * 10 / scale;
  if (power > 0) _mi_line_add(line, "%6lld.%lld %-3s", whole, tenths, name);
  else _mi_line_add(line, "%6lld   %-3s", whole, n == 0 ? "" : name);
}

void _mi_line_add_bytes(mi_line_t* line, const char* label, int64_t n) {
  mi_line_t cell;
  _mi_line_begin(&cell, NULL, NULL);
  _mi_line_add_cell(&cell, n, 1024);
  size_t from = 0, to = cell.length;
  while (cell.text[from] == ' ') from++;
  while (to > from && cell.text[to - 1] == ' ') to--;
  cell.text[to] = 0;
  _mi_line_add(line, "%s%s", label, cell.text + from);
}

void _mi_line_add_count(mi_line_t* line, const char* label, const mi_stat_count_t* n, int64_t unit, bool has_history) {
  _mi_line_add(line, "%10s:", label);
  if (has_history) _mi_line_add_cell(line, n->peak, unit);
  if (has_history) _mi_line_add_cell(line, n->total, unit);
  else _mi_line_add(line, "%24s", "");
  _mi_line_add_cell(line, n->current, unit);
}

void _mi_line_counter(mi_line_t* line, const char* label, int64_t n, int64_t unit) {
  _mi_line_add(line, "%10s:", label);
  _mi_line_add_cell(line, n, unit);
  _mi_line_end(line);
}

void _mi_line_heap(mi_line_t* line, const mi_heap_t* heap) {
  _mi_line_add(line, "%10s: %p%s", "heap", (const void*)heap, heap == heap->subproc->main ? " (main)" : "");
  _mi_line_end(line);
}
