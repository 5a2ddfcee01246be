#!/usr/bin/env python3
"""Programs that replace some forms of operator new and delete: the others must call them as the standard says.

Each program is replaced.cpp with a set of forms of its own.  It prints which of them every form reaches; the C++ runtime,
without us, says what it should have printed.

  replaced.py --cxx CXX --work DIR [--shared SO] [--static A] [--object O]
              [--lto SOURCE --include DIR]      SOURCE is compiled with the program, both for link-time optimisation

Exit status 1 if a program printed something else; 77 if the runtime without us cannot be asked."""

import argparse
import concurrent.futures
import os
import pathlib
import shutil
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent / "replaced.cpp"
N_FORMS = 20
NEW, NEWS, NEW_NOTHROW, NEW_AL, NEWS_AL, NEW_AL_NOTHROW = 0, 1, 2, 4, 5, 6
DELETE, DELETES, DELETE_SIZED, DELETE_AL, DELETES_AL = 8, 9, 12, 14, 15

# The empty set, each form alone, and what programs really replace.
PAIRS = [(NEW, DELETE), (NEWS, DELETES), (NEW, DELETE, NEWS, DELETES), (NEW, DELETE, DELETE_SIZED), (NEW, NEWS),
         (NEW_NOTHROW, DELETE), (NEW_AL, DELETE_AL), (NEWS_AL, DELETES_AL), (NEW, DELETE, NEW_AL, DELETE_AL),
         (NEW_AL_NOTHROW, DELETE_AL), tuple(range(8)), tuple(range(8, N_FORMS)), tuple(range(N_FORMS))]
SETS = [()] + [(form,) for form in range(N_FORMS)] + PAIRS
# Linking statically says nothing about a form alone that the other kinds do not say.
FEW_SETS = [()] + PAIRS[:4] + PAIRS[6:9] + [(NEW_NOTHROW,), (DELETE,), (NEWS,)]
LTO_SETS = [(), (NEW, DELETE), (NEWS,)]


def run(*command, env=None, timeout=300):
    result = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=timeout, env={**os.environ, **(env or {})})
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\nended with {result.returncode}\n{result.stdout[-2000:]}{result.stderr[-3000:]}")
    return result.stdout


class Programs:
    def __init__(self, args):
        self.cxx, self.work = args.cxx, args.work
        self.work.mkdir(parents=True, exist_ok=True)

    def compile(self, name, *flags):
        """The objects: that of the program and one for each form."""
        def one(form):
            output = self.work / f"{name}-{form}.o"
            run(self.cxx, "-std=c++17", "-O1", "-fno-builtin", "-w", *flags, *([f"-DFORM={form}"] if form >= 0 else []), "-c", SOURCE,
                "-o", output)
            return output
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return list(pool.map(one, range(-1, N_FORMS)))

    def link(self, name, objects, forms, *arguments):
        program = self.work / name
        first = [a for a in arguments if str(a).endswith(".o")]
        rest = [a for a in arguments if a not in first]
        run(self.cxx, *first, objects[0], *[objects[1 + form] for form in forms], "-o", program, *rest, "-pthread", "-ldl")
        return program


def differences(wanted, got):
    pairs = list(zip(wanted.splitlines(), got.splitlines()))
    wrong = [f"    line {i}: {b!r}, not {a!r}" for i, (a, b) in enumerate(pairs, 1) if a != b]
    if len(wanted.splitlines()) != len(got.splitlines()):
        wrong.append(f"    {len(got.splitlines())} lines, not {len(wanted.splitlines())}")
    return wrong[:5]


def name_of(forms):
    return "all" if len(forms) == N_FORMS else "-".join(map(str, forms)) or "none"


def kinds_of(args):
    """(name, sets, arguments of the linker) for each way to link."""
    kinds = []
    if args.object:
        kinds.append(("object", SETS, [args.object]))
        kinds.append(("object, -static", FEW_SETS, [args.object, "-static"]))
    if args.static:
        kinds.append(("archive", FEW_SETS, [args.static]))
        kinds.append(("archive, -static", FEW_SETS, [args.static, "-static"]))
    if args.shared:
        kinds.append(("shared", FEW_SETS, [args.shared, f"-Wl,-rpath,{args.shared.parent}"]))
        kinds.append(("shared, no PIE", FEW_SETS, [args.shared, f"-Wl,-rpath,{args.shared.parent}", "-no-pie"]))
    return kinds


def check(name, forms, wanted, program, env=None):
    try:
        wrong = differences(wanted, run(program, env=env))
    except RuntimeError as error:
        wrong = [f"    {error}"]
    if wrong:
        print(f"{name}, replaced: {name_of(forms)}")
        print("\n".join(wrong))
    return len(wrong) > 0


def check_all(args):
    programs = Programs(args)
    objects = programs.compile("form")
    wanted = {}
    n_wrong = n_done = 0
    for forms in SETS:
        program = programs.link(f"alone-{name_of(forms)}", objects, forms)
        wanted[forms] = run(program, env={"LD_PRELOAD": ""})
        if args.shared:
            n_wrong += check("preloaded", forms, wanted[forms], program, {"LD_PRELOAD": str(args.shared)})
            n_done += 1
    for kind, sets, arguments in kinds_of(args):
        for forms in sets:
            program = programs.link("linked", objects, forms, *arguments)
            n_wrong += check(kind, forms, wanted[forms], program)
            n_done += 1
    return n_done, n_wrong, wanted, programs


def check_lto(args, wanted, programs):
    """All of it as one unit for the optimiser."""
    flags = ["-flto", "-O1"]
    library = args.work / "library-lto.o"
    run(args.cc, *flags, "-DNDEBUG", "-DMI_BUILD_RELEASE", "-DMI_MALLOC_OVERRIDE", "-fno-builtin-malloc", f"-I{args.include}", "-c", args.lto,
        "-o", library)
    objects = programs.compile("lto", *flags)
    n_wrong = 0
    for forms in LTO_SETS:
        for more in ([], ["-static"]):
            program = programs.link("linked", objects, forms, library, *flags, *more)
            n_wrong += check(" ".join(["optimised when linked", *more]), forms, wanted[forms], program)
    return 2 * len(LTO_SETS), n_wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--work", type=pathlib.Path, required=True)
    for name in ("--shared", "--static", "--object", "--lto", "--include"):
        parser.add_argument(name, type=pathlib.Path)
    args = parser.parse_args()
    n_done, n_wrong, wanted, programs = check_all(args)
    if args.lto:
        more, wrong = check_lto(args, wanted, programs)
        n_done, n_wrong = n_done + more, n_wrong + wrong
    if n_wrong == 0:
        shutil.rmtree(args.work)
    print(f"{n_done} programs, {n_wrong} wrong")
    return 1 if n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
