#!/usr/bin/env python3
"""Shows where the memory of a program lies at its peak: by size class, and by what it is used for.

  footprint.py [--lib LIBRARY] [--at SHARE] [--classes N] COMMAND ARG...

The program is run twice with the library preloaded. The first run tells the largest resident memory of any of its
processes. In the second, the process that reaches SHARE of that (0.98) is stopped, and read: its maps, and the
library's own structures (tools/footprint/footprint.c, which is compiled with the library's headers). The library must
have its symbols, and be of this source tree. Linux only; root, or a kernel that lets parents read their children.

  live       blocks that the program has
  bins       free blocks in bins and drains
  page free  free blocks on the lists of their pages, or on their way there
  unmade     resident memory behind the last block that was made, and the ends of pages
  free       free slices that are backed
  metadata   theaps and tables of the library, descriptors
  library    pages of the library's file, and its own data
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SYMBOLS = ("_mi_region_all", "_mi_region_end", "registry_first")


def compile_reader(folder):
    reader = os.path.join(folder, "footprint")
    sources = [os.path.join(ROOT, "tools/footprint/footprint.c"), os.path.join(ROOT, "src/page/size_class.c")]
    subprocess.run(["cc", "-std=gnu11", "-O2", "-DNDEBUG", "-I" + os.path.join(ROOT, "include"), *sources, "-o", reader],
                   check=True)
    return reader


def symbols_of(lib):
    found = {}
    for line in subprocess.run(["nm", lib], capture_output=True, text=True, check=True).stdout.splitlines():
        parts = line.split()
        if len(parts) == 3 and parts[2] in SYMBOLS:
            found[parts[2]] = int(parts[0], 16)
    if len(found) < len(SYMBOLS):
        sys.exit(f"footprint.py: {lib} has no symbols")
    return [found[name] for name in SYMBOLS]


def descendants(pid):
    found = [pid]
    for parent in found:
        try:
            for task in os.listdir(f"/proc/{parent}/task"):
                with open(f"/proc/{parent}/task/{task}/children") as children:
                    found += [int(child) for child in children.read().split()]
        except OSError:
            pass
    return found


def resident_kib(pid):
    try:
        with open(f"/proc/{pid}/statm") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE") // 1024
    except (OSError, IndexError):
        return 0


def uses(pid, lib):
    try:
        with open(f"/proc/{pid}/maps") as maps:
            return lib in maps.read()
    except OSError:
        return False


def start(command, lib):
    env = dict(os.environ, LD_PRELOAD=lib, BENCH_PRELOAD=lib)
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stdin=subprocess.DEVNULL)


def watch(command, lib, limit_kib):
    """Gives the largest resident memory seen, and the process that has reached the limit, stopped."""
    run = start(command, lib)
    largest = 0
    while run.poll() is None:
        for pid in descendants(run.pid):
            now = resident_kib(pid)
            if now > largest and uses(pid, lib):
                largest = now
                if now >= limit_kib:
                    os.kill(pid, signal.SIGSTOP)
                    return now, pid, run
        time.sleep(0.0005)
    return largest, None, run


def smaps(pid):
    """Gives (start address, name, resident KiB) of each mapping."""
    found = []
    with open(f"/proc/{pid}/smaps") as file:
        for line in file:
            head = re.match(r"([0-9a-f]+)-[0-9a-f]+ \S+ \S+ \S+ \S+\s*(.*)", line)
            if head:
                found.append([int(head[1], 16), head[2], 0])
            elif line.startswith("Rss:"):
                found[-1][2] = int(line.split()[1])
    return found


def library_kib(maps, lib):
    """The library's file, and its zero-initialized data, which is the nameless mapping behind it."""
    total = 0
    for i, (_, name, kib) in enumerate(maps):
        if name == lib or (name == "" and i > 0 and maps[i - 1][1] == lib):
            total += kib
    return total


def read(pid, lib, reader):
    maps = smaps(pid)
    base = min(at for at, name, _ in maps if name == lib)
    addresses = [f"{base + symbol:x}" for symbol in symbols_of(lib)]
    lines = subprocess.run([reader, str(pid), *addresses], capture_output=True, text=True, check=True).stdout.splitlines()
    classes = [[int(x) for x in line.split()[1:]] for line in lines if line.startswith("class")]
    others = {line.split()[0]: int(line.split()[1]) for line in lines if not line.startswith("class")}
    return classes, others, maps


def split(row):
    """What a class has, in KiB: live, bins, page free, unmade."""
    size, _, _, extended, used, bins, resident = row
    live = min(size * (used - bins) / 1024, resident)
    in_bins = min(size * bins / 1024, resident - live)
    page_free = min(size * (extended - used) / 1024, resident - live - in_bins)
    return live, in_bins, page_free, resident - live - in_bins - page_free


def show(classes, others, maps, lib, n_classes):
    parts = [split(row) for row in classes]
    live, bins, page_free, unmade = (sum(part[i] for part in parts) for i in range(4))
    by_kind = {name[5:]: kib for name, kib in others.items() if name.startswith("free-")}
    free = sum(by_kind.values())
    library = library_kib(maps, lib)
    total = sum(kib for _, _, kib in maps)
    heap = live + bins + page_free + unmade + others["large"] + free + others["meta"] + others["tables"]
    print(f"resident {total} KiB: live {live:.0f}, large {others['large']}, bins {bins:.0f}, page free {page_free:.0f}, "
          f"unmade {unmade:.0f}, free {free}, metadata {others['meta'] + others['tables']}, "
          f"library {library}, not the library's {total - library - heap:.0f}")
    print("free slices in chunks of:", ", ".join(f"{kind} {kib}" for kind, kib in by_kind.items() if kib > 0))
    print(f"{'size':>7} {'pages':>6} {'blocks':>7} {'live':>8} {'bins':>7} {'page free':>9} {'unmade':>7}  (KiB)")
    order = sorted(zip(classes, parts), key=lambda both: -sum(both[1][1:]))
    for row, part in order[:n_classes]:
        print(f"{row[0]:7} {row[1]:6} {row[4] - row[5]:7} {part[0]:8.0f} {part[1]:7.0f} {part[2]:9.0f} {part[3]:7.0f}")


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].strip())
    parser.add_argument("--lib", default=os.path.join(ROOT, "build/g/libmimalloc.so"))
    parser.add_argument("--at", type=float, default=0.98)
    parser.add_argument("--classes", type=int, default=12)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    lib = os.path.realpath(args.lib)
    with tempfile.TemporaryDirectory() as folder:
        reader = compile_reader(folder)
        largest, _, _ = watch(args.command, lib, sys.maxsize)
        for share in (args.at, args.at - 0.02, args.at - 0.05, args.at - 0.1):
            now, pid, run = watch(args.command, lib, largest * share)
            if pid is not None:
                break
        else:
            sys.exit(f"footprint.py: the last run reached {now} KiB of {largest}")
        show(*read(pid, lib, reader), lib, args.classes)
        for process in reversed(descendants(run.pid)):
            os.kill(process, signal.SIGKILL)
        run.wait()


if __name__ == "__main__":
    main()
