"""What the package tests share: running commands, the list of cases, clients and what they must print."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


class Failure(Exception):
    """Something is not as it should be."""


class Skip(Exception):
    """Something that is needed is not there."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


# ---- commands ------------------------------------------------------------------------------------------------------------

# A client must find what it is told to find, and nothing else.
CLEAN = {k: v for k, v in os.environ.items()
         if not k.startswith(("CMAKE_", "PKG_CONFIG", "MIMALLOC_", "CARGO_ENCODED")) and k not in
         ("DESTDIR", "CFLAGS", "CXXFLAGS", "LDFLAGS", "LD_PRELOAD", "LD_LIBRARY_PATH", "LIBRARY_PATH", "CPATH", "MAKEFLAGS")}


def run(*command, env=None, cwd=None, timeout=900):
    """The output; raises Failure when the command fails."""
    command = [str(c) for c in command]
    try:
        result = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                text=True, errors="replace", timeout=timeout, env={**CLEAN, **(env or {})}, cwd=cwd)
    except subprocess.TimeoutExpired as error:
        raise Failure(f"{' '.join(command)}\nstill running after {timeout} s") from error
    if result.returncode != 0:
        raise Failure(f"{' '.join(command)}\nexit status {result.returncode}\n{result.stdout[-4000:]}")
    return result.stdout


def need(*tools):
    for tool in tools:
        if shutil.which(str(tool)) is None:
            raise Skip(f"{tool} is not installed")


# ---- the list of cases -----------------------------------------------------------------------------------------------------

CASES = {}


def case(name, *, long=False, installs=False, timeout=900):
    """A test, `package-NAME` for ctest.  `long`: not in the normal run.  `installs`: uses what the case "install" has made."""
    def register(function):
        CASES[name] = function
        function.long, function.installs, function.timeout = long, installs, timeout
        return function
    return register


class Context:
    """The compilers, the versions of the header, and a directory for the case that runs."""

    def __init__(self, cc, work, name):
        self.cc, self.cxx = cc, cxx_of(cc)
        self.shared_work = work
        self.dir = work / name
        header = (ROOT / "include/mimalloc.h").read_text(encoding="utf-8")
        numbers = [int(n) for n in re.findall(r"^ *# *define +MI_MALLOC_VERSION +(\d+)", header, re.M)]
        self.numbers = {n // 10000: n for n in numbers}   # by level
        self.failures = 0

    def fresh(self):
        shutil.rmtree(self.dir, ignore_errors=True)
        self.dir.mkdir(parents=True)

    def remove(self):
        shutil.rmtree(self.dir, ignore_errors=True)

    def version(self, level=2):
        return f"{self.numbers[level] // 10000}.{self.numbers[level] // 100 % 100}"

    def has_level(self, level):
        return level in self.numbers

    def part(self, name, function, *args, **named):
        """A part of a case: the others run also when it fails."""
        try:
            function(*args, **named)
            print(f"ok    {name}", flush=True)
        except Skip as skip:
            print(f"skip  {name}: {skip}", flush=True)
        except Failure as failure:
            self.failures += 1
            print(f"FAIL  {name}: {failure}", flush=True)


def cxx_of(cc):
    head, tail = os.path.split(str(cc))
    for c, cxx in (("clang", "clang++"), ("gcc", "g++"), ("cc", "c++")):
        if c in tail:
            return os.path.join(head, tail.replace(c, cxx, 1))
    return "c++"


def compilers():
    """One of each kind that is installed."""
    found = []
    for candidates in (("gcc",), ("clang-19", "clang")):
        found += [c for c in candidates if shutil.which(c)][:1]
    return found


# ---- building ------------------------------------------------------------------------------------------------------------

# Options: compiles in a fraction of the time.
UNOPTIMISED = [f"-DCMAKE_{language}_COMPILER_LAUNCHER={HERE / 'unoptimised.sh'}" for language in ("C", "CXX")]


def cmake_configure(ctx, source, build, *options):
    return run("cmake", "-S", source, "-B", build, f"-DCMAKE_C_COMPILER={ctx.cc}", f"-DCMAKE_CXX_COMPILER={ctx.cxx}", *options)


def cmake_build(build, *targets):
    return run("cmake", "--build", build, "--parallel", "2", *(["--target", *targets] if targets else []))


def client_source(name="client.c"):
    return HERE / name


def compile_client(compiler, program, *flags, sources=None):
    """Links in the order of `flags`, in which CLIENT stands for the client's source."""
    flags = [str(f) for f in flags]
    if "CLIENT" not in flags:
        flags = ["CLIENT", *flags]
    language = ["-x", "c++"] if "++" in os.path.basename(str(compiler)) else ["-x", "c"]
    at = flags.index("CLIENT")
    flags[at:at + 1] = [*language, str(client_source()), "-x", "none"]
    run(compiler, "-O1", "-Wall", "-Wextra", "-fno-builtin-malloc", *flags, "-o", program, "-ldl")


# ---- what clients print ----------------------------------------------------------------------------------------------------

OVERRIDDEN = {"malloc": "ours", "libc": "ours"}
ALONE = {"malloc": "other", "libc": "other"}


def check_client(program, wanted, *, env=None, command=()):
    """Runs it; `wanted` are pairs that it must print, among others."""
    output = run(*command, program, env=env).strip().split("\n")[-1]
    printed = dict(pair.split("=", 1) for pair in output.split())
    wrong = {k: printed.get(k) for k, v in wanted.items() if printed.get(k) != str(v)}
    expect(not wrong, f"{program}: prints {output!r}; wanted {wanted}")


def main_output_encoding():
    sys.stdout.reconfigure(errors="replace")
