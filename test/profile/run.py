#!/usr/bin/env python3
"""Proves that programs which know nothing of the heap profile get one by their environment or by a signal, and that the files
are what pprof reads.

The files are decoded by the rules of protocol buffers alone, and their numbers are compared with what the program is known to
allocate.  Where there is a `pprof`, it has to say the same; where there is a `protoc`, it has to accept them.

  run.py --library L --program P"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LEAKED = 100000 * 300 + 20 * (2 << 20)
PASSED = 500000 * 300
failures = 0


def check(condition, text):
    global failures
    if not condition:
        failures += 1
        print("FAILED:", text)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def fields(data):
    """[(field, number or bytes)] of a message."""
    at, found = 0, []
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
            assert at <= len(data), "a field that is longer than its message"
        else:
            assert key & 7 == 0, f"encoding {key & 7}"
        found.append((key >> 3, value))
    return found


def packed(data):
    at, values = 0, []
    while at < len(data):
        value, at = varint(data, at)
        values.append(value)
    return values


class Profile:
    def __init__(self, path):
        message = fields(path.read_bytes())
        self.strings = [v.decode() for f, v in message if f == 6]
        self.types = [tuple(self.strings[n] for _, n in fields(v)) for f, v in message if f == 1]
        self.samples = [dict(fields(v)) for f, v in message if f == 2]
        self.mappings = [dict(fields(v)) for f, v in message if f == 3]
        self.locations = {dict(fields(v))[1]: dict(fields(v)) for f, v in message if f == 4}
        self.period = dict(message).get(12)
        self.sums = [sum(column) for column in zip(*(packed(s[2]) for s in self.samples))]

    def check(self, rate):
        check(self.strings[0] == "", "the first string is empty")
        check(self.types == [("alloc_objects", "count"), ("alloc_space", "bytes"), ("inuse_objects", "count"),
                             ("inuse_space", "bytes")], f"types {self.types}")
        check(self.period == rate, f"period {self.period}")
        check(all(n in self.locations for s in self.samples for n in packed(s[1])), "a location that is not there")
        ids = [self.strings[m[6]] for m in self.mappings]
        check(any(re.fullmatch("[0-9a-f]{40}", i) for i in ids), f"build ids {ids}")
        check(any(self.strings[m[5]].endswith("/program") or "test-profile" in self.strings[m[5]] for m in self.mappings[:1]),
              "the program is not the first mapping")
        for m in self.mappings:
            check(0 < m[2] < m[3], "a mapping without addresses")

    def check_sums(self, what):
        allocated, live = self.sums[1], self.sums[3]
        print(f"{what}: {allocated} bytes allocated, {live} in use, {len(self.samples)} stacks")
        wanted = LEAKED + PASSED + 20 * (2 << 20)
        check(0.8 * wanted < allocated < 1.2 * wanted, f"{what}: {allocated} allocated, not about {wanted}")
        check(0.8 * LEAKED < live < 1.2 * LEAKED, f"{what}: {live} in use, not about {LEAKED}")


def run(arguments, *command, **options):
    settings = {k: str(v) for k, v in options.items()}
    done = subprocess.run([arguments.program, *command], env={**os.environ, "LD_PRELOAD": arguments.library, **settings},
                          capture_output=True, text=True, timeout=200)
    check(done.returncode == 0, f"exit status {done.returncode}: {done.stderr}")
    return done.stderr


def check_pprof(program, path):
    pprof = shutil.which("pprof") or shutil.which("pprof", path=str(pathlib.Path.home() / "go/bin"))
    if pprof and "proto" in subprocess.run([pprof, "-h"], capture_output=True, text=True).stderr:
        for index, function, wanted in (("inuse_space", "leak", 30.0), ("alloc_space", "pass", PASSED / 1e6)):
            out = subprocess.run([pprof, "-symbolize=local", "-top", "-unit=MB", f"-sample_index={index}", program, path],
                                 capture_output=True, text=True, timeout=100)
            rows = {line.split()[-1]: float(line.split()[0].rstrip("MB")) for line in out.stdout.splitlines()
                    if re.match(r"\s*[0-9.]+MB", line)}
            got = rows.get(function, 0) * 1.048576
            check(0.8 * wanted < got < 1.2 * wanted, f"pprof: {function} has {got} MB of {index}, not {wanted}\n{out.stdout}{out.stderr}")
        print("read by pprof")
    else:
        print("there is no pprof here")
    if shutil.which("protoc"):
        with open(path, "rb") as file:
            decoded = subprocess.run(["protoc", "--decode_raw"], stdin=file, capture_output=True, timeout=100)
        check(decoded.returncode == 0, f"protoc: {decoded.stderr}")
        print("read by protoc")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", required=True)
    parser.add_argument("--program", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        errors = run(arguments, MIMALLOC_PROFILE=work / "exit", MIMALLOC_PROFILE_RATE=65536, MIMALLOC_PROFILE_LEAKS=2)
        paths = list(work.glob("exit.*"))
        check(len(paths) == 1 and re.fullmatch(r"exit\.\d+\.0001\.pb", paths[0].name), f"files {paths}")
        check(errors.count("in use: about") == 2, f"leaks: {errors}")
        profile = Profile(paths[0])
        profile.check(65536)
        profile.check_sums("at exit")
        check_pprof(arguments.program, paths[0])
        errors = run(arguments, "signal", "12", MIMALLOC_PROFILE=work / "signal", MIMALLOC_PROFILE_RATE=65536,
                     MIMALLOC_PROFILE_SIGNAL=12)
        paths = sorted(work.glob("signal.*"))
        check(len(paths) == 2, f"files {paths}: {errors}")
        if paths:
            Profile(paths[0]).check_sums("by signal")
        # What cannot be done is said, and the program goes on.
        for settings, words in (({"MIMALLOC_PROFILE": ""}, "'' is empty"),
                                ({"MIMALLOC_PROFILE": work / "none" / "x"}, "cannot be written: the directory does not exist (error 2) " + str(work / "none" / "x.")),
                                ({"MIMALLOC_PROFILE": work / "y", "MIMALLOC_PROFILE_RATE": "many"}, "profile_rate has an invalid"),
                                ({"MIMALLOC_PROFILE_SIGNAL": "1000"}, "no heap profile by signal 1000"),
                                ({"MIMALLOC_PROFILE_SIGNAL": "9"}, "no heap profile by signal 9")):
            errors = run(arguments, **settings, MIMALLOC_SHOW_ERRORS=1)
            check(words in errors, f"{settings}: {errors}")
    print("failures:", failures)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
