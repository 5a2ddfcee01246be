// What both tests do with the library.
#include "library.h"

#include <stdio.h>

#include "arena/purge.h"
#include "heap/event.h"
#include "heap/pool.h"
#include "mimalloc.h"
#include "page/page.h"

int64_t library_live(mi_live_count_t* count) {
  return mi_load_relaxed(&count->current);
}

void library_round(void) {
  schedule_note("makes a round");
  schedule_sleep(100);
  _mi_event_wake();
  _mi_event_poll();
}

void library_check(void) {
  mi_option_set(mi_option_show_errors, 1);
  if (!mi_heap_check(NULL)) schedule_fail("the heap is damaged");
  mi_option_set(mi_option_show_errors, 0);
}

static void show_page(const mi_region_t* region, size_t slice) {
  const mi_page_t* page = (const mi_page_t*)_mi_region_descriptor(region, slice);
  mi_page_t*       p = (mi_page_t*)page;
  if (_mi_page_kind(page) == MI_PAGE_NONE || _mi_page_kind(page) == MI_PAGE_INTERIOR) return;
  fprintf(stderr, "page of %p: kind %d, state %d, class %d, used %zu, chain %zu, home %p\n",
          (void*)_mi_page_start(page), (int)_mi_page_kind(page), (int)_mi_page_word_state(mi_load_relaxed(&p->word)),
          (int)page->cls, (size_t)_mi_page_used(page), _mi_page_word_chain(mi_load_relaxed(&p->word)).count,
          (void*)mi_load_relaxed(&p->home));
}

void library_expect_none(const char* what, int64_t n) {
  if (n == 0) return;
  for (size_t i = 0; i < _mi_region_count(); i++) {
    const mi_region_t* region = &_mi_region_all[i];
    size_t             n_slices = (region->base == 0 ? 0 : region->n_used * MI_CHUNK_SLICES);
    for (size_t slice = 0; slice < n_slices; slice++) show_page(region, slice);
  }
  schedule_fail("%lld %s are left", (long long)n, what);
}

void library_expect_no_pages(void) {
  library_expect_none("pages", library_live(&_mi_stat_live.pages));
  library_expect_none("shared pages", _mi_pool_count().current);
  library_expect_none("bytes of large blocks", library_live(&_mi_stat_live.malloc_huge));
  library_expect_none("kept slices", (int64_t)_mi_purge_n_backed() - (int64_t)_mi_chunk_purgeable());
}
