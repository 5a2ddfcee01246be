//! A server with a heap for each request: what the request allocates is freed at once at its end, on whatever thread.
//!
//!     cargo run --example requests

use std::sync::mpsc;
use std::thread;

use mimalloc_compat::{DeleteHeap, Heap, HeapBox, MiMalloc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

/// The words of a request, in its heap. Nobody frees them one by one.
struct Request<'heap> {
    words: HeapBox<'heap, [&'heap str]>,
}

impl<'heap> Request<'heap> {
    fn parse(heap: &'heap Heap, text: &str) -> Option<Self> {
        let text: &'heap str = heap.boxed_str(text)?.leak();
        let count = text.split_whitespace().count();
        let mut words = text.split_whitespace();
        Some(Self { words: heap.boxed_slice(count, |_| words.next().unwrap_or(""))? })
    }

    fn longest(&self) -> Option<&'heap str> {
        self.words.iter().copied().max_by_key(|word| word.len())
    }
}

/// What a worker does with one request. Only the answer outlives it.
fn serve(text: &str) -> Option<String> {
    let heap = Heap::new()?;
    let request = Request::parse(&heap, text)?;
    let answer = request.longest()?.to_uppercase();
    Some(format!("{answer} (of {} words)", request.words.len()))
} // here the heap goes, with the text and the words

fn main() {
    let (sender, answers) = mpsc::channel();
    let workers: Vec<_> = (0..4)
        .map(|worker| {
            let sender = sender.clone();
            thread::spawn(move || {
                for i in 0..250 {
                    let text = format!("request {i} to worker number {worker}");
                    sender.send(serve(&text).expect("there is memory")).expect("somebody listens");
                }
            })
        })
        .collect();
    drop(sender);
    let answers: Vec<String> = answers.iter().collect();
    workers.into_iter().for_each(|worker| worker.join().expect("no worker panics"));
    assert_eq!(answers.len(), 1000);
    println!("{} answers, the last one: {}", answers.len(), answers[999]);

    // How much does one request take, with all that the standard library allocates for it?
    let heap = DeleteHeap::new().expect("there is memory");
    let kept = heap.with_default(|| vec![serve("how much does this take"); 10]);
    println!(
        "{} bytes in {} blocks for 10 answers",
        heap.stats().bytes_in_use(),
        heap.stats().blocks_in_use()
    );
    drop(heap);
    assert_eq!(kept[9].as_deref(), Some("TAKE (of 5 words)")); // still there: the heap was deleted, not destroyed
}
