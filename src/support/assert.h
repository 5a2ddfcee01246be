// Assertions.  Layer: support.
//
// mi_assert checks what callers promise, mi_assert_internal an invariant of the library; the condition is always compiled,
// and costs nothing below its level (MI_DEBUG).
#pragma once

#include "../base/compiler.h"
#include "../base/mode.h"

// Prints and aborts.
mi_cold void _mi_assert_fail(const char* expr, const char* file, unsigned line, const char* func);

#define mi_assert_at(level, e) \
  ((MI_DEBUG < (level) || mi_likely(e)) ? (void)0 : _mi_assert_fail(#e, __FILE__, __LINE__, __func__))
#define mi_assert(e)           mi_assert_at(1, e)
#define mi_assert_internal(e)  mi_assert_at(2, e)
#define mi_assert_expensive(e) mi_assert_at(3, e)
