#!/usr/bin/env python3
"""Binary trees in Nim, with mimalloc and without it: prints the table of docs/nim.md.

  bench/nim/run.py [--nim NAME=COMMAND ...] [--depth 16 ...] [--rounds 5] [--peer NAME=DIR ...]

COMMAND is the compiler with its first options, by default `nim`.  DIR is the source tree of another implementation of mimalloc
(DIR/src/static.c, DIR/include), which is put in by the same patch, compiled as we are.  The programs run in turn, in each round
once; the time is the median of user and system time, and the memory the peak of the resident set."""

import argparse
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
OUT = ROOT / "build/nim-bench"
OURS = ["-d:useMimalloc"]
VARIANTS = [  # name, options, put in: None, "ours" or a peer
    ("Nim, refc", ["--mm:refc", "--threads:off"], None),
    ("Nim, refc, threads", ["--mm:refc", "--threads:on"], None),
    ("Nim, orc", ["--mm:orc", "--threads:off"], None),
    ("this library, orc", ["--mm:orc", "--threads:off"], "ours"),
    ("Nim, orc, threads", ["--mm:orc", "--threads:on"], None),
    ("C library, orc, threads", ["--mm:orc", "--threads:on", "-d:useMalloc"], None),
    ("this library, orc, threads", ["--mm:orc", "--threads:on"], "ours"),
    ("Nim, orc, threads, LTO", ["--mm:orc", "--threads:on", "-d:lto"], None),
    ("this library, orc, threads, LTO", ["--mm:orc", "--threads:on", "-d:lto"], "ours"),
]
BASE, BASE_LTO = "Nim, orc, threads", "Nim, orc, threads, LTO"


def run(*command, cwd=OUT):
    done = subprocess.run([str(word) for word in command], cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(str(word) for word in command)}\n{done.stdout}")
    return done.stdout


def with_peer(name, tree):
    """A copy of the package that compiles another library."""
    copy = OUT / "peers" / name
    (copy / "patchedstd").mkdir(parents=True, exist_ok=True)
    (copy / "mimalloc").mkdir(exist_ok=True)
    (copy / "mimalloc/config.nim").write_text((ROOT / "nim/mimalloc/config.nim").read_text(encoding="utf-8"), encoding="utf-8")
    (copy / "patchedstd/refused.nim").write_text((ROOT / "nim/patchedstd/refused.nim").read_text(encoding="utf-8"), encoding="utf-8")
    text = (ROOT / "nim/patchedstd/mimalloc.nim").read_text(encoding="utf-8")
    for old, new in ((  # each occurs once
            '{.compile("../csource/mimalloc.c", mimallocFlags).}',
            f'{{.compile("{tree}/src/static.c", mimallocFlags & " -ftls-model=initial-exec -I{tree}/include").}}'),
            ('{.compile("../csource/stats.c", mimallocFlags).}', ""),
            ('else: "mi_nim_"', 'else: "mi_"'),
            ("int(mi_nim_occupied())", "0"), ("int(mi_nim_total())", "0")):
        if text.count(old) != 1:
            sys.exit(f"patchedstd/mimalloc.nim has changed: {old}")
        text = text.replace(old, new)
    (copy / "patchedstd/mimalloc.nim").write_text(text, encoding="utf-8")
    return copy


def compile_all(compiler, command, variants, packages):
    """(variant, program) for each."""
    for number, (name, options, what) in enumerate(variants):
        work = OUT / compiler / str(number)
        work.mkdir(parents=True, exist_ok=True)
        source = work / "binarytrees.nim"
        source.write_text((HERE / "binarytrees.nim").read_text(encoding="utf-8"), encoding="utf-8")
        if what:
            (work / "config.nims").write_text(f'import "{packages[what]}/mimalloc/config"\n', encoding="utf-8")
        run(*shlex.split(command), "c", "--hints:off", "--warnings:off", "-d:danger", *options, *(OURS if what else []),
            f"--nimcache:{work / 'cache'}", f"-o:{work / 'binarytrees'}", source)
        yield name, work / "binarytrees"


def measure(program, depth):
    """(seconds, MiB)"""
    with open(os.devnull, "wb") as sink:
        process = subprocess.Popen([program, str(depth)], stdout=sink)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{program} {depth}: exit status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def table(compiler, depth, results):
    def times(name):
        return [seconds for seconds, _ in results[name]]
    print(f"\n{compiler}, depth {depth}, {len(next(iter(results.values())))} rounds\n")
    print("| | CPU time, s | from - to | times as fast as Nim's own | ... with LTO | peak memory, MiB |\n|---|---|---|---|---|---|")
    for name, runs in results.items():
        mine = statistics.median(times(name))
        print(f"| {name} | {mine:.2f} | {min(times(name)):.2f} - {max(times(name)):.2f} | {statistics.median(times(BASE)) / mine:.2f} | "
              f"{statistics.median(times(BASE_LTO)) / mine:.2f} | {statistics.median(mib for _, mib in runs):.0f} |", flush=True)


def pairs(words):
    return dict(word.split("=", 1) for word in words)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nim", nargs="+", default=["Nim=nim"], metavar="NAME=COMMAND")
    parser.add_argument("--depth", nargs="+", type=int, default=[16])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--peer", nargs="+", default=[], metavar="NAME=DIR")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    packages = {"ours": ROOT / "nim"}
    variants = list(VARIANTS)
    for name, tree in pairs(args.peer).items():
        packages[name] = with_peer(name, pathlib.Path(tree).resolve())
        variants += [(f"{name}, orc, threads", ["--mm:orc", "--threads:on"], name),
                     (f"{name}, orc, threads, LTO", ["--mm:orc", "--threads:on", "-d:lto"], name)]
    for compiler, command in pairs(args.nim).items():
        programs = dict(compile_all(compiler, command, variants, packages))
        for depth in args.depth:
            results = {name: [] for name in programs}
            for _ in range(args.rounds):
                for name, program in programs.items():
                    results[name].append(measure(program, depth))
            table(compiler, depth, results)


if __name__ == "__main__":
    main()
