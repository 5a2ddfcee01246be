// Proves: where memory only grows, pieces of it that lie one behind the other are one range, wherever they begin: all of it can
// be had as one block, aligned as was asked, zero, and again after its release.
//
//   grown [OFFSET]        of the first piece
//
// Compiled with MI_PRIM_CUSTOM: it is the system, and linked with prim/grown.c and what that needs.
#include "../check.h"
#include "../modes/support.h"
#include "prim/prim.h"

enum { piece = 1 << 16, n_pieces = 64, n_guard = 64 };

// What the system gives next, and how far from a multiple of 32 it begins.
static _Alignas(4096) char memory[n_pieces * piece + n_guard];
static size_t given, offset;

size_t _mi_prim_memory(size_t size, void** start) {
  size_t n = (size + piece - 1) / piece * piece;
  if (offset + given + n > n_pieces * piece) return 0;
  *start = memory + offset + given;
  given += n;
  return n;
}

int64_t _mi_prim_clock_ns(void) {
  return 0;
}

uint64_t _mi_prim_random(void) {
  return 4;
}

void _mi_prim_write_stderr(const char* text, size_t length) {
  if (write(2, text, length) < 0) return;
}

void _mi_prim_abort(void) {
  abort();
}

static char* reserve(size_t size, size_t align) {
  void* start = NULL;
  if (_mi_prim_reserve(size, align, &start) != 0) return NULL;
  CHECK_FOR((char*)start >= memory + offset && (char*)start + size <= memory + offset + given, "%zu bytes", size);
  CHECK_FOR((uintptr_t)start % align == 0, "%zu bytes at %p, aligned to %zu", size, start, align);
  CHECK(is_zero(start, 0, size));
  memset(start, 0xAB, size);
  return (char*)start;
}

// Piece by piece, given back, and then as one.
static void check_joined(size_t align) {
  char*  pieces[n_pieces];
  size_t n = 0, first = given;
  while (n < 8 && (pieces[n] = reserve(piece - 96, align)) != NULL) n++;
  CHECK_EQ(n, 8);
  for (size_t i = 0; i < n; i++) _mi_prim_release(pieces[i], piece - 96);
  size_t before = given;
  char*  all = reserve(7 * piece, align);
  CHECK_FOR(all != NULL, "%zu KiB after %zu of %zu KiB", (size_t)7 * piece / KiB, (before - first) / KiB, before / KiB);
  CHECK_FOR(given - before <= piece, "%zu KiB more", (given - before) / KiB);
  if (all != NULL) _mi_prim_release(all, 7 * piece);
}

// More than a piece, when there is one already.
static void check_grown(size_t size, size_t align) {
  size_t before = given;
  char*  p = reserve(size, align);
  CHECK_FOR(p != NULL, "%zu KiB aligned to %zu, with %zu KiB given", size / KiB, align, before / KiB);
  CHECK_FOR(given - before <= size + piece, "%zu KiB more for %zu KiB", (given - before) / KiB, size / KiB);
  if (p != NULL) _mi_prim_release(p, size);
}

int main(int argc, char** argv) {
  offset = argc > 1 ? strtoul(argv[1], NULL, 10) : 16;
  CHECK(reserve(1000, 16) != NULL);
  check_grown(3 * piece, 32);
  check_joined(32);
  check_grown(12 * piece, 4096);
  CHECK(reserve((size_t)n_pieces * piece, 32) == NULL);
  check_joined(4096);
  return check_result();
}
