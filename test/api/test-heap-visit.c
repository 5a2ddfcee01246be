// Proves: a visit shows each live block of a heap once, and nothing else: not what was freed, wherever it waits (in a bin,
// on its page, on the way back from another thread), nor what was never handed out; areas add up; visits can be ended, and
// survive a visitor that breaks the rules; blocks of no thread; pages that data should move away from.
#include "../check.h"
#include "../tags.h"
#include <mimalloc-stats.h>
#include <mimalloc.h>
#include <pthread.h>
#include "../modes/support.h"

// ---- a model: which blocks there are --------------------------------------------------------------------------------

enum { n_max = 60000, n_sizes = 12 };
static const size_t sizes[n_sizes] = {1, 8, 24, 100, 500, 1024, 3000, 8000, 20000, 60000, 300000, 700000};

typedef struct live_s {
  void*  block;
  size_t size;
  size_t n_seen;
} live_t;

static live_t model[n_max];
static size_t n_live;

static int compare_live(const void* a, const void* b) {
  uintptr_t x = (uintptr_t)((const live_t*)a)->block, y = (uintptr_t)((const live_t*)b)->block;
  return x < y ? -1 : x > y;
}

static live_t* find_live(const void* block) {
  live_t key = {hidden_pointer(block), 0, 0};
  return (live_t*)bsearch(&key, model, n_live, sizeof(model[0]), &compare_live);
}

static void model_add(void* block, size_t size) {
  CHECK(block != NULL && n_live < n_max);
  model[n_live].block = block;
  model[n_live].size = size;
  model[n_live++].n_seen = 0;
}

static void* model_take(size_t i) {
  void* block = model[i].block;
  model[i] = model[--n_live];
  return block;
}

// ---- a visit --------------------------------------------------------------------------------------------------------

typedef struct visit_s {
  const mi_heap_t* heap;
  bool             may_have_others; // blocks that are not in the model: libc's
  size_t           n_areas, n_blocks, n_unknown, n_in_area;
  mi_heap_area_t   area;
} visit_t;

static void end_area(visit_t* v) {
  if (v->n_areas > 0) CHECK_FOR(v->area.used == v->n_in_area, "%zu used, %zu visited", v->area.used, v->n_in_area);
  v->n_in_area = 0;
}

static bool on_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  visit_t* v = (visit_t*)arg;
  CHECK(heap == v->heap);
  CHECK(block_size == area->block_size && block_size <= area->full_block_size);
  if (block == NULL) {
    end_area(v);
    v->n_areas++;
    v->area = *area;
    CHECK(area->committed <= area->reserved && area->used * area->full_block_size <= area->committed);
    CHECK(mi_heap_contains(v->heap, area->blocks));
    return true;
  }
  CHECK(memcmp(area, &v->area, sizeof(*area)) == 0);
  size_t offset = address_of(block) - address_of(area->blocks);
  CHECK(offset % area->full_block_size == 0 && offset < area->reserved);
  v->n_blocks++;
  v->n_in_area++;
  live_t* live = find_live(block);
  if (live == NULL) {
    v->n_unknown++;
    return true;
  }
  live->n_seen++;
  CHECK_FOR(live->size <= block_size && mi_usable_size(block) >= live->size, "size %zu, block %zu", live->size,
            block_size);
  return true;
}

static void visit_and_compare(mi_heap_t* heap, bool may_have_others, const char* when) {
  visit_t v;
  memset(&v, 0, sizeof(v));
  v.heap = heap;
  qsort(model, n_live, sizeof(model[0]), &compare_live);
  for (size_t i = 0; i < n_live; i++) model[i].n_seen = 0;
  CHECK(mi_heap_visit_blocks(heap, true, &on_block, &v));
  end_area(&v);
  size_t n_missed = 0, n_twice = 0;
  for (size_t i = 0; i < n_live; i++) {
    n_missed += (model[i].n_seen == 0);
    n_twice += (model[i].n_seen > 1);
  }
  CHECK_FOR(n_missed == 0 && n_twice == 0, "%s: %zu of %zu missed, %zu twice", when, n_missed, n_live, n_twice);
  if (may_have_others) CHECK_FOR(v.n_unknown < 40, "%s: %zu others", when, v.n_unknown);
  else CHECK_FOR(v.n_unknown == 0, "%s: %zu that are not live", when, v.n_unknown);
  CHECK_FOR(mi_heap_check(heap), "%s", when);
}

// ---- one thread -----------------------------------------------------------------------------------------------------

static void* allocate(rng_t* r, mi_heap_t* heap, size_t size) {
  if (rng_below(r, 20) == 0) return mi_heap_malloc_aligned(heap, size, (size_t)32 << rng_below(r, 6));
  if (rng_below(r, 200) == 0) return mi_heap_malloc_aligned_at(heap, size, 4096, 24);
  return mi_heap_malloc(heap, size);
}

static void check_random(rng_t* r, mi_heap_t* heap, bool may_have_others) {
  for (int round = 0; round < 6; round++) {
    bool grow = (round % 2 == 0);
    for (size_t i = 0; i < 6000; i++) {
      if (rng_below(r, 10) < (grow ? 7u : 2u) || n_live == 0) {
        size_t size = sizes[rng_below(r, rng_below(r, 50) == 0 ? n_sizes : n_sizes - 4)];
        model_add(allocate(r, heap, size), size);
      }
      else {
        mi_free(model_take(rng_below(r, n_live)));
      }
    }
    visit_and_compare(heap, may_have_others, "random");
  }
  mi_heap_collect(heap, false);
  visit_and_compare(heap, may_have_others, "after mi_heap_collect");
  while (n_live > 0) mi_free(model_take(n_live - 1));
  visit_and_compare(heap, may_have_others, "empty");
}

// Of most pages only a few blocks were ever made: pages begin with another block each.
static void check_unmade(mi_heap_t* heap) {
  enum { n_classes = 40 };
  for (size_t i = 0; i < n_classes; i++) model_add(mi_heap_malloc(heap, 16 * (i + 1)), 16 * (i + 1));
  visit_and_compare(heap, false, "one of each");
  while (n_live > 0) mi_free(model_take(n_live - 1));
  visit_and_compare(heap, false, "none of each");
}

// ---- several threads ------------------------------------------------------------------------------------------------

typedef struct task_s {
  mi_heap_t*        heap;
  size_t            from, to; // of the model
  pthread_barrier_t barrier;
} task_t;

static void* free_some(void* arg) {
  task_t* t = (task_t*)arg;
  for (size_t i = t->from; i < t->to; i += 2) {
    mi_free(model[i].block);
    model[i].block = NULL;
  }
  return NULL;
}

// ... and stays, with what it has in bins and outbox.
static void* free_and_stay(void* arg) {
  task_t* t = (task_t*)arg;
  void*   mine[100];
  for (size_t i = 0; i < COUNT_OF(mine); i++) mine[i] = mi_heap_malloc(t->heap, 100);
  free_some(arg);
  for (size_t i = 0; i < COUNT_OF(mine); i++) mi_free(mine[i]);
  pthread_barrier_wait(&t->barrier);
  pthread_barrier_wait(&t->barrier);
  return NULL;
}

static void* allocate_some(void* arg) {
  task_t* t = (task_t*)arg;
  rng_t   r = rng_make(3);
  for (size_t i = t->from; i < t->to; i++) {
    model[i].size = sizes[i % (n_sizes - 3)];
    model[i].block = allocate(&r, t->heap, model[i].size);
  }
  n_live = t->to;
  return NULL;
}

static void drop_freed(void) {
  size_t n = 0;
  for (size_t i = 0; i < n_live; i++) {
    if (model[i].block != NULL) model[n++] = model[i];
  }
  n_live = n;
}

static void run(void* (*body)(void*), task_t* t) {
  pthread_t thread;
  CHECK_EQ(pthread_create(&thread, NULL, body, t), 0);
  pthread_join(thread, NULL);
}

static void free_all_of_model(void) {
  while (n_live > 0) mi_free(model_take(n_live - 1));
}

static void check_threads(mi_heap_t* heap, bool may_have_others) {
  task_t    t;
  pthread_t thread;
  t.heap = heap;
  pthread_barrier_init(&t.barrier, NULL, 2);
  for (size_t i = 0; i < 10000; i++) model_add(mi_heap_malloc(heap, sizes[i % 8]), sizes[i % 8]);
  t.from = 0;
  t.to = n_live;
  pthread_create(&thread, NULL, &free_and_stay, &t); // on OWNED pages, on PARKED ones, in an outbox
  pthread_barrier_wait(&t.barrier);
  drop_freed();
  visit_and_compare(heap, may_have_others, "freed by another thread");
  for (size_t i = 0; i < 1000; i++) model_add(mi_heap_malloc(heap, sizes[i % 8]), sizes[i % 8]);
  visit_and_compare(heap, may_have_others, "used again");
  pthread_barrier_wait(&t.barrier);
  pthread_join(thread, NULL);
  visit_and_compare(heap, may_have_others, "that thread is gone");
  t.from = n_live;
  t.to = n_live + 4000;
  run(&allocate_some, &t); // SHARED and PARKED pages
  visit_and_compare(heap, may_have_others, "of a thread that is gone");
  t.from = 0;
  t.to = n_live;
  run(&free_some, &t);
  drop_freed();
  visit_and_compare(heap, may_have_others, "freed and gone");
  free_all_of_model();
  visit_and_compare(heap, may_have_others, "all freed");
  pthread_barrier_destroy(&t.barrier);
}

// ---- the shape of a visit -------------------------------------------------------------------------------------------

typedef struct count_s {
  size_t n_calls, n_areas, n_blocks, stop_after;
  void*  last;
  int    tag;
} count_t;

static bool count(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  count_t* c = (count_t*)arg;
  (void)heap;
  (void)block_size;
  c->n_calls++;
  if (block == NULL) c->n_areas++;
  else c->n_blocks++;
  c->last = block;
#if MI_API_LEVEL < 3
  c->tag = area->heap_tag;
#else
  (void)area;
#endif
  return c->n_calls != c->stop_after;
}

static bool is_it(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)heap;
  (void)area;
  (void)block_size;
  return block != arg;
}

static bool sees(mi_heap_t* heap, void* block) {
  return !mi_heap_visit_blocks(heap, true, &is_it, block);
}

static void check_shape(void) {
  mi_heap_t* heap = mi_heap_new_ex(42, true, 0);
  count_t    c;
  void*      p[10];
  memset(&c, 0, sizeof(c));
  CHECK(mi_heap_visit_blocks(heap, true, &count, &c));
  CHECK_EQ(c.n_calls, 0);
  for (size_t i = 0; i < COUNT_OF(p); i++) p[i] = mi_heap_malloc(heap, 100);
  void* large = mi_heap_malloc(heap, 3 * MiB);
  mi_free(p[2]);
  mi_free(p[5]);
  CHECK(mi_heap_visit_blocks(heap, true, &count, &c));
  CHECK(c.n_areas == 2 && c.n_blocks == 9);
#if MI_API_LEVEL < 3
  CHECK_EQ(c.tag, 42);
#endif
  memset(&c, 0, sizeof(c));
  CHECK(mi_heap_visit_blocks(heap, false, &count, &c));
  CHECK(c.n_areas == 2 && c.n_blocks == 0);
  for (size_t stop = 1; stop <= 11; stop++) {
    memset(&c, 0, sizeof(c));
    c.stop_after = stop;
    CHECK(!mi_heap_visit_blocks(heap, true, &count, &c));
    CHECK_EQ(c.n_calls, stop);
  }
  CHECK(!mi_heap_visit_blocks(heap, true, NULL, NULL));
  memset(&c, 0, sizeof(c));
  void* in_main = mi_malloc(5000);
  CHECK(mi_heap_visit_blocks(NULL, true, &count, &c)); // NULL: the main heap
  CHECK(c.n_blocks >= 1 && c.n_blocks < 50);
  CHECK(sees(NULL, in_main));
  mi_free(in_main);
  CHECK(!sees(NULL, in_main));
  void* kept = mi_malloc(1 * MiB);
  CHECK(sees(NULL, kept));
  mi_free(kept); // the thread may keep it for its next request
  CHECK(!sees(NULL, kept));
  CHECK(sees(heap, large) && !sees(NULL, large));
  mi_free(large);
  CHECK(!sees(heap, large));
  memset(&c, 0, sizeof(c));
  CHECK(mi_heap_visit_blocks(heap, true, &count, &c));
  CHECK(c.n_areas == 1 && c.n_blocks == 8);
  mi_heap_destroy(heap);
}

// ---- a visitor that breaks the rules ----------------------------------------------------------------------------------

static bool free_visited(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  (void)area;
  (void)block_size;
  ++*(size_t*)arg;
  if (block != NULL) mi_free(block);
  mi_free(mi_heap_malloc((mi_heap_t*)hidden_pointer(heap), 100));
  mi_free(mi_malloc(1 * MiB));
  return true;
}

static void check_bad_visitor(void) {
  mi_heap_t* heap = mi_heap_new();
  size_t     n = 0;
  for (size_t i = 0; i < 5000; i++) (void)!mi_heap_malloc(heap, sizes[i % 8]);
  CHECK(mi_heap_visit_blocks(heap, true, &free_visited, &n));
  CHECK(n >= 5000);
  CHECK(mi_heap_check(heap));
  mi_heap_destroy(heap);
}

// ---- blocks of no thread --------------------------------------------------------------------------------------------

static int last_error;

static void on_error(int err, void* arg) {
  (void)arg;
  last_error = err;
}

enum { n_left = 2000 }; // in full pages, and in one with room

static void* leave_blocks(void* arg) {
  for (size_t i = 0; i < n_left; i++) (void)!mi_heap_malloc((mi_heap_t*)arg, 100);
  return NULL;
}

static size_t count_abandoned(mi_heap_t* heap) {
  count_t c;
  memset(&c, 0, sizeof(c));
  CHECK(mi_heap_visit_abandoned_blocks(heap, true, &count, &c));
  return c.n_blocks;
}

static size_t count_tagged(int tag) {
  count_t c;
  memset(&c, 0, sizeof(c));
  CHECK(mi_abandoned_visit_blocks(mi_subproc_main(), tag, true, &count, &c));
  return c.n_blocks;
}

static void check_abandoned(void) {
  mi_heap_t* heap = mi_heap_new_ex(5, true, 0);
  mi_heap_t* other = mi_heap_new_ex(6, true, 0);
  pthread_t  thread;
  count_t    c;
  for (size_t i = 0; i < 100; i++) (void)!mi_heap_malloc(heap, 100);
  CHECK_EQ(count_abandoned(heap), 0);
  for (size_t i = 0; i < 2; i++) {
    pthread_create(&thread, NULL, &leave_blocks, i == 0 ? heap : other);
    pthread_join(thread, NULL);
  }
  CHECK_EQ(count_abandoned(heap), n_left);
  CHECK_EQ(count_abandoned(other), n_left);
  memset(&c, 0, sizeof(c));
  CHECK(!mi_heap_visit_abandoned_blocks(heap, true, NULL, NULL));
  c.stop_after = 7;
  CHECK(!mi_heap_visit_abandoned_blocks(heap, true, &count, &c));

  mi_register_error(&on_error, NULL);
  mi_option_set(mi_option_visit_abandoned, 0);
  CHECK(!mi_abandoned_visit_blocks(mi_subproc_main(), -1, true, &count, &c));
  CHECK_EQ(last_error, EFAULT);
  mi_register_error(NULL, NULL);
  mi_option_set(mi_option_visit_abandoned, 1);
  CHECK_EQ(count_tagged(5), n_left);
  CHECK_EQ(count_tagged(6), n_left);
  CHECK_EQ(count_tagged(7), 0);
  CHECK(count_tagged(-1) >= 2 * n_left);
  memset(&c, 0, sizeof(c));
  c.stop_after = 3;
  CHECK(!mi_abandoned_visit_blocks(mi_subproc_main(), 5, true, &count, &c));
  mi_heap_destroy(heap);
  mi_heap_destroy(other);
}

// ---- moving data together -------------------------------------------------------------------------------------------

enum { n_objects = 100000, object_size = 120, keep_every = 16 };
static void*  objects[n_objects];
static size_t n_areas_of_objects;

// An area of one block is no page of objects, but one of those in a gap page.
static bool count_areas(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t block_size, void* arg) {
  bool is_page = (area->used > 0 && area->reserved > area->full_block_size);
  (void)heap;
  (void)block;
  (void)arg;
  n_areas_of_objects += (is_page && block_size >= object_size && block_size < 2 * object_size);
  return true;
}

static size_t page_count(mi_heap_t* heap) {
  n_areas_of_objects = 0;
  CHECK(mi_heap_visit_blocks(heap, false, &count_areas, NULL));
  return n_areas_of_objects;
}

// One object in 16 stays; then those in pages that are hardly used move.  They come to lie in few pages.
static void check_under_utilized(bool in_main) {
  mi_heap_t* heap = (in_main ? mi_heap_main() : mi_heap_new());
  size_t     n_moved = 0, n_kept = 0;
  CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, NULL, 80));
  CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, &n_moved, 80));
  void* lonely = mi_heap_malloc(heap, 2 * object_size);
  CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, lonely, 80)); // its page is where the next one comes from
  mi_free(lonely);
  for (size_t i = 0; i < n_objects; i++) {
    objects[i] = mi_heap_malloc(heap, object_size);
    pattern_fill(objects[i], 0, object_size, i);
  }
  size_t n_full = page_count(heap);
  CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, objects[0], 80)); // it is full
  for (size_t i = 0; i < n_objects; i++) {
    if (i % keep_every != 0) mi_free(objects[i]);
  }
  CHECK(page_count(heap) == n_full);
  CHECK(!mi_unsafe_heap_page_is_under_utilized(heap, objects[n_objects / 2 / keep_every * keep_every], 1));
  mi_heap_t* other = mi_heap_new();
  CHECK(!mi_unsafe_heap_page_is_under_utilized(other, objects[0], 80));
  mi_heap_delete(other);
  for (size_t i = 0; i < n_objects; i += keep_every) {
    if (!mi_unsafe_heap_page_is_under_utilized(i % 3 == 0 ? NULL : heap, objects[i], 80)) continue;
    void* q = mi_heap_malloc(heap, object_size);
    memcpy(q, objects[i], object_size);
    mi_free(objects[i]);
    objects[i] = q;
    n_moved++;
  }
  for (size_t i = 0; i < n_objects; i += keep_every, n_kept++) {
    CHECK_FOR(pattern_check(objects[i], object_size, i) == object_size, "object %zu", i);
  }
  size_t n_after = page_count(heap), n_least = n_full / keep_every + 1;
  printf("%zu pages, %zu objects moved, then %zu pages; %zu would do\n", n_full, n_moved, n_after, n_least);
  CHECK_FOR(n_after <= 2 * n_least, "%zu pages, %zu would do", n_after, n_least);
  // What lies in gap pages of the main heap stays: free memory there serves all classes.
  CHECK(n_moved >= n_kept / (in_main ? 8 : 2) && n_moved <= n_kept);
  for (size_t i = 0; i < n_objects; i += keep_every) mi_free(objects[i]);
  if (!in_main) mi_heap_destroy(heap);
}

int main(int argc, char** argv) {
  watchdog(120);
  rng_t r = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_purge_delay, -1);
  mi_heap_t* heap = mi_heap_new();
  check_unmade(heap);
  check_random(&r, heap, false);
  check_threads(heap, false);
  mi_heap_destroy(heap);
  check_random(&r, mi_heap_main(), true);
  check_threads(mi_heap_main(), true);
  // The blocks of a heap that is deleted are the main heap's.
  heap = mi_heap_new();
  for (size_t i = 0; i < 3000; i++) model_add(mi_heap_malloc(heap, sizes[i % n_sizes]), sizes[i % n_sizes]);
  mi_heap_delete(heap);
  visit_and_compare(mi_heap_main(), true, "deleted");
  free_all_of_model();
  visit_and_compare(mi_heap_main(), true, "deleted and freed");
  check_shape();
  check_bad_visitor();
  check_abandoned();
  check_under_utilized(false);
  check_under_utilized(true);
  return check_result();
}
