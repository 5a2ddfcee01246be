// Prints who serves what, in the form of ../../client.c; "rust" is what the standard library of Rust allocates.
use std::collections::HashMap;
use std::ffi::c_void;
use std::thread;

#[cfg(feature = "bindings")]
mod allocator {
    pub use libmimalloc_sys::{mi_is_in_heap_region, mi_version};
    pub type Allocator = mimalloc::MiMalloc;
    pub const ALLOCATOR: Allocator = mimalloc::MiMalloc;
}

#[cfg(not(feature = "bindings"))]
mod allocator {
    use std::alloc::{GlobalAlloc, Layout};
    use std::ffi::{c_int, c_void};

    extern "C" {
        fn mi_malloc_aligned(size: usize, alignment: usize) -> *mut c_void;
        fn mi_zalloc_aligned(size: usize, alignment: usize) -> *mut c_void;
        fn mi_realloc_aligned(p: *mut c_void, size: usize, alignment: usize) -> *mut c_void;
        fn mi_free(p: *mut c_void);
        pub fn mi_is_in_heap_region(p: *const c_void) -> bool;
        pub fn mi_version() -> c_int;
    }

    pub struct Allocator;
    pub const ALLOCATOR: Allocator = Allocator;

    unsafe impl GlobalAlloc for Allocator {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            mi_malloc_aligned(layout.size(), layout.align()).cast()
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            mi_zalloc_aligned(layout.size(), layout.align()).cast()
        }
        unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            mi_realloc_aligned(p.cast(), size, layout.align()).cast()
        }
        unsafe fn dealloc(&self, p: *mut u8, _: Layout) {
            mi_free(p.cast())
        }
    }
}

#[global_allocator]
static GLOBAL: allocator::Allocator = allocator::ALLOCATOR;

extern "C" {
    fn malloc(size: usize) -> *mut c_void;
    fn free(p: *mut c_void);
}

fn served<T>(p: *const T) -> &'static str {
    if unsafe { allocator::mi_is_in_heap_region(p.cast()) } { "ours" } else { "other" }
}

fn work(n: usize) -> usize {
    let mut words: HashMap<String, Vec<u64>> = HashMap::new();
    for i in 0..20000 {
        words.entry(format!("word {}", i % 1000)).or_default().push((i * n) as u64);
    }
    words.values().map(|v| v.len()).sum()
}

fn main() {
    let threads: Vec<_> = (0..4).map(|n| thread::spawn(move || (work(n), Box::new([n as u8; 5000])))).collect();
    let mut boxes = Vec::new();
    for t in threads {
        let (sum, made) = t.join().unwrap();
        assert_eq!(sum, 20000);
        boxes.push(made); // freed here, allocated there
    }
    #[repr(align(4096))]
    struct Aligned(u8);
    let aligned = Box::new(Aligned(1));
    assert_eq!(&*aligned as *const Aligned as usize % 4096, 0);
    assert_eq!(aligned.0, 1);
    assert!(vec![0u8; 1 << 20].iter().all(|b| *b == 0));
    let block = unsafe { malloc(100) };
    println!("version={} rust={} malloc={}", unsafe { allocator::mi_version() }, served(boxes.as_ptr()), served(block));
    unsafe { free(block) };
}
