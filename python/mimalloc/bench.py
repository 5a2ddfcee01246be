"""A quick comparison: a program of the user's, with the malloc of the system and with ours, in turn."""

import os
import signal
import statistics
import subprocess
import sys
import time

from . import library, output
from .errors import ToolError

COLUMNS = [("ALLOCATOR", False), ("CPU TIME", True), ("", True), ("ELAPSED", True), ("", True), ("PEAK RSS", True), ("", True),
           ("PAGE FAULTS", True), ("", True)]
FIGURES = ("cpu_seconds", "elapsed_seconds", "peak_bytes", "faults")


def measure(command, env):
    """One run: its figures.  The output of the program is dropped."""
    start = time.monotonic()
    try:
        pid = os.posix_spawn(command[0], command, env, file_actions=[
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0), (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0)])
    except OSError as error:
        raise library.not_executable(command[0], error) from error
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
    found = {"system": plain, "mimalloc": library.preload(plain, library.find())}
    if secure:
        found["mimalloc-secure"] = library.preload(plain, library.find("secure"))
    return found


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
