// How long free memory is held.  Layer: arena.  See recall.h.
#include "recall.h"

// Of what went back as much was needed again as had to be backed since.
static void recall_retake(mi_recall_t* recall, size_t n_fresh) {
  size_t n = mi_min(recall->n_given, n_fresh - recall->n_fresh);
  recall->n_given -= n;
  recall->n_retaken += n;
  recall->n_fresh = n_fresh;
}

// RC1: that, and of what stayed what is not free any more.
static size_t recall_count(mi_recall_t* recall, size_t low, size_t n_fresh) {
  recall_retake(recall, n_fresh);
  size_t n = recall->n_retaken + recall->n_seen - mi_min(recall->n_seen, low);
  recall->n_retaken = 0;
  return n;
}

// RC2, RC4
static void recall_hold(mi_recall_t* recall, int64_t now, size_t n) {
  int64_t from = (recall->until > recall->last_give ? recall->until : recall->last_give);
  recall->until = _mi_recall_until(from, now, n, MI_RECALL_MS_MIB);
}

void _mi_recall_begin(mi_recall_t* recall, int64_t now, size_t n_fresh) {
  // What stayed is counted at the end of the interval.
  recall_hold(recall, now, recall_count(recall, SIZE_MAX, n_fresh));
}

// RC3
static size_t recall_may_give(const mi_recall_t* recall, size_t low, size_t n_used) {
  size_t n_most = mi_max(recall->most[0], recall->most[1]), n_more = n_most - mi_min(n_most, n_used + n_used / 4);
  return mi_max(mi_min(recall->halves[0], recall->halves[1]), low - mi_min(low, n_more));
}

size_t _mi_recall_round(mi_recall_t* recall, int64_t now, size_t low, size_t n_used, size_t n_fresh) {
  recall_hold(recall, now, recall_count(recall, low, n_fresh));
  recall->n_seen = low;
  recall->halves[1] = mi_min(recall->halves[1], low);
  recall->most[1] = mi_max(recall->most[1], n_used);
  size_t n = (_mi_recall_holds(recall, now) ? recall_may_give(recall, low, n_used) : low);
  if (now - recall->half_since >= MI_RECALL_MS_MOST / 2) {
    recall->halves[0] = recall->halves[1];
    recall->halves[1] = low;
    recall->most[0] = recall->most[1];
    recall->most[1] = n_used;
    recall->half_since = now;
  }
  return n;
}

static void recall_less(size_t* n_free, size_t n) {
  if (*n_free != SIZE_MAX) *n_free -= mi_min(*n_free, n);
}

void _mi_recall_lessen(mi_recall_t* recall, size_t n) {
  recall_less(&recall->n_seen, n);
  recall_less(&recall->halves[0], n);
  recall_less(&recall->halves[1], n);
}

void _mi_recall_note(mi_recall_t* recall, int64_t now, size_t n, size_t n_fresh) {
  recall_retake(recall, n_fresh);
  if (now - recall->last_give >= MI_RECALL_MS_MOST) recall->n_given = 0; // it would not lengthen the hold
  recall->n_given += n;
  recall->last_give = now;
  _mi_recall_lessen(recall, n);
}
