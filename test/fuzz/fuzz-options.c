// Fuzzes: what the environment may say about options, against a second reading of the rules in mimalloc.h.
//
// The first byte chooses the option, the second how its name is written; the rest is the value.
//
// O1  A value that the rules allow is what the option has then, and nothing is said.
// O2  Any other leaves the option as it was, and is named in a warning with what it keeps.
// O3  No text makes the library read beyond its end, or print a character that is not printable.
#include <ctype.h>
#include <limits.h>

#include "../sink.h"
#include "input.h"
#include "support/message.h"
#include "support/options.h"

extern char** environ;

static sink_t output;

static void require(bool is_so, const char* what, const char* entry) {
  if (is_so) return;
  printf("not so: %s: %s\nsaid: %s\n", what, entry, output.text);
  fflush(stdout);
  abort();
}

// ---- the rules, once more -----------------------------------------------------------------------------------------------
// With numbers of 128 bits, which do not overflow where the library must take care.

typedef __int128 wide_t;

static const wide_t wide_max = (wide_t)1 << 100;

static bool word_value(const char* text, wide_t* value) {
  static const char* const off[] = {"0", "false", "no", "off"};
  static const char* const on[] = {"", "1", "true", "yes", "on"};
  for (size_t i = 0; i < COUNT_OF(off); i++) {
    if (strcasecmp(text, off[i]) == 0) *value = 0;
    if (strcasecmp(text, off[i]) == 0) return true;
  }
  for (size_t i = 0; i < COUNT_OF(on); i++) {
    if (strcasecmp(text, on[i]) == 0) *value = 1;
    if (strcasecmp(text, on[i]) == 0) return true;
  }
  return false;
}

// A decimal number, which must fit before a unit scales it; the rest of the text, NULL if there is none.
static const char* number_value(const char* s, wide_t* value) {
  while (*s == ' ' || (*s >= '\t' && *s <= '\r')) s++;
  bool is_negative = (*s == '-');
  if (*s == '-' || *s == '+') s++;
  if (!isdigit((unsigned char)*s)) return NULL;
  wide_t x = 0;
  for (; isdigit((unsigned char)*s); s++) x = (x >= wide_max ? wide_max : x * 10 + (*s - '0'));
  *value = is_negative ? -x : x;
  if (x > (wide_t)LONG_MAX + is_negative) *value = (is_negative ? -wide_max : wide_max);
  return s;
}

// In KiB, of a number with its unit.
static bool scale_value(const char* unit, wide_t* value) {
  static const char* const endings[] = {"", "b", "ib"};
  if (*unit == 0) {
    if (*value < wide_max) *value = (*value + 1023) / 1024;
    return true;
  }
  const char* units = "kmgt";
  const char* which = strchr(units, tolower((unsigned char)*unit));
  if (which == NULL) return false;
  for (size_t i = 0; i < COUNT_OF(endings); i++) {
    if (strcasecmp(unit + 1, endings[i]) != 0) continue;
    for (; which > units; which--) *value = (*value >= wide_max ? wide_max : *value * 1024);
    return true;
  }
  return false;
}

static bool limit_value(const char* text, wide_t* value) {
  const char* end = number_value(text, value);
  if (end == NULL) return word_value(text, value) && *value == 0;
  if (strcmp(end, "%") == 0) {
    *value = -*value;
    return *value >= -100 && *value <= -1;
  }
  return *value >= 0 && scale_value(end, value) && *value <= LONG_MAX;
}

static bool is_in_range(mi_value_kind_t kind, wide_t x) {
  switch (kind) {
    case MI_VALUE_ANY: return x >= LONG_MIN && x <= LONG_MAX;
    case MI_VALUE_SWITCH: return x >= 0 && x <= LONG_MAX;
    case MI_VALUE_STEP: return x >= 0 && x <= 2;
    case MI_VALUE_COUNT: return x >= 0 && x <= INT32_MAX;
    case MI_VALUE_OPTIONAL: return x >= -1 && x <= INT32_MAX;
    case MI_VALUE_PERCENT: return x >= -1 && x <= 100;
    case MI_VALUE_RATE: return x >= 0 && x <= 1L << 30;
    default: return x >= 0 && x <= LONG_MAX;
  }
}

static bool expected_value(mi_value_kind_t kind, const char* text, wide_t* value) {
  if (strlen(text) > MI_VALUE_TEXT_MAX) return false;
  if (kind == MI_VALUE_LIMIT) return limit_value(text, value);
  if (word_value(text, value)) return true;
  const char* end = number_value(text, value);
  if (end == NULL) return false;
  if (kind != MI_VALUE_KIB) return *end == 0 && is_in_range(kind, *value);
  return *value >= 0 && scale_value(end, value) && is_in_range(kind, *value);
}

// ---- what the library makes of it -------------------------------------------------------------------------------------

// "MIMALLOC_<NAME>=<text>", in capitals, small letters, or both.
static void write_entry(char* to, size_t size, const char* name, uint8_t style, const char* text) {
  size_t n = 0;
  for (const char* part = "mimalloc_"; part != NULL; part = (part == name ? NULL : name)) {
    for (size_t i = 0; part[i] != 0 && n + 1 < size; i++) {
      bool is_upper = (style % 3 == 0 || (style % 3 == 1 && (n + style) % 2 == 0));
      to[n++] = (char)(is_upper ? toupper((unsigned char)part[i]) : part[i]);
    }
  }
  snprintf(to + n, size - n, "=%s", text);
}

static long read_with(mi_option_t option, long initial, const char* entry) {
  char*  entries[] = {(char*)(uintptr_t)"HOME=/", (char*)(uintptr_t)entry, NULL};
  char** before = environ;
  sink_clear(&output);
  mi_store_relaxed(&_mi_option_cells[option].base, initial);
  mi_store_release(&_mi_option_cells[option].state, (int)MI_OPTION_UNREAD);
  environ = entries;
  long value = _mi_option_get_fast(option);
  require(mi_option_get(mi_option_verbose) == 0, "this call says what was wrong", entry);
  environ = before;
  mi_store_relaxed(&_mi_option_cells[option].base, initial);
  return value;
}

static void check_text(const char* entry) {
  for (const char* s = output.text; *s != 0; s++) {
    require((*s >= ' ' && *s <= '~') || *s == '\n', "what is said is printable (O3)", entry);
  }
}

// Options on which the saying itself depends.
static bool is_special(int row) {
  return row == mi_option_verbose || row == mi_option_show_errors || row == mi_option_max_warnings ||
         row == mi_option_max_errors || row == mi_option_publish_row;
}

static void prepare(void) {
  static bool is_ready;
  if (is_ready) return;
  is_ready = true;
  mi_register_output(&sink_write, &output);
  mi_option_set(mi_option_show_errors, 1);
  mi_option_set(mi_option_verbose, 0);
  mi_option_set(mi_option_max_warnings, LONG_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  enum { initial = 2 }; // of all kinds a valid value
  char   text[300], entry[400];
  wide_t wanted = 0;
  prepare();
  if (size < 2) return 0;
  int option = data[0] % MI_OPTION_COUNT;
  if (is_special(option)) return 0;
  size_t length = (size - 2 < sizeof(text) - 1 ? size - 2 : sizeof(text) - 1);
  memcpy(text, data + 2, length);
  text[length] = 0;
  write_entry(entry, sizeof(entry), _mi_option_descs[option].name, data[1], text);
  bool is_valid = expected_value(_mi_option_descs[option].kind, text, &wanted);
  long value = read_with((mi_option_t)option, initial, entry);
  require(value == (is_valid ? (long)wanted : initial), "the value (O1, O2)", entry);
  require(sink_has(&output, "invalid value") == !is_valid, "a warning if it is invalid (O1, O2)", entry);
  if (!is_valid)
    require(sink_has(&output, "it stays 2") && sink_has(&output, _mi_option_descs[option].name), "named", entry);
  check_text(entry);
  return 0;
}
