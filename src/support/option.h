// Options: their values, and where these come from.  Layer: support.
//
//   state        value is    set by
//   UNREAD       base        the table, or mi_option_set_default while there is no environment yet
//   DEFAULTED    base        the same; the environment does not have the option
//   FOUND        base        the environment
//   CHOSEN       chosen      mi_option_set
//
// OP1  The state only moves down this list (DEFAULTED to CHOSEN, ...).
// OP2  A slot is written before the state (release) that makes it count.
// OP3  mi_option_set alone writes `chosen`.  Threads that read the environment at the same time write the same value to
//      `base`, so no lock is needed and the child of a fork cannot find one held.
//
// This file knows values only.  What is wrong with them is said by options.c, since messages depend on options.
#pragma once

#include "../base/atomic.h"
#include "../base/mode.h"
#include "../base/public.h"
#include "value.h"

#if !defined(MI_GUARDED)
  #define MI_GUARDED 0
#endif
#if !defined(MI_XMALLOC)
  #define MI_XMALLOC 0
#endif

// Options of our own follow the public ones.  They are set by the environment only, since the numbers that programs may
// use belong to the interface; but mi_option_publish has a number that is far from these.
#define mi_option_background_thread ((mi_option_t)(_mi_option_last + 0)) // purge on a thread of our own
#define mi_option_show_leaks        ((mi_option_t)(_mi_option_last + 1)) // print at exit what was not freed
#define mi_option_guarded_before    ((mi_option_t)(_mi_option_last + 2)) // percent of guarded blocks (heap/guard.h)
#define mi_option_debug_stacks      ((mi_option_t)(_mi_option_last + 3)) // who allocated which block (trace.h)
#define mi_option_keep_deepbind     ((mi_option_t)(_mi_option_last + 4)) // of dlopen (override/loader.c)
#define mi_option_memory_tagging    ((mi_option_t)(_mi_option_last + 5)) // where the processor can (prim/tag.h)
#define mi_option_publish_row       ((mi_option_t)(_mi_option_last + 6)) // where mi_option_publish is in the table
#define MI_OPTION_COUNT             (_mi_option_last + 7)

enum { MI_OPTION_UNREAD, MI_OPTION_DEFAULTED, MI_OPTION_FOUND, MI_OPTION_CHOSEN };

typedef struct mi_option_cell_s {
  mi_atomic(int)  state;
  mi_atomic(bool) is_faulty; // what the environment says is invalid, or under an older name, and nobody was told yet
  mi_atomic(long) base;
  mi_atomic(long) chosen;
} mi_option_cell_t;

// What does not change about an option.
typedef struct mi_option_desc_s {
  const char*     name;
  mi_value_kind_t kind;
  bool            has_effect; // is it read at all?
  const char*     legacy;     // an older name, NULL if there is none
} mi_option_desc_t;

extern mi_option_cell_t       _mi_option_cells[MI_OPTION_COUNT];
extern const mi_option_desc_t _mi_option_descs[MI_OPTION_COUNT];
extern mi_atomic(bool)        _mi_option_has_faults; // some cell is faulty

// What differs between the levels of the interface.
#if MI_API_LEVEL < 3
  #define MI_OPTION_LEVEL(two, three) (two)
#else
  #define MI_OPTION_LEVEL(two, three) (three)
#endif

// The value; looks the option up in the environment if that has not been done.
mi_cold long _mi_option_read(mi_option_t option);

static inline long _mi_option_get_fast(mi_option_t option) {
  mi_option_cell_t* cell = &_mi_option_cells[option];
  int               state = mi_load_acquire(&cell->state); // OP2
  if (mi_unlikely(state == MI_OPTION_UNREAD)) return _mi_option_read(option);
  return state == MI_OPTION_CHOSEN ? mi_load_relaxed(&cell->chosen) : mi_load_relaxed(&cell->base);
}

// To be called when the environment must be there: reads all options; what is not found now never will be.  False if nothing
// in the environment is ours, or it must not be used: then there is nothing to read.
bool _mi_option_settle(void);

// Was that so?
bool _mi_option_is_absent(void);

// The value of an option in the environment, NULL if it has none, and the name that it has there.
const char* _mi_option_find(mi_option_t option, const char** name);

// The value of "mimalloc_<name>" in the environment; NULL if there is none, it must not be used, or the name is NULL.
const char* _mi_option_text(const char* name);

// The part of `entry` behind `prefix`, in any case; NULL if it does not begin so, or if either is NULL.
const char* _mi_option_skip(const char* entry, const char* prefix);
