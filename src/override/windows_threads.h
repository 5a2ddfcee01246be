// Stopping the other threads of the process for a moment.  Layer: override.
//
// While they stand still the caller may call nothing that could wait for one of them: no heap, no loader, no message.  Nor may it wait
// for the loader while it holds a lock that is taken inside the loader; so what is needed of the system is looked up first.
#pragma once

#include "../base/compiler.h"

// Once, before the others, by a caller that holds no lock.
void _mi_windows_threads_find(void);

// All stand still, and none where `is_clear` (NULL: anywhere will do) says no of the address that it is going to execute.  False:
// they could not be stopped, and run.  One caller at a time.
bool _mi_windows_threads_stop(bool (*is_clear)(uintptr_t at, const void* arg), const void* arg);
void _mi_windows_threads_resume(void);
