// Instructions of a thread, counted by a trap after each one.  Takes no privilege and no tool; x86-64 only.
#ifndef LANDSCAPE_STEPPER_H
#define LANDSCAPE_STEPPER_H

// Once, before the others.
void stepper_prepare(void);

// This thread is counted from here on, or is not.
void stepper_start(void);
void stepper_stop(void);

// By all threads, since it was set to 0.
long stepper_count(void);
void stepper_reset(void);

#endif
