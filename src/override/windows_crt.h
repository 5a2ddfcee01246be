// What stands in for the C runtimes' allocation functions.  Layer: override.
#pragma once

#include "windows_runtime.h"

extern const mi_windows_hook_t _mi_windows_crt_hooks[];
extern const size_t            _mi_windows_crt_n_hooks;
