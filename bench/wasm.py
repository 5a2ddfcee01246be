#!/usr/bin/env python3
"""Measures WebAssembly, run by node: under WASI with malloc of wasi-libc (dlmalloc) and with ours, and with Emscripten with its
dlmalloc, its emmalloc and ours: the size of modules, the time of benchmark programs, and the memory that their modules have at the
end.  Prints what docs/design/wasm.md has under "Figures", from the first heading on.

  bench/wasm.py [--runs N]        needs clang-19, lld-19, wasi-libc, libclang-rt-19-dev-wasm32, node; and wasm-opt and emcc for
                                  what needs them

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
EMCC = ["emcc", "-std=gnu11", "-fno-builtin-malloc", "-DNDEBUG", "-I", str(ROOT / "include"), "-sENVIRONMENT=node",
        "-sALLOW_MEMORY_GROWTH=1", "-sMEMORY_GROWTH_GEOMETRIC_STEP=0", "-sINITIAL_MEMORY=1MB", "-sTOTAL_STACK=64KB", "-sEXIT_RUNTIME=1"]
NODE = ["node", "--no-warnings", "--no-turbo-fast-api-calls", str(ROOT / "test/platforms/wasi.mjs")]
PROGRAMS = {  # name: (sources, arguments)
    "churn": (["bench/programs/churn.c"], ["2000000", "2000"]),
    "trees": (["bench/programs/trees.c"], ["15", "4"]),
    "replace": (["bench/programs/replace.c"], ["1000000", "200000"]),
    "cfrac": (["demo/cfrac.c", "demo/bignum.c"], ["175451865205073170563711388363"]),
}
HELLO = "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { char* p = malloc(100); if (p) puts(\"hello\"); free(p); return 0; }\n"
SMALL = ("#include <stdlib.h>\nint main(void) { for (int i = 0; i < 1000; i++) if (!malloc(100)) return 1; return 0; }\n")


def build_wasi(name, sources, level, malloc):
    out = WORK / f"{name}-wasi-{malloc}-{level[1:]}.wasm"
    ours = ["-DMI_MALLOC_OVERRIDE", str(ROOT / "src/static.c")] if malloc == "ours" else []
    subprocess.run([*CC, level, *ours, *(str(s) for s in sources), "-Wl,--strip-all", "-o", str(out)], check=True, cwd=ROOT)
    return [*NODE, str(out)], out


def build_emscripten(name, sources, level, malloc):
    show = WORK / "show.js"
    show.write_text('Module["onExit"] = () => { if (process.env.WASI_SHOW_MEMORY) console.error(`memory: ${HEAP8.length}`); };\n',
                    encoding="utf-8")
    out = WORK / f"{name}-emscripten-{malloc}-{level[1:]}.js"
    how = ["-DMI_MALLOC_OVERRIDE", str(ROOT / "src/static.c")] if malloc == "ours" else [f"-sMALLOC={malloc}"]
    subprocess.run([*EMCC, level, *how, *(str(s) for s in sources), "--pre-js", str(show), "-o", str(out)], check=True, cwd=ROOT,
                   env={**os.environ, "NODE_PATH": "/usr/share/nodejs"})
    return ["node", "--no-experimental-fetch", str(out)], out.with_suffix(".wasm")


SYSTEMS = {"WASI": (build_wasi, ("dlmalloc", "ours")), "Emscripten": (build_emscripten, ("dlmalloc", "emmalloc", "ours"))}


def run(command, args):
    start = time.monotonic()
    done = subprocess.run([*command, *args], env={**os.environ, "WASI_SHOW_MEMORY": "1"}, check=True, text=True,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return time.monotonic() - start, int(done.stderr.rsplit("memory: ", 1)[1])


def row(*cells):
    print("| " + " | ".join(cells) + " |", flush=True)


def optimised(module):
    out = module.with_suffix(".opt.wasm")
    subprocess.run(["wasm-opt", "-Oz", str(module), "-o", str(out)], check=True)
    return out


def print_sizes(system):
    build, mallocs = SYSTEMS[system]
    source = WORK / "hello.c"
    source.write_text(HELLO, encoding="utf-8")
    print(f"### {system}\n")
    row("module, bytes", *mallocs, "more than dlmalloc")
    row(*["---"] * (len(mallocs) + 2))
    for level in ("-O2", "-Oz"):
        modules = [build("hello", [source], level, malloc)[1] for malloc in mallocs]
        sizes = [module.stat().st_size for module in modules]
        row(f"`{level}`", *(f"{size:,}" for size in sizes), f"{sizes[-1] - sizes[0]:,}")
    if system == "WASI" and shutil.which("wasm-opt"):  # emcc calls it itself
        sizes = [optimised(module).stat().st_size for module in modules]
        row("`-Oz`, then `wasm-opt -Oz`", *(f"{size:,}" for size in sizes), f"{sizes[-1] - sizes[0]:,}")


def print_memory(system):
    build, mallocs = SYSTEMS[system]
    source = WORK / "small.c"
    source.write_text(SMALL, encoding="utf-8")
    sizes = [f"{run(build('small', [source], '-O2', malloc)[0], [])[1] // 1024} KiB with {malloc}" for malloc in mallocs]
    print(f"\n1000 blocks of 100 bytes: the module has at the end {', '.join(sizes)}.\n", flush=True)


def spread(times):
    return f"{statistics.median(times):.2f} ({min(times):.2f}-{max(times):.2f})"


def print_times(system, runs):
    build, mallocs = SYSTEMS[system]
    row("program", *(f"s, {malloc}" for malloc in mallocs), *(f"MiB, {malloc}" for malloc in mallocs))
    row(*["---"] * (2 * len(mallocs) + 1))
    for name, (sources, args) in PROGRAMS.items():
        commands = [build(name, sources, "-O2", malloc)[0] for malloc in mallocs]
        times, memory = [[] for _ in mallocs], [0] * len(mallocs)
        for _ in range(runs):
            for i, command in enumerate(commands):
                seconds, memory[i] = run(command, args)
                times[i].append(seconds)
        row(name, *(spread(each) for each in times), *(f"{size / 2**20:.1f}" for size in memory))
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    for system in SYSTEMS:
        if system == "Emscripten" and not shutil.which("emcc"):
            continue
        print_sizes(system)
        print_memory(system)
        print_times(system, args.runs)


if __name__ == "__main__":
    main()
