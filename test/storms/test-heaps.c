// Proves: threads use heaps that come and go, free and move each other's blocks, collect, end, and fork at any moment: each block keeps
// its contents and its heap, a visit of a heap shows its blocks and no others, and heaps are whole, also in the children, which go on
// with all of this; at the end the memory has gone back.
#include <sys/wait.h>

#include "base/mode.h"
#include "heap_places.h"

enum { n_workers = 4, child_seconds = 60 };

static atomic_size_t n_forks, n_heaps, n_visits;

// ---- steps ----------------------------------------------------------------------------------------------------------

// A new block, or one that moves to the heap.
static void get_into(worker_t* w, slot_t* s, const place_t* at, bool is_default) {
  size_t old = (s->p == NULL ? 0 : (size_t)((storm_block_t*)s->p)->size), alignment = (size_t)1 << pick(w, 14);
  size_t size = sizeof(storm_block_t) + storm_size(&w->rng);
  void*  p;
  switch (is_default ? 0 : pick(w, 8)) {
    case 0:
      slot_put(s);
      p = (is_default ? mi_malloc(size) : mi_heap_malloc(at->heap, size));
      break;
    case 1:
      slot_put(s);
      p = mi_heap_zalloc(at->heap, size);
      CHECK(p != NULL && is_zero(p, 0, size));
      break;
    case 2:
      slot_put(s);
      p = mi_heap_malloc_aligned(at->heap, size, alignment);
      CHECK_FOR(is_aligned(p, alignment), "%p+%zu at %zu", p, size, alignment);
      break;
    default:
      if (size < old) size = old; // what was written is still there
      p = s->p = (uint8_t*)mi_heap_realloc(at->heap, s->p, size);
      if (p != NULL && old > 0) slot_check(s);
  }
  slot_set(w, s, at, p, size);
}

static void step_get(worker_t* w) {
  bool     is_default = (pick(w, 4) == 0);
  place_t* at = (is_default ? place_use_default(w) : place_use(pick(w, n_places)));
  slot_t*  s = &slots[pick(w, n_slots)];
  if (at == NULL) return;
  if (slot_use(s, false)) {
    get_into(w, s, at, is_default);
    slot_leave(s);
  }
  place_leave(at);
}

static void step_put(worker_t* w) {
  slot_t* s = &slots[pick(w, n_slots)];
  if (!slot_use(s, false)) return;
  slot_put(s);
  slot_leave(s);
}

static void step_use(worker_t* w) {
  size_t   i = pick(w, n_places);
  place_t* at = place_use(i);
  if (at == NULL) return;
  if (pick(w, 2) == 0) {
    mi_heap_set_default(at->heap);
    CHECK(mi_heap_get_default() == at->heap);
    w->place = i;
    w->life = at->life;
  }
  else mi_heap_collect(at->heap, pick(w, 2) == 0);
  place_leave(at);
}

// ---- whole heaps ------------------------------------------------------------------------------------------------------

typedef struct view_s {
  slot_t* slots[n_slots]; // the blocks of a heap; locked
  size_t  n_seen[n_slots], n, n_others;
} view_t;

static bool view_block(const mi_heap_t* heap, const mi_heap_area_t* area, void* block, size_t size, void* arg) {
  view_t* v = (view_t*)arg;
  size_t  i = 0; // an aligned block may begin behind the start
  while (i < v->n && (v->slots[i]->p < (uint8_t*)block || v->slots[i]->p >= (uint8_t*)block + size)) i++;
  (void)heap, (void)area;
  if (block != NULL && i < v->n) v->n_seen[i]++;
  else if (block != NULL) v->n_others++;
  return true;
}

// Others have blocks of the main heap.  In a child blocks of lost slots are there, too, and what a lost thread had
// ready counts as in use (heap/fork.c, F2).
static void heap_visit(place_t* at, bool is_ending) {
  view_t v = {.n = 0};
  for (size_t i = 0; i < n_slots; i++) {
    if (!slot_use(&slots[i], true)) continue;
    if (slot_is_of(&slots[i], at)) v.slots[v.n++] = &slots[i];
    else slot_leave(&slots[i]);
  }
  CHECK(mi_heap_visit_blocks(at->heap, true, &view_block, &v));
  CHECK(mi_heap_check(at->heap));
  if (!is_child && at != &places[main_place]) CHECK_EQ(v.n_others, 0);
  for (size_t i = 0; i < v.n; i++) {
    CHECK_FOR(v.n_seen[i] == 1, "%p of place %zu seen %zu times", (void*)v.slots[i]->p, v.slots[i]->place, v.n_seen[i]);
    CHECK(mi_heap_of(v.slots[i]->p) == at->heap);
    slot_check(v.slots[i]);
    if (is_ending) v.slots[i]->p = NULL;
    slot_leave(v.slots[i]);
  }
  atomic_fetch_add(&n_visits, 1);
}

static void heap_end(place_t* at, bool is_destroyed) {
  if (is_destroyed) {
    heap_visit(at, true);
    mi_heap_destroy(at->heap);
  }
  else mi_heap_delete(at->heap);
  at->heap = NULL;
  at->life++;
}

static void step_heap(worker_t* w) {
  place_t* at = &places[1 + pick(w, n_places - 1)];
  if (pthread_rwlock_trywrlock(&at->lock) != 0) return;
  if (at->heap != NULL && pick(w, 3) == 0) heap_visit(at, false);
  else if (at->heap != NULL) heap_end(at, pick(w, 2) == 0);
  else {
    at->heap = mi_heap_new();
    CHECK(at->heap != NULL);
    atomic_fetch_add(&n_heaps, 1);
  }
  place_leave(at);
}

// While no other thread runs.
static void visit_all(void) {
  for (size_t i = 0; i < n_places; i++) {
    place_t* at = place_use(i);
    if (at == NULL) continue;
    heap_visit(at, false);
    place_leave(at);
  }
  CHECK(mi_heap_check(NULL));
}

static void end_all(void) {
  for (size_t i = main_place + 1; i < n_places; i++) {
    if (pthread_rwlock_trywrlock(&places[i].lock) != 0) continue;
    if (places[i].heap != NULL) heap_end(&places[i], i % 2 == 0);
    place_leave(&places[i]);
  }
  for (size_t i = 0; i < n_slots; i++) {
    if (!slot_use(&slots[i], true)) continue;
    slot_put(&slots[i]);
    slot_leave(&slots[i]);
  }
  mi_collect(true);
  CHECK(mi_heap_check(NULL));
}

// ---- threads and forks ------------------------------------------------------------------------------------------------

static void step_fork(worker_t* w);

static void step(worker_t* w) {
  size_t kind = pick(w, 1000);
  if (kind < 550) step_get(w);
  else if (kind < 960) step_put(w);
  else if (kind < 980) step_heap(w);
  else if (kind < 996) step_use(w);
  else if (kind < 998) mi_collect(pick(w, 2) == 0);
  else step_fork(w);
}

static void* work(void* arg) {
  worker_t* w = (worker_t*)arg;
  for (size_t i = 0; i < w->n_steps; i++) step(w);
  return NULL;
}

static void begin(worker_t* w, rng_t* rng, size_t n_steps) {
  *w = (worker_t){.rng = rng_make(rng_next(rng)), .n_steps = rng_below(rng, n_steps), .place = main_place};
  CHECK_EQ(pthread_create(&w->thread, NULL, &work, w), 0);
}

static void child(worker_t* w) {
  worker_t other;
  signal(SIGALRM, SIG_DFL);
  alarm(child_seconds);
  is_child = true;
  check_n_failed = 0;
  slots_lose();
  visit_all();
  for (size_t i = 0; i < 300; i++) step(w);
  visit_all();
  mi_heap_set_default(mi_heap_main()); // the C library takes what a thread needs from it
  w->place = main_place;
  w->life = 0;
  if (test_can_thread_in_child() && !TEST_SANITIZED) {
    begin(&other, &w->rng, 300);
    for (size_t i = 0; i < 100; i++) step_get(w);
    pthread_join(other.thread, NULL);
    visit_all();
  }
  end_all();
  _exit(check_n_failed != 0);
}

static void step_fork(worker_t* w) {
  if (is_child || TEST_TSAN) return;
  int   status = -1;
  pid_t pid = fork();
  if (pid == 0) child(w);
  if (pid > 0) waitpid(pid, &status, 0);
  CHECK_FOR(status == 0, "fork: status %x", (unsigned)status);
  atomic_fetch_add(&n_forks, 1);
}

// Threads end and begin beside others; then the caller runs alone.
static void turn(worker_t* own) {
  worker_t workers[n_workers];
  for (size_t i = 0; i < 4 * n_workers; i++) {
    if (i >= n_workers) pthread_join(workers[i % n_workers].thread, NULL);
    begin(&workers[i % n_workers], &own->rng, 2000);
  }
  for (size_t i = 0; i < n_workers; i++) pthread_join(workers[i].thread, NULL);
  visit_all();
  step_fork(own);
}

int main(int argc, char** argv) {
  worker_t own = {.rng = rng_make(test_seed(argc, argv)), .place = main_place};
  if (TEST_TSAN) test_skip("forks", "ThreadSanitizer cannot follow threads into a child");
  watchdog(200);
  for (size_t i = 0; i < n_places; i++) pthread_rwlock_init(&places[i].lock, NULL);
  for (size_t i = 0; i < n_slots; i++) pthread_mutex_init(&slots[i].lock, NULL);
  places[main_place].heap = mi_heap_main();
  storm_memory_t memory = storm_memory();
  for (size_t i = 0; i < (TEST_SANITIZED ? 2 : 4 * test_scale()); i++) {
    turn(&own);
    storm_look(&memory);
  }
  end_all();
  printf("%zu forks, %zu heaps, %zu visits\n", n_forks, n_heaps, n_visits);
  storm_check(&memory, 64 * MiB, 8 * MiB, 60 + (MI_HARDENED ? 4000 : 0));
  return check_result();
}
