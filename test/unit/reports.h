// Errors that the library reports, for tests that make them.
#pragma once

#include "../check.h"
#include "../sink.h"
#include "mimalloc.h"

static sink_t sink;
static int    codes[16];
static size_t n_codes;

static void note_error(int code, void* arg) {
  (void)arg;
  if (n_codes < COUNT_OF(codes)) codes[n_codes] = code;
  n_codes++;
}

// Since the last time: one error of that code (0: none), with a message that has the words.
static bool was_reported(int code, const char* words) {
  bool is_right = (code == 0 ? n_codes == 0 : n_codes == 1 && codes[0] == code && sink_has(&sink, words));
  n_codes = 0;
  sink_clear(&sink);
  return is_right;
}

static void free_wrongly(void* p) {
  mi_free(hidden_pointer(p));
}

static inline void reports_begin(void) {
  mi_option_enable(mi_option_show_errors); // by default builds without assertions show none if there is a handler
  mi_option_set(mi_option_max_errors, 100000);
  mi_register_error(&note_error, NULL);
  mi_register_output(&sink_write, &sink);
  was_reported(0, "");
}
