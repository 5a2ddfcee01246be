// The table of options: what does not change about them.  Layer: support.  No state of its own; the cells are in option.h.
#pragma once

#include "../base/public.h"
#include "option.h"
#include "value.h"

typedef struct mi_option_desc_s {
  const char*     name;
  mi_value_kind_t kind;
  bool            has_effect; // is it read at all?
  const char*     legacy;     // an older name, NULL if there is none
} mi_option_desc_t;

extern const mi_option_desc_t _mi_option_descs[MI_OPTION_COUNT];

// What differs between the levels of the interface.
#if MI_API_LEVEL < 3
  #define MI_OPTION_LEVEL(two, three) (two)
#else
  #define MI_OPTION_LEVEL(two, three) (three)
#endif
