// Writing the format of pprof.  Layer: support.
#include "pprof.h"

#include <errno.h>
#include <string.h>

#include "format.h"

enum { PPROF_VARINT = 0, PPROF_LENGTH = 2 }; // how a field is encoded

static void pprof_flush(mi_pprof_t* to) {
  if (to->err == 0 && to->n > 0) to->err = to->write(to->buffer, to->n, to->arg);
  to->n = 0;
}

static void pprof_put(mi_pprof_t* to, const void* data, size_t size) {
  const uint8_t* at = (const uint8_t*)data;
  while (size > 0 && to->err == 0) {
    size_t room = MI_PPROF_BUFFER - to->n, part = (size < room ? size : room);
    memcpy(to->buffer + to->n, at, part);
    to->n += part;
    at += part;
    size -= part;
    if (to->n < MI_PPROF_BUFFER) continue;
    if (to->write != NULL) pprof_flush(to);
    else to->err = EOVERFLOW;
  }
}

// Seven bits a byte, the lowest first.
static size_t pprof_encode(uint8_t bytes[10], uint64_t value) {
  size_t n = 0;
  for (; value >= 128; value >>= 7) bytes[n++] = (uint8_t)(value | 128);
  bytes[n++] = (uint8_t)value;
  return n;
}

static void pprof_varint(mi_pprof_t* to, uint64_t value) {
  uint8_t bytes[10];
  pprof_put(to, bytes, pprof_encode(bytes, value));
}

void _mi_pprof_message(mi_pprof_t* to) {
  to->write = NULL;
  to->err = 0;
  to->n = 0;
}

void _mi_pprof_begin(mi_pprof_t* to, mi_pprof_write_fun* write, void* arg) {
  _mi_pprof_message(to);
  to->write = write;
  to->arg = arg;
  to->n_strings = 0;
  _mi_pprof_string(to, "");
}

void _mi_pprof_number(mi_pprof_t* to, unsigned field, uint64_t value) {
  pprof_varint(to, field << 3 | PPROF_VARINT);
  pprof_varint(to, value);
}

void _mi_pprof_bytes(mi_pprof_t* to, unsigned field, const void* data, size_t size) {
  pprof_varint(to, field << 3 | PPROF_LENGTH);
  pprof_varint(to, size);
  pprof_put(to, data, size);
}

void _mi_pprof_packed(mi_pprof_t* to, unsigned field, const uint64_t* values, size_t n) {
  uint8_t bytes[10];
  size_t  size = 0;
  for (size_t i = 0; i < n; i++) size += pprof_encode(bytes, values[i]);
  pprof_varint(to, field << 3 | PPROF_LENGTH);
  pprof_varint(to, size);
  for (size_t i = 0; i < n; i++) pprof_varint(to, values[i]);
}

void _mi_pprof_sub(mi_pprof_t* to, unsigned field, const mi_pprof_t* message) {
  if (message->err != 0 && to->err == 0) to->err = message->err;
  else _mi_pprof_bytes(to, field, message->buffer, message->n);
}

uint64_t _mi_pprof_string(mi_pprof_t* to, const char* text) {
  _mi_pprof_bytes(to, MI_PPROF_STRING, text, _mi_format_length(text));
  return to->n_strings++;
}

int _mi_pprof_end(mi_pprof_t* to) {
  pprof_flush(to);
  return to->err;
}
