#!/usr/bin/env python3
"""Memory limits from the environment, with real programs.

  limits.py --lib L

Each check starts Python, which takes its memory from malloc (PYTHONMALLOC=malloc), with the library preloaded:

  limited      at MIMALLOC_LIMIT it gets MemoryError, goes on, and is never larger than the limit and its own base
  threads      the same with eight threads
  soft         with MIMALLOC_LIMIT_SOFT alone nothing is refused
  child        a child process that exec's has the limit, by its environment
  messages     limits that contradict each other are named, and the better one stays
  container    MIMALLOC_LIMIT=80% in a control group of 64 MiB: MemoryError, where the kernel would end the process.  Needs a
               group of our own (root, and a hierarchy that can be written to); otherwise said to be skipped.  What is read from
               such files is tested with files of the test's own in any case (unit-container).
  retained     two processes in one group, of which one uses and frees much memory again and again: with shares both
               live, and the one retains little

Exit status 1: a check failed; 77: there is no control group, and all else passed."""

import argparse
import contextlib
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import control_group  # noqa: E402
from outcome import SKIPPED, Failed  # noqa: E402

MIB = 1 << 20
SLACK = 12 * MIB  # above the limit: Python's code and what it maps itself, and what a page of the table of pages covers ahead

GREEDY = """
import sys
def status(key):
    return int(next(line for line in open('/proc/self/status') if line.startswith(key)).split()[1]) * 1024
base = status('VmRSS')
for size in (100, 5000, 300000, 5 << 20):
    blocks, n_errors = [], 0
    try:
        for i in range(4000000): blocks.append(bytearray(size))
    except MemoryError:
        n_errors += 1
    n = len(blocks)
    blocks.clear()
    text = ''.join(str(i) for i in range(100000))  # it goes on
    print('size', size, 'blocks', n, 'errors', n_errors, 'text', len(text))
print('base', base, 'most', status('VmHWM'))
"""

THREADED = """
import threading
errors = []
go = threading.Barrier(8)  # Python waits for ever for a thread that has no memory to start
def work():
    go.wait()
    for _ in range(3):
        blocks = []
        try:
            while True: blocks.append(bytearray(20000))
        except MemoryError:
            blocks.clear()
            errors.append(1)
threads = [threading.Thread(target=work) for _ in range(8)]
for t in threads: t.start()
for t in threads: t.join()
print('errors', len(errors), 'rest', len(bytearray(10 << 20)))
"""

# Uses and frees 24 MiB again and again; says what stays.
SWINGING = """
import time, sys
most = 0
end = time.time() + float(sys.argv[1])
while time.time() < end:
    blocks = [bytearray(100000) for _ in range(250)]
    del blocks
    rss = int(open('/proc/self/statm').read().split()[1]) * 4096
    most = max(most, rss)
    time.sleep(0.02)
print('stayed', most)
"""


def run(lib, code, options, *arguments, group=None):
    environment = {k: v for k, v in os.environ.items() if not k.upper().startswith("MIMALLOC_")}
    environment |= {"LD_PRELOAD": str(lib), "PYTHONMALLOC": "malloc"} | options
    return subprocess.run([sys.executable, "-S", "-c", code, *arguments], env=environment, capture_output=True, text=True,
                          timeout=250, preexec_fn=group and group.enter, check=False)


def number(word, text):
    found = re.search(rf"\b{word} (\d+)", text)
    if found is None:
        raise Failed(f"no '{word}' in: {text[:400]}")
    return int(found[1])


def expect(condition, what, result):
    if not condition:
        raise Failed(f"{what}\nstatus {result.returncode}\n{result.stdout[-1500:]}{result.stderr[-1500:]}")


def check_greedy(lib, limit, options, group=None):
    result = run(lib, GREEDY, options, group=group)
    expect(result.returncode == 0, "Python did not end well", result)
    for line in result.stdout.splitlines():
        if line.startswith("size"):
            size, blocks = number("size", line), number("blocks", line)
            expect(number("errors", line) == 1, "no MemoryError", result)
            # a bytearray of 100 bytes has an object and a place in a list beside them, and lists grow by copying
            expect(size * blocks >= 0.25 * limit, f"{size * blocks / MIB:.1f} MiB were all that could be had", result)
    most, base = number("most", result.stdout), number("base", result.stdout)
    expect(most <= limit + SLACK, f"{most / MIB:.1f} MiB were resident", result)
    print(f"  at most {most / MIB:.1f} MiB resident, limit {limit / MIB:.1f}, Python itself {base / MIB:.1f}")


def check_limited(lib):
    check_greedy(lib, 64 * MIB, {"MIMALLOC_LIMIT": "64M"})
    check_greedy(lib, 100 * MIB, {"MIMALLOC_LIMIT": "102400K", "MIMALLOC_LIMIT_SOFT": "80M"})


def check_threads(lib):
    result = run(lib, THREADED, {"MIMALLOC_LIMIT": "96M"})
    expect(result.returncode == 0 and number("errors", result.stdout) >= 8, "threads did not go on", result)


def check_soft(lib):
    result = run(lib, "print(len(bytearray(100 << 20)))", {"MIMALLOC_LIMIT_SOFT": "20M"})
    expect(result.stdout == f"{100 << 20}\n", "a soft limit refused something", result)


def check_child(lib):
    code = "import subprocess, sys; print(subprocess.run([sys.executable, '-S', '-c', sys.argv[1]]).returncode)"
    inner = "try: bytearray(80 << 20)\nexcept MemoryError: print('refused')"
    result = run(lib, code, {"MIMALLOC_LIMIT": "64M"}, inner)
    expect(result.stdout.splitlines() == ["refused", "0"], "the child has another limit", result)


def check_messages(lib):
    options = {"MIMALLOC_SHOW_ERRORS": "1", "MIMALLOC_LIMIT": "64M", "MIMALLOC_LIMIT_SOFT": "65M"}
    result = run(lib, "print(len(bytearray(30 << 20)))", options)
    expect("option 'limit_soft' has no effect: 66560 KiB are more than the 65536 KiB of option 'limit'" in result.stderr,
           "nothing was said", result)
    expect(result.stdout == f"{30 << 20}\n", "the limit is another one", result)
    result = run(lib, "print(len(bytearray(30 << 20)))", {"MIMALLOC_SHOW_ERRORS": "1", "MIMALLOC_LIMIT": "12Q"})
    expect("'12Q' has an unknown unit" in result.stderr and result.stdout == f"{30 << 20}\n", "12Q", result)


# ---- control groups -----------------------------------------------------------------------------------------------------

def check_container(lib, group):
    limit = 64 * MIB
    result = run(lib, "pass", {"MIMALLOC_VERBOSE": "1", "MIMALLOC_LIMIT": "80%"}, group=group)
    expect(f"memory: {limit // 1024} KiB (container)" in result.stderr, "the container was not seen", result)
    check_greedy(lib, limit * 80 // 100, {"MIMALLOC_LIMIT": "80%"}, group)


def check_retained(lib, group):
    stayed = {}
    for options in ({}, {"MIMALLOC_LIMIT": "80%"}):
        result = run(lib, SWINGING, options, "2", group=group)
        expect(result.returncode == 0, "did not end well", result)
        stayed[len(options)] = number("stayed", result.stdout)
    print(f"  stays after frees: {stayed[0] / MIB:.1f} MiB, with a share of the container {stayed[1] / MIB:.1f} MiB")
    expect(stayed[1] <= stayed[0], "more stays with a limit", result)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lib", required=True, type=pathlib.Path)
    lib = parser.parse_args().lib.resolve()
    with control_group.make(64 * MIB) or contextlib.nullcontext() as group:
        checks = [(c.__name__, c, ()) for c in (check_limited, check_threads, check_soft, check_child, check_messages)]
        if group is None:
            print("SKIP container, retained: no control group with memory can be made here")
        else:
            checks += [(c.__name__, c, (group,)) for c in (check_container, check_retained)]
        n_failed = 0
        for name, check, more in checks:
            try:
                check(lib, *more)
                print(f"{name}: as it should be", flush=True)
            except (Failed, subprocess.TimeoutExpired) as failure:
                print(f"{name}: FAILED: {failure}")
                n_failed += 1
        return 1 if n_failed else (SKIPPED if group is None else 0)


if __name__ == "__main__":
    sys.exit(main())
