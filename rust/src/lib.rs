//! A compact general-purpose allocator with the interface of mimalloc, written from scratch.
//!
//! The crate contains the C sources of the allocator and compiles them, with the crate [`cc`](https://docs.rs/cc) and a C
//! compiler. It is an independent implementation, and shares no code with Microsoft's mimalloc, which the crate `mimalloc`
//! contains. It needs no standard library.
//!
//! # Global allocator
//!
//! ```
//! use mimalloc_compat::MiMalloc;
//!
//! #[global_allocator]
//! static GLOBAL: MiMalloc = MiMalloc;
//!
//! let words: Vec<String> = "all of this is in its blocks".split(' ').map(String::from).collect();
//! assert_eq!(words.len(), 7);
//! assert!(mimalloc_compat::is_block(words.as_ptr()));
//! ```
//!
//! # Heaps
//!
//! A [`Heap`] is a set of blocks that are freed at once, when it is dropped. It serves any number of threads.
//!
//! ```
//! use mimalloc_compat::Heap;
//!
//! let heap = Heap::new().expect("there is memory");
//! let name = heap.boxed_str("Ada").expect("there is memory");
//! let squares = heap.boxed_slice(1000, |i| i * i).expect("there is memory");
//! assert_eq!((&*name, squares[30]), ("Ada", 900));
//! ```
//!
//! The containers of the standard library allocate from a heap inside [`DeleteHeap::with_default`], or, with the feature
//! `allocator_api` and a nightly compiler, by their `new_in`.
//!
//! # Statistics, options, errors
//!
//! [`stats`] has the statistics as numbers, as a table and as JSON, [`Opt`] the options, and [`set_error_handler`] is told of
//! errors such as a double free. [`collect`] gives memory back at once that would return to the system a little later.
//!
//! # Cost
//!
//! What takes no constant time says so. Allocating and freeing take constant time on average up to 512 KiB. Zeroed memory takes
//! time in proportion to its size, unless it is fresh from the system, and so does a reallocation that copies.
//!
//! # Features
//!
//! | feature | effect |
//! |---|---|
//! | `secure` | blocks are checked: overflows, double and invalid frees, and layouts that are not those of the block |
//! | `secure_full` | also clears, quarantines and separates freed memory |
//! | `debug` | all checks, also those of the library itself; `debug_in_debug`: in profiles with debug information only |
//! | `guarded` | one block in 4000 ends where memory is inaccessible; at run time, [`Opt::GuardedSampleRate`] does it in every build |
//! | `valgrind` | tells Valgrind about blocks; needs its header `valgrind/memcheck.h` |
//! | `override` | `malloc` and its relatives are this allocator, too, for C code in the process |
//! | `background_thread` | Linux: in programs with threads the library starts one of its own, which gives back memory that idle threads hold |
//! | `no_thp` | no transparent huge pages, unless the option asks for them |
//! | `xmalloc` | the process aborts when there is no memory |
//! | `local_dynamic_tls` | for a library that is opened with `dlopen` in processes where static thread-local storage is used up |
//! | `extended` | the module `raw`, the C interface |
//! | `level3` | the C interface is that of mimalloc 3; the rest of the crate is the same |
//! | `allocator_api` | nightly compilers: implements `core::alloc::Allocator` for the heaps and for [`MiMalloc`] |
//! | `v2`, `win_direct_tls` | no effect, for programs that name them: level 2 is the default |

#![no_std]
#![cfg_attr(feature = "allocator_api", feature(allocator_api))]
#![warn(missing_docs, unsafe_op_in_unsafe_fn)]

#[cfg(feature = "allocator_api")]
mod allocator_api;
mod block;
mod boxed;
mod callback;
mod error;
mod global;
mod heap;
mod option;
mod process;
pub mod stats;
mod visit;

#[cfg(feature = "extended")]
#[warn(missing_docs)]
pub mod raw;
#[cfg(not(feature = "extended"))]
#[allow(dead_code, unused_imports)]
mod raw;

pub use self::boxed::HeapBox;
pub use self::error::{set_error_handler, set_output, Error};
pub use self::global::MiMalloc;
pub use self::heap::{DeleteHeap, Heap, HeapRef};
pub use self::option::Opt;
pub use self::process::{
    collect, good_size, is_block, process_info, trim_to, usable_size, version, ProcessInfo,
};
pub use self::visit::{Area, Visit};
