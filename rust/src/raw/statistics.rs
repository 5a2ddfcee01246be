// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Prints a table.  The argument has no meaning, pass NULL.
    pub fn mi_stats_print(out: *mut c_void);

    /// Prints a table line by line.  NULL `out`: the registered output.  A thread has no numbers of its own: the second function
    /// prints those of the process, too.
    pub fn mi_stats_print_out(out: Option<mi_output_fun>, arg: *mut c_void);

    /// See [`mi_stats_print_out`](super::mi_stats_print_out), with which it is described.
    pub fn mi_thread_stats_print_out(out: Option<mi_output_fun>, arg: *mut c_void);

    /// The same for a heap, for a subprocess with all its heaps, and for a subprocess and then each of its heaps.
    pub fn mi_heap_stats_print_out(
        heap: *mut mi_heap_t,
        out: Option<mi_output_fun>,
        arg: *mut c_void,
    );

    /// See [`mi_heap_stats_print_out`](super::mi_heap_stats_print_out), with which it is described.
    pub fn mi_subproc_stats_print_out(
        subproc_id: mi_subproc_id_t,
        out: Option<mi_output_fun>,
        arg: *mut c_void,
    );

    /// See [`mi_heap_stats_print_out`](super::mi_heap_stats_print_out), with which it is described.
    pub fn mi_subproc_heap_stats_print_out(
        subproc_id: mi_subproc_id_t,
        out: Option<mi_output_fun>,
        arg: *mut c_void,
    );

    /// Resets the statistics: totals and peaks become the current values, and counters of events become 0.
    pub fn mi_stats_reset();

    /// These functions have no effect: the numbers of the process always include those of its threads and heaps.
    pub fn mi_stats_merge();

    /// See [`mi_stats_merge`](super::mi_stats_merge), with which it is described.
    pub fn mi_heap_stats_merge_to_subproc(heap: *mut mi_heap_t);
}
