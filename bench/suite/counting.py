"""Runs the program of bench/landscape with an allocator, and reads what was counted. Needs no packages."""

import functools
import os
import pathlib
import shutil
import subprocess
import tempfile

from . import callgrind
from .cost import Failure
from .measure import NOT_INHERITED, library_environment

SOURCES = pathlib.Path(__file__).resolve().parent.parent / "landscape"
# Calls go through the table of imported addresses: no stub between the program and the library is counted.
FLAGS = ["-std=gnu11", "-O2", "-g0", "-Wall", "-Wextra", "-fno-plt", "-fno-builtin", "-rdynamic", "-pthread"]
CALLGRIND, STEP = "callgrind", "step"
METHODS = (CALLGRIND, STEP)
STEP_SHARE = 8  # of the pairs, because each step takes microseconds
TIMEOUT_S = 1800
# libc's functions that clear and copy, which do not count, are not to take an instruction with a prefix, which is slow there.
TUNABLES = "glibc.cpu.x86_rep_stosb_threshold=1000000000:glibc.cpu.x86_rep_movsb_threshold=1000000000"


def build(directory, cc="cc"):
    """The program; raises Failure."""
    program = os.path.join(os.path.realpath(directory), "landscape")
    try:
        done = subprocess.run([cc, *FLAGS, *sorted(map(str, SOURCES.glob("*.c"))), "-o", program, "-ldl"],
                              capture_output=True, text=True)
    except OSError as error:
        raise Failure(f"{cc}: {error.strerror}") from None
    if done.returncode != 0:
        raise Failure(f"bench/landscape cannot be compiled: {(done.stderr.strip() or cc).splitlines()[-1][:200]}")
    return program


def environment(library):
    env = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    env |= library_environment(library) | {"LD_BIND_NOW": "1"} | ({"LD_PRELOAD": library} if library else {})
    env["GLIBC_TUNABLES"] = ":".join(filter(None, [env.get("GLIBC_TUNABLES"), TUNABLES]))
    return env


def run(command, library):
    """The words of each line; raises Failure."""
    try:
        done = subprocess.run(command, env=environment(library), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        raise Failure(f"still running after {TIMEOUT_S} s") from None
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}") from None
    if done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip() or "no message").splitlines()[-1]
        raise Failure(f"exit status {done.returncode}: {said[:200]}")
    return [line.split() for line in done.stdout.splitlines()]


def count(mode, program, library, cells, share=1):
    """{(pattern, size): [counts per pair]}, and {(pattern, size): reason} of the cells without."""
    words = [word for pattern, size in cells for word in (pattern, str(size))]
    if mode != CALLGRIND:
        lines = run([program, mode, str(share), *words], library)
        return by_cell((line[0], int(line[1])) for line in lines if line[0].count("/") == 3), failed(lines)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        lines = run([*callgrind.command(directory), program, mode, str(share), *words], library)
        outside = [(os.path.realpath(line[1]), int(line[2]), int(line[3])) for line in lines if line[0] == "outside"]
        return by_cell((name, total(costs, outside)) for name, costs in callgrind.counts(directory, program)), failed(lines)


def by_cell(named):
    found = {}
    for name, value in named:
        pattern, size, pairs, _ = name.split("/")
        found.setdefault((pattern, int(size)), []).append(value / int(pairs))
    return found


def failed(lines):
    return {(line[1].split("/")[0], int(line[1].split("/")[1])): " ".join(line[2:]) for line in lines if line[0] == "failed"}


def total(costs, outside):
    """Instructions, but those that clear and copy: libc's functions, and what is one instruction with a prefix, of which
    callgrind counts each repetition."""
    return sum(cost[0] for (where, at), cost in costs.items()
               if at not in repeated(where) and not any(where == file and low <= at < high for file, low, high in outside))


@functools.cache
def repeated(library):
    return callgrind.offsets_of(r"rep\w*\s", library) if os.path.exists(library) else set()


def method_for(program, library, wanted=METHODS):
    """The first method of these by which instructions can be counted with the library; raises Failure with their reasons."""
    reasons = []
    for method in wanted:
        if method == CALLGRIND and not (shutil.which("valgrind") and shutil.which("objdump")):
            reasons.append("callgrind: valgrind or objdump is not installed")
            continue
        try:
            found, reason = count(method, program, library, [("lone", 64)], 64)
            if not reason and found:
                return method
            reasons.append(f"{method}: {next(iter(reason.values()), 'nothing was counted')}")
        except Failure as failure:
            reasons.append(f"{method}: {failure}")
    raise Failure("; ".join(reasons))
