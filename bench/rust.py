#!/usr/bin/env python3
"""Measures a real Rust program under global allocators: jaq, a query language for JSON with its own compiler, from the registry.  It
is built without a global allocator (the system's malloc), with the crate `mimalloc` as it comes (v3) and with its feature v2, and
with the crate in rust/ under the name of that one, which changes Cargo.toml alone.  Prints a table.

  bench/rust.py [--rounds N] [--version 3.1.2] [--keep]

Runs are interleaved.  A figure is the ratio of the medians to those of the system's malloc, with the least and the largest ratio
within a round.  --keep takes the programs that an earlier call has built."""

import argparse
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "bench-rust"
# The dependency on `mimalloc` in jaq's manifest, and the arguments of cargo.
VARIANTS = {
    "system": (None, ["--no-default-features"]),
    "mimalloc v3": ('version = "0.1"', []),
    "mimalloc v2": ('version = "0.1"\nfeatures = ["v2"]', []),
    "mimalloc-compat": (f'package = "mimalloc-compat"\npath = "{ROOT / "rust"}"', []),
}
# Name, arguments, input.
WORKLOADS = {
    "parse and print": (["."], "records"),
    "group and sort": (["group_by(.city) | map({city: .[0].city, n: length, sum: (map(.amount) | add)}) | sort_by(.n)"], "records"),
    "strings": (["map(.name + \"-\" + (.tags | join(\",\")) | ascii_upcase | split(\"-\")) | length"], "records"),
    "many small values": (["-n", "[range(1000000) | {a: ., b: [., .]}] | map(.b[1]) | add"], None),
    "recursion": (["-n", "def fib: if . < 2 then . else (. - 1 | fib) + (. - 2 | fib) end; 25 | fib"], None),
}


def make_records(path):
    rng = random.Random(1)
    records = [{"id": i, "name": f"name {rng.randrange(10 ** 6)}", "city": f"city {rng.randrange(500)}", "amount": rng.random() * 1000,
                "tags": [f"tag{rng.randrange(50)}" for _ in range(rng.randrange(6))],
                "nested": {"x": rng.randrange(100), "text": "t" * rng.randrange(100)}} for i in range(200000)]
    path.write_text(json.dumps(records), encoding="utf-8")


def source_of(version):
    """The source of jaq, from the registry by cargo."""
    probe = WORK / "probe"
    (probe / "src").mkdir(parents=True, exist_ok=True)
    (probe / "src/main.rs").write_text("fn main() {}\n", encoding="utf-8")
    (probe / "Cargo.toml").write_text('[package]\nname = "probe"\nversion = "0.0.0"\n[workspace]\n[build-dependencies]\n'
                                      f'jaq = "={version}"\n', encoding="utf-8")
    (probe / "build.rs").write_text("fn main() {}\n", encoding="utf-8")
    subprocess.run(["cargo", "fetch"], cwd=probe, check=True)
    home = pathlib.Path(os.environ.get("CARGO_HOME", pathlib.Path.home() / ".cargo"))
    return next(home.glob(f"registry/src/*/jaq-{version}"))


def build(version):
    source, programs = source_of(version), {}
    for name, (dependency, arguments) in VARIANTS.items():
        where = WORK / name.replace(" ", "-")
        shutil.rmtree(where, ignore_errors=True)
        shutil.copytree(source, where)
        if dependency:
            text = (where / "Cargo.toml").read_text(encoding="utf-8")
            text, count = re.subn(r"\[dependencies\.mimalloc\]\nversion = \"[^\"]*\"", lambda _: f"[dependencies.mimalloc]\n{dependency}", text)
            if count != 1:
                sys.exit("rust.py: jaq's Cargo.toml is not as expected")
            (where / "Cargo.toml").write_text(text, encoding="utf-8")
        subprocess.run(["cargo", "build", "--release", *arguments, "--target-dir", WORK / "target"], cwd=where, check=True)
        programs[name] = shutil.copy(WORK / "target/release/jaq", WORK / f"jaq-{name.replace(' ', '-')}")
    return programs


def run(program, arguments, data):
    """(CPU seconds, peak resident bytes, minor page faults, digest of the output)"""
    command = [str(program), *arguments, *([str(data)] if data else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL) as process:
        digest = hashlib.sha256()  # the peak of a new process is at least the size of this one, so it keeps no output
        while part := process.stdout.read(65536):
            digest.update(part)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"rust.py: {' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, usage.ru_minflt, digest.hexdigest()


def ratios(rounds, name, what):
    values = {n: [one[n][what] for one in rounds] for n in (name, "system")}
    each = [one[name][what] / one["system"][what] for one in rounds]
    middle = statistics.median(values[name]) / statistics.median(values["system"])
    return f"{middle:.3f} [{min(each):.3f}-{max(each):.3f}]", middle


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--version", default="3.1.2")
    parser.add_argument("--keep", action="store_true")
    args = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    programs = {name: WORK / f"jaq-{name.replace(' ', '-')}" for name in VARIANTS}
    if not args.keep or not all(path.exists() for path in programs.values()):
        programs = build(args.version)
    data = WORK / "records.json"
    if not data.exists():
        make_records(data)
    results = {name: [] for name in WORKLOADS}
    start, load = time.strftime("%Y-%m-%d %H:%M"), os.getloadavg()[0]
    for number in range(args.rounds + 1):  # the first one warms up
        for workload, (arguments, source) in WORKLOADS.items():
            order = list(programs)
            random.Random(number).shuffle(order)
            one = {name: run(programs[name], arguments, data if source else None) for name in order}
            if len({figures[3] for figures in one.values()}) != 1:
                sys.exit(f"rust.py: the outputs of {workload} differ")
            if number:
                results[workload].append(one)
    print(f"jaq {args.version}, {args.rounds} rounds, {start}, load average {load:.1f} at the start and {os.getloadavg()[0]:.1f} at the end, "
          f"{subprocess.run(['rustc', '--version'], capture_output=True, text=True, check=True).stdout.strip()}.\n")
    for what, title in ((0, "CPU time"), (1, "peak memory"), (2, "page faults")):
        names = [name for name in VARIANTS if name != "system"]
        print(f"| {title} | system | {' | '.join(names)} |\n|---|---|{'---|' * len(names)}")
        means = {name: [] for name in names}
        for workload, rounds in results.items():
            system = statistics.median(one["system"][what] for one in rounds)
            shown = (f"{system:.2f} s", f"{system / 2 ** 20:.1f} MiB", f"{system:.0f}")[what]
            cells = []
            for name in names:
                text, middle = ratios(rounds, name, what)
                cells.append(text)
                means[name].append(middle)
            print(f"| {workload} | {shown} | {' | '.join(cells)} |")
        print(f"| **geometric mean** | | {' | '.join(f'{statistics.geometric_mean(means[name]):.3f}' for name in names)} |\n")


if __name__ == "__main__":
    main()
