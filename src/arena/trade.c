// Free memory that goes back for what is needed, when a process would become larger than it ever was.  Layer: arena.  See trade.h.
#include "trade.h"

// Of several threads that ask at the same time each may have what is there for one: they spend that time later.
size_t _mi_trade_allows(mi_trade_t* trade, size_t n, int64_t now) {
  int64_t spent = mi_load_relaxed(&trade->spent);
  if (mi_unlikely(spent == 0)) spent = now;
  if (spent < now - MI_TRADE_MS_SAVED) spent = now - MI_TRADE_MS_SAVED;
  if (spent > now + MI_TRADE_MS_SAVED) spent = now; // the child of a fork begins anew
  mi_store_relaxed(&trade->spent, spent);
  if (now <= spent) return 0;
  size_t n_affordable = (size_t)(now - spent) * MI_TRADE_MIN / MI_TRADE_MS_MIB;
  size_t n_more = n - mi_min(n, mi_load_relaxed(&trade->n_most));
  return n_affordable < MI_TRADE_MIN ? 0 : mi_min(mi_max(n_more, MI_TRADE_MIN), n_affordable);
}

void _mi_trade_note(mi_trade_t* trade, size_t n, size_t n_given) {
  if (n > mi_load_relaxed(&trade->n_most)) mi_store_relaxed(&trade->n_most, n);
  if (n_given == 0) return;
  mi_fetch_add_relaxed(&trade->spent, (int64_t)(n_given * MI_TRADE_MS_MIB / MI_TRADE_MIN));
}
