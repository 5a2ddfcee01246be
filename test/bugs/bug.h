// What the one-bug programs share.  Each runs under an allocator that is preloaded, makes one mistake, goes on for a
// while as a program would, and says how it ended.  The last line is `return undetected();`, or `return prevented(...)`
// where the mistake had no effect.  Whoever stops the program before that has detected it.  run.py reads the lines:
//
//   block ADDRESS SIZE         a report of the mistake may name this block, or one of these
//   undetected                 nothing happened
//   prevented                  the mistake was without effect
//   prevented without errno    so it was, but errno does not say so
//
// Nothing here allocates, so that the blocks of a program are its own.  Compiled without optimisation.
#pragma once

#if !defined(_GNU_SOURCE)
  #define _GNU_SOURCE // memmem
#endif

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KiB ((size_t)1024)
#define MiB (1024 * KiB)

#define BUG_N_MAX 1000

static inline void say(const char* fmt, ...) {
  char    line[128];
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(line, sizeof(line), fmt, args);
  va_end(args);
  if (write(1, line, (size_t)n) != n) _exit(3);
}

static inline int undetected(void) {
  say("undetected\n");
  return 0;
}

static inline int prevented(bool is_errno_right) {
  say(is_errno_right ? "prevented\n" : "prevented without errno\n");
  return 0;
}

// Compilers warn of the mistakes that they see.
static inline void* hidden(void* p) {
  void* volatile copy = p;
  return copy;
}

static inline void name_block(const void* p, size_t size) {
  say("block 0x%zx %zu\n", (size_t)p, size);
}

static inline size_t number(char** argv, int i) {
  if (argv[i] == NULL) _exit(3);
  return (size_t)strtoull(argv[i], NULL, 0);
}

// A size, or one relative to another with a sign: "+1".
static inline size_t number_from(char** argv, int i, size_t other) {
  bool is_relative = (argv[i] != NULL && (argv[i][0] == '+' || argv[i][0] == '-'));
  return is_relative ? other + (size_t)strtoll(argv[i], NULL, 0) : number(argv, i);
}

static inline char* get(size_t size) {
  char* p = (char*)malloc(size);
  if (p == NULL) _exit(3);
  memset(p, 'a', size);
  return p;
}

// How many blocks stand for "some": so many that the neighbours of the one in the middle are likely among them.
static inline size_t some(size_t size) {
  size_t n = 4 * MiB / (size + 1);
  return n > BUG_N_MAX ? BUG_N_MAX : n < 5 ? 5 : n;
}

typedef struct {
  char*  p[BUG_N_MAX];
  size_t n;
  size_t size;
} blocks_t;

static inline blocks_t get_some(size_t size) {
  blocks_t all = {{NULL}, some(size), size};
  for (size_t i = 0; i < all.n; i++) all.p[i] = get(size);
  return all;
}

static inline char* middle_of(const blocks_t* all) {
  return all->p[all->n / 2];
}

static inline void name_blocks(const blocks_t* all) {
  for (size_t i = 0; i < all->n; i++) name_block(all->p[i], all->size);
}

static inline void free_all(const blocks_t* all) {
  for (size_t i = 0; i < all->n; i++) free(all->p[i]);
}

// A program goes on, and replaces blocks of that size in any order: damage shows when blocks are handed out or freed,
// and an allocator may take its time before it hands out one again.
static inline void go_on(size_t size) {
  blocks_t all = get_some(size);
  uint64_t chance = 88172645463325252u;
  size_t   n_steps = size > 2048 ? 64 * MiB / size : 32768;
  for (size_t i = 0; i < n_steps; i++) {
    chance ^= chance << 13;
    chance ^= chance >> 7;
    chance ^= chance << 17;
    char** slot = &all.p[chance % all.n];
    free(*slot);
    *slot = get(size);
  }
  free_all(&all);
}

// ---- old contents

#define SECRET 0x5ec4e75ec4e75ec4u

static inline void write_secret(char* p, size_t size) {
  for (size_t i = 0; i + sizeof(uint64_t) <= size; i += sizeof(uint64_t)) {
    uint64_t secret = SECRET;
    memcpy(p + i, &secret, sizeof(secret));
  }
}

// At any place, also where it is no word.
static inline bool has_secret(const char* p, size_t size) {
  uint64_t secret = SECRET;
  return memmem(p, size, &secret, sizeof(secret)) != NULL;
}
