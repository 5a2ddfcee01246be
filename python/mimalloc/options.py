"""The options of the library, in one table: what `run` sets, and what `doctor` knows.  A test holds it against the library."""

import difflib

PREFIX = "MIMALLOC_"

# Those that have an effect.
EFFECTIVE = {
    "show_errors": "print errors and warnings",
    "show_stats": "print statistics at exit",
    "verbose": "print events",
    "arena_eager_commit": "commit arenas: 0 no, 1 yes, 2 if the system overcommits",
    "purge_decommits": "purge: 1 give back at once, 0 when the system needs it",
    "allow_large_os_pages": "use large OS pages if the system has some",
    "reserve_huge_os_pages": "reserve this many OS pages of 1 GiB at start",
    "reserve_huge_os_pages_at": "on this NUMA node",
    "reserve_os_memory": "reserve memory at start",
    "purge_delay": "milliseconds until free memory is purged",
    "use_numa_nodes": "assume this many NUMA nodes",
    "disallow_os_alloc": "use only memory that was reserved before",
    "max_errors": "print this many errors",
    "max_warnings": "print this many warnings",
    "arena_reserve": "size of arenas",
    "arena_purge_mult": "purge_delay times this is the delay for arenas",
    "disallow_arena_alloc": "use arenas only where a heap asks for one",
    "visit_abandoned": "allow visits of blocks of threads that have ended",
    "guarded_min": "smallest size of guarded blocks",
    "guarded_max": "largest size of guarded blocks",
    "guarded_precise": "guarded blocks end at the guard page",
    "guarded_sample_rate": "guard one block in this many",
    "guarded_sample_seed": "seed of the choice of guarded blocks",
    "allow_thp": "huge pages: 0 no, 1 dense, 2 all from 32 MiB on",
    "background_thread": "purge on a thread of the library",
    "show_leaks": "print at exit what was not freed",
    "guarded_before": "percent of guarded blocks that begin at the guard page",
    "debug_stacks": "say who allocated a block, in debug builds",
    "keep_deepbind": "leave RTLD_DEEPBIND in calls of dlopen",
    "memory_tagging": "tag memory where the processor can",
    "publish": "publish statistics: 1 of this process, 2 also of forks",
    "limit": "memory that the program may have",
    "limit_soft": "memory beyond which free memory is given back",
    "retain": "free memory that may stay",
    "profile_rate": "mean distance of the samples of the heap profile, in bytes",
    "profile_signal": "the signal that starts and writes the heap profile",
    "profile_leaks": "print so many stacks with the most bytes in use at the end",
}

# Texts, which are in no table of the library.
TEXTS = {
    "publish_dir": "the directory of published pages",
    "profile": "write heap profiles to files with this prefix",
    "redirect": "on Windows: how malloc is replaced",
    "disable_redirect": "on Windows: do not replace malloc",
}

# Those that exist for programs that set them.
WITHOUT_EFFECT = """eager_commit deprecated_eager_commit deprecated_segment_cache deprecated_page_reset abandoned_page_purge
deprecated_abandoned_page_purge deprecated_segment_reset eager_commit_delay deprecated_eager_commit_delay os_tag
max_segment_reclaim deprecated_max_segment_reclaim destroy_on_exit purge_extend_delay deprecated_purge_extend_delay
abandoned_reclaim_on_free retry_on_oom target_segments_per_thread generic_collect page_reclaim_on_free page_full_retain
page_max_candidates max_vabits pagemap_commit page_commit_on_demand page_max_reclaim page_cross_thread_max_reclaim
minimal_purge_size arena_max_object_size arena_is_numa_local""".split()

# Older names of options, and variables of this command.
OLDER = """eager_region_commit reset_decommits large_os_pages abandoned_page_reset reset_delay limit_os_alloc
decommit_extend_delay""".split()
OURS = {"library": "the library that this command preloads"}

# What the options of `run` set.
RUN_STATS = "show_stats"
RUN_GUARD = "guarded_sample_rate"
RUN_PUBLISH = "publish"
RUN_ERRORS = "show_errors"
RUN_LIMIT = "limit"
RUN_PROFILE = "profile"
RUN_PROFILE_SIGNAL = "profile_signal"
# Which option shows that the library has profiles, or limits: to set it to 0 has no effect.
PROOF = {RUN_PROFILE: "profile_rate", RUN_PROFILE_SIGNAL: "profile_signal", RUN_LIMIT: "limit"}


def variable(option):
    return PREFIX + option.upper()


def known():
    return {*EFFECTIVE, *TEXTS, *WITHOUT_EFFECT, *OLDER, *OURS}


# Without these the library may be silent about the others.
LOUD = {variable(RUN_ERRORS): "1", variable("max_warnings"): "-1"}


def trials(environment):
    """Environments in which the library warns of every value that is none.  It writes no profile in them."""
    ours = {name.upper(): value for name, value in environment.items() if name.upper().startswith(PREFIX)}
    if ours.get(variable(RUN_PROFILE)):
        del ours[variable(RUN_PROFILE)]
    rest = {name: value for name, value in environment.items() if not name.upper().startswith(PREFIX)}
    yield {**rest, **ours, **LOUD}
    yield from ({**rest, name: ours[name], variable("verbose"): "1"} for name in LOUD if name in ours)


def check(environment):
    """What is wrong with the variables MIMALLOC_...: (variable, problem, the nearest name or None)."""
    names, found = known(), []
    for name in sorted(environment):
        option = name.upper().removeprefix(PREFIX).lower()
        if not name.upper().startswith(PREFIX) or option in names:
            continue
        near = difflib.get_close_matches(option, sorted(names), n=1, cutoff=0.6)
        found.append((name, "is no option", variable(near[0]) if near else None))
    for name in sorted(environment):
        option = name.upper().removeprefix(PREFIX).lower()
        if name.upper().startswith(PREFIX) and option in WITHOUT_EFFECT:
            found.append((name, "has no effect", None))
    return found
