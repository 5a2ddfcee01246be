// Made by scripts/rust-bindings.py from the public headers: do not edit.

use super::*;

extern "C" {
    /// Return the main subprocess, that of the calling thread, and a new one (whose id holds NULL if there is no memory).
    pub fn mi_subproc_main() -> mi_subproc_id_t;

    /// See [`mi_subproc_main`](super::mi_subproc_main), with which it is described.
    pub fn mi_subproc_current() -> mi_subproc_id_t;

    /// See [`mi_subproc_main`](super::mi_subproc_main), with which it is described.
    pub fn mi_subproc_new() -> mi_subproc_id_t;

    /// Moves the calling thread into a subprocess.  A thread can be moved once, out of the main subprocess; blocks that it has allocated
    /// before stay there.  A thread that is in that subprocess already stays in it.  A failure changes nothing: without memory it is
    /// reported (ENOMEM); a warning is printed if the thread is in another subprocess than the main one, if it is in destructors at its
    /// very end, or if the subprocess has ended.  (A new subprocess may get the id of one that has ended.)  [`mi_subproc_current`](super::mi_subproc_current) tells
    /// where the thread is.
    pub fn mi_subproc_add_current_thread(subproc: mi_subproc_id_t);

    /// End a subprocess with all its heaps.  While it has threads, and for [`mi_subproc_delete`](super::mi_subproc_delete) also while it has memory in use, the
    /// call has no effect and prints a warning.  [`mi_subproc_destroy`](super::mi_subproc_destroy) frees everything in it.  The main subprocess and NULL are
    /// ignored.  O(heaps of the subprocess and their pages, and in builds that check blocks also the blocks that are freed).
    pub fn mi_subproc_delete(subproc: mi_subproc_id_t);

    /// See [`mi_subproc_delete`](super::mi_subproc_delete), with which it is described.
    pub fn mi_subproc_destroy(subproc: mi_subproc_id_t);

    /// Calls `visitor` with each heap of the subprocess, until it returns false.  Returns false if the visitor did, or is NULL.
    /// The visitor must not make or end heaps.  O(heaps).
    pub fn mi_subproc_visit_heaps(
        subproc: mi_subproc_id_t,
        visitor: Option<mi_heap_visit_fun>,
        arg: *mut c_void,
    ) -> bool;
}
