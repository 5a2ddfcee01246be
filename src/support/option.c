// Options.  Layer: support.  option.h has the invariants, option_table.c the table.
//
// The environment is walked directly: getenv may lock or be replaced, and is not there yet when the first malloc of a
// process may come.  While it is empty an option stays UNREAD and is looked up again.
#include "option.h"

#include <limits.h>
#include <string.h>

#include "../prim/prim.h"
#include "format.h"
#include "message.h"
#include "option_table.h"
#include "value.h"

static const char option_ignored[] = "the environment is ignored: this program runs with raised privileges";

static mi_atomic(bool) option_is_settled; // an empty environment is no longer taken for one that is not there yet
static mi_atomic(bool) option_is_absent;  // the environment was looked through: nothing in it is ours
static mi_atomic(bool) option_is_chosen;  // mi_option_set was called

// ---- the environment ------------------------------------------------------------------------------------------------

// The part of `entry` behind `prefix`, in any case; NULL if it does not begin so.
static const char* option_skip(const char* entry, const char* prefix) {
  if (entry == NULL) return NULL;
  for (; *prefix != 0; prefix++, entry++) {
    if (_mi_value_upper(*entry) != _mi_value_upper(*prefix)) return NULL;
  }
  return entry;
}

// The value of the variable mimalloc_<name>, NULL if there is none.
static const char* option_find(const char* name) {
  const char* entry;
  if (mi_load_relaxed(&option_is_absent) || _mi_prim_is_privileged()) return NULL;
  for (size_t i = 0; name != NULL && (entry = _mi_prim_environment_entry(i)) != NULL; i++) {
    const char* value = option_skip(option_skip(entry, "mimalloc_"), name);
    if (value != NULL && *value == '=') return value + 1;
  }
  return NULL;
}

// O2, O3.  Does nothing if the option is no longer UNREAD.
static void option_settle(mi_option_cell_t* cell, int state) {
  int expected = MI_OPTION_UNREAD;
  mi_cas_strong(&cell->state, &expected, state, acq_rel, acquire);
}

// What somebody else has written, as it can be printed: at most `n` characters of it.
static void option_quote(char* to, const char* text, size_t n) {
  size_t i = 0;
  for (; i < n && text[i] != 0; i++) to[i] = (text[i] >= ' ' && text[i] <= '~' ? text[i] : '?');
  to[i] = 0;
}

static const char* option_unit(mi_option_t option) {
  return _mi_option_descs[option].kind == MI_VALUE_KIB ? " KiB" : "";
}

static void option_warn_invalid(mi_option_t option, const char* name, const char* text, const char* what) {
  char line[320], value[MI_VALUE_TEXT_MAX + 1];
  option_quote(value, text, MI_VALUE_TEXT_MAX);
  _mi_format(line, sizeof(line), "environment option mimalloc_%s has an invalid value. '%s' %s: it stays %ld%s.", name,
             value, what, _mi_option_get_fast(option), option_unit(option));
  // The very option that says whether to warn does so always.
  if (option == mi_option_verbose) _mi_message_raw(NULL, NULL, "mimalloc: warning: %s\n", line);
  else _mi_message_warning("%s", line);
}

// Looks `option` up.  Warns only after the state is set: the warning itself asks for options.
static void option_read(mi_option_t option) {
  mi_option_cell_t*       cell = &_mi_option_cells[option];
  const mi_option_desc_t* desc = &_mi_option_descs[option];
  if (mi_load_acquire(&cell->state) != MI_OPTION_UNREAD) return;
  if (_mi_prim_environment_entry(0) == NULL && !mi_load_relaxed(&option_is_settled)) return;
  const char* name = desc->name;
  const char* text = option_find(name);
  if (text == NULL) {
    text = option_find(desc->legacy);
    if (text != NULL) name = desc->legacy;
  }
  long        value = 0;
  const char* fault = (text == NULL ? NULL : _mi_value_parse(desc->kind, text, &value));
  bool        is_found = (text != NULL && fault == NULL);
  if (is_found) mi_store_relaxed(&cell->base, value);
  option_settle(cell, is_found ? MI_OPTION_FOUND : MI_OPTION_DEFAULTED);
  if (fault != NULL) option_warn_invalid(option, name, text, fault);
  if (name != desc->name) {
    _mi_message_warning("environment option mimalloc_%s is deprecated, use mimalloc_%s.", name, desc->name);
  }
}

long _mi_option_read(mi_option_t option) {
  option_read(option);
  mi_option_cell_t* cell = &_mi_option_cells[option];
  return mi_load_acquire(&cell->state) == MI_OPTION_CHOSEN ? mi_load_relaxed(&cell->chosen)
                                                           : mi_load_relaxed(&cell->base);
}

void _mi_options_init(void) {
  for (int i = 0; i < (int)MI_OPTION_COUNT; i++) option_read((mi_option_t)i);
  if (_mi_option_get_fast(mi_option_guarded_min) > _mi_option_get_fast(mi_option_guarded_max)) {
    mi_option_set(mi_option_guarded_max, _mi_option_get_fast(mi_option_guarded_min));
  }
  if (MI_GUARDED && _mi_option_get_fast(mi_option_guarded_sample_rate) > 0) {
    mi_option_set(mi_option_allow_large_os_pages, 0); // a guard page needs OS pages of the usual size
  }
}

static bool option_environment_has_any(void) {
  const char* entry;
  for (size_t i = 0; (entry = _mi_prim_environment_entry(i)) != NULL; i++) {
    if (option_skip(entry, "mimalloc_") != NULL) return true;
  }
  return false;
}

// Is this the name of a variable, up to its '=', as we know it?
static bool option_is_named(const char* variable, const char* name) {
  const char* end = (name == NULL ? NULL : option_skip(variable, name));
  return end != NULL && *end == '=';
}

static bool option_is_known(const char* variable) {
  bool is_known = option_is_named(variable, "disable_redirect"); // for the loader of another system
  for (size_t i = 0; !is_known && i < MI_OPTION_COUNT; i++) {
    is_known =
        option_is_named(variable, _mi_option_descs[i].name) || option_is_named(variable, _mi_option_descs[i].legacy);
  }
  return is_known;
}

// A misspelt option would have no effect, silently.
static void option_warn_unknown(void) {
  const char* entry;
  for (size_t i = 0; (entry = _mi_prim_environment_entry(i)) != NULL; i++) {
    const char* variable = option_skip(entry, "mimalloc_");
    char        name[MI_VALUE_TEXT_MAX + 1];
    if (variable == NULL || option_is_known(variable)) continue;
    option_quote(name, entry, MI_VALUE_TEXT_MAX);
    _mi_message_warning("environment option %s is not known.", name);
  }
}

// Programs that run with rights which those who started them have not do not take settings from them.
static void option_say_ignored(void) {
  static mi_atomic(bool) is_said;
  if (_mi_option_get_fast(mi_option_verbose) <= 0 || !_mi_prim_is_privileged()) return;
  if (!mi_exchange_acq_rel(&is_said, true)) _mi_message_verbose("%s", option_ignored);
}

void _mi_options_settle(void) {
  mi_store_relaxed(&option_is_settled, true);
  // Most processes have none: they shall not pay a page fault for the table.
  bool has_any = option_environment_has_any();
  if (!has_any || _mi_prim_is_privileged()) {
    mi_store_relaxed(&option_is_absent, true);
    return;
  }
  _mi_options_init();
  option_warn_unknown();
}

bool _mi_options_all_default(void) {
  return mi_load_relaxed(&option_is_absent) && !mi_load_relaxed(&option_is_chosen);
}

// ---- the public functions -------------------------------------------------------------------------------------------

typedef void (*option_changed_fun_t)(void);

// Says so if it does not.
static bool option_exists(mi_option_t option) {
  bool exists = ((int)option >= 0 && (int)option < (int)_mi_option_last);
  if (!exists) _mi_message_warning("option %d does not exist.", (int)option);
  return exists;
}

long mi_option_get(mi_option_t option) {
  return option_exists(option) ? _mi_option_get_fast(option) : 0;
}

long mi_option_get_clamp(mi_option_t option, long min, long max) {
  long value = mi_option_get(option);
  return value < min ? min : (value > max ? max : value);
}

size_t mi_option_get_size(mi_option_t option) {
  long value = mi_option_get(option);
  if (value <= 0) return 0;
  if (_mi_option_descs[option].kind != MI_VALUE_KIB) return (size_t)value;
  return (size_t)value > SIZE_MAX / 1024 ? SIZE_MAX : (size_t)value * 1024;
}

bool mi_option_is_enabled(mi_option_t option) {
  return mi_option_get(option) != 0;
}

static mi_atomic(option_changed_fun_t) option_on_guarded;

void _mi_options_on_guarded(void (*changed)(void)) {
  mi_store_release(&option_on_guarded, changed);
}

static void option_tell(mi_option_t option) {
  option_say_ignored();
  if (!_mi_option_descs[option].has_effect)
    _mi_message_verbose("option '%s' is set and has no effect here.\n", _mi_option_descs[option].name);
  option_changed_fun_t changed = mi_load_acquire(&option_on_guarded);
  bool is_guarded = ((int)option >= (int)mi_option_guarded_min && (int)option <= (int)mi_option_guarded_sample_seed);
  if (is_guarded && changed != NULL) changed();
}

// Says so if a program sets an option to what it cannot be.
static bool option_accepts(mi_option_t option, long value) {
  if (!option_exists(option)) return false;
  bool is_valid = _mi_value_is_valid(_mi_option_descs[option].kind, value);
  if (!is_valid) {
    _mi_message_warning("option '%s' has an invalid value. %ld is out of range: it stays %ld%s.",
                        _mi_option_descs[option].name, value, _mi_option_get_fast(option), option_unit(option));
  }
  return is_valid;
}

static void option_choose(mi_option_t option, long value) {
  mi_option_cell_t* cell = &_mi_option_cells[option];
  mi_store_relaxed(&cell->chosen, value);
  mi_store_release(&cell->state, (int)MI_OPTION_CHOSEN); // O2
}

void mi_option_set(mi_option_t option, long value) {
  mi_store_relaxed(&option_is_chosen, true);
  if (!option_accepts(option, value)) return;
  option_choose(option, value);
  if (option == mi_option_guarded_min && mi_option_get(mi_option_guarded_max) < value) {
    option_choose(mi_option_guarded_max, value);
  }
  else if (option == mi_option_guarded_max && mi_option_get(mi_option_guarded_min) > value) {
    option_choose(mi_option_guarded_min, value);
  }
  option_tell(option);
}

void mi_option_set_default(mi_option_t option, long value) {
  mi_store_relaxed(&option_is_chosen, true);
  if (!option_accepts(option, value)) return;
  option_read(option);
  mi_option_cell_t* cell = &_mi_option_cells[option];
  if (mi_load_acquire(&cell->state) > MI_OPTION_DEFAULTED) return;
  mi_store_relaxed(&cell->base, value);
  option_tell(option);
}

void mi_option_set_enabled(mi_option_t option, bool enable) {
  mi_option_set(option, enable ? 1 : 0);
}

void mi_option_set_enabled_default(mi_option_t option, bool enable) {
  mi_option_set_default(option, enable ? 1 : 0);
}

void mi_option_enable(mi_option_t option) {
  mi_option_set(option, 1);
}

void mi_option_disable(mi_option_t option) {
  mi_option_set(option, 0);
}

// ---- printing -------------------------------------------------------------------------------------------------------

static const char* option_build_type(void) {
#if defined(MI_BUILD_RELEASE) || defined(NDEBUG)
  return "release";
#else
  return "debug";
#endif
}

static const char* option_tracking(void) {
#if MI_TRACK_VALGRIND
  return "valgrind";
#elif MI_TRACK_ASAN
  return "asan";
#elif defined(MI_TRACK_ETW)
  return "etw";
#else
  return "none";
#endif
}

// Has somebody set it in vain?
static bool option_is_vain(mi_option_t option) {
  return !_mi_option_descs[option].has_effect && mi_load_acquire(&_mi_option_cells[option].state) > MI_OPTION_DEFAULTED;
}

void mi_options_print_out(mi_output_fun* out, void* arg) mi_attr_noexcept {
  const char* prefix = MI_OPTION_LEVEL("mimalloc: ", "");
  _mi_message_raw(out, arg, "%sv%i.%i.%i, %s\n", prefix, MI_MALLOC_VERSION / 10000, MI_MALLOC_VERSION / 100 % 100,
                  MI_MALLOC_VERSION % 100, option_build_type());
  for (int i = 0; i < (int)MI_OPTION_COUNT; i++) {
    long value = _mi_option_get_fast((mi_option_t)i);
    bool is_kib = (_mi_option_descs[i].kind == MI_VALUE_KIB), is_vain = option_is_vain((mi_option_t)i);
    _mi_message_raw(out, arg, "%soption '%s': %ld %s%s%s\n", prefix, _mi_option_descs[i].name, value,
                    is_kib ? "KiB" : "", is_kib && is_vain ? " " : "", is_vain ? "(no effect here)" : "");
  }
  _mi_message_raw(out, arg, "%sdebug level : %d\n", prefix, MI_DEBUG);
  _mi_message_raw(out, arg, "%ssecure level: %d\n", prefix, MI_SECURE);
  _mi_message_raw(out, arg, "%smem tracking: %s\n", prefix, option_tracking());
  if (_mi_prim_is_privileged()) _mi_message_raw(out, arg, "%s%s\n", prefix, option_ignored);
}

void mi_options_print(void) mi_attr_noexcept {
  mi_options_print_out(NULL, NULL);
}
