//! Memory from this allocator, without the standard library: exit status 42 if all is well.
#![no_std]
#![no_main]

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use mimalloc_compat::{is_block, Heap, MiMalloc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

extern "C" {
    fn abort() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    // Safety: it ends the process.
    unsafe { abort() }
}

// The library `alloc` was compiled for programs that unwind, and names this function; nothing calls it.
#[no_mangle]
pub extern "C" fn rust_eh_personality() {}

#[no_mangle]
pub extern "C" fn main(_argc: i32, _argv: *const *const u8) -> i32 {
    let mut map: BTreeMap<usize, String> = BTreeMap::new();
    for i in 0..1000 {
        map.insert(i * 7919 % 1009, format!("{i}"));
    }
    let heap = Heap::new().expect("there is memory");
    let text = heap.boxed_str(&map[&7]).expect("there is memory");
    let good = map.len() == 1000 && is_block(map[&7].as_ptr()) && heap.contains(text.as_ptr());
    if good {
        42
    } else {
        1
    }
}

// The libraries of Rust name libc, but only the standard library links it.
#[link(name = "c")]
extern "C" {}
#[link(name = "gcc_s")]
extern "C" {}
