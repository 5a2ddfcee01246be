//! This allocator as the global one, and where a block of it is.
//!
//!     cargo run --example global

use std::collections::BTreeMap;

use mimalloc_compat::{is_block, usable_size, MiMalloc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

fn main() {
    let mut counts = BTreeMap::new();
    for word in "the cat and the dog and the bird".split(' ') {
        *counts.entry(word.to_string()).or_insert(0) += 1;
    }
    println!("mimalloc {}: {counts:?}", mimalloc_compat::version());

    let text = String::from("text");
    assert!(is_block(text.as_ptr()));
    // Safety: the text is a live block.
    println!("a text of {} bytes may use {}", text.len(), unsafe { usable_size(text.as_ptr()) });
}
