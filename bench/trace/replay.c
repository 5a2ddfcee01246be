// trace-replay: makes the calls of a recorded trace again, with the allocator that is preloaded.
//
// Pattern   What a real program did: its sizes, lifetimes, reallocations and threads, without its other work.
// Idea      A recorded program is a benchmark that needs no program. Each thread of the trace is a thread here. Order
//           between threads is kept only where a block, or its slot, passes from one to another: then a thread waits until
//           the other one has come far enough (trace.h).
// Check     The first and the last word of each block, before its free and across each realloc; that calloc's blocks are 0
//           where they are looked at; that each block is aligned. The checksum is that of the words read.
// Usage     trace-replay [--touch=ends|page|line] [--report] [--info] FILE
//
//   --touch   which words of a block are written when it is new: the first and the last, also one in each 4096 bytes
//             (page, the default), or also one in each 256 bytes (line)
//   --report  tells on stderr what the replay cost, and how resident memory compares to the bytes in live blocks
//   --info    tells what the trace has, and replays nothing
//
// The tables here come from mmap, are resident before the first call, and have 16 bytes for each slot.
#include "../programs/bench.h"
#include "input.h"
#include "report.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define WAITS_MAX 1000000 // of 50 us and more, a minute, in which no thread plays anything

typedef struct block_s {
  char*  start; // NULL: the slot is free
  size_t size;
} block_t;

typedef struct player_s {
  _Alignas(64) _Atomic uint64_t count; // records replayed
  atomic_bool is_started, is_done;
  uint64_t    sum; // of the words read
} player_t;

static input_t   input;
static block_t*  blocks;
static player_t* players;
static size_t    touch_step = 4096; // 0: none between the ends
static bool      has_report;

// ---- what is in a block

// In the lowest bytes first, so that a shorter block has a part of it.
static uint64_t tag_of(uint32_t slot, size_t size) {
  uint64_t z = ((uint64_t)slot << 32 ^ size) * 0x9E3779B97F4A7C15u;
  return (z ^ z >> 29) | 1;
}

static size_t word_size(size_t size) {
  return size < sizeof(uint64_t) ? size : sizeof(uint64_t);
}

static void write_word(char* at, uint64_t tag, size_t n) {
  if (n == sizeof(tag)) memcpy(at, &tag, sizeof(tag));
  else memcpy(at, &tag, n);
}

static bool has_word(const char* at, uint64_t tag, size_t n) {
  if (n == sizeof(tag)) return memcmp(at, &tag, sizeof(tag)) == 0;
  return memcmp(at, &tag, n) == 0;
}

static void write_ends(const block_t* block, uint64_t tag) {
  write_word(block->start, tag, word_size(block->size));
  if (block->size >= 2 * sizeof(tag)) write_word(block->start + block->size - sizeof(tag), tag, sizeof(tag));
}

static void write_from(const block_t* block, uint64_t tag, size_t old_size) {
  write_ends(block, tag);
  if (touch_step == 0) return;
  size_t at = (old_size + touch_step - 1) / touch_step * touch_step;
  if (at == 0) at = touch_step;
  for (; at + 2 * sizeof(tag) <= block->size; at += touch_step) write_word(block->start + at, tag, sizeof(tag));
}

static void expect_zero(const block_t* block) {
  size_t n = word_size(block->size);
  if (!has_word(block->start, 0, n)) bench_fail("calloc: the first word is not 0");
  if (!has_word(block->start + block->size - n, 0, n)) bench_fail("calloc: the last word is not 0");
  if (touch_step == 0) return;
  for (size_t at = touch_step; at + n < block->size; at += touch_step) {
    if (!has_word(block->start + at, 0, n)) bench_fail("calloc: a word is not 0");
  }
}

static void check_block(const block_t* block, uint32_t slot, size_t kept) {
  uint64_t tag = tag_of(slot, block->size);
  if (!has_word(block->start, tag, word_size(kept))) bench_fail("the first word of a block has changed");
  if (kept == block->size && kept >= 2 * sizeof(tag) &&
      !has_word(block->start + kept - sizeof(tag), tag, sizeof(tag))) {
    bench_fail("the last word of a block has changed");
  }
}

// ---- the calls

static block_t* block_in(const cursor_t* cursor, const record_t* record) {
  block_t* block = &blocks[record->slot];
  if (block->start == NULL) {
    input_damaged(&input, "record %llu of thread %u is about a block that is not there",
                  (unsigned long long)cursor->count, cursor->thread);
  }
  return block;
}

static void* allocate(const record_t* record) {
  if (record->kind == TRACE_MALLOC) return malloc(record->size);
  if (record->kind == TRACE_CALLOC) return calloc(1, record->size);
  void*  block;
  size_t align = record->align < sizeof(void*) ? sizeof(void*) : record->align;
  if (posix_memalign(&block, align, record->size) != 0) return NULL;
  if (((uintptr_t)block & (align - 1)) != 0) bench_fail("posix_memalign: the block is not aligned");
  return block;
}

static void replay_new(const cursor_t* cursor, const record_t* record) {
  block_t* block = &blocks[record->slot];
  if (block->start != NULL) {
    input_damaged(&input, "record %llu of thread %u uses a slot that is in use", (unsigned long long)cursor->count,
                  cursor->thread);
  }
  *block = (block_t){bench_not_null(allocate(record)), record->size};
  if (((uintptr_t)block->start & 7) != 0) bench_fail("a block is not aligned");
  if (record->kind == TRACE_CALLOC) expect_zero(block);
  write_from(block, tag_of(record->slot, block->size), 0);
}

static uint64_t replay_free(const cursor_t* cursor, const record_t* record) {
  block_t* block = block_in(cursor, record);
  check_block(block, record->slot, block->size);
  uint64_t sum = tag_of(record->slot, block->size);
  free(block->start);
  block->start = NULL;
  return sum;
}

static uint64_t replay_realloc(const cursor_t* cursor, const record_t* record) {
  block_t* block = block_in(cursor, record);
  size_t   old_size = block->size;
  uint64_t sum = tag_of(record->slot, old_size);
  check_block(block, record->slot, old_size);
  block->start = realloc(block->start, record->size);
  if (block->start == NULL && record->size == 0) block->start = malloc(0); // some free then
  bench_not_null(block->start);
  check_block(block, record->slot, record->size < old_size ? record->size : old_size);
  block->size = record->size;
  write_from(block, tag_of(record->slot, block->size), old_size);
  return sum;
}

// ---- threads

static void* player_main(void* argument);

static void start(const cursor_t* cursor, uint32_t thread) {
  pthread_t handle;
  if (atomic_exchange(&players[thread].is_started, true)) {
    input_damaged(&input, "record %llu of thread %u starts a thread again", (unsigned long long)cursor->count,
                  cursor->thread);
  }
  int error = pthread_create(&handle, NULL, player_main, &players[thread]);
  if (error != 0) bench_fail("no more threads: %s", strerror(error));
  pthread_detach(handle);
}

static void rest(void) {
  nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

// Records that all threads have played.
static uint64_t count_played(void) {
  uint64_t sum = 0;
  for (uint32_t i = 0; i < input.header.threads; i++)
    sum += atomic_load_explicit(&players[i].count, memory_order_relaxed);
  return sum;
}

// The other may have to wait, too: as long as there is one that plays.
static void wait_for(const cursor_t* cursor, const record_t* record) {
  player_t* other = &players[record->wait_thread];
  uint64_t  n_played = count_played();
  for (size_t n = 1; atomic_load_explicit(&other->count, memory_order_acquire) < record->wait_count; n++) {
    bool is_done = atomic_load(&other->is_done) && atomic_load(&other->count) < record->wait_count;
    bool is_stuck = false;
    if (n % WAITS_MAX == 0) {
      uint64_t n_before = n_played;
      n_played = count_played();
      is_stuck = (n_played == n_before);
    }
    if (is_done || is_stuck) {
      input_damaged(&input, "record %llu of thread %u waits for one that does not come",
                    (unsigned long long)cursor->count, cursor->thread);
    }
    rest();
  }
}

static int64_t replay(const cursor_t* cursor, const record_t* record, player_t* self) {
  if (record->must_wait) wait_for(cursor, record);
  size_t old_size = record->kind == TRACE_START ? 0 : blocks[record->slot].size;
  switch (record->kind) {
    case TRACE_FREE: self->sum += replay_free(cursor, record); return -(int64_t)old_size;
    case TRACE_REALLOC: self->sum += replay_realloc(cursor, record); return (int64_t)(record->size - old_size);
    case TRACE_START: start(cursor, record->slot); return 0;
    default: replay_new(cursor, record); return (int64_t)record->size;
  }
}

static void play(player_t* self) {
  cursor_t cursor;
  record_t record;
  int64_t  live = 0; // since the last sample
  cursor_start(&cursor, &input, (uint32_t)(self - players));
  while (cursor_read(&cursor, &record)) {
    live += replay(&cursor, &record, self);
    atomic_store_explicit(&self->count, cursor.count, memory_order_release);
    if (has_report && cursor.count % REPORT_STEP == 0) {
      report_sample(live);
      live = 0;
    }
  }
  if (has_report) report_sample(live);
  atomic_store(&self->is_done, true);
}

static void* player_main(void* argument) {
  play(argument);
  return NULL;
}

static void play_all(void) {
  atomic_store(&players[0].is_started, true);
  play(&players[0]);
  for (uint32_t i = 0; i < input.header.threads; i++) {
    // A thread is started by one with a lower number, and those are done here.  One without records is not if its process was killed.
    if (!atomic_load(&players[i].is_started) && input.first[i] == 0) continue;
    if (!atomic_load(&players[i].is_started)) input_damaged(&input, "thread %u is not started by any other", i);
    while (!atomic_load(&players[i].is_done)) rest();
  }
}

// ---- the program

static void usage(const char* program) {
  fprintf(stderr, "usage: %s [--touch=ends|page|line] [--report] [--info] FILE\n", program);
  exit(2);
}

static size_t step_of(const char* program, const char* word) {
  if (strcmp(word, "ends") == 0) return 0;
  if (strcmp(word, "page") == 0) return 4096;
  if (strcmp(word, "line") == 0) return 256;
  fprintf(stderr, "%s: --touch is '%s'; it must be ends, page or line\n", program, word);
  exit(2);
}

static void show_info(const trace_header_t* h) {
  printf("%llu records, %llu blocks, %u threads; at once %llu blocks, %llu bytes; at the end %llu blocks, %llu "
         "bytes%s%s\n",
         (unsigned long long)h->records, (unsigned long long)h->blocks, h->threads, (unsigned long long)h->peak_blocks,
         (unsigned long long)h->peak_bytes, (unsigned long long)h->live_blocks, (unsigned long long)h->live_bytes,
         h->is_limited ? "; cut at the limit of the file" : "",
         h->is_finished ? "" : "; the process did not end by exit()");
}

static void check_rest(void) {
  for (uint32_t slot = 1; slot < input.header.slots; slot++) {
    if (blocks[slot].start == NULL) continue;
    check_block(&blocks[slot], slot, blocks[slot].size);
    players[0].sum += tag_of(slot, blocks[slot].size);
  }
}

int main(int argc, char** argv) {
  static char output[BUFSIZ]; // not the allocator's
  bool        has_info = false;
  const char* file = NULL;
  setvbuf(stdout, output, _IOFBF, sizeof(output));
  for (int i = 1; i < argc; i++) {
    if (strncmp(argv[i], "--touch=", 8) == 0) touch_step = step_of(argv[0], argv[i] + 8);
    else if (strcmp(argv[i], "--report") == 0) has_report = true;
    else if (strcmp(argv[i], "--info") == 0) has_info = true;
    else if (argv[i][0] == '-' || file != NULL) usage(argv[0]);
    else file = argv[i];
  }
  if (file == NULL) usage(argv[0]);
  input_open(&input, file);
  if (has_info) return show_info(&input.header), 0;
  blocks = input_map(input.header.slots * sizeof(block_t));
  players = input_map(input.header.threads * sizeof(player_t));
  if (has_report) report_start();
  play_all();
  if (has_report) report_end(&input.header);
  check_rest();
  uint64_t sum = 0;
  for (uint32_t i = 0; i < input.header.threads; i++) sum += players[i].sum;
  printf("%llu records of %u threads, %llu blocks: %016llx\n", (unsigned long long)input.header.records,
         input.header.threads, (unsigned long long)input.header.blocks, (unsigned long long)sum);
  return 0;
}
