#!/usr/bin/env python3
"""Measures WebAssembly under WASI, run by node: the size of modules with malloc of wasi-libc (dlmalloc) and with ours, the time of
benchmark programs with each, and the memory that their modules have at the end.  Prints the tables of docs/design/wasm.md.

  bench/wasm.py [--runs N]        needs clang-19, lld-19, wasi-libc, libclang-rt-19-dev-wasm32, node, and wasm-opt if there is one

Runs are interleaved; a figure is the median, with the least and the most."""

import argparse
import os
import pathlib
import shutil
import statistics
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "bench-wasm"
CC = ["clang-19", "--target=wasm32-wasi", "--sysroot=/usr", "-std=gnu11", "-fno-builtin-malloc", "-DNDEBUG", "-I", str(ROOT / "include"),
      "-I", str(ROOT / "test/platforms/wasi")]
NODE = ["node", "--no-warnings", "--no-turbo-fast-api-calls", str(ROOT / "test/platforms/wasi.mjs")]
PROGRAMS = {  # name: (sources, arguments)
    "churn": (["bench/programs/churn.c"], ["2000000", "2000"]),
    "trees": (["bench/programs/trees.c"], ["15", "4"]),
    "replace": (["bench/programs/replace.c"], ["1000000", "200000"]),
    "cfrac": (["demo/cfrac.c", "demo/bignum.c"], ["175451865205073170563711388363"]),
}
HELLO = "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { char* p = malloc(100); if (p) puts(\"hello\"); free(p); return 0; }\n"
SMALL = ("#include <stdlib.h>\nint main(void) { for (int i = 0; i < 1000; i++) if (!malloc(100)) return 1; return 0; }\n")


def build(name, sources, level, ours):
    out = WORK / f"{name}-{'ours' if ours else 'dlmalloc'}-{level[1:]}.wasm"
    ours_args = ["-DMI_MALLOC_OVERRIDE", str(ROOT / "src/static.c")] if ours else []
    subprocess.run([*CC, level, *ours_args, *(str(s) for s in sources), "-Wl,--strip-all", "-o", str(out)], check=True, cwd=ROOT)
    return out


def run(module, args):
    start = time.monotonic()
    done = subprocess.run([*NODE, str(module), *args], env={**os.environ, "WASI_SHOW_MEMORY": "1"}, check=True, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.monotonic() - start, int(done.stderr.rsplit("memory: ", 1)[1])


def print_sizes():
    source = WORK / "hello.c"
    source.write_text(HELLO, encoding="utf-8")
    print("| module, bytes | dlmalloc | ours | more |\n|---|---|---|---|")
    for level in ("-O2", "-Oz"):
        sizes = [build("hello", [source], level, ours).stat().st_size for ours in (False, True)]
        print(f"| `{level}` | {sizes[0]:,} | {sizes[1]:,} | {sizes[1] - sizes[0]:,} |")
    if shutil.which("wasm-opt"):
        sizes = []
        for ours in ("dlmalloc", "ours"):
            out = WORK / f"hello-{ours}-opt.wasm"
            subprocess.run(["wasm-opt", "-Oz", str(WORK / f"hello-{ours}-Oz.wasm"), "-o", str(out)], check=True)
            sizes.append(out.stat().st_size)
        print(f"| `-Oz`, then `wasm-opt -Oz` | {sizes[0]:,} | {sizes[1]:,} | {sizes[1] - sizes[0]:,} |")


def print_memory():
    source = WORK / "small.c"
    source.write_text(SMALL, encoding="utf-8")
    pages = [run(build("small", [source], "-O2", ours), [])[1] // 1024 for ours in (False, True)]
    print(f"\n1000 blocks of 100 bytes: the module has {pages[0]} KiB at the end with dlmalloc, {pages[1]} KiB with ours.", flush=True)


def spread(times):
    return f"{statistics.median(times):.2f} ({min(times):.2f}-{max(times):.2f})"


def print_times(runs):
    print("\n| program | s, dlmalloc | s, ours | MiB, dlmalloc | MiB, ours |\n|---|---|---|---|---|")
    for name, (sources, args) in PROGRAMS.items():
        modules = [build(name, sources, "-O2", ours) for ours in (False, True)]
        times, memory = ([], []), [0, 0]
        for _ in range(runs):
            for i in (0, 1):
                seconds, memory[i] = run(modules[i], args)
                times[i].append(seconds)
        print(f"| {name} | {spread(times[0])} | {spread(times[1])} | {memory[0] / 2**20:.1f} | {memory[1] / 2**20:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    print_sizes()
    print_memory()
    print_times(args.runs)


if __name__ == "__main__":
    main()
