// The recording of this process.
//
// The file is mapped as it grows, and records are written into the mapping: nothing must be flushed, and a process that is
// killed or calls _exit leaves a file that can be replayed. One lock orders all records. A thread writes to a chunk of its
// own, so the order between threads is kept as the format says: by the last record with the same slot.
//
// Nothing here calls the allocator. Memory comes from mmap: 16 bytes for each slot, 32 for each live block, 32 for each
// thread, and the file, which has a limit.
#define _GNU_SOURCE
#include "recording.h"
#include "settings.h"
#include "trace.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILE_STEP (1u << 20) // the file grows by this much

// A slot in use has the size of its block, a free one the next free slot of the same list.
typedef struct slot_s {
  uint64_t size_or_next;
  uint64_t thread : 16; // that made the last record with it
  uint64_t count  : 48; // that thread's records then
} slot_t;

// Slots that a thread has freed are used again by that thread first: this needs no TRACE_WAIT. What is more than
// OWN_SLOTS_MAX goes to a queue for all.
#define OWN_SLOTS_MAX 8

typedef struct thread_s {
  trace_chunk_t* chunk;
  uint64_t       count; // of its records
  uint32_t       free_slot;
  uint32_t       free_slots;
} thread_t;

typedef struct entry_s {
  void*    block; // NULL: nothing is here
  uint64_t slot;
} entry_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool*    is_on; // false in a child that handlers of fork do not know of
static settings_t      settings;

static trace_header_t* header; // the file; NULL: there is none
static size_t          file_size;
static uint32_t        last_thread; // that made a record

static thread_t threads[TRACE_THREADS_MAX];
static slot_t*  slots;                   // 1 ... header->slots - 1
static uint64_t queue_first, queue_last; // free slots, 0: none

static entry_t* entries;
static size_t   entries_size; // a power of 2
static size_t   entries_used;

// The number of this thread in recording number `of`; a child of fork makes a recording of its own.
static uint32_t recording_number;
static __thread __attribute__((tls_model("initial-exec"))) struct {
  uint32_t of, number;
} self;

// ---- the end

static void finish(bool is_limited) {
  if (header == NULL) return;
  atomic_store(is_on, false);
  for (uint32_t i = 0; i < header->threads; i++) {
    if (threads[i].chunk != NULL) threads[i].chunk->check = trace_check(threads[i].chunk);
  }
  size_t size = TRACE_HEADER_SIZE + header->chunks * TRACE_CHUNK_SIZE;
  header->is_limited = is_limited;
  header->is_finished = 1;
  munmap(header, settings.limit);
  header = NULL;
  int error = settings_cut(&settings, size);
  if (error != 0) settings_say("%s: %s", settings.file, strerror(error));
}

static void stop(const char* why) {
  settings_say("%s: %s; the recording ends here, the program goes on", settings.file, why);
  finish(true);
}

// strerror allocates where the program has set a locale: the lock is held, so nothing may be recorded then.
static void stop_for(int error) {
  atomic_store(is_on, false);
  stop(strerror(error));
}

// ---- memory

static void* map(size_t size) {
  void* p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

// ---- blocks: a hash table with linear probing, from addresses to slots

static size_t entry_home(const void* block) {
  return (size_t)(((uintptr_t)block >> 3) * 0x9E3779B97F4A7C15u >> 20) & (entries_size - 1);
}

static entry_t* entry_find(const void* block) {
  size_t i = entry_home(block);
  while (entries[i].block != NULL && entries[i].block != block) i = (i + 1) & (entries_size - 1);
  return &entries[i];
}

static bool entries_grow(void) {
  entry_t* old = entries;
  size_t   old_size = entries_size;
  entry_t* bigger = map(2 * old_size * sizeof(entry_t));
  if (bigger == NULL) return false;
  entries = bigger;
  entries_size = 2 * old_size;
  for (size_t i = 0; i < old_size; i++) {
    if (old[i].block != NULL) *entry_find(old[i].block) = old[i];
  }
  munmap(old, old_size * sizeof(entry_t));
  return true;
}

static void entry_add(void* block, uint32_t slot) {
  if (entries_used >= entries_size / 2 && !entries_grow()) {
    stop("there is no memory for the table of blocks");
    return;
  }
  *entry_find(block) = (entry_t){block, slot};
  entries_used++;
}

// The slot of a block, which is forgotten; 0: it is unknown.
static uint32_t entry_take(const void* block) {
  entry_t* entry = entry_find(block);
  if (entry->block == NULL) return 0;
  uint32_t slot = (uint32_t)entry->slot;
  size_t   hole = (size_t)(entry - entries);
  for (size_t i = (hole + 1) & (entries_size - 1); entries[i].block != NULL; i = (i + 1) & (entries_size - 1)) {
    // Entries that would not be found over the hole move into it.
    size_t home = entry_home(entries[i].block);
    if (((i - home) & (entries_size - 1)) < ((i - hole) & (entries_size - 1))) continue;
    entries[hole] = entries[i];
    hole = i;
  }
  entries[hole].block = NULL;
  entries_used--;
  return slot;
}

// ---- slots

static uint32_t slot_new(thread_t* thread) {
  uint32_t slot = thread->free_slot;
  if (slot != 0) {
    thread->free_slot = (uint32_t)slots[slot].size_or_next;
    thread->free_slots--;
  }
  else if (queue_first != 0) {
    slot = (uint32_t)queue_first;
    queue_first = slots[slot].size_or_next;
  }
  else {
    slot = (uint32_t)header->slots++;
    slots[slot] = (slot_t){0};
  }
  return slot;
}

static void slot_free(thread_t* thread, uint32_t slot) {
  if (thread->free_slots < OWN_SLOTS_MAX) {
    slots[slot].size_or_next = thread->free_slot;
    thread->free_slot = slot;
    thread->free_slots++;
    return;
  }
  slots[slot].size_or_next = 0;
  if (queue_first == 0) queue_first = slot;
  else slots[queue_last].size_or_next = slot;
  queue_last = slot;
}

// ---- records

// Room for a record in the chunk of a thread; NULL: the recording has ended.
static uint8_t* room(uint32_t number) {
  thread_t*      thread = &threads[number];
  trace_chunk_t* chunk = thread->chunk;
  if (chunk != NULL && chunk->used + TRACE_RECORD_MAX <= sizeof(chunk->records)) return &chunk->records[chunk->used];
  size_t at = TRACE_HEADER_SIZE + header->chunks * TRACE_CHUNK_SIZE;
  if (at + TRACE_CHUNK_SIZE > settings.limit) return stop("TRACE_LIMIT is reached"), NULL;
  if (at + TRACE_CHUNK_SIZE > file_size) {
    size_t larger = file_size + FILE_STEP < settings.limit ? file_size + FILE_STEP : settings.limit;
    int    error = settings_grow(&settings, larger);
    if (error != 0) return stop_for(error), NULL;
    file_size = larger;
  }
  if (chunk != NULL) chunk->check = trace_check(chunk);
  thread->chunk = (trace_chunk_t*)(void*)((char*)header + at);
  thread->chunk->magic = TRACE_CHUNK_MAGIC;
  thread->chunk->thread = number;
  header->chunks++;
  return thread->chunk->records;
}

// A record of a thread: up to three numbers. With a slot it comes after the last record with that slot.
static bool record(uint32_t number, int kind, uint32_t slot, const uint64_t* values, int n) {
  uint8_t* at = room(number);
  if (at == NULL) return false;
  thread_t* thread = &threads[number];
  bool      must_wait = slot != 0 && slots[slot].count != 0 && slots[slot].thread != number;
  uint8_t*  end = at + 1;
  if (must_wait) end = trace_put(trace_put(end, slots[slot].thread), slots[slot].count);
  for (int i = 0; i < n; i++) end = trace_put(end, values[i]);
  *at = (uint8_t)(kind | (must_wait ? TRACE_WAIT : 0));
  // The process may be killed: what a record names is in the header before the record counts.
  atomic_signal_fence(memory_order_release);
  thread->chunk->used += (uint32_t)(end - at);
  thread->count++;
  header->records++;
  last_thread = number;
  if (slot == 0) return true;
  slots[slot].thread = (uint16_t)number;
  slots[slot].count = thread->count & ((1ull << 48) - 1);
  return true;
}

// The number of the calling thread. Its first call is announced by the thread that made the last record.
static bool self_number(uint32_t* number) {
  if (self.of != recording_number) {
    if (header->threads == TRACE_THREADS_MAX) return stop("there are too many threads"), false;
    uint64_t fresh = header->threads++; // who is killed here leaves a thread without records
    if (fresh != 0 && !record(last_thread, TRACE_START, 0, &fresh, 1)) return false;
    self.of = recording_number;
    self.number = (uint32_t)fresh;
  }
  *number = self.number;
  return true;
}

static void live_add(size_t size) {
  header->live_bytes += size;
  if (header->live_bytes > header->peak_bytes) header->peak_bytes = header->live_bytes;
}

static void record_free(uint32_t slot) {
  uint32_t number;
  if (!self_number(&number)) return;
  uint64_t value = slot;
  uint64_t size = slots[slot].size_or_next;
  if (!record(number, TRACE_FREE, slot, &value, 1)) return;
  header->live_bytes -= size;
  header->live_blocks--;
  slot_free(&threads[number], slot);
}

static void record_new(int kind, void* block, size_t size, size_t align) {
  uint32_t number;
  // A block with this address was freed in a way that is not recorded.
  uint32_t stale = entry_take(block);
  if (stale != 0) record_free(stale);
  if (!atomic_load(is_on) || !self_number(&number)) return;
  if (header->slots == TRACE_SLOTS_MAX) {
    stop("there are too many live blocks");
    return;
  }
  uint32_t slot = slot_new(&threads[number]);
  uint64_t values[] = {size, slot, align == 0 ? 0 : (uint64_t)__builtin_ctzll(align)};
  if (!record(number, kind, slot, values, kind == TRACE_ALIGNED ? 3 : 2)) return;
  slots[slot].size_or_next = size;
  header->blocks++;
  if (++header->live_blocks > header->peak_blocks) header->peak_blocks = header->live_blocks;
  live_add(size);
  entry_add(block, slot);
}

// ---- what the calls tell

bool recording_is_on(void) {
  return is_on != NULL && atomic_load_explicit(is_on, memory_order_relaxed);
}

static bool enter(void) {
  pthread_mutex_lock(&lock);
  if (atomic_load(is_on)) return true;
  pthread_mutex_unlock(&lock);
  return false;
}

void recording_add(int kind, void* block, size_t size, size_t align) {
  if (block == NULL || !enter()) return;
  record_new(kind, block, size, align);
  pthread_mutex_unlock(&lock);
}

void recording_remove(void* block) {
  if (!enter()) return;
  uint32_t slot = entry_take(block);
  if (slot != 0) record_free(slot);
  pthread_mutex_unlock(&lock);
}

uint32_t recording_resize(void* block) {
  if (!enter()) return 0;
  uint32_t slot = entry_take(block);
  pthread_mutex_unlock(&lock);
  return slot;
}

void recording_resized(uint32_t slot, void* block, size_t size) {
  uint32_t number;
  if (!enter()) return;
  uint32_t stale = entry_take(block);
  if (stale != 0) record_free(stale);
  uint64_t values[] = {size, slot};
  if (atomic_load(is_on) && self_number(&number) && record(number, TRACE_REALLOC, slot, values, 2)) {
    header->live_bytes -= slots[slot].size_or_next;
    live_add(size);
    slots[slot].size_or_next = size;
    entry_add(block, slot);
  }
  pthread_mutex_unlock(&lock);
}

void recording_restored(uint32_t slot, void* block) {
  if (!enter()) return;
  entry_add(block, slot);
  pthread_mutex_unlock(&lock);
}

void recording_freed(uint32_t slot) {
  if (!enter()) return;
  record_free(slot);
  pthread_mutex_unlock(&lock);
}

// ---- begin, fork, exit

static void begin(bool must_be) {
  header = settings_create(&settings, must_be);
  if (header == NULL) return;
  if (slots == NULL) slots = map(TRACE_SLOTS_MAX * sizeof(slot_t));
  entries_size = 1u << 16;
  entries_used = 0;
  entries = map(entries_size * sizeof(entry_t));
  if (slots == NULL || entries == NULL) {
    settings_say("there is no memory for the recording");
    _exit(2);
  }
  file_size = FILE_STEP;
  memcpy(header->magic, TRACE_MAGIC, sizeof(header->magic));
  header->chunk_size = TRACE_CHUNK_SIZE;
  header->slots = 1;
  last_thread = 0;
  queue_first = queue_last = 0;
  recording_number++;
  atomic_store(is_on, true);
}

static void before_fork(void) {
  pthread_mutex_lock(&lock);
}

static void after_fork_in_parent(void) {
  pthread_mutex_unlock(&lock);
}

// The child knows nothing of the blocks that it inherits, and begins anew, in a file of its own if that has another name.
static void after_fork_in_child(void) {
  if (header != NULL) {
    atomic_store(is_on, false);
    memset(threads, 0, header->threads * sizeof(thread_t));
    munmap(header, settings.limit);
    munmap(entries, entries_size * sizeof(entry_t));
    header = NULL;
    if (settings.is_per_process) begin(false);
  }
  pthread_mutex_unlock(&lock);
}

void recording_start(void) {
  if (!settings_read(&settings)) return;
  is_on = settings_flag();
  pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  begin(true);
}

__attribute__((destructor)) static void at_exit(void) {
  if (!recording_is_on()) return;
  pthread_mutex_lock(&lock);
  finish(false);
  pthread_mutex_unlock(&lock);
}
