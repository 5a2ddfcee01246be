// The program of the landscape: what a pair of calls costs, for patterns of calls and sizes of blocks.
//
//   landscape callgrind|step|calls|faults SHARE PATTERN SIZE [PATTERN SIZE ...]
//   landscape list
//
// Each pattern and size, a cell, runs in a process of its own, with an allocator that has done nothing before.  After a warm-up
// two counts are made, one after the other; where they agree, the state is steady.  Steps take long: of them one is made.
// SHARE divides how many pairs a count has.
//
//   callgrind   under valgrind --tool=callgrind --collect-atstart=no: its dumps have the names "PATTERN/SIZE/PAIRS/COUNT"
//   step        instructions, "PATTERN/SIZE/PAIRS/COUNT N" on standard output
//   calls       system calls
//   faults      minor page faults
//
// A cell that cannot be counted has a line "failed PATTERN/SIZE REASON".
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "counting.h"
#include "outside.h"
#include "patterns.h"

enum { warm_rounds = 32 }; // allocators take some until they keep what a pattern needs

struct cell {
  const struct pattern* pattern;
  size_t                size;
  size_t                pairs;    // at least, of each count
  int                   n_counts; // one after the other
};

// Fewer of large blocks, of which each takes longer.
static size_t pairs_of(size_t size, size_t share) {
  size_t pairs = size <= 4 * KiB ? 1024 : size <= 64 * KiB ? 256 : 64;
  return (pairs + share - 1) / share;
}

static void run_rounds(const struct cell* cell, size_t n, size_t rounds) {
  for (size_t i = 0; i < rounds; i++) cell->pattern->round(cell->size, n);
}

static void run_cell(const void* argument) {
  const struct cell* cell = argument;
  size_t             n = cell->pattern->n_blocks(cell->size);
  size_t             n_pairs = cell->pattern->n_pairs == 0 ? n : cell->pattern->n_pairs;
  size_t             rounds = (cell->pairs + n_pairs - 1) / n_pairs;
  cell->pattern->prepare(cell->size, n);
  run_rounds(cell, n, pairs_of(cell->size, 1) / n_pairs + warm_rounds);
  for (int count = 1; count <= cell->n_counts; count++) {
    char name[100];
    snprintf(name, sizeof(name), "%s/%zu/%zu/%d", cell->pattern->name, cell->size, n_pairs * rounds, count);
    counting_begin();
    run_rounds(cell, n, rounds);
    counting_end(name);
  }
}

static void tell_failure(const struct cell* cell, int status) {
  printf("failed %s/%zu ", cell->pattern->name, cell->size);
  if (status == -1) printf("it cannot be traced\n");
  else if (WIFSIGNALED(status)) printf("signal %d\n", WTERMSIG(status));
  else printf("exit status %d\n", WEXITSTATUS(status));
  fflush(stdout);
}

static int usage(const char* reason, const char* word) {
  fprintf(stderr, "landscape: %s%s\n", reason, word);
  return 2;
}

static int list(void) {
  for (size_t i = 0; pattern_at(i) != NULL; i++) puts(pattern_at(i)->name);
  return 0;
}

static bool read_number(const char* text, size_t* number) {
  char* end = NULL;
  *number = strtoul(text, &end, 10);
  return *end == 0 && *number > 0 && *number <= 64 * MiB;
}

int main(int argc, char** argv) {
  static const char* const modes[] = {"callgrind", "step", "calls", "faults"};
  size_t                   mode = 0, share = 0;
  if (argc == 2 && strcmp(argv[1], "list") == 0) return list();
  if (argc < 5 || argc % 2 == 0) return usage("needs a mode, a share, and pairs of pattern and size", "");
  while (mode < 4 && strcmp(argv[1], modes[mode]) != 0) mode++;
  if (mode == 4) return usage("no such mode: ", argv[1]);
  if (!read_number(argv[2], &share)) return usage("not a share: ", argv[2]);
  counting_prepare((enum mode)mode);
  outside_print();
  for (int i = 3; i < argc; i += 2) {
    struct cell cell = {pattern_named(argv[i]), 0, 0, mode == mode_step ? 1 : 2};
    if (cell.pattern == NULL) return usage("no such pattern: ", argv[i]);
    if (!read_number(argv[i + 1], &cell.size) || cell.size < 4) return usage("not a size: ", argv[i + 1]);
    cell.pairs = pairs_of(cell.size, share);
    fflush(stdout);
    int status = counting_run(&run_cell, &cell);
    if (status != 0) tell_failure(&cell, status);
  }
  return 0;
}
