// What is in use, and at the end of a program: what it has not freed.  Layer: api.
#include <string.h>

#include "../heap/view.h"
#include "../heap/heap_stats.h"
#include "../heap/walk.h"
#include "line.h"

typedef struct leaks_s {
  mi_line_t line;
  bool      has_heaps; // more than the main heap
  size_t    n_blocks, n_bytes;
} leaks_t;

// What the program has of a heap's blocks.
static void leaks_count(mi_heap_stats_t* found, const mi_heap_t* heap) {
  mi_walk_t walk = {heap, NULL, 0, 0};
  mi_view_t view;
  memset(found, 0, sizeof(*found));
  while (_mi_view_next(&walk, &view)) {
    if (view.cls != MI_CLASS_NONE) {
      found->classes[view.cls].n_blocks_used += view.n_live;
    }
    else {
      found->n_large += view.n_live;
      found->n_large_bytes += view.n_live * view.block_size;
    }
  }
}

static void leaks_print_row(leaks_t* leaks, const char* label, size_t n, size_t size, size_t bytes) {
  if (n == 0) return;
  _mi_line_add(&leaks->line, "%10s:%12zu", label, n);
  if (size > 0) _mi_line_add(&leaks->line, "%12zu", size);
  else _mi_line_add(&leaks->line, "%12s", "");
  _mi_line_add(&leaks->line, "%16zu", bytes);
  _mi_line_end(&leaks->line);
  leaks->n_blocks += n;
  leaks->n_bytes += bytes;
}

static bool leaks_print_heap(mi_heap_t* heap, void* arg) {
  leaks_t*        leaks = (leaks_t*)arg;
  mi_heap_stats_t found;
  size_t          n = 0;
  leaks_count(&found, heap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) n += found.classes[cls].n_blocks_used;
  if (leaks->has_heaps && n + found.n_large > 0) _mi_line_heap(&leaks->line, heap);
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    size_t n_used = found.classes[cls].n_blocks_used, block_size = _mi_size_class_block(cls);
    leaks_print_row(leaks, "", n_used, block_size, n_used * block_size);
  }
  leaks_print_row(leaks, "large", found.n_large, 0, found.n_large_bytes);
  return true;
}

static bool leaks_count_heap(mi_heap_t* heap, void* arg) {
  (void)heap;
  ++*(size_t*)arg;
  return true;
}

void mi_leaks_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  leaks_t leaks;
  size_t  n_heaps = 0;
  _mi_heap_visit(NULL, &leaks_count_heap, &n_heaps);
  leaks.has_heaps = (n_heaps > 1);
  leaks.n_blocks = leaks.n_bytes = 0;
  _mi_line_begin(&leaks.line, out, arg);
  _mi_line_add(&leaks.line, "%10s:%12s%12s%16s", "not freed", "blocks", "size", "bytes");
  _mi_line_end(&leaks.line);
  _mi_heap_visit(NULL, &leaks_print_heap, &leaks);
  _mi_line_add(&leaks.line, "%10s:%12zu%12s%16zu", "total", leaks.n_blocks, "", leaks.n_bytes);
  _mi_line_end(&leaks.line);
}
