// A trace as a replayer reads it: the header, the chunks of each thread, and records.
#define _GNU_SOURCE
#include "input.h"
#include "../programs/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void input_damaged(const input_t* input, const char* format, ...) {
  char    text[200];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  fprintf(stderr, "trace-replay: %s: %s\n", input->file, text);
  _exit(1);
}

void* input_map(size_t size) {
  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) bench_fail("no memory for the tables of the replay");
  return p;
}

static off_t chunk_place(uint32_t chunk) {
  return TRACE_HEADER_SIZE + (off_t)(chunk - 1) * TRACE_CHUNK_SIZE;
}

static void read_header(input_t* input) {
  trace_header_t* header = &input->header;
  struct stat     status;
  input->fd = open(input->file, O_RDONLY | O_CLOEXEC);
  if (input->fd < 0 || fstat(input->fd, &status) != 0) input_damaged(input, "%s", strerror(errno));
  ssize_t n = pread(input->fd, header, sizeof(*header), 0);
  if (n < 0) input_damaged(input, "%s", strerror(errno));
  if ((size_t)n < sizeof(header->magic) || memcmp(header->magic, TRACE_MAGIC, sizeof(header->magic)) != 0) {
    input_damaged(input, "is not a trace of this version (%s)", TRACE_MAGIC);
  }
  if ((size_t)n < sizeof(*header)) input_damaged(input, "is cut off in its header");
  if (header->chunk_size != TRACE_CHUNK_SIZE || header->threads > TRACE_THREADS_MAX ||
      header->slots > TRACE_SLOTS_MAX || header->chunks >= UINT32_MAX) {
    input_damaged(input, "its header is damaged");
  }
  if (chunk_place((uint32_t)header->chunks + 1) > status.st_size) {
    input_damaged(input, "is cut off: it should have %llu chunks", (unsigned long long)header->chunks);
  }
  if (header->records == 0) input_damaged(input, "has no records");
}

static void link_chunks(input_t* input) {
  uint32_t  n = (uint32_t)input->header.chunks;
  uint32_t* last = input_map(input->header.threads * sizeof(uint32_t));
  input->first = input_map(input->header.threads * sizeof(uint32_t));
  input->next = input_map((n + 1) * sizeof(uint32_t));
  for (uint32_t i = 1; i <= n; i++) {
    uint32_t head[4]; // the fields of a chunk before its records
    if (pread(input->fd, head, sizeof(head), chunk_place(i)) != (ssize_t)sizeof(head) || head[0] != TRACE_CHUNK_MAGIC ||
        head[1] >= input->header.threads) {
      input_damaged(input, "chunk %u is damaged", i);
    }
    if (last[head[1]] == 0) input->first[head[1]] = i;
    else input->next[last[head[1]]] = i;
    last[head[1]] = i;
  }
  munmap(last, input->header.threads * sizeof(uint32_t));
}

void input_open(input_t* input, const char* file) {
  *input = (input_t){.file = file};
  read_header(input);
  link_chunks(input);
}

void cursor_start(cursor_t* cursor, const input_t* input, uint32_t thread) {
  memset(cursor, 0, sizeof(*cursor));
  cursor->input = input;
  cursor->thread = thread;
}

bool cursor_is_at_chunk(const cursor_t* cursor) {
  return cursor->at == cursor->end;
}

static bool next_chunk(cursor_t* cursor) {
  const input_t* input = cursor->input;
  trace_chunk_t* chunk = &cursor->buffer.data;
  uint32_t       number = cursor->chunk == 0 ? input->first[cursor->thread] : input->next[cursor->chunk];
  if (number == 0) return false;
  if (pread(input->fd, chunk, TRACE_CHUNK_SIZE, chunk_place(number)) != TRACE_CHUNK_SIZE) {
    input_damaged(input, "chunk %u cannot be read", number);
  }
  bool is_open = chunk->check == 0 && !input->header.is_finished;
  if (chunk->used > sizeof(chunk->records) || (!is_open && chunk->check != trace_check(chunk))) {
    input_damaged(input, "chunk %u is damaged", number);
  }
  cursor->chunk = number;
  cursor->at = chunk->records;
  cursor->end = chunk->records + chunk->used;
  return true;
}

static const uint8_t* get_index(const cursor_t* cursor, const uint8_t* at, uint64_t limit, uint32_t* index) {
  uint64_t value;
  at = trace_get(at, &value);
  if (value >= limit) input_damaged(cursor->input, "chunk %u has a number that is too large", cursor->chunk);
  *index = (uint32_t)value;
  return at;
}

// Of the numbers only those that are indices are checked here.
bool cursor_read(cursor_t* cursor, record_t* record) {
  const trace_header_t* header = &cursor->input->header;
  while (cursor->at == cursor->end) {
    if (!next_chunk(cursor)) return false;
  }
  const uint8_t* at = cursor->at;
  record->kind = *at & ~TRACE_WAIT;
  record->must_wait = (*at++ & TRACE_WAIT) != 0;
  if (record->kind < TRACE_MALLOC || record->kind > TRACE_START) {
    input_damaged(cursor->input, "chunk %u has a record of no kind", cursor->chunk);
  }
  if (record->must_wait) {
    at = get_index(cursor, at, header->threads, &record->wait_thread);
    at = trace_get(at, &record->wait_count);
  }
  if (record->kind <= TRACE_REALLOC) at = trace_get(at, &record->size);
  at = get_index(cursor, at, record->kind == TRACE_START ? header->threads : header->slots, &record->slot);
  if (record->kind == TRACE_ALIGNED) {
    uint32_t log2;
    at = get_index(cursor, at, 48, &log2);
    record->align = (size_t)1 << log2;
  }
  if (at > cursor->end) input_damaged(cursor->input, "chunk %u ends within a record", cursor->chunk);
  cursor->at = at;
  cursor->count++;
  return true;
}
