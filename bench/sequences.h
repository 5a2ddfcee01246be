// Sequences of sizes that are made to fragment memory: an adversary's, and those of a server.  Used by bounds.c beside this file
// with any allocator, and by the test of the bounds.
//
// Whoever includes this has defined sequence_malloc and sequence_free.  Each sequence never has more than `live_max` bytes live,
// and calls `note` after each phase with what is live then; the most that is resident, over live_max, is what fragmentation
// costs.  See docs/design/bounds.md.
//
//   steps       J. Robson's adversary ("Worst case fragmentation of first fit and best fit storage allocation strategies",
//               1977) in the form that fits allocators with pages: fill up with a size, keep one block in each granule, go on with
//               the next larger size
//   steps-down  the same from large sizes to small ones
//   swings      full of one size, then of another, and so on; of each, one block in 20 survives until the size is back
//   comb        large blocks, every second freed, then larger ones for which no gap is large enough
//   server      sessions with lognormal lifetimes, their blocks of all sizes; an hour of 60 requests a second
#pragma once

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { sequence_max = 4 << 20 };

typedef struct sequence_s {
  size_t live_max, live;
  size_t granule; // of the adversary
  void (*note)(void* arg, const char* phase, size_t live);
  void*          arg;
  unsigned char* blocks[sequence_max];
  uint32_t       sizes[sequence_max];
  size_t         n;
  uint64_t       random;
} sequence_t;

static inline uint64_t sequence_random(sequence_t* s) {
  s->random = s->random * 6364136223846793005u + 1442695040888963407u;
  uint64_t x = (s->random ^ (s->random >> 29)) * 0xBF58476D1CE4E5B9u;
  return x ^ (x >> 32);
}

static inline bool sequence_get(sequence_t* s, size_t size) {
  if (s->n == sequence_max || s->live + size > s->live_max) return false;
  unsigned char* p = (unsigned char*)sequence_malloc(size);
  if (p == NULL) return false;
  memset(p, 1, size);
  s->blocks[s->n] = p;
  s->sizes[s->n++] = (uint32_t)size;
  s->live += size;
  return true;
}

static inline void sequence_put(sequence_t* s, size_t i) {
  s->live -= s->sizes[i];
  sequence_free(s->blocks[i]);
  s->n--;
  s->blocks[i] = s->blocks[s->n];
  s->sizes[i] = s->sizes[s->n];
}

static inline void sequence_clear(sequence_t* s) {
  while (s->n > 0) sequence_put(s, s->n - 1);
}

static inline void sequence_fill(sequence_t* s, size_t size) {
  while (sequence_get(s, size)) {
  }
}

// ---- steps --------------------------------------------------------------------------------------------------------------

// Frees all blocks from `first` on, but the first of each granule that has none of these yet.
static inline void sequence_thin(sequence_t* s, size_t first) {
  static unsigned char has_one[1 << 20]; // by a hash of the granule: too few stay rather than too many
  memset(has_one, 0, sizeof(has_one));
  for (size_t i = first; i < s->n;) {
    uintptr_t granule = (uintptr_t)s->blocks[i] / s->granule % sizeof(has_one);
    if (has_one[granule] != 0) sequence_put(s, i);
    else has_one[granule] = 1, i++;
  }
}

static inline void sequence_step(sequence_t* s, size_t size) {
  size_t first = s->n;
  sequence_fill(s, size);
  s->note(s->arg, "full", s->live);
  sequence_thin(s, first);
  s->note(s->arg, "thinned", s->live);
}

static inline size_t sequence_step_size(size_t i) {
  return (size_t)(16 * pow(1.3, (double)i)) & ~(size_t)7;
}

static inline void sequence_steps(sequence_t* s) {
  for (size_t i = 0; sequence_step_size(i) <= 16384; i++) sequence_step(s, sequence_step_size(i));
  sequence_clear(s);
}

static inline void sequence_steps_down(sequence_t* s) {
  size_t n = 0;
  while (sequence_step_size(n) <= 16384) n++;
  while (n > 0) sequence_step(s, sequence_step_size(--n));
  sequence_clear(s);
}

// ---- swings -------------------------------------------------------------------------------------------------------------

static inline void sequence_swings(sequence_t* s) {
  static const size_t sizes[] = {48, 3000, 200, 12000, 700};
  for (size_t round = 0; round < 40; round++) {
    size_t size = sizes[round % 5];
    for (size_t i = s->n; i > 0; i--) { // the survivors of last time
      if (s->sizes[i - 1] == size) sequence_put(s, i - 1);
    }
    size_t first = s->n;
    sequence_fill(s, size);
    s->note(s->arg, "full", s->live);
    for (size_t i = s->n; i > first; i--) {
      if (sequence_random(s) % 20 != 0) sequence_put(s, i - 1);
    }
    s->note(s->arg, "thinned", s->live);
  }
  sequence_clear(s);
}

// ---- comb ---------------------------------------------------------------------------------------------------------------

static inline void sequence_comb(sequence_t* s) {
  for (size_t size = 40000; size < s->live_max / 16; size += size / 2) {
    sequence_fill(s, size);
    s->note(s->arg, "full", s->live);
    for (size_t i = s->n; i > 0; i -= (i > 1 ? 2 : 1)) sequence_put(s, i - 1);
    s->note(s->arg, "thinned", s->live);
  }
  sequence_clear(s);
}

// ---- server -------------------------------------------------------------------------------------------------------------

enum { sequence_n_sessions = 4000, sequence_session_blocks = 24 };

typedef struct sequence_session_s {
  unsigned char* blocks[sequence_session_blocks];
  uint32_t       sizes[sequence_session_blocks];
  uint64_t       ends; // in requests from the begin; 0: not there
} sequence_session_t;

static inline double sequence_normal(sequence_t* s) {
  double u = (double)((sequence_random(s) >> 11) + 1) / 9007199254740993.0;
  double v = (double)(sequence_random(s) >> 11) / 9007199254740992.0;
  return sqrt(-2 * log(u)) * cos(6.283185307179586 * v);
}

static inline void sequence_replace(sequence_t* s, sequence_session_t* session, size_t i, size_t size) {
  if (session->blocks[i] != NULL) sequence_free(session->blocks[i]);
  s->live -= session->sizes[i];
  session->blocks[i] = (size == 0 ? NULL : (unsigned char*)sequence_malloc(size));
  session->sizes[i] = (uint32_t)size;
  if (size > 0) memset(session->blocks[i], 1, size);
  s->live += size;
}

static inline void sequence_request(sequence_t* s, sequence_session_t* session, uint64_t now) {
  if (session->ends == 0) session->ends = now + 1 + (uint64_t)exp(8.0 + 1.8 * sequence_normal(s));
  size_t size = 16 + (size_t)fmin(exp(5.0 + 1.4 * sequence_normal(s)), 60000);
  sequence_replace(s, session, sequence_random(s) % sequence_session_blocks, size);
  unsigned char* request = (unsigned char*)sequence_malloc(4 * size);
  memset(request, 1, 4 * size);
  sequence_free(request);
}

static inline void sequence_session_end(sequence_t* s, sequence_session_t* session) {
  for (size_t i = 0; i < sequence_session_blocks; i++) sequence_replace(s, session, i, 0);
  session->ends = 0;
}

static inline void sequence_server(sequence_t* s) {
  static sequence_session_t sessions[sequence_n_sessions];
  enum { n_requests = 3600 * 60 };
  for (uint64_t now = 1; now <= n_requests; now++) {
    sequence_request(s, &sessions[sequence_random(s) % sequence_n_sessions], now);
    sequence_session_t* other = &sessions[now % sequence_n_sessions];
    if (other->ends != 0 && other->ends < now) sequence_session_end(s, other);
    if (now % (n_requests / 60) == 0) s->note(s->arg, "a minute", s->live);
  }
  for (size_t i = 0; i < sequence_n_sessions; i++) sequence_session_end(s, &sessions[i]);
}

// ---- all ----------------------------------------------------------------------------------------------------------------

typedef struct sequence_kind_s {
  const char* name;
  void (*run)(sequence_t* s);
} sequence_kind_t;

static const sequence_kind_t sequence_kinds[] = {{"steps", &sequence_steps},
                                                 {"steps-down", &sequence_steps_down},
                                                 {"swings", &sequence_swings},
                                                 {"comb", &sequence_comb},
                                                 {"server", &sequence_server}};
