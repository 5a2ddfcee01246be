#!/usr/bin/env python3
"""Is the library usable by others in all the ways that the README says?

    run.py                 the cases of the normal run
    run.py --long          all cases
    run.py NAME ...        these; `--list` says which there are

Each installs the library, or takes the tree, and builds somebody else's program with it; docs/design/packaging.md says how
to add one.  Exit status: 0 all is well, 1 something failed, 77 nothing could be tested."""

import argparse
import pathlib
import sys

import cases_cmake  # noqa: F401  the modules register their cases
import cases_link  # noqa: F401
import cases_options  # noqa: F401
import cases_registries  # noqa: F401
import cases_release  # noqa: F401
import cases_systems  # noqa: F401
import installs  # noqa: F401
from harness import CASES, ROOT, Context, Failure, Skip, main_output_encoding, need


def run_case(name, args):
    """The exit status of one case."""
    ctx = Context(args.compiler, args.build_dir.resolve(), name)
    ctx.fresh()
    print(f"---- {name}: {CASES[name].__doc__.strip().splitlines()[0]}", flush=True)
    try:
        CASES[name](ctx)
    except Skip as skip:
        print(f"SKIP  {name}: {skip}")
        return 77
    except Failure as failure:
        print(f"FAIL  {name}: {failure}")
        return 1
    if ctx.failures == 0:
        ctx.remove()
    return 1 if ctx.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--long", action="store_true", help="also the cases that take long, or that ask package registries")
    parser.add_argument("--list", action="store_true", help="NAME LABEL TIMEOUT INSTALLS, a line for each case")
    parser.add_argument("--installed", action="store_true", help="the case `install` has been run")
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument("--build-dir", type=pathlib.Path, default=ROOT / "build/package")
    args = parser.parse_args()
    if args.list:
        for name, function in CASES.items():
            print(name, "package-long" if function.long else "package", function.timeout, int(function.installs))
        return 0
    for name in args.names:
        if name not in CASES:
            parser.error(f"no case {name!r}; there are: {' '.join(CASES)}")
    names = args.names or [n for n, f in CASES.items() if args.long or not f.long]
    if not args.installed and any(CASES[n].installs for n in names):
        names = ["install", *(n for n in names if n != "install")]
    try:
        need("cmake", "readelf", "nm")
    except Skip as skip:
        print(f"SKIP  package: {skip}")
        return 77
    main_output_encoding()
    statuses = {n: run_case(n, args) for n in names}
    if len(names) > 1:
        print("----", ", ".join(f"{list(statuses.values()).count(s)} {text}" for s, text in
                                ((0, "passed"), (1, "failed"), (77, "skipped"))))
    if 1 in statuses.values():
        return 1
    return 77 if set(statuses.values()) == {77} else 0


if __name__ == "__main__":
    sys.exit(main())
