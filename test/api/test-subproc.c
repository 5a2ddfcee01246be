// Proves: the threads of a subprocess have a main heap of their own, blocks may still be freed by any thread, and a
// subprocess ends as the header says: with nothing lost, or with everything freed.
#include "../check.h"
#include <mimalloc-stats.h>
#include "entries.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static bool is_same(mi_subproc_id_t a, mi_subproc_id_t b) {
  return memcmp(&a, &b, sizeof(a)) == 0;
}

static mi_subproc_id_t nobody(void) {
  mi_subproc_id_t id;
  memset(&id, 0, sizeof(id));
  return id;
}

static size_t n_warnings;

static void count_warnings(const char* text, void* arg) {
  (void)arg;
  if (strstr(text, "mimalloc: warning: ") != NULL) n_warnings++;
}

// ---- heaps of a subprocess ------------------------------------------------------------------------------------------

typedef struct visit_s {
  size_t     n, stop_at;
  mi_heap_t* heaps[100];
} visit_t;

static bool see(mi_heap_t* heap, void* arg) {
  visit_t* visit = (visit_t*)arg;
  CHECK(heap != NULL);
  if (visit->n < COUNT_OF(visit->heaps)) visit->heaps[visit->n] = heap;
  visit->n++;
  return visit->n < visit->stop_at;
}

static visit_t visit_heaps(mi_subproc_id_t subproc) {
  visit_t visit;
  memset(&visit, 0, sizeof(visit));
  visit.stop_at = SIZE_MAX;
  CHECK(mi_subproc_visit_heaps(subproc, &see, &visit));
  return visit;
}

static bool was_seen(const visit_t* visit, const mi_heap_t* heap) {
  size_t n_times = 0;
  for (size_t i = 0; i < visit->n && i < COUNT_OF(visit->heaps); i++) n_times += visit->heaps[i] == heap;
  CHECK(n_times <= 1);
  return n_times == 1;
}

static void check_main(void) {
  mi_subproc_id_t main_id = mi_subproc_main();
  CHECK(is_same(main_id, mi_subproc_main()) && is_same(main_id, mi_subproc_current()));
  CHECK(is_same(main_id, nobody()) == (MI_API_LEVEL < 3));
  mi_heap_t* heaps[10];
  for (size_t i = 0; i < COUNT_OF(heaps); i++) heaps[i] = mi_heap_new();
  visit_t visit = visit_heaps(main_id);
  CHECK(was_seen(&visit, mi_heap_main()));
  for (size_t i = 0; i < COUNT_OF(heaps); i++) CHECK(was_seen(&visit, heaps[i]));
  size_t n = visit.n;
  memset(&visit, 0, sizeof(visit));
  visit.stop_at = 3;
  CHECK(!mi_subproc_visit_heaps(main_id, &see, &visit) && visit.n == 3);
  CHECK(!mi_subproc_visit_heaps(main_id, NULL, NULL));
  for (size_t i = 0; i < COUNT_OF(heaps); i++) mi_heap_destroy(heaps[i]);
  visit = visit_heaps(main_id);
  CHECK_EQ(visit.n, n - COUNT_OF(heaps));
  mi_subproc_delete(main_id); // all of them without effect
  mi_subproc_destroy(main_id);
  mi_subproc_delete(nobody());
  mi_subproc_destroy(nobody());
  CHECK(is_same(main_id, mi_subproc_current()));
  void* p = mi_malloc(100);
  CHECK(mi_heap_of(p) == mi_heap_main());
  mi_free(p);
}

// ---- threads of a subprocess ----------------------------------------------------------------------------------------

enum { n_blocks = 2000 };

typedef struct member_s {
  mi_subproc_id_t subproc;
  mi_heap_t*      main_heap; // of the main subprocess, then of the thread
  mi_heap_t*      heap;      // made by the thread, if it is to make one
  bool            makes_heap, is_given;
  uint8_t*        blocks[n_blocks];
  void*           given;
} member_t;

static size_t size_of_block(size_t i) {
  return i % 500 == 499 ? 700 * KiB : 8 + i % 3000;
}

static void check_membership(const member_t* member) {
  CHECK(is_same(mi_subproc_current(), member->subproc));
  CHECK(mi_heap_main() != NULL && mi_heap_main() != member->main_heap);
  CHECK(mi_heap_get_default() == mi_heap_main() && mi_heap_get_backing() == mi_heap_main());
}

static void* be_member(void* arg) {
  member_t* member = (member_t*)arg;
  mi_subproc_add_current_thread(member->subproc);
  check_membership(member);
  for (size_t i = 0; i < n_blocks; i++) {
    member->blocks[i] = (uint8_t*)mi_malloc(size_of_block(i));
    CHECK(member->blocks[i] != NULL && mi_heap_of(member->blocks[i]) == mi_heap_main());
    pattern_fill(member->blocks[i], 0, size_of_block(i), i);
  }
  if (member->makes_heap) {
    member->heap = mi_heap_new();
    void* p = mi_heap_malloc(member->heap, 100);
    CHECK(mi_heap_of(p) == member->heap && mi_heap_contains(member->heap, p));
  }
  visit_t visit = visit_heaps(member->subproc);
  CHECK_EQ(visit.n, member->makes_heap ? 2 : 1);
  CHECK(was_seen(&visit, mi_heap_main()) && (!member->makes_heap || was_seen(&visit, member->heap)));
  if (member->is_given) mi_free(member->given); // a block of the main subprocess
  member->main_heap = mi_heap_main();
  return NULL;
}

static void run_member(member_t* member) {
  pthread_t thread;
  member->main_heap = mi_heap_main();
  CHECK_EQ(pthread_create(&thread, NULL, &be_member, member), 0);
  pthread_join(thread, NULL);
}

static member_t member;

static void check_delete(void) {
  size_t peak = 0;
  for (size_t round = 0; round < 30; round++) {
    memset(&member, 0, sizeof(member));
    member.subproc = mi_subproc_new();
    CHECK(!is_same(member.subproc, nobody()) && !is_same(member.subproc, mi_subproc_main()));
    member.is_given = true;
    member.given = mi_malloc(1000);
    run_member(&member);
    CHECK(mi_heap_main() != member.main_heap);
    for (size_t i = 0; i < n_blocks; i++) CHECK(mi_heap_of(member.blocks[i]) == member.main_heap);
    mi_subproc_delete(member.subproc); // not while its memory is in use
    for (size_t i = 0; i < n_blocks; i++) {
      CHECK(mi_heap_of(member.blocks[i]) == member.main_heap);
      CHECK(pattern_check(member.blocks[i], size_of_block(i), i) == size_of_block(i));
      mi_free(member.blocks[i]);
    }
    mi_subproc_delete(member.subproc);
    if (round == 3) peak = rss_now();
  }
  CHECK(rss_within("growth over subprocesses that were deleted", minus(rss_now(), peak), 16 * MiB));
}

static void check_destroy(void) {
  size_t peak = 0;
  for (size_t round = 0; round < 60; round++) {
    memset(&member, 0, sizeof(member));
    member.subproc = mi_subproc_new();
    member.makes_heap = true;
    run_member(&member);
    mi_subproc_destroy(member.subproc);
    if (round == 5) peak = rss_now();
  }
  CHECK(rss_within("growth over subprocesses that were destroyed", minus(rss_now(), peak), 16 * MiB));
}

// Two threads of one subprocess, one after the other: the second finds what the first has left.
static void check_two_threads(void) {
  memset(&member, 0, sizeof(member));
  member.subproc = mi_subproc_new();
  run_member(&member);
  mi_heap_t* heap = member.main_heap;
  uint8_t*   p = member.blocks[100];
  run_member(&member);
  CHECK(member.main_heap == heap && mi_heap_of(p) == heap && p != member.blocks[100]);
  CHECK(pattern_check(p, size_of_block(100), 100) == size_of_block(100));
  mi_subproc_destroy(member.subproc);
}

static void* join_twice(void* arg) {
  mi_subproc_id_t* ids = (mi_subproc_id_t*)arg;
  mi_subproc_add_current_thread(ids[0]);
  CHECK(is_same(mi_subproc_current(), ids[0]));
  n_warnings = 0;
  mi_subproc_add_current_thread(ids[1]);
  CHECK_EQ(n_warnings, 1);
  CHECK(is_same(mi_subproc_current(), ids[0]));
  return NULL;
}

static void check_twice(void) {
  pthread_t       thread;
  mi_subproc_id_t ids[2] = {mi_subproc_new(), mi_subproc_new()};
  CHECK(!is_same(ids[0], ids[1]));
  mi_option_enable(mi_option_show_errors);
  mi_register_output(&count_warnings, NULL);
  CHECK_EQ(pthread_create(&thread, NULL, &join_twice, ids), 0);
  pthread_join(thread, NULL);
  mi_register_output(NULL, NULL);
  mi_option_disable(mi_option_show_errors);
  mi_subproc_delete(ids[0]);
  mi_subproc_delete(ids[1]);
}

static pthread_barrier_t barrier;
static mi_heap_t*        given_heap;

static void* stay(void* arg) {
  mi_subproc_add_current_thread(*(mi_subproc_id_t*)arg);
  char* p = mi_strdup("still here");
  pthread_barrier_wait(&barrier); // now another thread tries to end the subprocess
  pthread_barrier_wait(&barrier);
  CHECK(mi_heap_of(p) == mi_heap_main() && strcmp(p, "still here") == 0);
  mi_free(p);
  mi_free(mi_malloc(1000));
  return NULL;
}

// Not while there is a thread in it.
static void check_occupied(void) {
  pthread_t       thread;
  mi_subproc_id_t id = mi_subproc_new();
  pthread_barrier_init(&barrier, NULL, 2);
  CHECK_EQ(pthread_create(&thread, NULL, &stay, &id), 0);
  pthread_barrier_wait(&barrier);
  mi_option_enable(mi_option_show_errors);
  mi_register_output(&count_warnings, NULL);
  n_warnings = 0;
  mi_subproc_delete(id);
  mi_subproc_destroy(id);
  CHECK_EQ(n_warnings, 2);
  mi_register_output(NULL, NULL);
  mi_option_disable(mi_option_show_errors);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&barrier);
  mi_subproc_destroy(id);
}

// A thread whose default heap ends has the main heap of its subprocess, whoever ends it and how.
static void* lose_default(void* arg) {
  mi_subproc_id_t id = *(mi_subproc_id_t*)arg;
  mi_subproc_add_current_thread(id);
  mi_heap_t* main_heap = mi_heap_main();
  for (int i = 0; i < 4; i++) {
    mi_heap_t* heap = mi_heap_new();
    CHECK(mi_heap_set_default(heap) == main_heap);
    if (i == 1) mi_free(mi_malloc(100));
    if (i < 2) mi_heap_destroy(heap);
    else mi_heap_delete(heap);
    CHECK(mi_heap_get_default() == main_heap);
    void *p = mi_malloc(100), *q = mi_malloc(800 * KiB);
    CHECK(mi_heap_of(p) == main_heap && mi_heap_of(q) == main_heap);
    mi_free(p);
    mi_free(q);
  }
  given_heap = mi_heap_new();
  mi_heap_set_default(given_heap);
  pthread_barrier_wait(&barrier); // now another thread ends it
  pthread_barrier_wait(&barrier);
  CHECK(mi_heap_get_default() == main_heap);
  return NULL;
}

static void check_default(void) {
  pthread_t       thread;
  mi_subproc_id_t id = mi_subproc_new();
  pthread_barrier_init(&barrier, NULL, 2);
  CHECK_EQ(pthread_create(&thread, NULL, &lose_default, &id), 0);
  pthread_barrier_wait(&barrier);
  mi_heap_delete(given_heap);
  pthread_barrier_wait(&barrier);
  pthread_join(thread, NULL);
  pthread_barrier_destroy(&barrier);
  mi_subproc_destroy(id);
}

// A thread joins a subprocess before that ends, which then cannot, or not at all; also if heaps are made meanwhile, that get the
// memory of those which are gone.
typedef struct join_s {
  mi_subproc_id_t id;
  atomic_int      step;
  size_t          n_naps;
  bool            has_joined;
} join_t;

static void* make_heaps(void* arg) {
  mi_subproc_add_current_thread(((join_t*)arg)->id);
  for (int i = 0; i < 1000; i++) CHECK(mi_heap_new() != NULL);
  return NULL;
}

static void* join_late(void* arg) {
  join_t* join = (join_t*)arg;
  mi_free(mi_malloc(100));
  atomic_store(&join->step, 1);
  while (atomic_load(&join->step) == 1) {
  }
  for (size_t i = 0; i < join->n_naps; i++) atomic_load(&join->step);
  mi_subproc_add_current_thread(join->id);
  join->has_joined = is_same(mi_subproc_current(), join->id);
  while (atomic_load(&join->step) < 3) sched_yield();
  CHECK(mi_heap_main() != NULL);
  return NULL;
}

static void* come_and_go(void* arg) {
  mi_heap_t* heaps[8];
  while (!atomic_load((atomic_bool*)arg)) {
    for (size_t i = 0; i < COUNT_OF(heaps); i++) heaps[i] = mi_heap_new();
    for (size_t i = 0; i < COUNT_OF(heaps); i++) mi_heap_destroy(heaps[i]);
  }
  return NULL;
}

static atomic_size_t n_refused;

static void count_refusals(const char* text, void* arg) {
  (void)arg;
  if (strstr(text, "cannot end while it has threads") != NULL) atomic_fetch_add(&n_refused, 1);
}

static void check_late_join(rng_t* rng) {
  pthread_t   thread, others;
  atomic_bool must_stop = false;
  mi_option_enable(mi_option_show_errors);
  mi_register_output(&count_refusals, NULL);
  CHECK_EQ(pthread_create(&others, NULL, &come_and_go, &must_stop), 0);
  for (int round = 0; round < 100; round++) {
    join_t join = {mi_subproc_new(), 0, rng_below(rng, 20000), false};
    CHECK_EQ(pthread_create(&thread, NULL, &make_heaps, &join), 0);
    mi_stats_t_decl(stats);
    for (int i = 0; i < 100; i++) {
      CHECK(mi_subproc_stats_get_exclusive(join.id, &stats));
      CHECK(stats.threads.current <= 1);
    }
    pthread_join(thread, NULL);
    CHECK_EQ(pthread_create(&thread, NULL, &join_late, &join), 0);
    while (atomic_load(&join.step) == 0) sched_yield();
    atomic_store(&n_refused, 0);
    atomic_store(&join.step, 2);
    mi_subproc_destroy(join.id);
    atomic_store(&join.step, 3);
    pthread_join(thread, NULL);
    CHECK_EQ(join.has_joined, atomic_load(&n_refused) == 1);
    if (join.has_joined) mi_subproc_destroy(join.id);
  }
  atomic_store(&must_stop, true);
  pthread_join(others, NULL);
  mi_register_output(NULL, NULL);
  mi_option_disable(mi_option_show_errors);
}

int main(int argc, char** argv) {
  rng_t rng = rng_make(test_seed(argc, argv));
  mi_option_set(mi_option_max_warnings, -1); // they are counted here
  check_main();
  check_delete();
  check_destroy();
  check_two_threads();
  check_twice();
  check_occupied();
  check_default();
  check_late_join(&rng);
  return check_result();
}
