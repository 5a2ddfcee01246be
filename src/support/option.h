// Options: their values, and where these come from.  Layer: support.
//
//   state        value is    set by
//   UNREAD       base        the table, or mi_option_set_default while there is no environment yet
//   DEFAULTED    base        the same; the environment does not have the option
//   FOUND        base        the environment
//   CHOSEN       chosen      mi_option_set
//
// O1  The state only moves down this list (DEFAULTED to CHOSEN, ...).
// O2  A slot is written before the state (release) that makes it count.
// O3  mi_option_set alone writes `chosen`.  Threads that read the environment at the same time write the same value to
//     `base`, so no lock is needed and the child of a fork cannot find one held.
#pragma once

#include "../base/public.h"
#include "../base/mode.h"
#include "../base/atomic.h"

#if !defined(MI_GUARDED)
  #define MI_GUARDED 0
#endif
#if !defined(MI_XMALLOC)
  #define MI_XMALLOC 0
#endif

// Options of our own follow the public ones.  They are set by the environment only, since the numbers that programs may
// use belong to the interface.
#define mi_option_background_thread ((mi_option_t)(_mi_option_last + 0)) // purge on a thread of our own
#define mi_option_show_leaks        ((mi_option_t)(_mi_option_last + 1)) // print at exit what was not freed
#define mi_option_guarded_before    ((mi_option_t)(_mi_option_last + 2)) // percent of guarded blocks (heap/guard.h)
#define mi_option_debug_stacks      ((mi_option_t)(_mi_option_last + 3)) // who allocated which block (trace.h)
#define MI_OPTION_COUNT             (_mi_option_last + 4)

enum { MI_OPTION_UNREAD, MI_OPTION_DEFAULTED, MI_OPTION_FOUND, MI_OPTION_CHOSEN };

typedef struct mi_option_cell_s {
  mi_atomic(int)  state;
  mi_atomic(long) base;
  mi_atomic(long) chosen;
} mi_option_cell_t;

extern mi_option_cell_t _mi_option_cells[MI_OPTION_COUNT];

// Looks an option up in the environment if that has not been done.
mi_cold long _mi_option_read(mi_option_t option);

static inline long _mi_option_get_fast(mi_option_t option) {
  mi_assert_internal((int)option >= 0 && (int)option < (int)MI_OPTION_COUNT);
  mi_option_cell_t* cell = &_mi_option_cells[option];
  int               state = mi_load_acquire(&cell->state); // O2
  if (mi_unlikely(state == MI_OPTION_UNREAD)) return _mi_option_read(option);
  return state == MI_OPTION_CHOSEN ? mi_load_relaxed(&cell->chosen) : mi_load_relaxed(&cell->base);
}

// Reads all options, as far as there is an environment.
void _mi_options_init(void);

// To be called when the environment must be there (by a constructor): reads all options; what is not found now never
// will be.
void _mi_options_settle(void);

// Calls `changed` from now on when the program has set one of the public options guarded_...
void _mi_options_on_guarded(void (*changed)(void));

// Is nothing set, neither by the environment (once it is settled) nor by a call?
bool _mi_options_all_default(void);
