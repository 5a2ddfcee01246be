#!/usr/bin/env python3
"""Makes docs/platforms.md: on which systems the library was compiled and run, from the results of the tests that ran.

  scripts/platforms.py record PART ...   notes the last results of these parts of scripts/run-tests.py in docs/platforms.json
  scripts/platforms.py write             makes the page from the notes
  scripts/platforms.py write --check     says whether the page is what the notes give

scripts/run-tests.py --record does the first two.  A part that did not run since the last record keeps its note, with the date.
What has no note is not in the page."""

import argparse
import collections
import datetime
import json
import pathlib
import re
import subprocess
import sys
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
NOTES = "docs/platforms.json"
PAGE = "docs/platforms.md"

# Kinds of tests that show that programs are served under the names of the C library.
OVERRIDE = ("override", "preload", "redirect")

Row = collections.namedtuple("Row", "part build system processor how emulator limits")

# Part of run-tests.py, its build directory, what it stands for, how programs run, the command that tells the version of the
# emulator, and what a reader must know.
ROWS = [
    Row("release", "release", "Linux, glibc", "x86-64", "native", "", ""),
    Row("clang", "clang-release", "Linux, glibc", "x86-64", "native", "", ""),
    Row("musl", "musl", "Linux, musl", "x86-64", "native", "", "[ports](design/ports.md)"),
    Row("x86-32", "x86-32", "Linux, glibc", "x86", "native", "", "[ports](design/ports.md)"),
    Row("musl-clang", "musl-clang", "Linux, musl", "x86-64", "native", "", "[ports](design/ports.md)"),
    Row("x86-32-clang", "x86-32-clang", "Linux, glibc", "x86", "native", "", "[ports](design/ports.md)"),
    Row("clang-lto", "clang-lto", "Linux, glibc", "x86-64, optimised when linked", "native", "", ""),
    Row("clang-thin-lto", "clang-thin-lto", "Linux, glibc", "x86-64, ThinLTO", "native", "", ""),
    Row("arm64", "arm64", "Linux, glibc", "AArch64", "qemu", "qemu-aarch64 --version", "[ports](design/ports.md)"),
    Row("arm64-16k", "arm64", "Linux, glibc", "AArch64, OS pages of 16 KiB", "qemu", "qemu-aarch64 --version", "[ports](design/ports.md)"),
    Row("arm64-64k", "arm64", "Linux, glibc", "AArch64, OS pages of 64 KiB", "qemu", "qemu-aarch64 --version", "[ports](design/ports.md)"),
    Row("arm64-programs", "arm64-programs", "Linux, glibc", "AArch64, real programs", "qemu", "qemu-aarch64 --version", "[ports](design/ports.md)"),
    Row("arm64-tags", "arm64-tags", "Linux, glibc", "AArch64 with memory tags", "qemu", "qemu-aarch64 --version", "[tagging](design/tagging.md)"),
    Row("armhf", "armhf", "Linux, glibc", "ARM, 32 bits", "qemu", "qemu-arm --version", "[ports](design/ports.md)"),
    Row("riscv64", "riscv64", "Linux, glibc", "RISC-V, 64 bits", "qemu", "qemu-riscv64 --version", "[ports](design/ports.md)"),
    Row("s390x", "s390x", "Linux, glibc", "s390x, big endian", "qemu", "qemu-s390x --version", "[ports](design/ports.md)"),
    Row("ppc64le", "ppc64le", "Linux, glibc", "POWER, little endian", "qemu", "qemu-ppc64le --version", "[ports](design/ports.md)"),
    Row("ppc64le-64k", "ppc64le", "Linux, glibc", "POWER, OS pages of 64 KiB", "qemu", "qemu-ppc64le --version", "[ports](design/ports.md)"),
    *(Row(f"{name}-clang{lto}", f"{name}-clang{lto}", "Linux, glibc", processor + (", thin LTO" if lto else ""), "qemu",
          f"qemu-{emulator} --version", "[ports](design/ports.md)")
      for name, emulator, processor in (("arm64", "aarch64", "AArch64"), ("armhf", "arm", "ARM, 32 bits"),
                                        ("riscv64", "riscv64", "RISC-V, 64 bits"), ("s390x", "s390x", "s390x, big endian"))
      for lto in ("", "-lto")),
    Row("windows", "windows", "Windows, msvcrt", "x86-64", "wine", "wine --version", "[Windows](design/windows.md)"),
    Row("windows-ucrt", "windows-ucrt", "Windows, UCRT", "x86-64", "wine", "wine --version", "[Windows](design/windows.md)"),
    Row("windows-clang", "windows-clang", "Windows, msvcrt", "x86-64", "wine", "wine --version", "[Windows](design/windows.md)"),
    Row("windows-32", "windows-32", "Windows, msvcrt", "x86", "compiled with MinGW", "", "[Windows](design/windows.md)"),
    Row("msvc", "msvc", "Windows, ABI of MSVC", "x86-64, x86, arm64", "compiled against declarations of our own, clang", "clang-19 --version", "[Windows](design/windows.md)"),
    Row("wasi", "wasi", "WASI", "WebAssembly", "node", "node --version", "[WebAssembly](design/wasm.md)"),
    Row("wasi-wasmtime", "wasi", "WASI", "WebAssembly", "wasmtime", "build/venv-wasmtime/bin/python3 -m pip show wasmtime", "[WebAssembly](design/wasm.md)"),
    Row("emscripten", "emscripten", "Emscripten", "WebAssembly", "node, Emscripten", "emcc --version", "[WebAssembly](design/wasm.md)"),
    Row("emscripten-threads", "emscripten-threads", "Emscripten with threads", "WebAssembly", "node, Emscripten", "emcc --version", "[WebAssembly](design/wasm.md)"),
    Row("macos", "macos", "macOS", "arm64, x86-64", "compiled with zig", "python3 -m ziglang version", "[macOS and BSDs](design/unix.md)"),
    Row("freebsd", "freebsd", "FreeBSD", "x86-64", "compiled with zig", "python3 -m ziglang version", "[macOS and BSDs](design/unix.md)"),
    Row("netbsd", "netbsd", "NetBSD", "x86-64", "compiled with zig", "python3 -m ziglang version", "[macOS and BSDs](design/unix.md)"),
    Row("openbsd", "openbsd", "OpenBSD", "x86-64", "compiled with zig", "python3 -m ziglang version", "[macOS and BSDs](design/unix.md)"),
    Row("stubs", "stubs", "Android, DragonFly, Haiku, iOS", "", "compiled against declarations of our own, clang", "clang-19 --version", "[macOS and BSDs](design/unix.md)"),
]

HEAD = """# Platforms

`scripts/platforms.py` makes this page from the results of tests that ran. *passed* counts the tests that ran on the platform, and
*override* those of them in which programs that know nothing of the library are served by it. A skipped test says why in the
output of its part. `make test-PART` installs what a part needs (Debian packages, as root) and runs it;
`scripts/run-tests.py --record PART` also brings the results here.

"""

FOOT = """
## What the columns do not say

- *Emulated* processors run one instruction after the other in an order that the real ones need not keep. Weak memory models are
  checked by the models in `test/model`, not by these runs.
- Under `qemu -p` the kernel below has OS pages of 4 KiB: it shows the arithmetic, not the behaviour of a kernel with larger pages.
- *Compiled* means that the library and a client were compiled and linked, and that sections and symbols of the binaries were
  checked. Nothing was executed.
"""


def kind_of(name):
    return name.partition("-")[0]


def counts_of(path):
    """How many tests passed, failed and were skipped, by kind."""
    counts = {}
    for case in xml.etree.ElementTree.parse(path).iter("testcase"):
        kind = counts.setdefault(kind_of(case.get("name")), {"passed": 0, "failed": 0, "skipped": 0})
        skipped = case.find("skipped")
        is_skip = case.get("status") == "notrun" and skipped is not None and skipped.get("message", "").startswith("SKIP_")
        kind["passed" if case.get("status") == "run" else "skipped" if is_skip else "failed"] += 1
    return counts


def compiler_of(build):
    """The name and version of the compiler with which CMake configured a build."""
    for path in sorted(build.glob("CMakeFiles/*/CMakeCCompiler.cmake")):
        text = path.read_text(encoding="utf-8")
        found = [re.search(rf'set\(CMAKE_C_COMPILER_{name} "(.*)"\)', text) for name in ("ID", "VERSION")]
        if all(found):
            return f"{ {'GNU': 'gcc', 'Clang': 'clang'}.get(found[0][1], found[0][1]) } {found[1][1]}"
    return ""


def version_of(command):
    """The first number with a point that a command prints of itself."""
    try:
        said = subprocess.run(command.split(), capture_output=True, text=True, check=False).stdout if command else ""
    except FileNotFoundError:
        said = ""
    found = re.search(r"\d+\.[\d.]*\d", said)
    return found[0] if found else ""


def record(root, parts):
    rows = {row.part: row for row in ROWS}
    unknown = [part for part in parts if part not in rows]
    if unknown:
        sys.exit(f"platforms.py: no row for {', '.join(unknown)}; there are {', '.join(rows)}")
    path = root / NOTES
    notes = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    for part in parts:
        row = rows[part]
        results = root / "build" / row.build / "Testing" / f"results-{part}.xml"
        if not results.exists():
            sys.exit(f"platforms.py: {part} did not run: there is no {results.relative_to(root)}")
        notes[part] = {"date": datetime.date.fromtimestamp(results.stat().st_mtime).isoformat(), "counts": counts_of(results),
                       "compiler": compiler_of(root / "build" / row.build), "emulator": version_of(row.emulator)}
    path.write_text(json.dumps(notes, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def total(counts, what, kinds=None):
    return sum(count[what] for kind, count in counts.items() if kinds is None or kind in kinds)


def line(row, note):
    counts = note["counts"]
    failed = total(counts, "failed")
    override = total(counts, "passed", OVERRIDE)
    ran = f"{total(counts, 'passed')}" + (f", **{failed} failed**" if failed else "")
    how = row.how + (f" {note['emulator']}" if note["emulator"] else "")
    return (f"| {row.system} | {row.processor} | {note['compiler']} | {how} | {ran} | {total(counts, 'skipped')} "
            f"| {override or '-'} | {row.limits} | `{row.part}`, {note['date']} |")


def page(root):
    notes = json.loads((root / NOTES).read_text(encoding="utf-8"))
    lines = ["| system | processor | compiler | run | passed | skipped | override | limits | part |", "|---|---|---|---|---|---|---|---|---|"]
    lines += [line(row, notes[row.part]) for row in ROWS if row.part in notes]
    return HEAD + "\n".join(lines) + "\n" + FOOT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, default=ROOT)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("record").add_argument("parts", nargs="+")
    commands.add_parser("write").add_argument("--check", action="store_true")
    args = parser.parse_args()
    if args.command == "record":
        record(args.root, args.parts)
        return
    path, text = args.root / PAGE, page(args.root)
    if not args.check:
        path.write_text(text, encoding="utf-8")
    elif not path.exists() or path.read_text(encoding="utf-8") != text:
        sys.exit(f"{PAGE} is not what {NOTES} gives: run scripts/platforms.py write")


if __name__ == "__main__":
    main()
