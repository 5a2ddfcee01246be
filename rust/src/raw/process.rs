// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// The library calls all of these itself, at load or the first allocation and at exit.  Calling them again has no effect.
    /// Allocation still works after [`mi_process_done`](super::mi_process_done) and [`mi_thread_done`](super::mi_thread_done).
    pub fn mi_process_init();

    /// See [`mi_process_init`](super::mi_process_init), with which it is described.
    pub fn mi_process_done();

    /// For the calling thread.  [`mi_thread_done`](super::mi_thread_done) leaves its live blocks valid.  O(pages that the thread has).
    pub fn mi_thread_init();

    /// See [`mi_thread_init`](super::mi_thread_init), with which it is described.
    pub fn mi_thread_done();

    /// A hint that the calling thread serves a pool: it may sleep for long, and other threads may free its blocks.  It has no
    /// effect here: all threads are treated alike.
    pub fn mi_thread_set_in_threadpool();

    /// Times are in milliseconds; resident and committed memory are in bytes, page faults are those that needed input.  Any
    /// pointer may be NULL.
    pub fn mi_process_info(
        elapsed_msecs: *mut usize,
        user_msecs: *mut usize,
        system_msecs: *mut usize,
        current_rss: *mut usize,
        peak_rss: *mut usize,
        current_commit: *mut usize,
        peak_commit: *mut usize,
        page_faults: *mut usize,
    );

    /// The same as text.  NULL `out`: the registered output.
    pub fn mi_process_info_print();

    /// The same as text.  NULL `out`: the registered output.
    pub fn mi_process_info_print_out(out: Option<mi_output_fun>, arg: *mut c_void);
}
