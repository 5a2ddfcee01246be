//! The functions of `mimalloc.h` and `mimalloc-stats.h`, by their C names and with the text of the headers.
//!
//! With the feature `level3` it is the interface of level 3: other numbers of options, other types of arenas, subprocesses and
//! statistics. Functions that the headers define as macros or inline functions are not here, nor is what C++ has beyond C.
//!
//! All functions are `unsafe`: Rust does not know what C promises. A description that says "any pointer" means it. The usual
//! duties are: blocks are freed once and not used afterwards; a heap is not used while or after it is deleted or destroyed;
//! functions that are called back do not unwind.

#![allow(non_camel_case_types, non_upper_case_globals)]

mod aligned;
mod arenas;
mod basic;
mod errors;
mod from_heap;
mod heaps;
mod hooks;
mod numbers;
mod operators;
mod option_numbers;
mod options;
mod owners;
mod posix;
mod process;
mod sized;
mod statistics;
mod stats_t;
mod subprocesses;
mod theaps;
mod types;
mod visits;

pub use self::{
    aligned::*, arenas::*, basic::*, errors::*, from_heap::*, heaps::*, hooks::*, numbers::*,
    operators::*, option_numbers::*, options::*, owners::*, posix::*, process::*, sized::*,
    statistics::*, stats_t::*, subprocesses::*, theaps::*, types::*, visits::*,
};

impl Default for mi_stats_t {
    /// All zero, with `size` and `version` set.
    fn default() -> Self {
        // Safety: zeros are a value of every field.
        let mut stats: Self = unsafe { core::mem::zeroed() };
        stats.size = core::mem::size_of::<Self>();
        stats.version = MI_STAT_VERSION;
        stats
    }
}
