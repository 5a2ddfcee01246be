// The values of options.  Layer: support.
#include "value.h"

#include <limits.h>
#include <string.h>

bool _mi_value_is_valid(mi_value_kind_t kind, long value) {
  switch (kind) {
    case MI_VALUE_ANY: return true;
    case MI_VALUE_STEP: return value >= 0 && value <= 2;
    case MI_VALUE_COUNT: return value >= 0 && value <= INT32_MAX;
    case MI_VALUE_OPTIONAL: return value >= -1 && value <= INT32_MAX;
    case MI_VALUE_PERCENT: return value >= -1 && value <= 100;
    case MI_VALUE_LIMIT: return value >= -100;
    case MI_VALUE_RATE: return value >= 0 && value <= (long)MI_RATE_MAX;
    default: return value >= 0;
  }
}

char _mi_value_upper(char c) {
  return (char)(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
}

static bool value_parse_word(const char* upper, long* value) {
  static const char words[][6] = {"0", "1", "FALSE", "TRUE", "NO", "YES", "OFF", "ON", "0", ""}; // no and yes in turn
  for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
    if (strcmp(upper, words[i]) != 0) continue;
    *value = (long)(i % 2);
    return true;
  }
  return false;
}

// Reads a decimal number as strtol does; returns where it ends, `text` if there is none.
static const char* value_parse_long(const char* text, long* value, bool* is_over) {
  const char* s = text;
  while (*s == ' ' || (*s >= '\t' && *s <= '\r')) s++;
  bool is_negative = (*s == '-');
  if (*s == '-' || *s == '+') s++;
  if (*s < '0' || *s > '9') return text;
  unsigned long limit = (is_negative ? (unsigned long)LONG_MAX + 1 : (unsigned long)LONG_MAX);
  unsigned long x = 0;
  for (; *s >= '0' && *s <= '9'; s++) {
    unsigned long digit = (unsigned long)(*s - '0');
    if (x > (limit - digit) / 10) *is_over = true;
    x = (*is_over ? limit : x * 10 + digit);
  }
  *value = (!is_negative ? (long)x : (x == limit ? LONG_MIN : -(long)x));
  return s;
}

// From a number and its suffix to KiB; false if the suffix is none.
static bool value_scale_kib(const char* suffix, long* value, bool* is_over) {
  static const char units[] = "KMGT";
  if (*suffix == 0) {
    *value = *value / 1024 + (*value % 1024 > 0);
    return true;
  }
  const char* unit = strchr(units, *suffix);
  if (unit == NULL) return false;
  suffix++;
  if (strcmp(suffix, "") != 0 && strcmp(suffix, "B") != 0 && strcmp(suffix, "IB") != 0) return false;
  for (; unit > units; unit--) {
    if (*value > LONG_MAX / 1024) *is_over = true;
    else *value *= 1024;
  }
  return true;
}

// A limit is a size or a percentage of 1 to 100, and no word but those for "none": a limit of one byte is a mistake.
static const char* value_parse_limit(const char* upper, long* value) {
  long        x = 0;
  bool        is_over = false;
  const char* end = value_parse_long(upper, &x, &is_over);
  if (end == upper) {
    if (!value_parse_word(upper, &x) || x != 0) return "is not a size";
  }
  else if (strcmp(end, "%") == 0) {
    if (is_over || x < 1 || x > 100) return "is not between 1% and 100%";
    x = -x;
  }
  else {
    if (x < 0) return "is out of range";
    if (!value_scale_kib(end, &x, &is_over)) return "has an unknown unit";
    if (is_over) return "is out of range";
  }
  *value = x;
  return NULL;
}

const char* _mi_value_parse(mi_value_kind_t kind, const char* text, long* value) {
  char   upper[MI_VALUE_TEXT_MAX + 1];
  long   x = 0;
  bool   is_over = false;
  size_t n = 0;
  for (; n < MI_VALUE_TEXT_MAX && text[n] != 0; n++) upper[n] = _mi_value_upper(text[n]);
  upper[n] = 0;
  if (text[n] != 0) return "is too long";
  if (kind == MI_VALUE_LIMIT) return value_parse_limit(upper, value);
  if (value_parse_word(upper, value)) return NULL;
  const char* end = value_parse_long(upper, &x, &is_over);
  if (end == upper) return "is not a number";
  bool is_negative = (x < 0);
  if (kind != MI_VALUE_KIB && *end != 0) return "is not a number";
  if (kind == MI_VALUE_KIB && !is_negative && !value_scale_kib(end, &x, &is_over)) return "has an unknown unit";
  if (is_over || !_mi_value_is_valid(kind, x)) return "is out of range";
  *value = x;
  return NULL;
}
