// A trace as a replayer reads it. All memory here comes from mmap or the stack.
#pragma once

#include "trace.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct input_s {
  const char*    file;
  int            fd;
  trace_header_t header;
  uint32_t*      first; // chunk of each thread; chunks have numbers from 1, 0 is none
  uint32_t*      next;  // chunk of the same thread, for each chunk
} input_t;

// A place in the records of one thread.
typedef struct cursor_s {
  const input_t* input;
  const uint8_t* at;
  const uint8_t* end;
  uint64_t       count; // records read
  uint32_t       thread;
  uint32_t       chunk; // read last
  _Alignas(8) union {
    trace_chunk_t data;
    uint8_t       bytes[sizeof(trace_chunk_t) + TRACE_RECORD_MAX]; // 0 behind the chunk
  } buffer;
} cursor_t;

typedef struct record_s {
  int      kind;
  bool     must_wait;
  uint32_t wait_thread;
  uint64_t wait_count;
  uint64_t size;
  uint32_t slot; // or the thread of TRACE_START
  size_t   align;
} record_t;

void  input_open(input_t* input, const char* file);
void* input_map(size_t size); // zero, and resident

// The file is not as the format says: exit code 1.
__attribute__((noreturn, format(printf, 2, 3))) void input_damaged(const input_t* input, const char* format, ...);

void cursor_start(cursor_t* cursor, const input_t* input, uint32_t thread);
bool cursor_read(cursor_t* cursor, record_t* record); // false at the end
bool cursor_is_at_chunk(const cursor_t* cursor);      // the next record is the first of a chunk, or there is none
