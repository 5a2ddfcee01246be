// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Reading.  [`mi_option_get`](super::mi_option_get) gives options in KiB as they are, [`mi_option_get_size`](super::mi_option_get_size) in bytes, and 0 for a negative value.
    /// An option that does not exist is 0, with a warning.
    pub fn mi_option_is_enabled(option: mi_option_t) -> bool;

    /// See [`mi_option_is_enabled`](super::mi_option_is_enabled), with which it is described.
    pub fn mi_option_get(option: mi_option_t) -> c_long;

    /// See [`mi_option_is_enabled`](super::mi_option_is_enabled), with which it is described.
    pub fn mi_option_get_clamp(option: mi_option_t, min: c_long, max: c_long) -> c_long;

    /// See [`mi_option_is_enabled`](super::mi_option_is_enabled), with which it is described.
    pub fn mi_option_get_size(option: mi_option_t) -> usize;

    /// Setting.  The functions with _default do nothing if the environment or an earlier call has set the option.  An option
    /// that does not exist, and a value that is out of range, is ignored with a warning.  guarded_min beyond guarded_max moves that, and
    /// the other way round; a default moves only a default, and goes no further than a bound that is set.
    pub fn mi_option_set(option: mi_option_t, value: c_long);

    /// See [`mi_option_set`](super::mi_option_set), with which it is described.
    pub fn mi_option_set_default(option: mi_option_t, value: c_long);

    /// See [`mi_option_set`](super::mi_option_set), with which it is described.
    pub fn mi_option_enable(option: mi_option_t);

    /// See [`mi_option_set`](super::mi_option_set), with which it is described.
    pub fn mi_option_disable(option: mi_option_t);

    /// See [`mi_option_set`](super::mi_option_set), with which it is described.
    pub fn mi_option_set_enabled(option: mi_option_t, enable: bool);

    /// See [`mi_option_set`](super::mi_option_set), with which it is described.
    pub fn mi_option_set_enabled_default(option: mi_option_t, enable: bool);

    /// Print the version, all options (those with texts if the environment has them) and how the library was built.  NULL `out`: the
    /// registered output.
    pub fn mi_options_print();

    /// See [`mi_options_print`](super::mi_options_print), with which it is described.
    pub fn mi_options_print_out(out: Option<mi_output_fun>, arg: *mut c_void);
}
