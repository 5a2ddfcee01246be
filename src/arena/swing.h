// How the memory that a program uses goes up and down, counted from interval to interval.  Layer: arena.
//
// SW1  Freed lately are the slices that were freed, or began to wait, in this interval, and half of those that counted as such when it
//      began.
// SW2  Slices that went back by the amount and had to be backed again in the same interval went by *mistake*.
// SW3  A program swings by the amount that it took and freed again in an interval, what waited and was used again included, and by what
//      went by mistake.  An interval that lasted much longer than it should tells nothing: nobody came by for a while.
// SW4  What is in use does not include slices that threads keep or that wait (purge.h, PG2).  Frees and large blocks note how much it
//      is; the most of that in this interval, and in the last two to four seconds, is known.
// SW5  What went by mistake has cost the program time; if that was too much, giving memory back is dear (dear.h).
//
// Which slices wait is counted under a lock of the caller; all else by any thread.
#pragma once

#include "region.h"

#define MI_SWING_MISTAKE_MS 200 // an interval that lasts longer by this tells nothing

// SW1
size_t _mi_swing_n_freed(void);

// SW2.  Certain only if an interval that was over has been ended before.
size_t _mi_swing_n_mistaken(void);

// SW3: in the last interval.
size_t _mi_swing_last(void);

// Before and after n slices go back by the amount.
void _mi_swing_begin_giving(void);
void _mi_swing_note_given(size_t n);

// n slices wait for their next use, or have waited for it.
void _mi_swing_wait(size_t n);
void _mi_swing_end_wait(size_t n, bool is_used);

// SW4: how much is in use now; the same, noted; the most in this interval, which begins anew; that of some seconds; the most of all.
size_t _mi_swing_n_used(void);
size_t _mi_swing_note_used(void);
size_t _mi_swing_take_high(void);
void   _mi_swing_set_most(size_t n);
size_t _mi_swing_n_most(size_t n_used);

// SW5: is it dear to give back, with n_mistaken slices of this interval?
bool _mi_swing_is_dear(size_t n_mistaken);

// The next interval begins.  In the last one the slices that were free and backed were more by `swing` at times; `was_short`: it tells
// something (SW3).
void _mi_swing_begin(size_t swing, bool was_short, int64_t now);
