// Fuzzes: heaps that several threads use, that come and go, with the shadow model and with the owner of each block.
//
// H1  One thread at a time works with the model: the one whose turn it is.  So each run of an input does the same.
// H2  In a crowd all threads work at once, each with blocks of its own, and the model learns of it when all are done.
// H3  A block belongs to the heap that it came from until that is deleted; then to the main heap.
#include <pthread.h>

#include "../api/heap-entries.h"
#include "input.h"
#include "model.h"

enum { n_threads = 3, n_heaps = 5, n_crowd = 24, main_heap = 0 };

typedef struct hand_s {
  pthread_t  thread;
  bool       is_alive;
  int        default_heap;
  size_t     n_steps;  // to do in this turn
  bool       is_crowd; // ... or these, all threads at once
  void*      puts[n_crowd];
  size_t     n_puts;
  void*      gets[n_crowd];
  size_t     get_sizes[n_crowd];
  mi_heap_t* get_heap;
  size_t     n_gets;
} hand_t;

typedef struct world_s {
  model_t         model;
  input_t         in;
  mi_heap_t*      heaps[n_heaps]; // NULL: none there; heaps[main_heap] is the main heap
  bool            is_destroyable[n_heaps];
  hand_t          hands[n_threads];
  int             current; // whose turn it is, for on_adopt
  int             asked;   // the heap that an operation names, -1: the default one
  pthread_mutex_t lock;
  pthread_cond_t  changed;
  unsigned        turns; // bits: who has one; 0: the main thread
  unsigned        ends;  // bits: who is to end
} world_t;

static world_t world;

static void world_lock(void) {
  pthread_mutex_lock(&world.lock);
}
static void world_unlock(void) {
  pthread_mutex_unlock(&world.lock);
}

static size_t pick(size_t n) {
  return input_pick(&world.in, n);
}

static uint64_t next_choice(void* source) {
  (void)source;
  return input_next(&world.in);
}

// ---- whose a block is (H3) ------------------------------------------------------------------------------------------

static int heap_of(const void* p) {
  mi_heap_t* heap = mi_heap_of(p);
  for (int i = 0; i < n_heaps; i++) {
    if (heap != NULL && world.heaps[i] == heap) return i;
  }
  return -1;
}

static void check_owner(const block_t* b) {
  int owner = heap_of(b->p);
  MODEL_CHECK(&world.model, owner == b->owner, "%p+%zu belongs to %d, not %d", (void*)b->p, b->size, owner, b->owner);
}

// A plain resize may leave a block in its heap, or move it to the default heap; that of a heap moves it to the heap.
static void adopt(void* source, block_t* b, bool is_moved) {
  int owner = heap_of(b->p), wanted = (world.asked >= 0 ? world.asked : world.hands[world.current].default_heap);
  (void)source;
  bool may_stay = (b->got == NULL && world.asked < 0);
  MODEL_CHECK(&world.model, owner == wanted || (may_stay && owner == b->owner), "%p+%zu belongs to %d, not %d",
              (void*)b->p, b->size, owner, wanted);
  MODEL_CHECK(&world.model, is_moved || owner == b->owner, "%p stays, but goes from %d to %d", (void*)b->p, b->owner,
              owner);
  b->owner = owner;
}

// ---- operations of the thread whose turn it is ------------------------------------------------------------------------

static int pick_heap(void) {
  int index = (int)pick(n_heaps);
  return world.heaps[index] == NULL ? main_heap : index;
}

static void step_get(void) {
  const heap_get_t* g = &all_heap_gets[pick(COUNT_OF(all_heap_gets))];
  model_t*          m = &world.model;
  block_t           b = {0};
  get_t             got = {g->name, NULL, g->flags};
  b.alignment = (g->flags & E_ALIGN) != 0 ? model_alignment(m) : 8;
  b.offset = (g->flags & E_OFFSET) != 0 && model_chance(m, 50) ? pick(300) : 0;
  b.size = (g->flags & E_SMALL) != 0 ? pick(MI_SMALL_SIZE_MAX + 1) : model_size(m);
  if (m->n_live == model_max_blocks || m->n_live_bytes + b.size > m->max_live_bytes) return;
  if (!heap_get_allows(g, b.size, b.alignment, b.offset)) return;
  world.asked = pick_heap();
  b.p = (uint8_t*)g->call(world.heaps[world.asked], b.size, b.alignment, b.offset);
  MODEL_CHECK(m, b.p != NULL, "heap %s(%zu, %zu, %zu)", g->name, b.size, b.alignment, b.offset);
  if (b.p == NULL) return;
  if ((g->flags & E_ALIGN) == 0) b.alignment = b.size <= 8 ? 8 : 16;
  b.key = input_next(&world.in);
  b.is_zeroed = (g->flags & E_ZERO) != 0;
  if (b.is_zeroed) MODEL_CHECK(m, is_zero(b.p, 0, b.size), "heap %s(%zu) at %p", g->name, b.size, (void*)b.p);
  b.got = &got;
  model_adopt(m, &b, 0, true, g->name);
  m->blocks[m->n_live - 1].got = NULL; // no entry of the plain table
}

static void step_resize(void) {
  const heap_resize_t* r = &all_heap_resizes[pick(COUNT_OF(all_heap_resizes))];
  model_t*             m = &world.model;
  bool                 is_zeroing = (r->flags & E_ZERO) != 0;
  if (m->n_live == 0) return;
  size_t  index = pick(m->n_live);
  block_t b = m->blocks[index];
  size_t  size = 1 + model_size(m), old_size = b.size, kept = old_size < size ? old_size : size;
  if ((is_zeroing && !b.is_zeroed) || m->n_live_bytes + size > m->max_live_bytes) return;
  size_t alignment = (r->flags & E_ALIGN) != 0 ? (size_t)16 << pick(10) : 8;
  size_t offset = (r->flags & E_OFFSET) != 0 && model_chance(m, 50) ? pick(300) : 0;
  model_check_block(m, &b);
  world.asked = pick_heap();
  uint8_t* q = (uint8_t*)r->call(world.heaps[world.asked], b.p, size, alignment, offset);
  MODEL_CHECK(m, q != NULL, "heap %s(%zu to %zu, %zu, %zu)", r->name, old_size, size, alignment, offset);
  if (q == NULL) return;
  size_t wrong = pattern_check(q, kept, b.key);
  MODEL_CHECK(m, wrong == kept, "heap %s(%zu to %zu): byte %zu", r->name, old_size, size, wrong);
  if (is_zeroing && size > b.n_dirty) {
    MODEL_CHECK(m, is_zero(q, b.n_dirty, size), "heap %s(%zu to %zu) beyond %zu", r->name, old_size, size, b.n_dirty);
  }
  model_remove(m, index);
  bool is_moved = (q != b.p);
  if ((r->flags & E_ALIGN) != 0) b.alignment = alignment;
  else b.alignment = !is_moved ? 1 : size <= 8 ? 8 : 16;
  b.offset = offset;
  b.p = q;
  b.size = size;
  b.is_zeroed = b.is_zeroed && is_zeroing;
  b.got = NULL;
  model_adopt(m, &b, kept, is_moved, r->name);
}

// Through the functions that name no heap.
static void step_plain(void) {
  world.asked = -1;
  if (pick(3) == 0) model_resize(&world.model);
  else model_get(&world.model);
}

static void step_set_default(void) {
  hand_t*    hand = &world.hands[world.current];
  int        heap = pick_heap();
  mi_heap_t* before = mi_heap_set_default(world.heaps[heap]);
  MODEL_CHECK(&world.model, before == world.heaps[hand->default_heap], "the default heap was %p", (void*)before);
  hand->default_heap = heap;
}

static void step_begin_heap(void) {
  size_t index = 1 + pick(n_heaps - 1);
  if (world.heaps[index] != NULL) return;
  bool is_destroyable = (pick(3) != 0);
  world.is_destroyable[index] = is_destroyable;
  world.heaps[index] = is_destroyable ? mi_heap_new() : mi_heap_new_ex((int)pick(256), false, 0);
  MODEL_CHECK(&world.model, world.heaps[index] != NULL, "heap %zu", index);
}

static void end_heap(int index, bool is_destroyed) {
  model_t* m = &world.model;
  if (index == main_heap || world.heaps[index] == NULL) return;
  mi_heap_t* heap = world.heaps[index];
  for (size_t i = m->n_live; i > 0; i--) {
    block_t* b = &m->blocks[i - 1];
    if (b->owner != index) continue;
    model_check_block(m, b);
    if (is_destroyed && world.is_destroyable[index]) model_remove(m, i - 1);
    else b->owner = main_heap;
  }
  if (is_destroyed) mi_heap_destroy(heap);
  else mi_heap_delete(heap);
  world.heaps[index] = NULL;
  for (size_t i = 0; i < n_threads; i++) {
    if (world.hands[i].default_heap == index) world.hands[i].default_heap = main_heap;
  }
}

static void step_whole(void) {
  switch (pick(8)) {
    case 0: mi_collect(true); break;
    case 1: mi_collect(false); break;
    case 2: mi_heap_collect(world.heaps[pick_heap()], pick(2) == 0); break;
    case 3: MODEL_CHECK(&world.model, mi_heap_check(NULL), "heaps"); break;
    case 4: MODEL_CHECK(&world.model, mi_heap_check(world.heaps[pick_heap()]), "a heap"); break;
    case 5: {
      int heap = pick_heap();
      model_visit(&world.model, world.heaps[heap], heap);
      break;
    }
    default:
      for (size_t i = 0; i < world.model.n_live; i++) check_owner(&world.model.blocks[i]);
  }
}

static void step(void) {
  model_t* m = &world.model;
  size_t   kind = pick(100);
  m->n_ops++;
  if (kind < 30) step_get();
  else if (kind < 45) step_plain();
  else if (kind < 55) step_resize();
  else if (kind < 85) {
    for (size_t n = 1 + pick(6); n > 0 && m->n_live > 0; n--) model_put_at(m, pick(m->n_live));
  }
  else if (kind < 88) step_set_default();
  else if (kind < 92) step_begin_heap();
  else if (kind < 94) end_heap((int)pick(n_heaps), true);
  else if (kind < 95) end_heap((int)pick(n_heaps), false);
  else if (kind < 97) step_whole();
  else
    for (size_t i = 0; i < 60; i++) step_get();
}

// ---- threads --------------------------------------------------------------------------------------------------------

static void hand_crowd(hand_t* hand) {
  for (size_t i = 0; i < hand->n_gets || i < hand->n_puts; i++) {
    if (i < hand->n_gets) hand->gets[i] = mi_heap_malloc(hand->get_heap, hand->get_sizes[i]);
    if (i < hand->n_puts) mi_free(hand->puts[i]);
  }
}

static void* hand_live(void* arg) {
  hand_t*  hand = (hand_t*)arg;
  unsigned bit = 1u << (hand - world.hands);
  world_lock();
  for (;;) {
    while (((world.turns | world.ends) & bit) == 0) pthread_cond_wait(&world.changed, &world.lock);
    if ((world.ends & bit) != 0) break;
    if (hand->is_crowd) {
      world_unlock();
      hand_crowd(hand);
      world_lock();
    }
    else {
      world.current = (int)(hand - world.hands);
      for (size_t i = 0; i < hand->n_steps && world.model.n_failed == 0; i++) step();
    }
    world.turns &= ~bit;
    pthread_cond_broadcast(&world.changed);
  }
  world_unlock();
  return NULL;
}

static void hand_begin(hand_t* hand) {
  hand->default_heap = main_heap;
  hand->is_alive = (pthread_create(&hand->thread, NULL, &hand_live, hand) == 0);
  if (!hand->is_alive) abort();
}

static void hand_end(hand_t* hand) {
  unsigned bit = 1u << (hand - world.hands);
  if (!hand->is_alive) return;
  world_lock();
  world.ends |= bit;
  pthread_cond_broadcast(&world.changed);
  world_unlock();
  pthread_join(hand->thread, NULL);
  world_lock();
  world.ends &= ~bit;
  world_unlock();
  hand->is_alive = false;
}

static void give_turns(unsigned bits) {
  world_lock();
  world.turns = bits;
  pthread_cond_broadcast(&world.changed);
  while (world.turns != 0) pthread_cond_wait(&world.changed, &world.lock);
  world_unlock();
}

static void turn(void) {
  hand_t* hand = &world.hands[pick(n_threads)];
  if (!hand->is_alive) hand_begin(hand);
  hand->is_crowd = false;
  hand->n_steps = 1 + pick(12);
  give_turns(1u << (hand - world.hands));
}

// What each thread is to do at once: the blocks that it frees leave the model before, those that it gets enter it behind.
static void crowd_plan(hand_t* hand) {
  model_t* m = &world.model;
  hand->is_crowd = true;
  hand->get_heap = world.heaps[pick_heap()];
  hand->n_puts = hand->n_gets = 0;
  for (size_t n = pick(n_crowd); n > 0 && m->n_live > 0; n--) {
    size_t index = pick(m->n_live);
    model_check_block(m, &m->blocks[index]);
    hand->puts[hand->n_puts++] = m->blocks[index].p;
    model_remove(m, index);
  }
  size_t size = rng_size(&world.in.rng, 3000);
  for (size_t n = pick(n_crowd); n > 0; n--) hand->get_sizes[hand->n_gets++] = size + n % 3 * 8;
}

static void crowd_adopt(const hand_t* hand) {
  model_t* m = &world.model;
  get_t    got = {"crowd", NULL, 0};
  for (size_t i = 0; i < hand->n_gets; i++) {
    block_t b = {0};
    b.p = (uint8_t*)hand->gets[i];
    b.size = hand->get_sizes[i];
    b.alignment = b.size <= 8 ? 8 : 16;
    b.key = rng_next(&world.in.rng);
    b.got = &got;
    if (m->n_live == model_max_blocks) {
      mi_free(b.p);
      continue;
    }
    world.asked = 0;
    while (world.heaps[world.asked] != hand->get_heap) world.asked++;
    model_adopt(m, &b, 0, true, "crowd");
    m->blocks[m->n_live - 1].got = NULL;
  }
}

static void crowd(void) {
  unsigned bits = 0;
  for (size_t i = 0; i < n_threads; i++) {
    hand_t* hand = &world.hands[i];
    if (!hand->is_alive) hand_begin(hand);
    crowd_plan(hand);
    bits |= 1u << i;
  }
  give_turns(bits);
  for (size_t i = 0; i < n_threads; i++) crowd_adopt(&world.hands[i]);
}

static void act(void) {
  size_t kind = pick(20);
  if (kind < 14) turn();
  else if (kind < 17) crowd();
  else if (kind < 19) hand_end(&world.hands[pick(n_threads)]);
  else
    for (size_t i = 0; i < n_threads; i++) hand_end(&world.hands[i]);
}

static void world_begin(const uint8_t* data, size_t size) {
  memset(&world, 0, sizeof(world));
  world.in = input_make(data, size);
  world.model.next = &next_choice;
  world.model.on_adopt = &adopt;
  world.model.max_live_bytes = 12 * MiB;
  world.heaps[main_heap] = mi_heap_main();
  pthread_mutex_init(&world.lock, NULL);
  pthread_cond_init(&world.changed, NULL);
}

static void world_end(void) {
  for (int i = 1; i < n_heaps; i++) end_heap(i, i % 2 == 0);
  if (world.in.rng.state % 2 == 0) model_clear(&world.model);
  for (size_t i = 0; i < n_threads; i++) hand_end(&world.hands[i]);
  model_clear(&world.model);
  pthread_mutex_destroy(&world.lock);
  pthread_cond_destroy(&world.changed);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  world_begin(data, size);
  while (input_has_more(&world.in)) {
    act();
    if (world.model.n_failed != 0) abort();
  }
  world_end();
  if (world.model.n_failed != 0) abort();
  return 0;
}
