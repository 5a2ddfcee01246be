// Whether free memory is held, because the program has recalled some (recall.h).  Layer: arena.
//
// HD1  A hold is looked at when an interval ends.  Where the library has a thread, recall.h says how much stays during it, also if all
//      threads are idle.
// HD2  Without that thread nothing goes back by the clock during a hold, and by the amount more may stay (purge_by_amount.h, AM3).  There
//      is no hold if it would end before the next round.
// HD3  Nothing is held there for a program that slept for long, or most of the time, between two rounds (busy.h): nobody would come by to
//      end the hold.
// HD4  A hold for 12 MiB and more begins there as soon as they were needed again, unless the program slept in the last interval.
#pragma once

#include "region.h"

// Is there a hold, where the library has no thread?
bool _mi_hold_is(void);

// HD4: n_mistaken slices went back and had to be backed again in this interval.  True if there is a hold now.
bool _mi_hold_begin(size_t n_mistaken);

// Nobody comes by any more: memory that is held goes back.
void _mi_hold_end(void);

// Somebody comes by.
void _mi_hold_look(int64_t now);

// What was seen of an interval.
typedef struct mi_hold_interval_s {
  size_t n_low;    // slices that were free and backed all the time
  size_t swing;    // so many more were free and backed at times
  size_t n_unheld; // of n_low, those that a hold lets go
  bool   is_held;  // there is a hold
} mi_hold_interval_t;

// An interval ends that began at `last`.
mi_hold_interval_t _mi_hold_end_interval(int64_t last, int64_t now, bool has_thread);
