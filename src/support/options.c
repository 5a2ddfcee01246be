// Setting options, warning of those that cannot be set, printing them: the public functions.  Layer: support.
#include "options.h"

#include "../prim/prim.h"
#include "format.h"
#include "message.h"

static const char options_ignored[] = "the environment is ignored: this program runs with raised privileges";

#define OPTIONS_PRINTED_MAX 256 // characters of a text

static mi_atomic(bool) options_is_chosen; // mi_option_set was called

// ---- what is wrong --------------------------------------------------------------------------------------------------

// What somebody else has written, as it can be printed.
static void options_quote(char* to, size_t max, const char* text) {
  size_t i = 0;
  for (; i < max && text[i] != 0; i++) to[i] = (text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
  to[i] = 0;
}

static const char* options_unit(mi_option_t option) {
  mi_value_kind_t kind = _mi_option_descs[option].kind;
  if (kind == MI_VALUE_LIMIT) return _mi_option_get_fast(option) == 0 ? " (none)" : " KiB";
  return kind == MI_VALUE_KIB ? " KiB" : "";
}

static void options_warn_invalid(mi_option_t option, const char* name, const char* text, const char* what) {
  char line[320], value[MI_VALUE_TEXT_MAX + 1];
  options_quote(value, MI_VALUE_TEXT_MAX, text);
  _mi_format(line, sizeof(line), "environment option mimalloc_%s has an invalid value. '%s' %s: it stays %ld%s.", name,
             value, what, _mi_option_get_fast(option), options_unit(option));
  // The very option that says whether to warn does so always.
  if (option == mi_option_verbose) _mi_message_raw(NULL, NULL, "mimalloc: warning: %s\n", line);
  else _mi_message_warning("%s", line);
}

mi_cold void _mi_options_warn_text(const char* name, const char* text, const char* what, const char* stays) {
  char value[MI_VALUE_TEXT_MAX + 1];
  options_quote(value, MI_VALUE_TEXT_MAX, text);
  _mi_message_warning("environment option mimalloc_%s has an invalid value. '%s' %s: it stays %s.", name, value, what,
                      stays);
}

static mi_cold void options_warn_faulty(mi_option_t option) {
  const mi_option_desc_t* desc = &_mi_option_descs[option];
  const char*             name;
  const char*             text = _mi_option_find(option, &name);
  long                    value;
  if (text == NULL) return; // the program has changed its environment
  const char* what = _mi_value_parse(desc->kind, text, &value);
  if (what != NULL) options_warn_invalid(option, name, text, what);
  if (name != desc->name) {
    _mi_message_warning("environment option mimalloc_%s is deprecated, use mimalloc_%s.", name, desc->name);
  }
}

// Whoever reads an option first may be what messages need, so this comes later: with the next call from the program.
static void options_warn(void) {
  if (mi_likely(!mi_load_acquire(&_mi_option_has_faults))) return;
  if (!mi_exchange_acquire(&_mi_option_has_faults, false)) return; // a store could hide what another thread finds now
  for (int i = 0; i < (int)MI_OPTION_COUNT; i++) {
    if (mi_exchange_acquire(&_mi_option_cells[i].is_faulty, false)) options_warn_faulty((mi_option_t)i);
  }
}

// Is this the name of a variable, up to its '=', as we know it?
static bool options_is_named(const char* variable, const char* name) {
  const char* end = _mi_option_skip(variable, name);
  return end != NULL && *end == '=';
}

// Options that are read as texts, by those who need them; the last are of another system.
static const char* const options_texts[] = {"profile", "publish_dir", "redirect", "disable_redirect"};

static bool options_is_known(const char* variable) {
  for (size_t i = 0; i < MI_OPTION_COUNT; i++) {
    const mi_option_desc_t* desc = &_mi_option_descs[i];
    if (options_is_named(variable, desc->name) || options_is_named(variable, desc->legacy)) return true;
  }
  for (size_t i = 0; i < sizeof(options_texts) / sizeof(options_texts[0]); i++) {
    if (options_is_named(variable, options_texts[i])) return true;
  }
  return false;
}

// A misspelt option would have no effect, silently.
static void options_warn_unknown(void) {
  const char* entry;
  for (size_t i = 0; (entry = _mi_prim_environment_entry(i)) != NULL; i++) {
    const char* variable = _mi_option_skip(entry, "mimalloc_");
    char        name[MI_VALUE_TEXT_MAX + 1];
    if (variable == NULL || options_is_known(variable)) continue;
    options_quote(name, MI_VALUE_TEXT_MAX, entry);
    _mi_message_warning("environment option %s is not known.", name);
  }
}

void _mi_options_settle(void) {
  if (!_mi_option_settle()) return;
  options_warn();
  long guarded_min = _mi_option_get_fast(mi_option_guarded_min);
  if (guarded_min > _mi_option_get_fast(mi_option_guarded_max)) {
    _mi_message_warning(
        "environment option mimalloc_guarded_max is less than mimalloc_guarded_min: it is raised to %ld.", guarded_min);
    mi_option_set(mi_option_guarded_max, guarded_min);
  }
  if (MI_GUARDED && _mi_option_get_fast(mi_option_guarded_sample_rate) > 0) {
    mi_option_set(mi_option_allow_large_os_pages, 0); // a guard page needs OS pages of the usual size
  }
  options_warn_unknown();
}

bool _mi_options_all_default(void) {
  return _mi_option_is_absent() && !mi_load_relaxed(&options_is_chosen);
}

// ---- the public functions -------------------------------------------------------------------------------------------

typedef void (*options_changed_fun_t)(void);

// Where it is in the table.
static mi_option_t options_row(mi_option_t option) {
  return option == mi_option_publish ? mi_option_publish_row : option;
}

// Says so if it does not.
static bool options_exists(mi_option_t option) {
  bool exists = (unsigned)option < (unsigned)_mi_option_last || option == mi_option_publish;
  if (!exists) _mi_message_warning("option %d does not exist.", (int)option);
  return exists;
}

long mi_option_get(mi_option_t option) {
  long value = options_exists(option) ? _mi_option_get_fast(options_row(option)) : 0;
  options_warn();
  return value;
}

long mi_option_get_clamp(mi_option_t option, long min, long max) {
  long value = mi_option_get(option);
  return value < min ? min : (value > max ? max : value);
}

size_t mi_option_get_size(mi_option_t option) {
  long value = mi_option_get(option);
  if (value <= 0) return 0;
  if (_mi_option_descs[options_row(option)].kind != MI_VALUE_KIB) return (size_t)value;
  return (size_t)value > SIZE_MAX / 1024 ? SIZE_MAX : (size_t)value * 1024;
}

bool mi_option_is_enabled(mi_option_t option) {
  return mi_option_get(option) != 0;
}

static mi_atomic(options_changed_fun_t) options_on_guarded;
static mi_atomic(options_changed_fun_t) options_on_publish;

void _mi_options_on_guarded(void (*changed)(void)) {
  mi_store_release(&options_on_guarded, changed);
}

void _mi_options_on_publish(void (*changed)(void)) {
  mi_store_release(&options_on_publish, changed);
}

// Programs that run with rights which those who started them have not do not take settings from them.
static void options_say_ignored(void) {
  static mi_atomic(bool) is_said;
  if (_mi_option_get_fast(mi_option_verbose) <= 0 || !_mi_prim_is_privileged()) return;
  if (!mi_exchange_acq_rel(&is_said, true)) _mi_message_print(1, "%s", options_ignored);
}

static void options_tell(mi_option_t option) {
  options_say_ignored();
  if (!_mi_option_descs[option].has_effect)
    _mi_message_print(1, "option '%s' is set and has no effect here.\n", _mi_option_descs[option].name);
  options_changed_fun_t changed = NULL;
  bool is_guarded = ((int)option >= (int)mi_option_guarded_min && (int)option <= (int)mi_option_guarded_sample_seed);
  if (is_guarded) changed = mi_load_acquire(&options_on_guarded);
  else if (option == mi_option_publish_row) changed = mi_load_acquire(&options_on_publish);
  if (changed != NULL) changed();
}

// Says so if a program sets an option to what it cannot be.
static bool options_accepts(mi_option_t option, long value) {
  bool is_valid = _mi_value_is_valid(_mi_option_descs[option].kind, value);
  if (!is_valid) {
    _mi_message_warning("option '%s' has an invalid value. %ld is out of range: it stays %ld%s.",
                        _mi_option_descs[option].name, value, _mi_option_get_fast(option), options_unit(option));
  }
  return is_valid;
}

static void options_choose(mi_option_t option, long value) {
  mi_option_cell_t* cell = &_mi_option_cells[option];
  mi_store_relaxed(&cell->chosen, value);
  mi_store_release(&cell->state, (int)MI_OPTION_CHOSEN); // OP2
}

// By more than mi_option_set_default.
static bool options_is_set(mi_option_t option) {
  _mi_option_read(option);
  return mi_load_acquire(&_mi_option_cells[option].state) > MI_OPTION_DEFAULTED;
}

// Of the bounds of guarded blocks: would `option` be beyond the other one?
static bool options_crosses(mi_option_t option, long value, mi_option_t* other) {
  bool is_min = (option == mi_option_guarded_min);
  if (!is_min && option != mi_option_guarded_max) return false;
  *other = is_min ? mi_option_guarded_max : mi_option_guarded_min;
  return is_min ? _mi_option_get_fast(*other) < value : _mi_option_get_fast(*other) > value;
}

void mi_option_set(mi_option_t option, long value) {
  mi_option_t other;
  mi_store_relaxed(&options_is_chosen, true);
  if (!options_exists(option)) return;
  option = options_row(option);
  if (!options_accepts(option, value)) return;
  options_choose(option, value);
  if (options_crosses(option, value, &other)) options_choose(other, value);
  options_tell(option);
}

void mi_option_set_default(mi_option_t option, long value) {
  mi_option_t other;
  mi_store_relaxed(&options_is_chosen, true);
  if (!options_exists(option)) return;
  option = options_row(option);
  if (!options_accepts(option, value)) return;
  bool is_set = options_is_set(option);
  options_warn();
  if (is_set) return;
  if (options_crosses(option, value, &other)) {
    if (options_is_set(other)) value = _mi_option_get_fast(other); // which goes before a default
    else mi_store_relaxed(&_mi_option_cells[other].base, value);
  }
  mi_store_relaxed(&_mi_option_cells[option].base, value);
  options_tell(option);
}

// clang-format off
void mi_option_set_enabled(mi_option_t option, bool enable) { mi_option_set(option, enable ? 1 : 0); }
void mi_option_set_enabled_default(mi_option_t option, bool enable) { mi_option_set_default(option, enable ? 1 : 0); }
void mi_option_enable(mi_option_t option) { mi_option_set(option, 1); }
void mi_option_disable(mi_option_t option) { mi_option_set(option, 0); }
// clang-format on

// ---- printing -------------------------------------------------------------------------------------------------------

#if defined(MI_BUILD_RELEASE) || defined(NDEBUG)
static const char options_build[] = "release";
#else
static const char options_build[] = "debug";
#endif
static const char* const options_tracking = (MI_TRACK_VALGRIND ? "valgrind"
                                             : MI_TRACK_ASAN   ? "asan"
                                             : MI_TRACK_ETW    ? "etw"
                                                               : "none");

// Has somebody set it in vain?
static bool options_is_vain(mi_option_t option) {
  return !_mi_option_descs[option].has_effect && options_is_set(option);
}

// Those that are in the environment: each has a default of its own.
static void options_print_texts(mi_output_fun* out, void* arg, const char* prefix) {
  for (size_t i = 0; i < sizeof(options_texts) / sizeof(options_texts[0]); i++) {
    const char* text = _mi_option_text(options_texts[i]);
    char        value[OPTIONS_PRINTED_MAX + 1];
    if (text == NULL) continue;
    options_quote(value, OPTIONS_PRINTED_MAX, text);
    _mi_message_raw(out, arg, "%soption '%s': %s\n", prefix, options_texts[i], value);
  }
}

void mi_options_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  const char* prefix = MI_OPTION_LEVEL("mimalloc: ", "");
  _mi_message_raw(out, arg, "%sv%i.%i.%i, %s\n", prefix, MI_MALLOC_VERSION / 10000, MI_MALLOC_VERSION / 100 % 100,
                  MI_MALLOC_VERSION % 100, options_build);
  for (int i = 0; i < (int)MI_OPTION_COUNT; i++) {
    long value = _mi_option_get_fast((mi_option_t)i);
    bool is_limit = (_mi_option_descs[i].kind == MI_VALUE_LIMIT), is_vain = options_is_vain((mi_option_t)i);
    bool is_kib = (is_limit || _mi_option_descs[i].kind == MI_VALUE_KIB), is_share = (is_limit && value < 0);
    _mi_message_raw(out, arg, "%soption '%s': %ld %s%s%s\n", prefix, _mi_option_descs[i].name,
                    is_share ? -value : value, is_share ? "%" : (is_kib ? "KiB" : ""), is_kib && is_vain ? " " : "",
                    is_vain ? "(no effect here)" : "");
  }
  options_print_texts(out, arg, prefix);
  _mi_message_raw(out, arg, "%sdebug level : %d\n", prefix, MI_DEBUG);
  _mi_message_raw(out, arg, "%ssecure level: %d\n", prefix, MI_SECURE);
  _mi_message_raw(out, arg, "%smem tracking: %s\n", prefix, options_tracking);
  if (_mi_prim_is_privileged()) _mi_message_raw(out, arg, "%s%s\n", prefix, options_ignored);
}

void mi_options_print(void) mi_attr_noexcept {
  mi_options_print_out(NULL, NULL);
}
