//! Functions of Rust that C calls.

use core::fmt::{self, Write};

use crate::raw::{c_char, c_void};

/// Ends the process if a panic is about to unwind into C, which has no way to go on: its drop then panics a second time.
pub(crate) struct NoUnwind;

impl Drop for NoUnwind {
    #[cold]
    fn drop(&mut self) {
        panic!("a function that the allocator has called panicked");
    }
}

/// Runs `function`, from which no panic gets out.
pub(crate) fn without_unwinding<R>(function: impl FnOnce() -> R) -> R {
    let bomb = NoUnwind;
    let result = function();
    core::mem::forget(bomb);
    result
}

/// The bytes of a terminated text.
///
/// # Safety
/// `text` is a terminated text that lives as long as the result.
pub(crate) unsafe fn bytes_of<'a>(text: *const c_char) -> &'a [u8] {
    // Safety: the bytes up to the terminator belong to the text.
    unsafe {
        let mut length = 0;
        while *text.add(length) != 0 {
            length += 1;
        }
        core::slice::from_raw_parts(text.cast(), length)
    }
}

/// Writes text of the library, which is ASCII except for names that the environment or the file system have given.
pub(crate) fn write_text(out: &mut dyn Write, mut text: &[u8]) -> fmt::Result {
    loop {
        match core::str::from_utf8(text) {
            Ok(valid) => return out.write_str(valid),
            Err(error) => {
                let (valid, rest) = text.split_at(error.valid_up_to());
                // Safety: the error says so.
                out.write_str(unsafe { core::str::from_utf8_unchecked(valid) })?;
                out.write_char(char::REPLACEMENT_CHARACTER)?;
                text = error.error_len().map_or(&[], |length| &rest[length..]);
            }
        }
    }
}

struct Writer<'a> {
    out: &'a mut dyn Write,
    result: fmt::Result,
}

unsafe extern "C" fn write_part(text: *const c_char, arg: *mut c_void) {
    without_unwinding(|| {
        // Safety: `arg` is the writer of `print_to`, which waits; `text` is terminated.
        let (writer, text) = unsafe { (&mut *arg.cast::<Writer<'_>>(), bytes_of(text)) };
        if writer.result.is_ok() {
            writer.result = write_text(writer.out, text);
        }
    })
}

/// What a function of the library prints when it is given an output function and its argument.
pub(crate) fn print_to(
    out: &mut dyn Write,
    print: impl FnOnce(unsafe extern "C" fn(*const c_char, *mut c_void), *mut c_void),
) -> fmt::Result {
    let mut writer = Writer { out, result: Ok(()) };
    let arg: *mut Writer<'_> = &mut writer;
    print(write_part, arg.cast());
    writer.result
}
