#!/usr/bin/env python3
"""Runs the benchmark programs with several allocators, and prints what each run cost.

  bench/compare.py --alloc ours=build/release/libmimalloc.so --peers PEERS --programs build/release

An allocator is a shared library for LD_PRELOAD; `glibc` is the one of the system, without preload. The first --alloc is
"ours", to which the others are compared. Linux only.

Each test is run once per allocator to warm up, then in rounds: in each round every allocator once, in an order that is
rotated from round to round, so that whatever else the machine does hits all of them alike. Measured are the CPU time
(user and system), the wall time, the peak of resident memory and the minor page faults, of each process alone. A run
that crashes, exits with an error, prints something else than the other allocators' runs, or in which the library was
not loaded, is a FAIL and never a time.
"""

import argparse
import collections
import ctypes
import json
import math
import os
import platform
import shlex
import signal
import statistics
import sys
import tempfile
import time

# The programs of this project, and the arguments that they are measured with.
TESTS = {
    "churn": [],
    "trees": [],
    "replace": [],
    "messages": [],
    "grow": [],
    "cfrac": ["340282366920938463463374607431768211457"],  # 2^128 + 1, the first success of the method
}
GLIBC = "glibc"

Run = collections.namedtuple("Run", "cpu_s wall_s rss_mib faults")


class Failure(Exception):
    """Why a run does not count."""


# ---- one run

# The process is started by a shell that ends at once, and is inherited from it. A direct child would begin with the
# peak of resident memory of this interpreter, which is larger than some of the programs.
START = '[ -z "$0" ] || export LD_PRELOAD="$0"; exec "$@" &'
PR_SET_CHILD_SUBREAPER = 36


def adopt_orphans():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        sys.exit("compare.py: prctl(PR_SET_CHILD_SUBREAPER): " + os.strerror(ctypes.get_errno()))


class Timeout(Exception):
    pass


def on_alarm(_signal, _frame):
    raise Timeout


def wait_for_orphan(shell):
    """Reaps the shell and the process that it started; gives the status and the usage of the latter."""
    ended = {}
    while len(ended) < 2:
        try:
            pid, status, usage = os.wait4(-1, 0)
        except ChildProcessError:
            raise Failure("could not be started") from None
        ended[pid] = (status, usage)
    ended.pop(shell)
    return next(iter(ended.values()))


def end_group(shell):
    try:
        os.killpg(shell, signal.SIGKILL)
        while True:
            os.wait4(-1, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def run_once(command, preload, timeout_s):
    """Gives the cost and the output of a run, or raises Failure."""
    with tempfile.TemporaryDirectory() as temp:
        out, err = os.path.join(temp, "out"), os.path.join(temp, "err")
        flags = os.O_WRONLY | os.O_CREAT
        files = [(os.POSIX_SPAWN_OPEN, 1, out, flags, 0o600), (os.POSIX_SPAWN_OPEN, 2, err, flags, 0o600)]
        signal.alarm(timeout_s)
        start = time.perf_counter()
        shell = os.posix_spawn("/bin/sh", ["/bin/sh", "-c", START, preload, *command], os.environ, file_actions=files,
                               setpgroup=0)
        try:
            status, usage = wait_for_orphan(shell)
            wall_s = time.perf_counter() - start
        except Timeout:
            end_group(shell)
            raise Failure(f"still running after {timeout_s} s") from None
        except BaseException:
            end_group(shell)
            raise
        finally:
            signal.alarm(0)
        with open(out, errors="replace") as o, open(err, errors="replace") as e:
            output, errors = o.read(), e.read()
    if os.WIFSIGNALED(status):
        raise Failure(signal.Signals(os.WTERMSIG(status)).name)
    if status != 0:
        said = (errors.strip() or output.strip() or "no message").splitlines()[-1]
        raise Failure(f"exit code {os.WEXITSTATUS(status)}: {said}")
    if "cannot be preloaded" in errors:
        raise Failure("the library could not be loaded")
    return Run(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024, usage.ru_minflt), output


# ---- one test

class Result:
    """The runs of one test with one allocator."""

    def __init__(self):
        self.runs = []
        self.output = None
        self.failure = None

    def median(self, field):
        return statistics.median(getattr(run, field) for run in self.runs)

    def spread(self, field):
        values = [getattr(run, field) for run in self.runs]
        return min(values), max(values)


def run_test(command, allocs, rounds, timeout_s, progress):
    results = {name: Result() for name in allocs}
    names = list(allocs)
    for number in range(rounds + 1):  # the first is the warm-up
        for name in names[number % len(names):] + names[:number % len(names)]:
            result = results[name]
            if result.failure:
                continue
            progress(f"{'warm-up' if number == 0 else f'round {number} of {rounds}'}: {name}")
            try:
                run, output = run_once(command, allocs[name], timeout_s)
                if result.output not in (None, output):
                    raise Failure("the output differs from run to run")
                result.output = output
                if number > 0:
                    result.runs.append(run)
            except Failure as failure:
                result.failure = str(failure)
    progress("")
    outputs = collections.Counter(r.output for r in results.values() if not r.failure)
    for result in results.values():
        if not result.failure and result.output != outputs.most_common(1)[0][0]:
            result.failure = "the output is another one than with the other allocators"
    return results


# ---- tables

def print_table(rows):
    widths = [max(len(row[i]) for row in rows if i < len(row) - 1 or len(row) == len(rows[0]))
              for i in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(widths[i]) if len(row) == len(rows[0]) else cell for i, cell in enumerate(row) if i > 0]
        print("  " + "  ".join(cells).rstrip())


def ratio(value, to):
    return f"{value / to:.2f}" if to else "-"


def seconds(result, field):
    low, high = result.spread(field)
    return f"{result.median(field):.3f} [{low:.3f}-{high:.3f}]"


def print_test(title, results, ours):
    good = {name: r for name, r in results.items() if not r.failure}
    best = min((r.median("cpu_s") for r in good.values()), default=0)
    own = good[ours].median("cpu_s") if ours in good else 0
    rows = [["", "CPU s [min-max]", "wall s [min-max]", "peak MiB", "faults", f"x {ours}", "x best"]]
    for name, r in results.items():
        if r.failure:
            rows.append([name, "FAIL: " + r.failure])
            continue
        cpu_s = r.median("cpu_s")
        rows.append([name, seconds(r, "cpu_s"), seconds(r, "wall_s"), f"{r.median('rss_mib'):.1f}",
                     f"{r.median('faults'):.0f}", ratio(cpu_s, own), ratio(cpu_s, best)])
    print(title)
    print_table(rows)
    print(flush=True)


def geometric_mean(values):
    return f"{math.exp(statistics.fmean(map(math.log, values))):.2f}" if values else "-"


def print_summary(all_results, allocs, ours):
    """For each allocator, over the tests that it and ours passed."""
    rows = [["", "CPU", "peak MiB", "passed"]]
    for name in allocs:
        pairs = [(r[name], r[ours]) for r in all_results.values() if not r[name].failure and not r[ours].failure]
        passed = sum(not r[name].failure for r in all_results.values())
        rows.append([name, *(geometric_mean([a.median(f) / b.median(f) for a, b in pairs if b.median(f) > 0])
                             for f in ("cpu_s", "rss_mib")), f"{passed} of {len(all_results)}"])
    print(f"geometric mean of the ratios to {ours}, below 1 is better than {ours}")
    print_table(rows)


def to_json(all_results, commands, allocs, rounds):
    return {
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "libc": " ".join(platform.libc_ver())},
        "rounds": rounds,
        "allocators": allocs,
        "tests": {
            test: {
                "command": commands[test],
                "results": {name: {"failure": r.failure, "runs": [run._asdict() for run in r.runs]}
                            for name, r in results.items()},
            } for test, results in all_results.items()
        },
    }


# ---- the command line

def named(text):
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def words(text):
    return [word for word in text.split(",") if word]


def parse():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--alloc", type=named, action="append", default=[], metavar="NAME=LIB",
                        help="an allocator to measure; the first is the one that the others are compared to")
    parser.add_argument("--peers", metavar="DIR", help="measure each DIR/libNAME.so as NAME (see fetch-peers.sh)")
    parser.add_argument("--programs", metavar="DIR", help="where the built programs are: " + " ".join(TESTS))
    parser.add_argument("--command", type=named, action="append", default=[], metavar="NAME='CMD ARG...'",
                        help="one more test: any program with a fixed output")
    parser.add_argument("--tests", type=words, metavar="A,B", help="only these tests")
    parser.add_argument("--allocs", type=words, metavar="A,B", help="only these allocators")
    parser.add_argument("--rounds", type=int, default=5, help="measured runs of each (5)")
    parser.add_argument("--timeout", type=int, default=120, metavar="S", help="seconds until a run is a FAIL (120)")
    parser.add_argument("--json", metavar="FILE", help="write every single run there")
    options = parser.parse_args()
    if options.rounds < 1 or options.timeout < 1:
        parser.error("--rounds and --timeout must be above 0")
    return parser, options


def choose(parser, what, everything, wanted):
    unknown = [name for name in wanted or [] if name not in everything]
    if unknown:
        parser.error(f"no such {what}: {', '.join(unknown)} (there are: {', '.join(everything)})")
    return {name: value for name, value in everything.items() if wanted is None or name in wanted}


def find_allocs(parser, options):
    """Name to library, in the order of the tables."""
    allocs = {name: os.path.abspath(path) for name, path in options.alloc}
    allocs[GLIBC] = ""
    if options.peers:
        for file in sorted(os.listdir(options.peers)):
            if file.startswith("lib") and file.endswith(".so"):
                allocs.setdefault(file[3:-3], os.path.abspath(os.path.join(options.peers, file)))
    for path in allocs.values():
        if path and not os.path.isfile(path):
            parser.error(f"no such library: {path}")
        if " " in path or ":" in path:
            parser.error(f"LD_PRELOAD cannot hold this path: {path}")
    return choose(parser, "allocator", allocs, options.allocs)


def find_tests(parser, options):
    """Name to command."""
    commands = {}
    if options.programs:
        for name, arguments in TESTS.items():
            path = os.path.abspath(os.path.join(options.programs, name))
            if os.access(path, os.X_OK):
                commands[name] = [path, *arguments]
    commands.update({name: shlex.split(command) for name, command in options.command})
    commands = choose(parser, "test", commands, options.tests)
    if not commands:
        parser.error("no programs: give --programs or --command")
    return commands


def main():
    parser, options = parse()
    allocs = find_allocs(parser, options)
    commands = find_tests(parser, options)
    ours = next(iter(allocs))
    adopt_orphans()
    signal.signal(signal.SIGALRM, on_alarm)
    is_terminal = sys.stderr.isatty()
    all_results = {}
    for test, command in commands.items():
        def progress(text, test=test):
            if is_terminal:
                print(f"\r\033[K{test} {text}" if text else "\r\033[K", end="", file=sys.stderr, flush=True)

        all_results[test] = run_test(command, allocs, options.rounds, options.timeout, progress)
        print_test(" ".join([test, *command[1:]]), all_results[test], ours)
    print_summary(all_results, allocs, ours)
    if options.json:
        with open(options.json, "w") as file:
            json.dump(to_json(all_results, commands, allocs, options.rounds), file, indent=1)
    sys.exit(any(r.failure for results in all_results.values() for r in results.values()))


if __name__ == "__main__":
    main()
