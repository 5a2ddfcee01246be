// The format of a recorded trace: the calls that a program made to its allocator.  C11.
//
// A file is a header of TRACE_HEADER_SIZE bytes and then chunks of TRACE_CHUNK_SIZE bytes. Each chunk has records of one
// thread; the chunks of a thread follow each other in the file. Numbers in headers are little-endian.
//
// Threads have numbers from 0, in the order of their first calls. Blocks have slots: a block keeps its slot from the call
// that allocates it to its free, through every realloc, and then the slot is used again. So there are not many
// more slots than there were live blocks at once, and a table of them is all that a replayer needs.
//
// A record is a byte with the kind (and TRACE_WAIT), followed by varints: 7 bits in each byte, the lowest first, all but
// the last with bit 7 set. A record does not continue in the next chunk.
//
//   TRACE_MALLOC   size, slot
//   TRACE_CALLOC   size, slot                 the product of calloc's arguments
//   TRACE_ALIGNED  size, slot, log2(alignment)
//   TRACE_REALLOC  size, slot
//   TRACE_FREE     slot
//   TRACE_START    thread                     the first call of another thread comes after this
//
// TRACE_WAIT in the first byte puts two varints before these: a thread and a count. The record happened after that thread
// had made `count` records. A record has them whenever the last record with its slot was one of another thread. So records
// of one thread are in order, and so are all records with the same slot; other records of different threads are not. The
// order in which they were made is one that keeps these rules, so a replay that keeps them cannot block.
//
// Calls that failed and free(NULL) are not recorded, nor is a free of a block from before the recording.
#pragma once

#include <stdint.h>

#define TRACE_MAGIC       "MTRACE01"
#define TRACE_HEADER_SIZE 4096u
#define TRACE_CHUNK_SIZE  16384u
#define TRACE_CHUNK_MAGIC 0x4B4E4843u
#define TRACE_RECORD_MAX  48u // bytes, more than any record has
#define TRACE_THREADS_MAX 65536u
#define TRACE_SLOTS_MAX   (1u << 27)
#define TRACE_WAIT        0x10

enum { TRACE_MALLOC = 1, TRACE_CALLOC, TRACE_ALIGNED, TRACE_REALLOC, TRACE_FREE, TRACE_START };

typedef struct trace_header_s {
  char     magic[8];
  uint32_t chunk_size;
  uint32_t threads;
  uint64_t chunks;
  uint64_t slots;
  uint64_t records;
  uint64_t blocks;      // that were allocated
  uint64_t live_bytes;  // as requested, at the end
  uint64_t live_blocks; // at the end
  uint64_t peak_bytes;  // the most live bytes at once
  uint32_t is_finished; // 0: the process ended without exit(), or runs; the checks of each thread's last chunk are 0
  uint32_t is_limited;  // 1: the limit of the file was reached
  uint64_t peak_blocks; // the most live blocks at once
} trace_header_t;

typedef struct trace_chunk_s {
  uint32_t magic;
  uint32_t thread;
  uint32_t used;  // bytes of records; what follows them in the chunk is 0
  uint32_t check; // of these bytes and the thread
  uint8_t  records[TRACE_CHUNK_SIZE - 16];
} trace_chunk_t;

_Static_assert(sizeof(trace_header_t) <= TRACE_HEADER_SIZE, "the header");
_Static_assert(sizeof(trace_chunk_t) == TRACE_CHUNK_SIZE, "a chunk");

// A varint; at most 10 bytes.
static inline uint8_t* trace_put(uint8_t* at, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *at++ = (uint8_t)(value | 0x80);
  *at++ = (uint8_t)value;
  return at;
}

static inline const uint8_t* trace_get(const uint8_t* at, uint64_t* value) {
  uint64_t sum = *at & 0x7F;
  for (unsigned shift = 7; (*at++ & 0x80) != 0 && shift < 64; shift += 7) sum |= (uint64_t)(*at & 0x7F) << shift;
  *value = sum;
  return at;
}

// Never 0. `records` is aligned to 8 bytes, and 0 behind `used`.
static inline uint32_t trace_check(const trace_chunk_t* chunk) {
  const uint64_t* words = (const uint64_t*)(const void*)chunk->records;
  uint64_t        sum = ((uint64_t)chunk->thread << 32 | chunk->used) * 0x9E3779B97F4A7C15u;
  for (uint32_t i = 0; i < (chunk->used + 7) / 8; i++) sum = ((sum ^ words[i]) + (sum >> 29)) * 0xBF58476D1CE4E5B9u;
  return (uint32_t)(sum >> 32) | 1;
}
