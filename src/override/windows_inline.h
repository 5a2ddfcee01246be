// Jumps at the start of functions: whoever calls them, by whatever way, arrives at ours.  Layer: override.
#pragma once

#include "windows_runtime.h"

// Writes them into a runtime whose functions were found, into all or none, and stores how many.  Returns NULL, or why it could
// not be done in words that follow the runtime's name in a message.
const char* _mi_windows_inline_apply(const mi_windows_runtime_t* runtime, size_t* n_functions);
