use core::fmt;
use core::mem;
use core::ptr;

use crate::callback::{bytes_of, without_unwinding};
use crate::raw::{self, c_char, c_int, c_void};

/// An error of the program, or a lack of memory, as [`set_error_handler`] is told of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Error {
    /// There is no memory.
    OutOfMemory,
    /// A size is larger than any block can be.
    TooLarge,
    /// A pointer is not a block of this allocator, or its layout is not that of the block.
    Invalid,
    /// A block was freed twice.
    DoubleFree,
    /// Memory was overwritten: behind a block, in a free block, or in the allocator's own lists.
    Overwritten,
    /// Another error, with its number.
    Other(i32),
}

// The numbers are those of the C library. They differ between systems, except these three.
const EINVAL: c_int = 22;
const ENOMEM: c_int = 12;
const EFAULT: c_int = 14;
#[cfg(any(target_os = "linux", target_os = "android", windows))]
const EAGAIN: c_int = 11;
#[cfg(not(any(target_os = "linux", target_os = "android", windows)))]
const EAGAIN: c_int = 35;
#[cfg(any(target_os = "linux", target_os = "android"))]
const EOVERFLOW: c_int = 75;
#[cfg(windows)]
const EOVERFLOW: c_int = 132;
#[cfg(target_os = "openbsd")]
const EOVERFLOW: c_int = 87;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "openbsd", windows)))]
const EOVERFLOW: c_int = 84;

impl Error {
    fn of(number: c_int) -> Self {
        match number {
            ENOMEM => Self::OutOfMemory,
            EOVERFLOW => Self::TooLarge,
            EINVAL => Self::Invalid,
            EAGAIN => Self::DoubleFree,
            EFAULT => Self::Overwritten,
            other => Self::Other(other),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OutOfMemory => "out of memory",
            Self::TooLarge => "the size is larger than any block can be",
            Self::Invalid => "not a valid block, or not its layout",
            Self::DoubleFree => "a block was freed twice",
            Self::Overwritten => "memory was overwritten",
            Self::Other(number) => return write!(f, "error {number}"),
        })
    }
}

unsafe extern "C" fn on_error(number: c_int, arg: *mut c_void) {
    // Safety: `arg` is the function that was registered.
    let handler = unsafe { mem::transmute::<*mut c_void, fn(Error)>(arg) };
    without_unwinding(|| handler(Error::of(number)));
}

unsafe extern "C" fn on_output(text: *const c_char, arg: *mut c_void) {
    // Safety: `arg` is the function that was registered, and the text is terminated.
    let (handler, text) =
        unsafe { (mem::transmute::<*mut c_void, fn(&[u8])>(arg), bytes_of(text)) };
    without_unwinding(|| handler(text));
}

/// The function that is called with each error, after its message. It replaces the previous one; `None` restores the default.
///
/// By default, errors other than a lack of memory abort the process in builds that check blocks (`secure`, `debug`), and a lack
/// of memory aborts it with the feature `xmalloc`. If there is a function and it returns, the program continues: what is not a
/// valid block is not freed, and of overwritten memory the intact parts are used.
///
/// Any thread may call the function, in the midst of an allocation or a deallocation, and several threads at once. If it panics,
/// the process ends.
///
/// ```
/// use mimalloc_compat::{set_error_handler, Error, MiMalloc};
/// use std::alloc::{GlobalAlloc, Layout};
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// static FAILED: AtomicUsize = AtomicUsize::new(0);
///
/// set_error_handler(Some(|error| {
///     if matches!(error, Error::OutOfMemory | Error::TooLarge) {
///         FAILED.fetch_add(1, Ordering::Relaxed);
///     }
/// }));
/// let most = Layout::from_size_align(isize::MAX as usize, 1).unwrap();
/// assert!(unsafe { MiMalloc.alloc(most) }.is_null());
/// assert_eq!(FAILED.load(Ordering::Relaxed), 1);
/// ```
pub fn set_error_handler(handler: Option<fn(Error)>) {
    let arg = handler.map_or(ptr::null_mut(), |handler| handler as *mut c_void);
    // Safety: `on_error` gets the argument that it expects.
    unsafe { raw::mi_register_error(handler.map(|_| on_error as raw::mi_error_fun), arg) }
}

/// The function that receives everything that the allocator prints, in place of the standard error. `None` restores that. Up to
/// 16 KiB of earlier output are delivered at once. The text may be a part of a line or several lines.
///
/// Any thread may call the function, in the midst of an allocation or a deallocation, and several threads at once. Output that the
/// function itself causes is not delivered to it. If it panics, the process ends.
pub fn set_output(output: Option<fn(&[u8])>) {
    let arg = output.map_or(ptr::null_mut(), |output| output as *mut c_void);
    // Safety: `on_output` gets the argument that it expects.
    unsafe { raw::mi_register_output(output.map(|_| on_output as raw::mi_output_fun), arg) }
}
