// Memory that a test brings for an arena: it begins and ends anywhere, what lies around it must stay as it is, and its
// commit function notes what is committed and takes access to the rest away.
#pragma once

#include <sys/mman.h>

#include "../check.h"
#include "../modes/support.h"
#include "arena/arena.h"
#include "base/track.h"

enum { given_max_chunks = 64, given_margin = 3 * MI_SLICE_SIZE, given_garbage = 0xEE };

typedef struct given_s {
  char*  mapping; // all of it, with the margins
  size_t mapping_size;
  char*  start; // what is given, not aligned to anything
  size_t size;
  char*  first; // what an arena can make of it
  size_t n_chunks;
  // The commit function:
  bool   is_committed[given_max_chunks * MI_CHUNK_SLICES];
  size_t n_commits, n_decommits, n_refused;
  size_t refuse_every; // so many calls, 0: none
  bool   says_zero;    // and is right
} given_t;

static bool is_filled(const char* p, size_t size, int c) {
  mi_track_readable(p, size); // slices without blocks are out of bounds to tools
  for (size_t i = 0; i < size; i++) {
    if (p[i] != (char)c) return false;
  }
  return true;
}

static inline bool is_zero_memory(const char* p, size_t size) {
  mi_track_readable(p, size);
  return is_zero(p, 0, size);
}

// Not committed: no access yet.
static void given_make(given_t* g, size_t n_chunks, rng_t* r, bool is_committed, bool is_zero) {
  size_t before = 1 + rng_below(r, MI_SLICE_SIZE - 1), behind = rng_below(r, MI_CHUNK_SIZE - MI_SLICE_SIZE);
  memset(g, 0, sizeof(*g));
  g->n_chunks = n_chunks;
  g->mapping_size = n_chunks * MI_CHUNK_SIZE + MI_CHUNK_SIZE + 4 * given_margin;
  g->mapping = (char*)mmap(NULL, g->mapping_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(g->mapping != MAP_FAILED);
  g->first = (char*)(((uintptr_t)g->mapping + given_margin + MI_SLICE_SIZE) & ~(uintptr_t)(MI_SLICE_SIZE - 1));
  g->start = g->first - before;
  g->size = before + n_chunks * MI_CHUNK_SIZE + behind;
  memset(g->mapping, given_garbage, (size_t)(g->first - g->mapping));
  char* end = g->first + n_chunks * MI_CHUNK_SIZE;
  memset(end, given_garbage, (size_t)(g->mapping + g->mapping_size - end));
  if (!is_zero) memset(g->first, given_garbage, n_chunks * MI_CHUNK_SIZE);
  if (!is_committed) CHECK_EQ(mprotect(g->first, n_chunks * MI_CHUNK_SIZE, PROT_NONE), 0);
  memset(g->is_committed, is_committed, sizeof(g->is_committed));
}

static size_t given_committed(const given_t* g) {
  size_t n = 0;
  for (size_t i = 0; i < g->n_chunks * MI_CHUNK_SLICES; i++) n += g->is_committed[i];
  return n;
}

static inline bool given_commit(bool commit, void* start, size_t size, bool* is_zero, void* arg) {
  given_t* g = (given_t*)arg;
  size_t   slice = (size_t)((char*)start - g->first) / MI_SLICE_SIZE, n = size / MI_SLICE_SIZE;
  CHECK(is_aligned(start, MI_SLICE_SIZE) && size % MI_SLICE_SIZE == 0 && size > 0);
  CHECK_FOR((char*)start >= g->first && slice + n <= g->n_chunks * MI_CHUNK_SLICES, "%p", start);
  for (size_t i = slice; i < slice + n; i++) CHECK_FOR(g->is_committed[i] != commit, "slice %zu, commit %d", i, commit);
  if (g->refuse_every != 0 && (g->n_commits + g->n_decommits + g->n_refused) % g->refuse_every == 0) {
    g->n_refused++;
    return false;
  }
  if (commit) {
    g->n_commits++;
    CHECK_EQ(mprotect(start, size, PROT_READ | PROT_WRITE), 0);
    if (g->says_zero) CHECK_EQ(madvise(start, size, MADV_DONTNEED), 0);
    mi_track_writable(start, size);
    if (!g->says_zero) memset(start, given_garbage, size);
    *is_zero = g->says_zero;
  }
  else {
    g->n_decommits++;
    CHECK_EQ(madvise(start, size, MADV_DONTNEED), 0);
    CHECK_EQ(mprotect(start, size, PROT_NONE), 0);
  }
  memset(g->is_committed + slice, commit, n);
  return true;
}

// Nothing was written beside what an arena could make of the memory.
static void given_end(given_t* g) {
  char* end = g->first + g->n_chunks * MI_CHUNK_SIZE;
  CHECK(is_filled(g->mapping, (size_t)(g->first - g->mapping), given_garbage));
  CHECK(is_filled(end, (size_t)(g->mapping + g->mapping_size - end), given_garbage));
  CHECK_EQ(munmap(g->mapping, g->mapping_size), 0);
}
