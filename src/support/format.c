// A small printf into a buffer.  Layer: support.  No state.
#include "format.h"

typedef struct format_sink_s {
  char* at;
  char* end; // place of the terminator; at <= end
} format_sink_t;

typedef struct format_spec_s {
  bool   is_left;
  char   pad; // ' ' or '0'
  size_t width;
  char   length; // 0, 'l', 'L' (ll) or 'z'
} format_spec_t;

typedef struct format_args_s { // in a struct a va_list can be passed on by address, whatever type it is
  va_list list;
} format_args_t;

#define FORMAT_DIGITS_MAX 24 // of 64 bits: 20 digits, a sign or 0x

static void format_put(format_sink_t* sink, char c) {
  if (sink->at < sink->end) *sink->at++ = c;
}

// `prefix` (a sign, or 0x) goes before zeros but after blanks.
static void format_field(format_sink_t* sink, const format_spec_t* spec, const char* prefix, const char* text) {
  size_t n = _mi_format_length(text), n_prefix = _mi_format_length(prefix);
  size_t n_pad = (spec->width > n + n_prefix ? spec->width - n - n_prefix : 0);
  bool   is_zero_padded = (spec->pad == '0' && !spec->is_left);
  for (size_t i = 0; !spec->is_left && !is_zero_padded && i < n_pad; i++) format_put(sink, ' ');
  for (size_t i = 0; i < n_prefix; i++) format_put(sink, prefix[i]);
  for (size_t i = 0; is_zero_padded && i < n_pad; i++) format_put(sink, '0');
  for (size_t i = 0; i < n; i++) format_put(sink, text[i]);
  for (size_t i = 0; spec->is_left && i < n_pad; i++) format_put(sink, ' ');
}

static void format_number(format_sink_t* sink, const format_spec_t* spec, const char* prefix, unsigned long long x,
                          unsigned base, const char* digits) {
  char  text[FORMAT_DIGITS_MAX];
  char* p = text + FORMAT_DIGITS_MAX - 1;
  *p = 0;
  do {
    *--p = digits[x % base];
    x /= base;
  } while (x != 0);
  format_field(sink, spec, prefix, p);
}

// d, i, u or x.
static void format_integer(format_sink_t* sink, const format_spec_t* spec, char conversion, format_args_t* args) {
  long long          x;
  unsigned long long u; // the same of an unsigned type
  switch (spec->length) {
    case 'L': u = (unsigned long long)(x = va_arg(args->list, long long)); break;
    case 'l': u = (unsigned long)(x = va_arg(args->list, long)); break;
    case 'z': u = (size_t)(x = va_arg(args->list, ptrdiff_t)); break;
    default: u = (unsigned)(x = va_arg(args->list, int)); break;
  }
  bool is_negative = ((conversion == 'd' || conversion == 'i') && x < 0);
  if (is_negative) u = 0 - (unsigned long long)x;
  format_number(sink, spec, is_negative ? "-" : "", u, conversion == 'x' ? 16 : 10, "0123456789abcdef");
}

// Reads flags, width and length at fmt; returns where the conversion is.
static const char* format_parse(const char* fmt, format_spec_t* spec) {
  const format_spec_t none = {false, ' ', 0, 0};
  *spec = none;
  for (; *fmt == '-' || *fmt == '0'; fmt++) {
    if (*fmt == '-') spec->is_left = true;
    else spec->pad = '0';
  }
  for (; *fmt >= '0' && *fmt <= '9'; fmt++) spec->width = spec->width * 10 + (size_t)(*fmt - '0');
  if (*fmt == 'l' || *fmt == 'z') spec->length = *fmt++;
  if (*fmt != 'l' || spec->length != 'l') return fmt;
  spec->length = 'L';
  return fmt + 1;
}

// One conversion; false if there is none of that name.
static bool format_convert(format_sink_t* sink, const format_spec_t* spec, char conversion, format_args_t* args) {
  switch (conversion) {
    case 'd':
    case 'i':
    case 'u':
    case 'x': format_integer(sink, spec, conversion, args); return true;
    case 'p': {
      uintptr_t p = (uintptr_t)va_arg(args->list, void*);
      format_number(sink, spec, "0x", p, 16, "0123456789ABCDEF");
      return true;
    }
    case 's': {
      const char* text = va_arg(args->list, const char*);
      format_field(sink, spec, "", text == NULL ? "(null)" : text);
      return true;
    }
    case 'c': {
      char text[2] = {(char)va_arg(args->list, int), 0};
      format_field(sink, spec, "", text);
      return true;
    }
    case '%': format_put(sink, '%'); return true;
    default: return false;
  }
}

size_t _mi_format_v(char* buf, size_t size, const char* fmt, va_list args) {
  if (size == 0) return 0;
  format_sink_t sink = {buf, buf + size - 1};
  format_args_t copy;
  bool          is_known = true;
  va_copy(copy.list, args);
  while (*fmt != 0) {
    if (*fmt != '%' || !is_known) {
      format_put(&sink, *fmt++);
      continue;
    }
    format_spec_t spec;
    const char*   conversion = format_parse(fmt + 1, &spec);
    is_known = format_convert(&sink, &spec, *conversion, &copy);
    if (is_known) fmt = conversion + 1; // otherwise the rest is copied, from this % on
  }
  va_end(copy.list);
  *sink.at = 0;
  return (size_t)(sink.at - buf);
}

size_t _mi_format(char* buf, size_t size, const char* fmt, ...) {
  va_list args;
  va_start(args, fmt);
  size_t n = _mi_format_v(buf, size, fmt, args);
  va_end(args);
  return n;
}
