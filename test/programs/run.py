#!/usr/bin/env python3
"""Real programs with this allocator preloaded, as a matrix of programs and builds of the library.

Each program (kinds/*.py) does some work as it is, and with each build preloaded.  Output and exit status must be the same.
Then it runs with MIMALLOC_SHOW_STATS=1, and the statistics that each process prints as it ends must show that the
allocator served it: a library that was not loaded, or whose malloc was not the one in use, fails here.

  run.py --quick --lib L                 the programs that take a few seconds
  run.py --all --lib L                   all of them
  run.py --lib L NAME ...                these
  run.py --all --lib NAME=L --lib ...    all of them with several builds; L may be a directory with one libmimalloc*.so
  run.py --list                          what there is

--json FILE keeps the results, with CPU time and peak memory beside the C library's; matrix.py makes a page of them.
Packages that are missing are installed (as root, by scripts/need.sh).  A program that cannot be had is reported as SKIP by
its name.  Exit status 1: a program failed; 77: all of them were skipped."""

import argparse
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import kinds  # noqa: E402, F401
import matrix  # noqa: E402
from outcome import SKIPPED, Failed, Skipped  # noqa: E402
from process import adopt_orphans, end_all_below  # noqa: E402
from registry import PROGRAMS, ROOT  # noqa: E402
from session import Plain, Session  # noqa: E402


def missing(needs):
    """What of the packages cannot be had, or ""."""
    need = subprocess.run([ROOT / "scripts/need.sh", *needs], capture_output=True, text=True)
    if need.returncode == 0:
        return ""
    return (need.stderr.strip().splitlines() or ["cannot be installed"])[-1].replace("need.sh: ", "")


def run_one(chosen, lib, plain, directory):
    """What became of a program with one build: (outcome, what is to be said of it, costs)."""
    work = directory / chosen.name   # the same for every build: what a program prints may have it
    work.mkdir()
    work.chmod(0o755)
    session = Session(chosen.name, lib, work, plain)
    try:
        chosen.function(session)
        if not session.is_served:
            raise Failed("nobody checked that the allocator served it")
        return "ok", ", ".join(session.notes), session.costs
    except Skipped as why:
        return "SKIP", str(why), []
    except Failed as why:
        return "FAIL", str(why), []
    except Exception:  # a mistake in a program's function must not end the others
        return "FAIL", traceback.format_exc(), []
    finally:
        end_all_below()
        shutil.rmtree(work, ignore_errors=True)


def run_all(chosen, libs, table, path):
    """Each program with each build; what becomes of them is printed, and noted in the table, which is kept at the path."""
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="mi-programs-") as directory:
        os.chmod(directory, 0o755)
        for p in chosen:
            why, plain = missing(p.needs), Plain()
            for name, lib in libs.items():
                start = time.monotonic()
                outcome, text, costs = ("SKIP", why, []) if why else run_one(p, lib, plain, pathlib.Path(directory))
                outcomes.append(outcome)
                cell = table.note(p, name, outcome, text, costs)
                label = f"{name} " if len(libs) > 1 else ""
                print(f"{outcome:<5} {p.name:<20} {label}{time.monotonic() - start:6.1f} s  {cell.ratios()}{text}", flush=True)
            if path:
                table.keep(path)
    return outcomes


def library_in(path):
    """The shared library that a path names, or that is in a directory."""
    found = sorted(path.glob("libmimalloc*.so")) if path.is_dir() else [path]
    if len(found) != 1 or not found[0].exists():
        sys.exit(f"run.py: {path} is not, or has not, one shared library")
    return found[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", action="store_true")
    group.add_argument("--all", action="store_true")
    group.add_argument("--list", action="store_true")
    parser.add_argument("--lib", action="append", default=[], metavar="[NAME=]L")
    parser.add_argument("--without", action="append", default=[], metavar="PROGRAM")
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        for p in PROGRAMS:
            print(f"{p.name:<20}{p.kind:<13}{'quick' if p.quick else '':<7}{p.about}")
        return 0
    if not args.lib:
        parser.error("--lib must name the shared library")
    named = dict(lib.rpartition("=")[::2] for lib in args.lib)
    given = {name or "release": library_in(pathlib.Path(lib)) for name, lib in named.items()}
    unknown = {*args.names, *args.without} - {p.name for p in PROGRAMS}
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    chosen = [p for p in PROGRAMS if (p.name in args.names if args.names else args.all or p.quick) and p.name not in args.without]

    adopt_orphans()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))   # ends what was started, too
    table = matrix.Table.begun(list(given), next(iter(given.values())))
    # Copies that every user may read, and that nobody rebuilds meanwhile.
    with tempfile.TemporaryDirectory(prefix="mi-lib-") as directory:
        os.chmod(directory, 0o755)
        libs = {}
        for name, lib in given.items():
            libs[name] = pathlib.Path(directory) / name / "libmimalloc.so"
            libs[name].parent.mkdir(mode=0o755)
            shutil.copy(lib, libs[name])
            libs[name].chmod(0o755)
        outcomes = run_all(chosen, libs, table, args.json)
    print(f"{len(chosen)} programs, {len(outcomes)} runs: {outcomes.count('ok')} ok, {outcomes.count('FAIL')} failed,"
          f" {outcomes.count('SKIP')} skipped")
    if "FAIL" in outcomes:
        return 1
    return SKIPPED if outcomes.count("SKIP") == len(outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
