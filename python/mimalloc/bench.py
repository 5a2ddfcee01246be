"""A quick comparison: a program of the user's, with the malloc of the system and with ours, in turn."""

import ctypes
import os
import pathlib
import signal
import socket
import statistics
import subprocess
import sys
import time

from . import library, output
from .errors import ToolError

COLUMNS = [("ALLOCATOR", False), ("CPU TIME", True), ("", True), ("ELAPSED", True), ("", True), ("PEAK RSS", True), ("", True),
           ("PAGE FAULTS", True), ("", True)]
FIGURES = ("cpu_seconds", "elapsed_seconds", "peak_bytes", "faults")


# The peak of a process begins with that of the process it was before: started from here, no program would have less than this
# Python.  So a shell, which is small, is copied and becomes the program.  The shell ends before the copy is told to go on, and the
# copy becomes our child.
START = """exec 3<&0
test -z "$1" || export LD_PRELOAD="$1"
shift
{ read -r go; exec "$@" <&3 3<&- >/dev/null 2>&1; } <&1 &
echo $!
"""
PR_SET_CHILD_SUBREAPER = 36
ELF_MACHINE = slice(18, 20)     # of the header


def _head(path):
    try:
        with open(path, "rb") as file:
            return file.read(256)
    except OSError:
        return b""


def _is_executed(path):
    """By the system, as it is: what that refuses, a shell would take for a script of its own."""
    head = _head(path)
    if head[:2] == b"#!":
        words = head[2:].partition(b"\n")[0].split()
        return bool(words) and os.access(words[0], os.X_OK)
    return head[:4] == b"\x7fELF" and head[ELF_MACHINE] == _head(sys.executable)[ELF_MACHINE]


def _start_here(command, env):
    """(time, pid)"""
    start = time.monotonic()
    try:
        return start, os.posix_spawn(command[0], command, env, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    except OSError as error:
        raise library.not_executable(command[0], error) from error


def _start(command, env):
    """(time, pid)"""
    can_adopt = ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    if not can_adopt or not pathlib.Path("/bin/sh").exists() or not _is_executed(command[0]):
        return _start_here(command, env)
    preloaded = env.get("LD_PRELOAD", "")
    rest = {name: value for name, value in env.items() if name != "LD_PRELOAD"}
    ours, theirs = socket.socketpair()
    with ours, theirs:
        shell = os.posix_spawn("/bin/sh", ["sh", "-c", START, "sh", preloaded, *command], rest, file_actions=[
            (os.POSIX_SPAWN_DUP2, theirs.fileno(), 1), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
        theirs.close()
        with ours.makefile() as lines:
            pid = lines.readline()
        os.waitpid(shell, 0)
        if not pid.strip():
            return _start_here(command, env)
        start = time.monotonic()
        ours.sendall(b"\n")
        return start, int(pid)


def measure(command, env):
    """One run: its figures.  The output of the program is dropped."""
    start, pid = _start(command, env)
    try:
        _, status, usage = os.wait4(pid, 0)
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGTERM)
        os.wait4(pid, 0)
        raise
    code = os.waitstatus_to_exitcode(status)
    if code != 0:
        how = f"was ended by signal {-code}" if code < 0 else f"ended with status {code}"
        raise ToolError(f"{' '.join(command)} {how} {'with ' + env['LD_PRELOAD'] if 'LD_PRELOAD' in env else 'with the malloc of the system'}.")
    return {"cpu_seconds": usage.ru_utime + usage.ru_stime, "elapsed_seconds": time.monotonic() - start,
            "peak_bytes": usage.ru_maxrss * 1024, "faults": usage.ru_minflt + usage.ru_majflt}


def _environments(secure):
    plain = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    kinds = {"mimalloc": "release", **({"mimalloc-secure": "secure"} if secure else {})}
    libraries = {name: library.find(kind) for name, kind in kinds.items()}
    for each in libraries.values():
        library.check_loads(each)   # without it the system would be compared with itself
    return {"system": plain, **{name: library.preload(plain, each) for name, each in libraries.items()}}


def compare(command, rounds, secure):
    """{allocator: {figure: [median, min, max]}}."""
    environments = _environments(secure)
    runs = {name: [] for name in environments}
    steps = [(name, env) for _ in range(rounds) for name, env in environments.items()]
    for i, (name, env) in enumerate(steps):
        if sys.stderr.isatty():
            print(f"\r\033[K{i + 1} of {len(steps)}: {name}", end="", file=sys.stderr, flush=True)
        runs[name].append(measure(command, env))
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    return {name: {figure: [f(run[figure] for run in each) for f in (lambda x: statistics.median(list(x)), min, max)]
                   for figure in FIGURES} for name, each in runs.items()}


SHOW = {"cpu_seconds": lambda n: f"{n:.3f} s", "elapsed_seconds": lambda n: f"{n:.3f} s", "peak_bytes": output.size,
        "faults": output.count}


def _ratio(name, base, figure):
    """Against the system; '~': the ranges of the runs overlap."""
    (mine, low, high), (theirs, their_low, their_high) = name[figure], base[figure]
    if name is base or theirs == 0:
        return ""
    overlap = low <= their_high and their_low <= high
    return f"{'~' if overlap else ''}{mine / theirs:.2f} x"


def bench(program, rounds, secure, suite, as_json):
    if suite:
        _suite(program)
        return
    if not program:
        raise ToolError("There is no program to run: mimalloc bench -- PROGRAM ...")
    path = library.find_program(program[0])
    result = compare([path, *program[1:]], rounds, secure)
    if as_json:
        output.print_json({"command": program, "rounds": rounds,
                           "allocators": {name: {figure: dict(zip(("median", "min", "max"), values))
                                                 for figure, values in figures.items()} for name, figures in result.items()}})
        return
    base = result["system"]
    rows = [[name, *(cell for figure in FIGURES for cell in (SHOW[figure](figures[figure][0]), _ratio(figures, base, figure)))]
            for name, figures in result.items()]
    output.print_table(COLUMNS, rows, f"medians of {rounds} runs in turn; ~: the ranges overlap, so the difference may be chance")


def _suite(arguments):
    """The benchmark suite of the source tree."""
    script = library.CHECKOUT / "bench" / "bench.py"
    if not library.is_checkout() or not script.is_file():
        raise ToolError("The benchmark suite is in the source tree, and this is an installed package. In the tree: make bench.")
    sys.exit(subprocess.run([sys.executable, str(script), *(arguments or ["run", "--help"])], check=False).returncode)
