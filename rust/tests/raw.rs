//! The C interface: every function is there, and numbers and structures are those of the headers.
#![cfg(feature = "extended")]

#[path = "common/raw_names.rs"]
mod raw_names;

use std::ffi::{CStr, CString};
use std::os::raw::c_void;
use std::ptr;

use mimalloc_compat::{raw, version, MiMalloc};

#[global_allocator]
static GLOBAL: MiMalloc = MiMalloc;

#[test]
fn every_function_links() {
    assert!(raw_names::FUNCTIONS.len() > 190);
    assert!(raw_names::FUNCTIONS.iter().all(|(_, address)| !address.is_null()));
}

#[test]
fn numbers_of_options_are_those_of_the_library() {
    // The library prints its options by name, in order.
    unsafe extern "C" fn collect(text: *const raw::c_char, arg: *mut c_void) {
        let text = CStr::from_ptr(text).to_string_lossy();
        (*arg.cast::<String>()).push_str(&text);
    }
    let mut text = String::with_capacity(1 << 16);
    let option = raw::mi_option_purge_delay;
    unsafe {
        raw::mi_option_set(option, 4321);
        raw::mi_option_set(raw::mi_option_max_errors, 8765);
        raw::mi_option_set(raw::mi_option_guarded_max, 987_654);
        raw::mi_options_print_out(Some(collect), ptr::addr_of_mut!(text).cast());
    }
    for (name, value) in
        [("purge_delay", "4321"), ("max_errors", "8765"), ("guarded_max", "987654")]
    {
        let line = text.lines().find(|line| line.contains(name));
        assert!(line.map_or(false, |line| line.contains(value)), "{name}: {line:?} in {text}");
    }
    // One number more is one too many.
    assert_eq!(raw::_mi_option_last, if cfg!(feature = "level3") { 47 } else { 38 });
}

#[test]
fn strings_arrays_and_arenas() {
    unsafe {
        let text = CString::new("a text").unwrap();
        let copy = raw::mi_strdup(text.as_ptr());
        assert_eq!(CStr::from_ptr(copy), text.as_c_str());
        raw::mi_free(copy.cast());
        let many = raw::mi_calloc(100, 8);
        let many = raw::mi_recalloc(many, 200, 8).cast::<u64>();
        assert!((0..200).all(|i| *many.add(i) == 0));
        raw::mi_free(many.cast());
        assert!(raw::mi_mallocn(usize::MAX, 2).is_null());
        let mut arena = std::mem::zeroed();
        assert_eq!(raw::mi_reserve_os_memory_ex(64 << 20, false, false, true, &mut arena), 0);
        let mut size = 0;
        let start = raw::mi_arena_area(arena, &mut size);
        assert!(!start.is_null() && size >= 64 << 20 && raw::mi_arena_contains(arena, start));
        let heap = raw::mi_heap_new_in_arena(arena);
        let block = raw::mi_heap_malloc(heap, 1000);
        assert!(raw::mi_arena_contains(arena, block) && raw::mi_heap_of(block) == heap);
        raw::mi_heap_destroy(heap);
    }
    assert_eq!(version(), unsafe { raw::mi_version() } as u32);
}

/// What Rust calls a subprocess, an arena and a visit has the layout that C gives it: they come back as they went.
#[test]
fn subprocesses_and_visits() {
    unsafe extern "C" fn count(
        _heap: *const raw::mi_heap_t,
        area: *const raw::mi_heap_area_t,
        block: *mut c_void,
        size: usize,
        arg: *mut c_void,
    ) -> bool {
        assert_eq!((*area).block_size, size);
        assert!((*area).full_block_size >= size && (*area).committed <= (*area).reserved);
        #[cfg(not(feature = "level3"))]
        assert_eq!((*area).heap_tag, 93);
        *arg.cast::<usize>() += usize::from(!block.is_null());
        true
    }
    unsafe extern "C" fn heaps(_heap: *mut raw::mi_heap_t, arg: *mut c_void) -> bool {
        *arg.cast::<usize>() += 1;
        true
    }
    unsafe {
        let heap = raw::mi_heap_new_ex(93, true, std::mem::zeroed());
        for _ in 0..10 {
            assert!(!raw::mi_heap_malloc(heap, 100).is_null());
        }
        let mut blocks = 0usize;
        assert!(raw::mi_heap_visit_blocks(
            heap,
            true,
            Some(count),
            ptr::addr_of_mut!(blocks).cast()
        ));
        assert_eq!(blocks, 10);
        let mut number = 0usize;
        let subproc = raw::mi_subproc_main();
        raw::mi_subproc_visit_heaps(subproc, Some(heaps), ptr::addr_of_mut!(number).cast());
        assert!(number >= 2, "{number} heaps");
        raw::mi_heap_destroy(heap);
    }
}
