#!/usr/bin/env python3
"""Plants faults in the protocols of threads, one at a time, and finds out after how many interleavings the scheduler sees them.

  test/schedule/faults.py                all faults, at most 200000 interleavings each
  test/schedule/faults.py NAME ...       these
  test/schedule/faults.py --preemptions  those that test-preemptions.c must find (30 minutes)
  test/schedule/faults.py --count 50000  at most so many
  test/schedule/faults.py --check        does each fault still fit the sources, and can both programs be made?  (4 seconds)

Each fault is a change of a source file as a mistake would make it.  Exit status 1 if one is not found, or no fault is planted and
something is."""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
HERE = ROOT / "test/schedule"
BUILD = ROOT / "build/schedule-faults"
PROTOCOLS, PAIRS = "test-protocols", "test-preemptions"
FLAGS = ["-std=gnu11", "-O0", "-w", "-D_GNU_SOURCE", "-U_FORTIFY_SOURCE", "-fno-builtin-malloc"]
DEFINES = ["MI_LIBRARY_BUILD=1", "MI_STATIC_LIB", "MI_PADDING=0", "MI_DEBUG=2", "MI_NO_IFUNC=1"]

# name: (file, before, after, before, after ...); each `before` occurs once in the file.  Where a fault shows only if a plain
# `slots++` is two steps, as in the round's second look at a bin, test/model/bin_model.py has it.
FAULTS = {
    "claim-stays-in-pool": (
        "heap/outbox.c", "if (was == MI_PAGE_SHARED) _mi_pool_remove(page);", "(void)was;"),
    "claimer-forgets-late-frees": (
        "heap/outbox.c",
        "if (_mi_pool_share(page, MI_PAGE_CLAIMED)) return;\n"
        "    _mi_page_put_free(page, _mi_page_word_take(&page->word, MI_PAGE_CLAIMED));",
        "if (_mi_pool_share(page, MI_PAGE_CLAIMED)) return;\n"
        "    _mi_page_word_take(&page->word, MI_PAGE_CLAIMED);"),
    "park-with-chain": (
        "page/page_word.h",
        "return mi_cas_strong(word, &old, _mi_page_word_make(MI_PAGE_PARKED, 0, NULL), acq_rel, relaxed);",
        "if (mi_load_relaxed(word) != old) return false;\n"
        "  mi_store_release(word, _mi_page_word_make(MI_PAGE_PARKED, 0, NULL));\n  return true;"),
    "share-with-chain": (
        "page/page_word.h",
        "return mi_cas_strong(word, &old, _mi_page_word_make(MI_PAGE_SHARED, free.count, free.first), acq_rel, relaxed);",
        "if (mi_load_relaxed(word) != old) return false;\n"
        "  mi_store_release(word, _mi_page_word_make(MI_PAGE_SHARED, free.count, free.first));\n  return true;"),
    "adopt-what-is-claimed": (
        "page/page_word.h",
        "if (_mi_page_word_state(old) != MI_PAGE_SHARED) return false;\n", ""),
    "push-claims-twice": (
        "page/page_word.h",
        "return (before == MI_PAGE_CLAIMED ? MI_PAGE_OWNED : after);", "return after;"),
    "capacity-of-before": (
        "page/page_word.h",
        "  uint64_t        old = mi_load_relaxed(word);\n  uint64_t        made;\n",
        "  size_t          seen = mi_load_relaxed(capacity);\n"
        "  uint64_t        old = mi_load_relaxed(word);\n  uint64_t        made;\n",
        "chain.count + n == mi_load_relaxed(capacity)", "chain.count + n == seen"),
    "pool-of-a-heap-that-ended": (
        "heap/pool.c", "if (mi_likely(heap == _mi_heap_of(page))) return pool;", "return pool;"),
    "pool-of-the-home": (
        "heap/pool.c", "  return page->pool;", "  return pool_for(heap, page);"),
    "spare-page-without-lock": (
        "heap/spare.c",
        "  _mi_lock_acquire(&_mi_spare_lock);\n  mi_page_t* page = (spare->n == 0 ? NULL : spare_pop(spare, true));\n"
        "  _mi_lock_release(&_mi_spare_lock);\n",
        "  mi_page_t* page = (spare->n == 0 ? NULL : spare_pop(spare, true));\n"),
    "spare-page-taken-twice": (
        "heap/spare.c",
        "  _mi_lock_acquire(&_mi_spare_lock);\n  mi_page_t* page = (spare->n == 0 ? NULL : spare_pop(spare, true));\n",
        "  _mi_lock_acquire(&_mi_spare_lock);\n  mi_page_t* page = spare_pop(spare, true);\n"),
    "kept-by-two": (
        "heap/kept.c", "return mi_likely(mi_exchange_acquire(&kept->is_taken, 1u) == 0);",
        "if (mi_load_relaxed(&kept->is_taken) != 0) return false;\n  mi_store_relaxed(&kept->is_taken, 1u);\n  return true;"),
    "large-freed-twice": (
        "heap/large.c", "mi_exchange_acq_rel(&page->word, claimed) == claimed) return false;",
        "mi_load_acquire(&page->word) == claimed) return false;\n  mi_store_release(&page->word, claimed);"),
    "kind-read-twice": (
        "api/malloc.c", "if (mi_likely(kind == MI_PAGE_LARGE)) {",
        "if (kind != MI_PAGE_NONE && _mi_page_kind(page) == MI_PAGE_LARGE) {"),
    "round-does-not-look-inside": (
        "heap/idle.c", "bool is_inside = (mi_load_acquire(&theap->presence) == MI_THEAP_INSIDE);", "bool is_inside = false;"),
    "entered-without-looking": (
        "heap/presence.h", "return mi_likely(mi_load_acquire(&theap->revoked) == MI_THEAP_FREE);", "return true;"),
    "looked-before-entering": (
        "heap/presence.h",
        "  mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);\n  if (MI_TSAN)",
        "  bool is_free = (mi_load_acquire(&theap->revoked) == MI_THEAP_FREE);\n"
        "  mi_store_relaxed(&theap->presence, (uint32_t)MI_THEAP_INSIDE);\n  if (1) return is_free;\n  if (MI_TSAN)"),
    "round-lets-go-silently": (
        "heap/presence.c", "if (mi_exchange_acq_rel(&theap->revoked, (uint32_t)next) == MI_THEAP_AWAITED) ",
        "if (mi_load_relaxed(&theap->revoked) != MI_THEAP_AWAITED) mi_store_release(&theap->revoked, (uint32_t)next);\n  else "),
    "bin-taken-without-counting": (
        "heap/bin.c", "if (!bin_list_has(list, cls, book->total - book->slots_taken)) return NULL;\n", ""),
    "bin-settled-without-rest": (
        "heap/bin.c", "if (n != book->total - slots && book->taken != NULL) {", "if (false) {"),
    "lock-without-wake": (
        "prim/lock.c", "if (mi_exchange_acquire(&lock->state, 2) != 0 && ", "if (mi_exchange_acquire(&lock->state, 1) != 0 && "),
    "fork-keeps-what-it-gave-back": (
        "heap/fork.c", "    _mi_registry_visit(&fork_forget_kept, mine);\n", ""),
    "fork-overlooks-who-only-frees": (
        "heap/fork.c", "return mi_load_relaxed(&_mi_registry_has_others) || ", "return "),
    "fork-overlooks-the-only-theap": (
        "heap/fork.c", " || mi_load_relaxed(&_mi_registry_n_threads) > (mine != NULL ? 1 : 0);", ";"),
    "fork-settles-nothing": (
        "heap/fork.c", "    fork_for_pages(&fork_settle);\n", ""),
    "thread-counted-late": (
        "heap/thread.c",
        "    if (mi_fetch_add_relaxed(&_mi_registry_n_threads, 1) > 0) mi_store_relaxed(&_mi_registry_has_others, true);\n",
        "",
        "_mi_ended_watch(theap);\n",
        "_mi_ended_watch(theap);\n"
        "  if (mi_fetch_add_relaxed(&_mi_registry_n_threads, 1) > 0) mi_store_relaxed(&_mi_registry_has_others, true);\n"),
    "fork-overlooks-claimed-gaps": (
        "heap/fork.c", "  else if (_mi_gaps_is(page)) fork_settle_gaps(page);\n", "  else if (false) fork_settle_gaps(page);\n"),
    "fork-trusts-free-lists": (
        "heap/fork.c", "  page->free = NULL;\n  page->next = page->prev = NULL;\n", "  page->next = page->prev = NULL;\n"),
    "retired-seen-too-late": (
        "heap/attach.c",
        "  mi_store_relaxed(&backing->has_retired, false); // first: another may be retired meanwhile\n"
        "  while (attach_end_one(backing, false)) {\n  }\n",
        "  while (attach_end_one(backing, false)) {\n  }\n  mi_store_relaxed(&backing->has_retired, false);\n"),
    "home-before-bin": (
        "api/malloc.c",
        "    size_t      bin_offset = _mi_life_bin_offset(page);\n    mi_theap_t* theap = mi_load_relaxed(&page->home);\n",
        "    mi_theap_t* theap = mi_load_relaxed(&page->home);\n    size_t      bin_offset = _mi_life_bin_offset(page);\n"),
    "size-read-twice": (
        "api/realloc.c",
        "if (mi_unlikely(old_size == 0 || new_size == 0)) return realloc_slow(p, new_size, false, NULL);\n",
        "if (mi_unlikely(old_size == 0 || new_size == 0)) return realloc_slow(p, new_size, false, NULL);\n"
        "  old_size = _mi_page_block_size(slice);\n"),
    "exit-leaves-the-outbox": (
        "heap/attach.c", "  _mi_outbox_flush(theap);\n  _mi_grow_undo_all(theap);", "  _mi_grow_undo_all(theap);"),
}

# Those that only one scenario can find are looked for there.
SCENARIOS = {"capacity-of-before": "gaps", "fork-overlooks-claimed-gaps": "gaps"}

# Those that test-preemptions.c must find, whose runs are the same each time; and of these the ones that chance does not come by.
PREEMPTIONS = ("claim-stays-in-pool", "park-with-chain", "share-with-chain", "adopt-what-is-claimed", "capacity-of-before",
               "spare-page-without-lock", "large-freed-twice", "kind-read-twice", "bin-taken-without-counting",
               "bin-settled-without-rest", "fork-keeps-what-it-gave-back", "fork-overlooks-who-only-frees",
               "fork-overlooks-the-only-theap", "fork-overlooks-claimed-gaps", "fork-settles-nothing", "fork-trusts-free-lists",
               "thread-counted-late", "exit-leaves-the-outbox", "claimer-forgets-late-frees", "push-claims-twice",
               "pool-of-the-home", "spare-page-taken-twice", "round-does-not-look-inside", "round-lets-go-silently", "home-before-bin",
               "size-read-twice")
NOT_BY_CHANCE = ("fork-overlooks-who-only-frees", "fork-overlooks-the-only-theap", "thread-counted-late", "home-before-bin",
                 "size-read-twice")


def scenario(name):
    return SCENARIOS.get(name) or ("forks" if name.startswith("fork-") else "")


def plant(tree, fault):
    file, *changes = fault
    path = tree / "src" / file
    text = path.read_text(encoding="utf-8")
    for before, after in zip(changes[::2], changes[1::2]):
        if text.count(before) != 1:
            raise SystemExit(f"{file}: the fault fits {text.count(before)} times:\n{before}")
        text = text.replace(before, after)
    return path, text


def sources(tree):
    """The library in two parts: what is real of the system, and what the scheduler runs."""
    text = (tree / "src/static.c").read_text(encoding="utf-8")
    prims, rest = text.split('#include "prim/lock.c"\n')
    rest = rest.replace('#include "prim/tag.c"\n', "")
    head = text[:text.index('#include "prim/system.h"')]
    (tree / "src/schedule_prims.c").write_text(prims + '#include "prim/tag.c"\n', encoding="utf-8")
    (tree / "src/schedule_library.c").write_text(head + '#include "prim/system.h"\n#include "prim/lock.c"\n' + rest,
                                                 encoding="utf-8")


def compile_one(compiler, tree, source, *more):
    flags = FLAGS + [f"-D{d}" for d in DEFINES] + [f"-I{tree / d}" for d in ("include", "src")] + [f"-I{ROOT / 'test'}"]
    made = tree / (source.stem + ".o")
    subprocess.run([compiler, *flags, *more, "-c", str(source), "-o", str(made)], check=True, cwd=tree / "src")
    return str(made)


def copy(name):
    tree = BUILD / (name or "none")
    shutil.rmtree(tree, ignore_errors=True)
    for part in ("src", "include"):
        shutil.copytree(ROOT / part, tree / part)
    if name:
        path, text = plant(tree, FAULTS[name])
        path.write_text(text, encoding="utf-8")
    sources(tree)
    return tree


def make_others(compiler):
    """All but the library, which is the same with each fault."""
    tree = copy("")
    parts = [tree / "src/schedule_prims.c"] + [HERE / name for name in ("schedule.c", "blocks.c", "library.c")]
    others = [compile_one(compiler, tree, source) for source in parts]
    return {name: [*others, compile_one(compiler, tree, HERE / f"{name}.c")] for name in (PROTOCOLS, PAIRS)}


def make(compiler, name, test, others):
    tree = copy(name) if name else BUILD / "none"
    library = compile_one(compiler, tree, tree / "src/schedule_library.c", "-include", str(HERE / "hooks.h"))
    program = tree / test
    subprocess.run([compiler, "-o", str(program), library, *others[test], "-lpthread", "-ldl"], check=True)
    return program


def arguments(name, test, options):
    only = scenario(name)
    if test == PAIRS:
        return ["--twice", str(options.twice)]
    return [*(["--only", only] if only else []), str(options.count), str(options.seed)]


def run(command):
    """What was found, and after how many interleavings."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    runs = re.search(r"^(\d+) interleavings", done.stdout, re.M)
    said = [line for line in done.stderr.splitlines() if line.startswith("batch ")]
    what = said[0].split(": ", 1)[-1] if said else done.stderr.strip()[:100]
    return (what or "nothing said") if done.returncode != 0 else "", int(runs.group(1)) if runs else 0


def todo(options):
    """Faults, and the tests that must find each; no fault with both tests."""
    names = options.names or ["", *FAULTS]
    return [(name, PROTOCOLS) for name in names if name not in NOT_BY_CHANCE and not options.preemptions] + \
           [(name, PAIRS) for name in names if name in ("", *PREEMPTIONS)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--count", type=int, default=200000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--twice", type=int, default=2000)
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--preemptions", action="store_true")
    options = parser.parse_args()
    if options.check:
        for fault in FAULTS.values():
            plant(ROOT, fault)
        others = make_others(options.cc)
        for test in (PROTOCOLS, PAIRS):
            make(options.cc, "", test, others)
        print(f"{len(FAULTS)} faults fit the sources, and both programs can be made")
        return 0
    missed, others = [], make_others(options.cc)
    for name, test in todo(options):
        begun = time.monotonic()
        what, runs = run([str(make(options.cc, name, test, others)), *arguments(name, test, options)])
        is_right = bool(what) == bool(name)
        missed += [] if is_right else [name or "none"]
        how = f"{runs:7} interleavings" if test == PROTOCOLS else f"{'all preemptions':21}"
        print(f"{name or 'no fault':32} {'found' if what else 'not found':10} {how} "
              f"{time.monotonic() - begun:6.1f} s  {what}", flush=True)
        if name:
            shutil.rmtree(BUILD / name, ignore_errors=True)
    if missed:
        print("wrong: " + ", ".join(missed))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
