//! The types of the C interface, and those of C itself.

pub use core::ffi::c_void;

// `core::ffi` has the rest since Rust 1.64 only.

/// `int` of C.
pub type c_int = i32;

/// `long` of C.
#[cfg(any(windows, target_pointer_width = "32"))]
pub type c_long = i32;
/// `long` of C.
#[cfg(not(any(windows, target_pointer_width = "32")))]
pub type c_long = i64;

macro_rules! char_unsigned_where {
    ($($where:tt)*) => {
        /// `char` of C, which is unsigned on some processors, except under Windows and the systems of Apple.
        #[cfg($($where)*)]
        pub type c_char = u8;
        /// `char` of C, which is unsigned on some processors, except under Windows and the systems of Apple.
        #[cfg(not($($where)*))]
        pub type c_char = i8;
    };
}

char_unsigned_where!(all(
    not(any(windows, target_vendor = "apple")),
    any(
        target_arch = "aarch64",
        target_arch = "arm",
        target_arch = "hexagon",
        target_arch = "powerpc",
        target_arch = "powerpc64",
        target_arch = "riscv32",
        target_arch = "riscv64",
        target_arch = "s390x"
    )
));

/// `wchar_t` of C.
#[cfg(windows)]
pub type wchar_t = u16;
/// `wchar_t` of C.
#[cfg(not(windows))]
pub type wchar_t = i32;

/// A set of blocks that can be visited, or freed at once. [`Heap`](crate::Heap) owns one.
#[repr(C)]
pub struct mi_heap_t {
    _opaque: [u8; 0],
    // Neither Send nor Sync nor Unpin by itself: the pointers are what C has.
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The part of a heap that belongs to one thread. Only that thread may use it.
#[repr(C)]
pub struct mi_theap_t {
    _opaque: [u8; 0],
    _marker: core::marker::PhantomData<(*mut u8, core::marker::PhantomPinned)>,
}

/// The number of an option.
pub type mi_option_t = c_int;

/// An arena: a range of address space that a program has reserved or provided. 0 means no arena.
#[cfg(not(feature = "level3"))]
pub type mi_arena_id_t = c_int;
/// An arena: a range of address space that a program has reserved or provided. NULL means no arena.
#[cfg(feature = "level3")]
pub type mi_arena_id_t = *mut c_void;

/// A subprocess: threads and heaps that share no memory with those of other subprocesses.
#[cfg(not(feature = "level3"))]
pub type mi_subproc_id_t = *mut c_void;
/// A subprocess: threads and heaps that share no memory with those of other subprocesses.
#[cfg(feature = "level3")]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mi_subproc_id_t {
    /// NULL if there is none.
    pub _mi_subproc_id: *mut c_void,
}

/// A range of memory with blocks of one size.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct mi_heap_area_t {
    /// Where the blocks begin.
    pub blocks: *mut c_void,
    /// Bytes that they may occupy.
    pub reserved: usize,
    /// Bytes that are usable at present.
    pub committed: usize,
    /// Blocks in use.
    pub used: usize,
    /// Bytes of a block that a program can use.
    pub block_size: usize,
    /// Bytes from a block to the next, with padding.
    pub full_block_size: usize,
    /// The tag that [`mi_heap_new_ex`](super::mi_heap_new_ex) was given.
    #[cfg(not(feature = "level3"))]
    pub heap_tag: c_int,
    /// Has no meaning.
    #[cfg(feature = "level3")]
    pub reserved1: *mut c_void,
}

/// Called by `mi_collect`, and from time to time by an allocation: `force`, `heartbeat`, `arg`. Must not unwind, as all
/// functions that the library calls.
pub type mi_deferred_free_fun = unsafe extern "C" fn(bool, u64, *mut c_void);
/// Receives what the allocator prints: a terminated text, `arg`.
pub type mi_output_fun = unsafe extern "C" fn(*const c_char, *mut c_void);
/// Called with each error: its number (EAGAIN, EFAULT, EINVAL, ENOMEM, EOVERFLOW), `arg`.
pub type mi_error_fun = unsafe extern "C" fn(c_int, *mut c_void);
/// Makes a part of an arena usable, or gives it up: `commit`, `start`, `size`, `is_zero`, `arg`. Returns whether it succeeded.
pub type mi_commit_fun_t =
    unsafe extern "C" fn(bool, *mut c_void, usize, *mut bool, *mut c_void) -> bool;
/// Called for each area, with NULL as the block, and for each of its blocks: `heap`, `area`, `block`, `block_size`, `arg`.
/// Returning false ends the visit.
pub type mi_block_visit_fun = unsafe extern "C" fn(
    *const mi_heap_t,
    *const mi_heap_area_t,
    *mut c_void,
    usize,
    *mut c_void,
) -> bool;
/// Called for each heap: `heap`, `arg`. Returning false ends the visit.
pub type mi_heap_visit_fun = unsafe extern "C" fn(*mut mi_heap_t, *mut c_void) -> bool;

/// The largest size for the functions with `_small` in their names.
pub const MI_SMALL_SIZE_MAX: usize = 128 * core::mem::size_of::<*mut c_void>();

/// Changes with the layout of [`mi_stats_t`](super::mi_stats_t).
pub const MI_STAT_VERSION: usize = if cfg!(feature = "level3") { 5 } else { 4 };

/// The last bin of [`mi_stats_t`](super::mi_stats_t), for blocks with a page of their own.
pub const MI_BIN_HUGE: usize = 73;

/// How many `chunk_bins` there are in [`mi_stats_t`](super::mi_stats_t).
#[cfg(feature = "level3")]
pub const MI_CBIN_COUNT: usize = 6;

/// An amount that goes up and down.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct mi_stat_count_t {
    /// The sum of all increases.
    pub total: i64,
    /// The largest value.
    pub peak: i64,
    /// The present value.
    pub current: i64,
}

/// An amount that only grows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct mi_stat_counter_t {
    /// The present value.
    pub total: i64,
}
