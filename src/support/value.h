// The values of options: which there are, and how the environment writes them.  Layer: support.  No state.
#pragma once

#include "../base/compiler.h"

// The mean distance of the samples of a heap profile, in bytes, is no longer (mi_profile_start).
#define MI_RATE_MAX MI_GiB

typedef enum mi_value_kind_e {
  MI_VALUE_ANY,      // any number
  MI_VALUE_SWITCH,   // 0: off; others: on
  MI_VALUE_STEP,     // 0, 1 or 2
  MI_VALUE_COUNT,    // 0 and more, of 31 bits: products of two do not overflow
  MI_VALUE_OPTIONAL, // the same, or -1: none
  MI_VALUE_PERCENT,  // 0 to 100, or -1: none
  MI_VALUE_RATE,     // 0 to MI_RATE_MAX
  MI_VALUE_BYTES,    // 0 and more
  MI_VALUE_KIB,      // the same in KiB; the environment says bytes, or a number with a suffix
  MI_VALUE_LIMIT     // the same, or a number with '%': that is negative then.  0: none
} mi_value_kind_t;

#define MI_VALUE_TEXT_MAX 64 // characters that a value in the environment may have

char _mi_value_upper(char c);

bool _mi_value_is_valid(mi_value_kind_t kind, long value);

// Reads a value as the environment has it.  Returns NULL, or what is wrong with it in words that follow it in a message: then
// *value is as it was.
const char* _mi_value_parse(mi_value_kind_t kind, const char* text, long* value);
