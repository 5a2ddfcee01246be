//! What the allocator knows about a program: numbers, a table, JSON, blocks that are not freed.
//!
//!     cargo run --example statistics

use mimalloc_compat::{collect, process_info, stats, MiMalloc, Opt};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

fn main() {
    Opt::PurgeDelay.set(100); // as MIMALLOC_PURGE_DELAY=100

    let before = stats::process();
    let texts: Vec<String> = (0..100_000).map(|i| format!("text number {i}")).collect();
    let after = stats::process();
    println!(
        "{} texts: {} blocks, {} bytes",
        texts.len(),
        after.blocks_in_use() - before.blocks_in_use(),
        after.bytes_in_use() - before.bytes_in_use()
    );

    drop(texts);
    collect(true); // would happen by itself
    let info = process_info();
    println!("{} KiB resident, at most {} KiB", info.rss / 1024, info.peak_rss / 1024);

    println!("\n{}", stats::Table);
    println!("{}", stats::Leaks);
    let json = stats::json().expect("there is memory");
    println!("JSON: {} bytes, it begins with {:?}", json.len(), &json[..20]);
}
