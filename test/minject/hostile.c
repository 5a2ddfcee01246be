// minject on broken files: each length of a file, and bytes changed by chance.  It must refuse, or write a file that imports
// ours and then all that the original imports.  Built with the address and undefined behaviour sanitizers.
//
//   hostile SEED N FILE ...      N: how many changed files are made of each
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/minject/file.h"
#include "../../tools/minject/inject.h"

static uint64_t random_state;
static size_t   n_accepted, n_refused;

static uint32_t next_random(uint32_t n) {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 7;
  random_state ^= random_state << 17;
  return (uint32_t)(random_state >> 16) % n;
}

static void fail(const char* what) {
  printf("hostile: FAILED: %s\n", what);
  exit(1);
}

// Reads all that there is; how many imports there are, SIZE_MAX if that cannot be said.
static size_t read_all(pe_t* pe) {
  pe_import_t import;
  pe_found_t  found;
  char        function[PE_NAME_MAX];
  size_t      n = 0;
  for (size_t i = 0; i < 10000 && pe_delayed_import(pe, i, &import) == PE_FOUND; i++) {
    for (size_t k = 0; k < 1000 && pe_import_function(pe, &import, k, function) == PE_FOUND; k++) {
    }
  }
  pe_exports(pe, "mi_version");
  for (; (found = pe_import(pe, n, &import)) == PE_FOUND && n < 10000; n++) {
    for (size_t k = 0; k < 1000 && pe_import_function(pe, &import, k, function) == PE_FOUND; k++) {
    }
  }
  return found == PE_END ? n : SIZE_MAX;
}

static void check_result(pe_t* from, const injected_t* injected) {
  pe_t        to;
  pe_import_t a, b;
  if (!pe_open(&to, injected->bytes, injected->size)) fail(to.why);
  const size_t n = read_all(from);
  if (n == SIZE_MAX) fail("it took a file whose imports it cannot read");
  if (read_all(&to) != n + !injected->was_there) fail("the number of imports is wrong");
  if (pe_import(&to, 0, &a) != PE_FOUND || strcmp(a.name, "mimalloc.dll") != 0) fail("ours is not the first import");
  for (size_t i = 0, k = 1; i < n; i++) {
    pe_import(from, i, &a);
    if (injected->was_there && pe_same_name(a.name, "mimalloc.dll")) continue;
    if (pe_import(&to, k++, &b) != PE_FOUND || strcmp(a.name, b.name) != 0) fail("another import has changed");
  }
  inject_mark_t       mark;
  const inject_mark_t of_original = inject_mark_of(from->bytes, from->size);
  if (!inject_find_mark(&to, &mark) || mark.size != of_original.size || mark.hash != of_original.hash)
    fail("the mark is wrong");
  const inject_t what = {"mimalloc.dll", "mi_version", true};
  injected_t     again;
  if (inject(&to, &what, &again)) fail("it was changed twice");
}

// In a block of its own size, so that the sanitizer sees what is beyond.
static void try(const uint8_t* bytes, size_t size, bool force) {
  uint8_t* const copy = (uint8_t*)malloc(size == 0 ? 1 : size);
  if (copy == NULL) fail("out of memory");
  memcpy(copy, bytes, size);
  pe_t       pe;
  injected_t injected = {0};
  if (!pe_open(&pe, copy, size)) {
    if (pe.why[0] == 0) fail("it does not say why");
    n_refused++;
  }
  else {
    const inject_t what = {"mimalloc.dll", "mi_version", force};
    read_all(&pe);
    pe.why[0] = 0;
    if (inject(&pe, &what, &injected)) {
      n_accepted++;
      check_result(&pe, &injected);
      free(injected.bytes);
    }
    else if (pe.why[0] == 0) fail("it does not say why");
    else n_refused++;
  }
  free(copy);
}

// Some bytes, or a word; half of the places are in the headers.
static void spoil(uint8_t* bytes, size_t size) {
  static const uint32_t words[] = {0, 1, 8, 0x7fffffff, 0x80000000, 0xffffffff, 0xfffffff0, 0x1000, 0x200, 0xffff};
  for (uint32_t n = 1 + next_random(4); n > 0; n--) {
    const uint32_t limit = next_random(2) == 0 && size > 0x400 ? 0x400 : (uint32_t)size;
    const uint32_t at = next_random(limit);
    if (next_random(2) == 0) bytes[at] = (uint8_t)next_random(256);
    else if (at + 4 <= size) memcpy(bytes + at, &words[next_random(sizeof(words) / sizeof(words[0]))], 4);
  }
}

int main(int argc, char** argv) {
  if (argc < 4) fail("usage: hostile SEED N FILE ...");
  const uint64_t seed = strtoull(argv[1], NULL, 0);
  random_state = seed * 2654435761u + 1;
  for (int i = 3; i < argc; i++) {
    size_t         size;
    uint8_t* const bytes = file_read(argv[i], &size);
    uint8_t* const spoilt = bytes != NULL ? (uint8_t*)malloc(size + 1) : NULL;
    if (spoilt == NULL) fail(argv[i]);
    for (size_t length = 0; length <= size; length++) {
      try(bytes, length, false);
    }
    for (unsigned long n = strtoul(argv[2], NULL, 0); n > 0; n--) {
      memcpy(spoilt, bytes, size);
      spoil(spoilt, size);
      try(spoilt, size, n % 2 == 0);
    }
    free(bytes);
    free(spoilt);
  }
  printf("hostile: seed %llu: %zu files taken, %zu refused\n", (unsigned long long)seed, n_accepted, n_refused);
  if (n_accepted == 0 || n_refused == 0) fail("all were taken, or all refused");
  return 0;
}
