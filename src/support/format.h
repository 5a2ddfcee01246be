// A small printf into a buffer.  Layer: support.
//
// Allocates nothing, takes no lock, knows no locale, and calls nothing of libc, so that it can run at any time.
//
//   %[-][0][width]conversion      d i u x (with l, ll or z before)   c   s   p   %
//
// No precision, no floating point.  %p is 0x and upper case digits; a NULL string is (null); any other conversion is
// copied as it stands and ends the formatting, since the arguments behind it cannot be known.
#pragma once

#include <stdarg.h>

#include "../base/compiler.h"

// Writes at most size - 1 characters and a terminator (nothing at all if size is 0); returns the characters written.
size_t _mi_format_v(char* buf, size_t size, const char* fmt, va_list args) mi_printf(3, 0);
size_t _mi_format(char* buf, size_t size, const char* fmt, ...) mi_printf(3, 4);

// strlen, but not libc's: of a plain loop the compiler makes a call of that, and signal handlers must not (prim.h).
static inline size_t _mi_format_length(const char* text) {
  const volatile char* end = text;
  while (*end != 0) end++;
  return (size_t)(end - text);
}
