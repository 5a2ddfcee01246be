//! The C interface, for what the rest of the crate has not: here an arena, with a heap of its own.
//!
//!     cargo run --features extended --example raw

use std::mem::MaybeUninit;

use mimalloc_compat::{raw, HeapRef};

fn main() {
    let size = 64 << 20;
    let mut arena = MaybeUninit::uninit();
    // Safety: the pointer is valid, and the arena stays until the process ends.
    unsafe {
        let result = raw::mi_reserve_os_memory_ex(size, false, false, true, arena.as_mut_ptr());
        assert_eq!(result, 0, "there is address space");
        let arena = arena.assume_init();
        let heap = raw::mi_heap_new_in_arena(arena);
        assert!(!heap.is_null());
        {
            let heap = HeapRef::from_raw(heap);
            let values = heap.boxed_slice(1000, |i| i as f64).expect("there is memory");
            assert!(raw::mi_arena_contains(arena, values.as_ptr().cast()));
            println!("the sum is {}", values.iter().sum::<f64>());
        }
        raw::mi_heap_destroy(heap);
    }
}
