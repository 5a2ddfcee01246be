// Faults on Windows.  Layer: prim.
#pragma once

// The library's code is about to go: its handler of faults is not called any more.
void _mi_windows_fault_end(void);
