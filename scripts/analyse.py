#!/usr/bin/env python3
"""Has static analysers look at the library: `make analyse`.  Exit status 1: one of them found something.

  scripts/analyse.py BUILD [TOOL ...] [--jobs N] [--only FILE ...]     TOOL: cppcheck, gcc, clang-tidy; without one all

BUILD is a configured build of clang-debug, whose compile_commands.json says which sources this system has and how they are
compiled.  clang-tidy runs clang's analyser as well (.clang-tidy).  gcc is its -fanalyzer, in a release and in a secure full build.
What is found and is none is in SUPPRESSED, with the reason."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOLS = ("cppcheck", "gcc", "clang-tidy")

# (tool, pattern of the file, what is found): the reason
SUPPRESSED = {
    ("cppcheck", r"src/api/arena\.c", "uninitvar"): "mib is written by _mi_format, which it does not see through the array in a structure",
    ("cppcheck", r"src/api/cxx\.c", "legacyUninitvar"): "get is initialised by a declaration of a pointer to a function",
    ("cppcheck", r"src/heap/profile\.c", "signConversion"): "mi_fetch_add_relaxed takes int64_t there",
    ("gcc", r"src/heap/outbox\.c|src/page/page\.h|heap/\.\./page/page\.h", "-Wanalyzer-null-dereference"): "each block of a list has a page",
    ("clang-tidy", r"src/prim/linux_(container|fault)\.c", "core.uninitialized.UndefReturn"): "the system call has read into the buffer",
    ("clang-tidy", r"src/heap/guard_fault\.c|src/prim/posix_memory\.c", "misc-redundant-expression"): "constants that are equal in this build",
    ("clang-tidy", r"/usr/include/pthread\.h", "inconsistent-declaration-parameter-name"): "libc's names are reserved ones",
    ("clang-tidy", r"src/support/format\.c", "core.CallAndMessage"): "the loop writes at least one digit",
}

# malloc cannot be told from its callers, as in .clang-tidy.
GCC_OFF = ["-Wno-analyzer-malloc-leak", "-Wno-analyzer-mismatching-deallocation"]
GCC_BUILDS = {"release": ["-DNDEBUG"], "secure full": ["-DNDEBUG", "-DMI_SECURE=5"]}
COMMON = ["-std=gnu11", "-Iinclude", "-DMI_STATIC_LIB", "-DMI_LIBRARY_BUILD=1"]


def sources(build, only):
    """Those of the library on this system, one by one."""
    commands = json.loads((pathlib.Path(build) / "compile_commands.json").read_text(encoding="utf-8"))
    found = {pathlib.Path(each["file"]).relative_to(ROOT).as_posix() for each in commands
             if each["file"].startswith(f"{ROOT}/src/") and each["file"].endswith(".c")}
    return sorted(file for file in found if not file.endswith("static.c") and (not only or file in only))


def said(command):
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


def run_cppcheck(file, _build):
    return said(["cppcheck", "--quiet", "--enable=warning,performance,portability", "--std=c11", "--max-configs=1", "--suppress=missingInclude",
                 "--template={file}:{line}: {severity}: {message} [{id}]", "-Iinclude", "-DMI_STATIC_LIB", "-DMI_LIBRARY_BUILD=1", "-D__linux__",
                 "-D__x86_64__", "-D__GNUC__=12", "-D__SIZEOF_POINTER__=8", file])


def run_gcc(file, _build):
    return "".join(said(["gcc", "-O1", "-fanalyzer", *GCC_OFF, *COMMON, *defines, "-c", file, "-o", os.devnull]) for defines in GCC_BUILDS.values())


def run_tidy(file, build):
    return said(["clang-tidy-19", "-p", build, "--quiet", "--warnings-as-errors=*", file])


RUN = {"cppcheck": run_cppcheck, "gcc": run_gcc, "clang-tidy": run_tidy}


def is_suppressed(tool, line):
    return any(tool == of and re.search(file, line) and re.search(rf"\[[\w.-]*{re.escape(what)}[,\]]", line) for of, file, what in SUPPRESSED)


def findings(tool, text):
    lines = re.findall(r"^\S+?:\d+:.*(?:warning|error|performance|portability): .*$", text, re.M)
    return sorted({line for line in lines if not is_suppressed(tool, line)})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("tools", nargs="*", metavar="TOOL", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", nargs="+", default=[])
    args = parser.parse_args()
    files, n_found = sources(args.build, args.only), 0
    if not files:
        sys.exit(f"{args.build}/compile_commands.json has no source of the library")
    for tool in args.tools or TOOLS:
        with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
            texts = list(pool.map(lambda file, tool=tool: RUN[tool](file, args.build), files))
        found = [line for text in texts for line in findings(tool, text)]
        n_found += len(found)
        print("\n".join([*found, f"{tool}: {len(files)} files, {len(found)} findings"]), flush=True)
    return 1 if n_found else 0


if __name__ == "__main__":
    sys.exit(main())
