// Addresses of blocks, for tests that compare them: in builds with memory tags a pointer has a tag in its top byte.
#pragma once

#include <stdint.h>

static inline uintptr_t address_of(const void* p) {
#if defined(MI_MEMORY_TAGGING) && MI_MEMORY_TAGGING
  return (uintptr_t)p & (UINTPTR_MAX >> 8);
#else
  return (uintptr_t)p;
#endif
}
