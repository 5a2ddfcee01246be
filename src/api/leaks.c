// What is in use, and at the end of a program: what it has not freed.  Layer: api.
#include <string.h>

#include "../heap/view.h"
#include "../heap/walk.h"
#include "api.h"
#include "line.h"

typedef struct leaks_s {
  mi_line_t line;
  bool      has_heaps; // more than the main heap
  size_t    n_blocks, n_bytes;
} leaks_t;

typedef struct leaks_of_heap_s {
  size_t classes[MI_CLASS_COUNT]; // blocks
  size_t n_large, n_large_bytes;
  size_t n_blocks, n_bytes;
} leaks_of_heap_t;

static void leaks_count(leaks_of_heap_t* found, const mi_heap_t* heap) {
  mi_walk_t walk = {heap, NULL, 0, 0};
  mi_view_t view;
  memset(found, 0, sizeof(*found));
  while (_mi_view_next(&walk, &view)) {
    size_t n_bytes = view.n_live * view.block_size;
    if (view.cls == MI_CLASS_NONE) {
      found->n_large += view.n_live;
      found->n_large_bytes += n_bytes;
    }
    else {
      found->classes[view.cls] += view.n_live;
    }
    found->n_blocks += view.n_live;
    found->n_bytes += n_bytes;
  }
}

static void leaks_print_row(mi_line_t* line, const char* label, size_t n, size_t size, size_t bytes) {
  if (n == 0) return;
  _mi_line_add(line, "%10s:%12zu", label, n);
  if (size > 0) _mi_line_add(line, "%12zu", size);
  else _mi_line_add(line, "%12s", "");
  _mi_line_add(line, "%16zu", bytes);
  _mi_line_end(line);
}

static bool leaks_print_heap(mi_heap_t* heap, void* arg) {
  leaks_t*        leaks = (leaks_t*)arg;
  leaks_of_heap_t found;
  leaks_count(&found, heap);
  if (found.n_blocks == 0) return true;
  if (leaks->has_heaps) {
    _mi_line_add(&leaks->line, "%10s: %p%s", "heap", (void*)heap, heap == heap->subproc->main ? " (main)" : "");
    _mi_line_end(&leaks->line);
  }
  for (size_t cls = 0; cls < MI_CLASS_COUNT; cls++) {
    size_t block_size = _mi_size_class_block(cls);
    leaks_print_row(&leaks->line, "", found.classes[cls], block_size, found.classes[cls] * block_size);
  }
  leaks_print_row(&leaks->line, "large", found.n_large, 0, found.n_large_bytes);
  leaks->n_blocks += found.n_blocks;
  leaks->n_bytes += found.n_bytes;
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
