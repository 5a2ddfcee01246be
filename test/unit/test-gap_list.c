// Proves: after any sequence of requests and frees each gap of a theap is in the one list for its size, or loose, and never both; gaps
// meet only where one of them is loose; what the theap counts is what there is; and each block lies by itself (GL1, GL2).
#include "../check.h"
#include "../modes/support.h"
#include "heap/drain.h"
#include "heap/gaps.h"
#include "heap/thread.h"
#include "mimalloc.h"
#include "support/stat.h"

enum { n_live = 6000, n_rounds = 60, n_steps = 4000 };

static struct {
  uint8_t* p;
  size_t   size;
} blocks[n_live];

static size_t const sizes_of_round[] = {48, 160, 500, 24, 1500, 96, 4000, 260};

// ---- the lists ------------------------------------------------------------------------------------------------------

typedef struct found_s {
  size_t n_listed, n_loose, n_units, n_wrong, n_pages, n_loose_pages;
} found_t;

// Those in lists, each of which has a size of its own up to 32 units.
static void look_at_lists(const mi_gaps_t* gaps, found_t* found) {
  for (size_t list = 0; list < MI_GAP_LISTS; list++) {
    const mi_gap_t* prev = NULL;
    found->n_wrong += (((gaps->nonempty >> list) & 1) != 0) != (gaps->lists[list] != NULL);
    for (const mi_gap_t* gap = gaps->lists[list]; gap != NULL; prev = gap, gap = gap->next) {
      const mi_gap_map_t* map = _mi_gap_map_at(_mi_page_at(gap)->gap_map);
      size_t              i = _mi_gap_map_unit(gap), n = _mi_gap_map_length(map, i);
      bool                is_gap =
          _mi_gap_map_has(map->starts, i) && !_mi_gap_map_has(map->blocks, i) && !_mi_gap_map_is_loose(map, i);
      found->n_wrong += (!is_gap || gap->prev != prev || (list < 32 && n != list + 1) || (list >= 32 && n <= 32));
      found->n_listed++;
      found->n_units += n;
    }
  }
}

// Returns how many gaps of the page must be in lists.
static size_t look_at_page(const mi_gap_map_t* map, found_t* found) {
  size_t n = 0, n_blocks = 0, n_here = 0;
  bool   follows_gap = false;
  for (size_t i = 0; i < MI_GAP_UNITS; i += _mi_gap_map_length(map, i)) {
    bool is_block = _mi_gap_map_has(map->blocks, i), may_meet = _mi_gap_map_is_loose(map, i);
    found->n_wrong += (is_block && _mi_gap_map_is_loose(map, i)) || (follows_gap && !is_block && !may_meet);
    follows_gap = (!is_block && !may_meet);
    n_blocks += is_block;
    n_here += _mi_gap_map_is_loose(map, i);
    n += follows_gap;
  }
  for (size_t w = 0; w < MI_GAP_WORDS; w++)
    found->n_wrong += (map->loose[w] != 0) != (((map->loose_words >> w) & 1) != 0);
  found->n_wrong += (n_blocks != _mi_page_used(map->page));
  found->n_loose += n_here;
  found->n_loose_pages += (n_here > 0);
  found->n_pages++;
  return n;
}

static void check_lists(const mi_gaps_t* gaps) {
  found_t found = {0};
  size_t  n_expected = 0, n_loose_pages = 0;
  for (const mi_gap_map_t* map = gaps->first; map != NULL; map = map->next) n_expected += look_at_page(map, &found);
  look_at_lists(gaps, &found);
  for (const mi_gap_map_t* map = gaps->first_loose; map != NULL; map = map->next_loose, n_loose_pages++)
    found.n_wrong += (map->loose_words == 0 || (map->next_loose == NULL) != (map == gaps->last_loose));
  CHECK_EQ(found.n_wrong, 0);
  CHECK_EQ(found.n_listed, n_expected);
  CHECK_EQ(found.n_units, gaps->n_free);
  CHECK_EQ(found.n_pages, gaps->n_pages);
  CHECK_EQ(found.n_loose_pages, n_loose_pages);
}

// ---- requests and frees -------------------------------------------------------------------------------------------------

static void replace(rng_t* r, size_t i, size_t mean) {
  if (blocks[i].p != NULL) {
    CHECK_EQ(pattern_check(blocks[i].p, blocks[i].size, i), blocks[i].size);
    mi_free(blocks[i].p);
  }
  blocks[i].size = mean / 2 + rng_below(r, mean);
  blocks[i].p = (uint8_t*)mi_malloc(blocks[i].size);
  pattern_fill(blocks[i].p, 0, blocks[i].size, i);
}

// Those next to each other, as a program does that drops a structure.
static void drop_some(rng_t* r) {
  size_t first = rng_below(r, n_live - n_live / 4);
  for (size_t i = first; i < first + n_live / 4; i++) {
    if (blocks[i].p == NULL || rng_below(r, 8) == 0) continue;
    CHECK_EQ(pattern_check(blocks[i].p, blocks[i].size, i), blocks[i].size);
    mi_free(blocks[i].p);
    blocks[i].p = NULL;
  }
}

int main(int argc, char** argv) {
  watchdog(120);
  if (!MI_GAPS) {
    test_skip("gap pages", "this build has none");
    return skip_code;
  }
  rng_t             r = rng_make(test_seed(argc, argv));
  const mi_theap_t* theap = NULL;
  size_t            n_gap_pages = 0;
  mi_option_set(mi_option_purge_delay, -1); // no thread of ours that takes back what is idle
  for (size_t round = 0; round < n_rounds; round++) {
    size_t mean = sizes_of_round[round % COUNT_OF(sizes_of_round)];
    for (size_t step = 0; step < n_steps; step++) replace(&r, rng_below(&r, n_live), mean);
    if (round % 3 == 2) drop_some(&r);
    theap = _mi_theap_default;
    if (theap->gaps != NULL) check_lists(theap->gaps);
    if (theap->gaps != NULL) n_gap_pages += theap->gaps->n_pages;
  }
  CHECK_FOR(n_gap_pages > n_rounds, "%zu", n_gap_pages);
  CHECK(mi_heap_check(NULL));
  for (size_t i = 0; i < n_live; i++) mi_free(blocks[i].p);
  mi_collect(true);
  CHECK_EQ(mi_load_relaxed(&_mi_stat_live.pages.current), 0);
  return check_result();
}
