// Made by scripts/rust-bindings.py from mimalloc.h: do not edit.

use super::mi_option_t;

/// Print errors and warnings. Default: 0 or 1.
pub const mi_option_show_errors: mi_option_t = 0;

/// Print statistics at exit. Default: 0.
pub const mi_option_show_stats: mi_option_t = 1;

/// Print events: 1 at start and exit, 2 always. Default: 0.
pub const mi_option_verbose: mi_option_t = 2;

/// No effect here. Default: 1.
#[cfg(not(feature = "level3"))]
pub const mi_option_eager_commit: mi_option_t = 3;

/// No effect here. Default: 1.
#[cfg(feature = "level3")]
pub const mi_option_deprecated_eager_commit: mi_option_t = 3;

/// Commit arenas: 0 no, 1 yes, 2 if the OS overcommits. Default: 2.
pub const mi_option_arena_eager_commit: mi_option_t = 4;

/// Purge: 1 give back at once, 0 when the OS needs it. Default: 1.
pub const mi_option_purge_decommits: mi_option_t = 5;

/// Use large OS pages if the system has some. Default: 0.
pub const mi_option_allow_large_os_pages: mi_option_t = 6;

/// Reserve this many OS pages of 1 GiB at start. Default: 0.
pub const mi_option_reserve_huge_os_pages: mi_option_t = 7;

/// On this NUMA node, -1 on all. Default: -1.
pub const mi_option_reserve_huge_os_pages_at: mi_option_t = 8;

/// Reserve memory at start, KiB. Default: 0.
pub const mi_option_reserve_os_memory: mi_option_t = 9;

/// No effect here. Default: 0.
pub const mi_option_deprecated_segment_cache: mi_option_t = 10;

/// No effect here. Default: 0.
pub const mi_option_deprecated_page_reset: mi_option_t = 11;

/// No effect here. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_abandoned_page_purge: mi_option_t = 12;

/// No effect here. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_deprecated_abandoned_page_purge: mi_option_t = 12;

/// No effect here. Default: 0.
pub const mi_option_deprecated_segment_reset: mi_option_t = 13;

/// No effect here. Default: 1.
#[cfg(not(feature = "level3"))]
pub const mi_option_eager_commit_delay: mi_option_t = 14;

/// No effect here. Default: 1.
#[cfg(feature = "level3")]
pub const mi_option_deprecated_eager_commit_delay: mi_option_t = 14;

/// Ms until a purge, 0 once 1 MiB is free, -1 never. Default: 10, 1000.
pub const mi_option_purge_delay: mi_option_t = 15;

/// Assume this many NUMA nodes, 0 those that exist. Default: 0.
pub const mi_option_use_numa_nodes: mi_option_t = 16;

/// Use only memory that was reserved or given before. Default: 0.
pub const mi_option_disallow_os_alloc: mi_option_t = 17;

/// No effect here. Default: 100.
pub const mi_option_os_tag: mi_option_t = 18;

/// Print this many errors, < 0 all. Default: 32.
pub const mi_option_max_errors: mi_option_t = 19;

/// Print this many warnings, < 0 all. Default: 32.
pub const mi_option_max_warnings: mi_option_t = 20;

/// No effect here. Default: 10.
#[cfg(not(feature = "level3"))]
pub const mi_option_max_segment_reclaim: mi_option_t = 21;

/// No effect here. Default: 10.
#[cfg(feature = "level3")]
pub const mi_option_deprecated_max_segment_reclaim: mi_option_t = 21;

/// No effect here. Default: 0.
pub const mi_option_destroy_on_exit: mi_option_t = 22;

/// Size of arenas, KiB. Default: 1048576.
pub const mi_option_arena_reserve: mi_option_t = 23;

/// Purge_delay times this is the delay for arenas. Default: 10, 1.
pub const mi_option_arena_purge_mult: mi_option_t = 24;

/// No effect here. Default: 1.
#[cfg(not(feature = "level3"))]
pub const mi_option_purge_extend_delay: mi_option_t = 25;

/// No effect here. Default: 1.
#[cfg(feature = "level3")]
pub const mi_option_deprecated_purge_extend_delay: mi_option_t = 25;

/// No effect here. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_abandoned_reclaim_on_free: mi_option_t = 26;

/// Use arenas only where a heap asks for one. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_disallow_arena_alloc: mi_option_t = 27;

/// Use arenas only where a heap asks for one. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_disallow_arena_alloc: mi_option_t = 26;

/// No effect here. Default: 400.
#[cfg(not(feature = "level3"))]
pub const mi_option_retry_on_oom: mi_option_t = 28;

/// No effect here. Default: 400.
#[cfg(feature = "level3")]
pub const mi_option_retry_on_oom: mi_option_t = 27;

/// Allow visits of blocks of threads that have ended. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_visit_abandoned: mi_option_t = 29;

/// Allow visits of blocks of threads that have ended. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_visit_abandoned: mi_option_t = 28;

/// Smallest size, bytes, of guarded blocks. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_guarded_min: mi_option_t = 30;

/// Smallest size, bytes, of guarded blocks. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_guarded_min: mi_option_t = 29;

/// Largest such size, bytes. Default: 1073741824.
#[cfg(not(feature = "level3"))]
pub const mi_option_guarded_max: mi_option_t = 31;

/// Largest such size, bytes. Default: 1073741824.
#[cfg(feature = "level3")]
pub const mi_option_guarded_max: mi_option_t = 30;

/// Guarded blocks end at the guard page, if unaligned. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_guarded_precise: mi_option_t = 32;

/// Guarded blocks end at the guard page, if unaligned. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_guarded_precise: mi_option_t = 31;

/// Guard one block in this many, 0 none. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_guarded_sample_rate: mi_option_t = 33;

/// Guard one block in this many, 0 none. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_guarded_sample_rate: mi_option_t = 32;

/// Seed of the random choice, 0 a random one. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_guarded_sample_seed: mi_option_t = 34;

/// Seed of the random choice, 0 a random one. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_guarded_sample_seed: mi_option_t = 33;

/// No effect here. Default: 0.
#[cfg(not(feature = "level3"))]
pub const mi_option_target_segments_per_thread: mi_option_t = 35;

/// No effect here. Default: 10000.
#[cfg(not(feature = "level3"))]
pub const mi_option_generic_collect: mi_option_t = 36;

/// No effect here. Default: 10000.
#[cfg(feature = "level3")]
pub const mi_option_generic_collect: mi_option_t = 34;

/// No effect here. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_page_reclaim_on_free: mi_option_t = 35;

/// No effect here. Default: 2.
#[cfg(feature = "level3")]
pub const mi_option_page_full_retain: mi_option_t = 36;

/// No effect here. Default: 4.
#[cfg(feature = "level3")]
pub const mi_option_page_max_candidates: mi_option_t = 37;

/// No effect here. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_max_vabits: mi_option_t = 38;

/// No effect here. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_pagemap_commit: mi_option_t = 39;

/// No effect here. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_page_commit_on_demand: mi_option_t = 40;

/// No effect here. Default: -1.
#[cfg(feature = "level3")]
pub const mi_option_page_max_reclaim: mi_option_t = 41;

/// No effect here. Default: 32.
#[cfg(feature = "level3")]
pub const mi_option_page_cross_thread_max_reclaim: mi_option_t = 42;

/// Huge pages: 0 no, 1 dense, 2 all from 32 MiB on. Default: 1.
#[cfg(not(feature = "level3"))]
pub const mi_option_allow_thp: mi_option_t = 37;

/// Huge pages: 0 no, 1 dense, 2 all from 32 MiB on. Default: 1.
#[cfg(feature = "level3")]
pub const mi_option_allow_thp: mi_option_t = 43;

/// No effect here. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_minimal_purge_size: mi_option_t = 44;

/// No effect here. Default: 2097152.
#[cfg(feature = "level3")]
pub const mi_option_arena_max_object_size: mi_option_t = 45;

/// No effect here. Default: 0.
#[cfg(feature = "level3")]
pub const mi_option_arena_is_numa_local: mi_option_t = 46;

/// How many options there are.
pub const _mi_option_last: mi_option_t = if cfg!(feature = "level3") { 47 } else { 38 };
