// For files that define functions under other names, C++'s and the C library's among them.  Layer: api.
#pragma once

#include "../base/compiler.h"
#include "../base/mode.h"
#include "../base/public.h"

// `result name(parameters) MI_NAMES_FORWARD(fun, arguments)` defines `name` as another name of `fun`.  In the single-source build
// that is an alias; a build from separate files can alias within one file only, and forwards.  So do builds for tools, which
// replace functions by their address: mi_malloc must have one of its own.
#if defined(MI_SINGLE_SOURCE) && defined(__ELF__) && !MI_TRACK
  #define MI_NAMES_FORWARD(fun, ...) __attribute__((alias(#fun), visibility("default"), used));
#else
  #define MI_NAMES_FORWARD(fun, ...) \
    { \
      return fun(__VA_ARGS__); \
    }
#endif

// A name that programs see.
#define MI_NAMES_PUBLIC __attribute__((visibility("default"), used))

#if defined(__cplusplus)
  #define MI_NAMES_BEGIN extern "C" {
  #define MI_NAMES_END   }
#else
  #define MI_NAMES_BEGIN
  #define MI_NAMES_END
#endif

// To the end of the source: the attributes of libc's own declarations (nonnull, malloc) are theirs, and parameters are those of
// the name, whether they are used or not.
#pragma GCC diagnostic ignored "-Wpragmas"
#pragma GCC diagnostic ignored "-Wunknown-warning-option"
#pragma GCC diagnostic ignored "-Wmissing-attributes"
#pragma GCC diagnostic ignored "-Wattribute-alias"
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#pragma GCC diagnostic ignored "-Wunused-parameter"
