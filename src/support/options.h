// Options as programs and the environment set them, and what is said about that.  Layer: support.
#pragma once

#include "option.h"

// To be called when the environment must be there (by a constructor): reads all options, and warns of what is wrong.
void _mi_options_settle(void);

// Calls `changed` from now on when the program has set one of the public options guarded_...
void _mi_options_on_guarded(void (*changed)(void));
// The same for mi_option_publish.
void _mi_options_on_publish(void (*changed)(void));

// For an option of one system that is not in the table: warns of its value in the environment.  `what` is wrong with it, in words
// that follow it, and it stays as it is by default.
mi_cold void _mi_options_warn_text(const char* name, const char* text, const char* what, const char* stays);

// Is nothing set, neither by the environment (once it is settled) nor by a call?
bool _mi_options_all_default(void);
