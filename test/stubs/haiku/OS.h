// Declarations for compiling only: test/stubs/README.md.
#pragma once
#include <stdint.h>
typedef int32_t thread_id;
thread_id       find_thread(const char*);
