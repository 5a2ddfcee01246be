// What is in use, and at the end of a program: what it has not freed.  Layer: api.
#include <string.h>

#include "../heap/heap_stats.h"
#include "../heap/idle.h"
#include "../heap/view.h"
#include "../heap/walk.h"
#include "../support/format.h"
#include "line.h"

typedef struct leaks_s {
  mi_line_t line;
  bool      has_heaps; // more than the main heap
  size_t    n_blocks, n_bytes;
} leaks_t;

// What the program has of a heap's blocks.
static void leaks_count(mi_heap_stats_t* found, const mi_heap_t* heap) {
  mi_walk_t walk = {heap, NULL, 0, 0, false, 0};
  mi_view_t view;
  memset(found, 0, sizeof(*found));
  while (_mi_view_next(&walk, &view)) {
    if (view.has_gaps) {
      for (size_t i = 0; i < view.n_blocks; i++) {
        if (_mi_view_is_live(&view, i))
          found->classes[_mi_size_class_of(_mi_view_block_size(&view, i))].n_blocks_used++;
      }
    }
    else if (view.cls != MI_CLASS_NONE) {
      found->classes[view.cls].n_blocks_used += view.n_live;
    }
    else {
      found->n_large += view.n_live;
      found->n_large_bytes += view.n_live * view.block_size;
    }
  }
}

static void leaks_print_row(leaks_t* leaks, const char* label, size_t n, size_t size, size_t bytes) {
  char text[24] = "";
  if (n == 0) return;
  if (size > 0) _mi_format(text, sizeof(text), "%zu", size);
  _mi_line_add(&leaks->line, "%10s:%12zu%12s%16zu\n", label, n, text, bytes);
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

static bool leaks_is_main(mi_heap_t* heap, void* arg) {
  (void)arg;
  return heap == &_mi_heap_main;
}

// False at the end of the process, if the thread may have been interrupted under a lock.
static bool leaks_can_look(void) {
  if (!_mi_idle_look_begin()) return false;
  _mi_idle_look_end();
  return true;
}

void mi_leaks_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  leaks_t leaks;
  _mi_line_begin(&leaks.line, out, arg);
  if (!leaks_can_look()) {
    _mi_line_unknown(&leaks.line, "not freed");
    return;
  }
  leaks.has_heaps = !_mi_heap_visit(NULL, &leaks_is_main, NULL);
  leaks.n_blocks = leaks.n_bytes = 0;
  _mi_line_add(&leaks.line, "%10s:%12s%12s%16s\n", "not freed", "blocks", "size", "bytes");
  _mi_heap_visit(NULL, &leaks_print_heap, &leaks);
  _mi_line_add(&leaks.line, "%10s:%12zu%12s%16zu\n", "total", leaks.n_blocks, "", leaks.n_bytes);
}
