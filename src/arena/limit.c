// Counting memory, and limits on it.  Layer: arena.  limit.h has the invariants.
#include "limit.h"

#include "../prim/prim.h"
#include "region.h"

// After so many attempts others are faster all the time.
#define LIMIT_TRIES 64

mi_limit_t _mi_limit_process = MI_LIMIT_INIT;

typedef size_t (*limit_purge_fun_t)(size_t n_slices);
typedef void (*limit_crossed_fun_t)(mi_limit_t* limit);

static mi_atomic(limit_purge_fun_t)   limit_purge;
static mi_atomic(limit_crossed_fun_t) limit_crossed;

void _mi_limit_register(size_t (*purge)(size_t n_slices)) {
  mi_store_release(&limit_purge, purge);
}

void _mi_limit_on_crossed(void (*crossed)(mi_limit_t* limit)) {
  mi_store_release(&limit_crossed, crossed);
}

// ---- one limit --------------------------------------------------------------------------------------------------------

void _mi_limit_init(mi_limit_t* limit) {
  mi_store_relaxed(&limit->used, (size_t)0);
  _mi_limit_set(limit, MI_LIMIT_NONE, MI_LIMIT_NONE);
}

void _mi_limit_set(mi_limit_t* limit, size_t hard, size_t soft) {
  mi_store_relaxed(&limit->hard, hard);
  mi_store_relaxed(&limit->soft, soft);
  mi_store_relaxed(&limit->told_ms, (int64_t)0);
  mi_store_relaxed(&limit->refused_ms, (int64_t)0);
  mi_store_relaxed(&limit->is_refused, false);
  mi_store_relaxed(&limit->least, mi_min(hard, soft));
}

// Fewer are used than when the program was told, by a share of the limit: it is told of the next crossing.
static bool limit_is_below(size_t used, size_t soft) {
  return used <= soft - soft / MI_LIMIT_BELOW_SHARE;
}

static bool limit_is_due(int64_t last_ms, int64_t again_ms) {
  return last_ms == 0 || _mi_prim_clock_ms() - last_ms >= again_ms;
}

bool _mi_limit_tells(mi_atomic(int64_t)* last_ms, int64_t again_ms) {
  int64_t last = mi_load_relaxed(last_ms);
  return limit_is_due(last, again_ms) &&
         mi_cas_strong(last_ms, &last, _mi_prim_clock_ms() | 1, relaxed, relaxed); // never 0
}

static void limit_note(mi_limit_t* limit, size_t before, size_t used) {
  size_t soft = mi_load_relaxed(&limit->soft);
  if (mi_load_relaxed(&limit->is_refused)) mi_store_relaxed(&limit->is_refused, false);
  if (mi_load_relaxed(&limit->refused_ms) != 0) mi_store_relaxed(&limit->refused_ms, (int64_t)0);
  if (soft == MI_LIMIT_NONE) return;
  if (mi_load_relaxed(&limit->told_ms) != 0 && limit_is_below(before, soft))
    mi_store_relaxed(&limit->told_ms, (int64_t)0);
  if (used <= soft || !limit_is_due(mi_load_relaxed(&limit->told_ms), MI_LIMIT_AGAIN_MS)) return;
  limit_crossed_fun_t crossed = mi_load_acquire(&limit_crossed);
  if (crossed != NULL) crossed(limit);
}

static bool limit_refuse(mi_limit_t* limit) {
  mi_fetch_add_relaxed(&limit->n_refused, 1);
  mi_store_relaxed(&limit->is_refused, true);
  return false;
}

bool _mi_limit_add_within(mi_limit_t* limit, size_t n, size_t moved) {
  size_t used = mi_load_relaxed(&limit->used);
  do {
    size_t hard = mi_load_relaxed(&limit->hard);
    size_t counts = used - mi_min(used, moved);
    if (n > moved && (counts > hard || n > hard - counts)) return limit_refuse(limit);
  } while (!mi_cas_weak(&limit->used, &used, used + n, relaxed, relaxed));
  limit_note(limit, used, used + n);
  return true;
}

static bool limit_has_room(mi_limit_t* limit, size_t used, size_t n) {
  size_t hard = mi_load_relaxed(&limit->hard);
  return hard == MI_LIMIT_NONE || (used <= hard && n <= hard - used);
}

bool _mi_limit_ask(mi_limit_t* limit, size_t n) {
  size_t used = _mi_limit_used(limit);
  if (!limit_has_room(limit, used, n)) return limit_refuse(limit);
  limit_note(limit, used, used + n);
  return true;
}

size_t _mi_limit_excess(mi_limit_t* limit) {
  size_t used = _mi_limit_used(limit), soft = mi_load_relaxed(&limit->soft);
  return used - mi_min(used, soft);
}

// ---- the process ------------------------------------------------------------------------------------------------------

bool _mi_limit_make_room(size_t n, size_t moved, int* tries) {
  limit_purge_fun_t purge = mi_load_acquire(&limit_purge);
  size_t            hard = mi_load_relaxed(&_mi_limit_process.hard);
  size_t            used = _mi_limit_used(&_mi_limit_process);
  size_t            n_more = n - mi_min(n, moved), room = hard - mi_min(hard, used);
  if (n_more > hard || purge == NULL || (*tries)++ >= LIMIT_TRIES) return false;
  if (n_more <= room) return true; // somebody else gave some back
  // Not by what would be used, which may be more than a number of bytes can say.
  size_t n_missing = n_more - room + (used - mi_min(used, hard));
  size_t n_given = purge(n_missing / MI_SLICE_SIZE + hard / MI_LIMIT_AHEAD_SHARE / MI_SLICE_SIZE + 1);
  return n_given > 0 || _mi_limit_used(&_mi_limit_process) < used;
}

void _mi_limit_settle(void) {
  limit_purge_fun_t purge = mi_load_acquire(&limit_purge);
  size_t            hard = mi_load_relaxed(&_mi_limit_process.hard);
  size_t            used = _mi_limit_used(&_mi_limit_process);
  if (mi_unlikely(used > hard) && purge != NULL) purge((used - hard) / MI_SLICE_SIZE + 1);
}

bool _mi_limit_has_room(size_t n) {
  return limit_has_room(&_mi_limit_process, _mi_limit_used(&_mi_limit_process), n);
}
