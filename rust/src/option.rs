use crate::raw::{self, c_long, mi_option_t};

macro_rules! options {
    ($($(#[$doc:meta])* $name:ident = $number:ident,)*) => {
        /// The options that have an effect in this library. Those that have none are in the raw interface only.
        ///
        /// An option has the first of these values that is set: by [`set`](Opt::set); by the environment variable `MIMALLOC_` and its
        /// name, as in `MIMALLOC_PURGE_DELAY=100`; by [`set_default`](Opt::set_default); its default.
        ///
        /// ```
        /// use mimalloc_compat::Opt;
        ///
        /// Opt::PurgeDelay.set(100);
        /// assert_eq!(Opt::PurgeDelay.get(), 100);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Opt {
            $($(#[$doc])* $name,)*
        }

        impl Opt {
            /// All of them.
            pub const ALL: &'static [Opt] = &[$(Opt::$name),*];

            /// The number of the option in the raw interface.
            pub fn number(self) -> mi_option_t {
                match self {
                    $(Opt::$name => raw::$number,)*
                }
            }
        }
    };
}

options! {
    /// Print errors and warnings. 0; 1 with the feature `debug`.
    ShowErrors = mi_option_show_errors,
    /// Print statistics at exit. 0.
    ShowStats = mi_option_show_stats,
    /// Print events: 1 at start and exit, 2 always. 0.
    Verbose = mi_option_verbose,
    /// Commit arenas: 0 no, 1 yes, 2 if the system overcommits. 2.
    ArenaEagerCommit = mi_option_arena_eager_commit,
    /// Free memory goes back to the system at once when it is purged (1), or when the system needs it (0). 1.
    PurgeDecommits = mi_option_purge_decommits,
    /// Use large OS pages if the system has some. 0.
    AllowLargeOsPages = mi_option_allow_large_os_pages,
    /// Milliseconds until free memory is purged: 0 at once, -1 never. 10; 1000 with the feature `level3`.
    PurgeDelay = mi_option_purge_delay,
    /// Assume this many NUMA nodes, 0 those that exist. 0.
    UseNumaNodes = mi_option_use_numa_nodes,
    /// Use only memory that was reserved or given before. 0.
    DisallowOsAlloc = mi_option_disallow_os_alloc,
    /// Print this many errors, below 0 all. 32.
    MaxErrors = mi_option_max_errors,
    /// Print this many warnings, below 0 all. 32.
    MaxWarnings = mi_option_max_warnings,
    /// The size of arenas, KiB. 1048576; 131072 on systems of 32 bits.
    ArenaReserve = mi_option_arena_reserve,
    /// Times `PurgeDelay`, the delay for arenas. 10; 1 with the feature `level3`.
    ArenaPurgeMult = mi_option_arena_purge_mult,
    /// Use arenas only where a heap asks for one. 0.
    DisallowArenaAlloc = mi_option_disallow_arena_alloc,
    /// Allow visits of blocks of threads that have ended. 0.
    VisitAbandoned = mi_option_visit_abandoned,
    /// The smallest size of guarded blocks, bytes. 0.
    GuardedMin = mi_option_guarded_min,
    /// The largest size of guarded blocks, bytes. 1 GiB.
    GuardedMax = mi_option_guarded_max,
    /// Guarded blocks end at the guard page, if that leaves them unaligned. 0.
    GuardedPrecise = mi_option_guarded_precise,
    /// Guard one block in this many, 0 none: it ends where memory is inaccessible. 0; 4000 with the feature `guarded`.
    GuardedSampleRate = mi_option_guarded_sample_rate,
    /// The seed of the choice of guarded blocks, 0 a random one. 0.
    GuardedSampleSeed = mi_option_guarded_sample_seed,
    /// Transparent huge pages: 0 no, 1 where they will be filled, 2 for all memory from 32 MiB on. 1; 0 with the feature `no_thp`.
    AllowThp = mi_option_allow_thp,
}

impl Opt {
    /// The value.
    pub fn get(self) -> i64 {
        // Safety: the option exists.
        #[allow(clippy::useless_conversion)] // a long of C has 32 bits in some systems
        i64::from(unsafe { raw::mi_option_get(self.number()) })
    }

    /// Sets the value. One that is out of range, for the option or for a `long` of C, has no effect and a warning.
    pub fn set(self, value: i64) {
        // Safety: the option exists.
        unsafe { raw::mi_option_set(self.number(), clamp(value)) }
    }

    /// Sets the value, unless the environment or an earlier call has set it.
    pub fn set_default(self, value: i64) {
        // Safety: the option exists.
        unsafe { raw::mi_option_set_default(self.number(), clamp(value)) }
    }
}

fn clamp(value: i64) -> c_long {
    #[allow(clippy::unnecessary_cast)] // as above
    {
        value.clamp(c_long::MIN as i64, c_long::MAX as i64) as c_long
    }
}
