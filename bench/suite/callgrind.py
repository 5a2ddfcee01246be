"""What callgrind has counted: its dumps, by the address of each instruction; and what libraries say of their instructions.
Needs no packages."""

import os
import pathlib
import re
import subprocess

EVENTS = ("Ir", "Dr", "Dw")  # instructions, loads, stores
REQUEST = "desc: Trigger: Client Request: "


def command(directory, *options):
    """Counts in a program that says when; its dumps come into the directory, one for each count."""
    return ["valgrind", "--tool=callgrind", "-q", "--collect-atstart=no", "--dump-instr=yes", "--compress-pos=no",
            "--compress-strings=no", *options, f"--callgrind-out-file={directory}/out.%p"]


def read_dump(path, driver):
    """The name of a count and {(object, offset): [Ir, Dr, Dw]} of what was executed outside the driver. What was executed after
    the last count has the name ""."""
    name, events, costs, current_object, skip = "", None, {}, None, False
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.startswith("0x"):
                if skip:            # the inclusive cost of a call, which its callee has as its own
                    skip = False
                elif current_object != driver:
                    fields = line.split()
                    cost = [int(f) for f in fields[2:]] + [0] * len(events)
                    total = costs.setdefault((current_object, int(fields[0], 16)), [0, 0, 0])
                    for i, event in enumerate(EVENTS):
                        total[i] += cost[events.index(event)] if event in events else 0
            elif line.startswith("ob="):
                current_object = os.path.realpath(line[3:].strip())
            elif line.startswith("calls="):
                skip = True
            elif line.startswith("events:"):
                events = line.split()[1:]
            elif line.startswith(REQUEST):
                name = line.removeprefix(REQUEST).strip()
    return name, costs


def counts(directory, driver):
    """(name, costs) of each count of a process and its children, each process in the order of its counts."""
    dumps = [path for path in pathlib.Path(directory).glob("out.*") if path.suffix[1:].isdigit()]
    for path in sorted(dumps, key=lambda path: [int(word) for word in path.name.split(".")[1:]]):
        name, costs = read_dump(path, driver)
        if name:
            yield name, costs


def offsets_of(pattern, library):
    """Offsets of the instructions in a library that match a pattern."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", library], capture_output=True, text=True, check=True).stdout
    return {int(match[1], 16) for match in re.finditer(rf"^\s*([0-9a-f]+):\s+(?:{pattern})", listing, re.MULTILINE)}


def compiler_of(library):
    """The compiler that a library was built with, such as 'gcc 12.2', from the note that compilers leave in it."""
    notes = subprocess.run(["readelf", "-p", ".comment", library], capture_output=True, text=True, check=True).stdout
    for name, pattern in (("clang", r"clang version (\d+\.\d+)"), ("gcc", r"GCC: \(.*\) (\d+\.\d+)")):
        match = re.search(pattern, notes)
        if match:
            return f"{name} {match[1]}"
    return "unknown"
