// Writing the format of pprof (profile.proto), as far as a heap profile needs it.  Layer: support.
//
// A message is a sequence of fields: a number that holds the field and how it is encoded, and a number or a length with so many
// bytes.  Fields of a message within another are written to a buffer of their own first, since their length comes before them.
// Nothing is allocated; a profile of any length goes through one buffer of 4 KiB.
#pragma once

#include <stdint.h>

#include "../base/compiler.h"

typedef int mi_pprof_write_fun(const void* data, size_t size, void* arg); // 0 or an errno value

#define MI_PPROF_BUFFER 4096

// What is being written: the profile, or a message within it.
typedef struct mi_pprof_s {
  mi_pprof_write_fun* write; // NULL: a message, which has to fit into the buffer
  void*               arg;
  int                 err;
  size_t              n;
  uint64_t            n_strings; // that the profile has so far
  uint8_t             buffer[MI_PPROF_BUFFER];
} mi_pprof_t;

// Fields of messages of profile.proto, by their numbers there.
enum {
  MI_PPROF_SAMPLE_TYPE = 1,
  MI_PPROF_SAMPLE = 2,
  MI_PPROF_MAPPING = 3,
  MI_PPROF_LOCATION = 4,
  MI_PPROF_FUNCTION = 5,
  MI_PPROF_STRING = 6,
  MI_PPROF_DROP_FRAMES = 7,
  MI_PPROF_DURATION = 10,
  MI_PPROF_PERIOD_TYPE = 11,
  MI_PPROF_PERIOD = 12,
  MI_PPROF_COMMENT = 13,
  MI_PPROF_DEFAULT_TYPE = 14
};

void _mi_pprof_begin(mi_pprof_t* to, mi_pprof_write_fun* write, void* arg); // a profile, with the empty string
void _mi_pprof_message(mi_pprof_t* to);                                     // a message
void _mi_pprof_number(mi_pprof_t* to, unsigned field, uint64_t value);
void _mi_pprof_packed(mi_pprof_t* to, unsigned field, const uint64_t* values, size_t n);
void _mi_pprof_bytes(mi_pprof_t* to, unsigned field, const void* data, size_t size);
void _mi_pprof_sub(mi_pprof_t* to, unsigned field, const mi_pprof_t* message);

// Adds a string to the profile; returns its number.
uint64_t _mi_pprof_string(mi_pprof_t* to, const char* text);

// Writes what is left; 0 or the first error.
int _mi_pprof_end(mi_pprof_t* to);
