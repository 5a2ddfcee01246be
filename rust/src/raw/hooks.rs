// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// The deferred free function, for programs that free step by step.  It is called by [`mi_collect`](super::mi_collect) (with its `force`), and from time to
    /// time by an allocation on a slow path.  `heartbeat` never decreases.  The function may allocate and free; its own calls do not call
    /// it again.
    pub fn mi_register_deferred_free(deferred_free: Option<mi_deferred_free_fun>, arg: *mut c_void);

    /// Receives everything that the allocator prints, in place of stderr.  Up to 16 KiB of earlier output are delivered at
    /// registration.  The text is terminated, and may be a part of a line or several lines.  Output that the function itself
    /// causes is not delivered to it.
    pub fn mi_register_output(out: Option<mi_output_fun>, arg: *mut c_void);

    /// Called with each error, after its message: EAGAIN double free, EFAULT memory was overwritten, EINVAL not a valid
    /// pointer, ENOMEM out of memory, EOVERFLOW size too large.  Without a function, EFAULT, EAGAIN and EINVAL abort the process in
    /// debug and secure builds and under the address sanitizer, and ENOMEM and EOVERFLOW abort it in builds with MI_XMALLOC.  If
    /// the function returns, the program continues: an invalid pointer is ignored, and of an overwritten block the intact parts
    /// are used.  Errors that the function itself causes are not delivered to it.  It must return or end the process: after it has
    /// left by longjmp or an exception, no further error of that thread is delivered.
    pub fn mi_register_error(fun: Option<mi_error_fun>, arg: *mut c_void);
}
