// Declarations for compiling only: test/stubs/README.md.
#pragma once
#define FUTEX_WAIT_PRIVATE 128
#define FUTEX_WAKE_PRIVATE 129
