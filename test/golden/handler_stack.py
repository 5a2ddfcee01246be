#!/usr/bin/env python3
"""What runs in the handler of faults: it calls nothing outside the library, has no thread-local variables, and the deepest of
its calls takes no more stack than MI_FAULT_STACK in src/prim/prim.h promises.

The compiler itself says the calls of each function and the stack that it takes (-fcallgraph-info=su, of gcc 10 and later);
relocations tell of thread-local variables.  The program's own handler, which ours calls in the end, is not looked into.

  handler_stack.py --cc CC --source S --include DIR

Exit status 77 if the compiler cannot tell."""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = "prim_fault_handler"
REPORTER, REPORT = "prim_fault_report", "report_fault"  # the first calls the second by a pointer
INDIRECT = "__indirect_call"
RED_ZONE = 128  # below the stack pointer, for functions that call none (x86-64)

BUILDS = [
    ["-O0", "-DMI_DEBUG=2"],
    ["-O3", "-DNDEBUG", "-ftls-model=local-dynamic"],
    ["-Os", "-DNDEBUG"],
    ["-O2", "-DNDEBUG", "-DMI_SECURE=5"],
]

NODE = re.compile(r'^node: \{ title: "([^"]+)" label: "([^"]*)"')
EDGE = re.compile(r'^edge: \{ sourcename: "([^"]+)" targetname: "([^"]+)"')


def name_of(title):
    """`f` of `/path/static.c:f.isra.0`: the name without its file and what the compiler made of it."""
    return title.rsplit(":", 1)[-1].split(".")[0]


def read_graph(text):
    """{function: bytes of stack, None if it is bounded by nothing} and {function: functions that it calls}."""
    stacks, calls = {}, {}
    for line in text.splitlines():
        node, edge = NODE.match(line), EDGE.match(line)
        if node:
            size = re.search(r"(\d+) bytes \(([^)]*)\)", node[2])
            if size:
                stacks[node[1]] = int(size[1]) if size[2] in ("static", "dynamic,bounded") else None
        elif edge:
            calls.setdefault(edge[1], set()).add(edge[2])
    return stacks, calls


def users_of_thread_local(path):
    """The names of the functions in an object file that refer to thread-local variables."""
    listing = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", str(path)], capture_output=True, text=True, check=True)
    users, name = set(), ""
    for line in listing.stdout.splitlines():
        start = re.match(r"^[0-9a-f]+ <([^>]+)>:", line)
        if start:
            name = name_of(start[1])
        elif re.search(r"R_X86_64_\w*(TLS|TPOFF)|R_AARCH64_TLS|__tls_get_addr", line):
            users.add(name)
    return users


def deepest(title, stacks, calls, users, above, faults):
    """(bytes, the chain of functions) of the deepest call from here."""
    if title in above:
        faults.append(f"{name_of(title)} calls itself")
        return 0, []
    if title not in stacks:
        faults.append(f"{name_of(above[-1]) if above else 'nothing'} calls {title}, which is not ours")
        return 0, []
    if stacks[title] is None:
        faults.append(f"{name_of(title)} takes an unknown amount of stack")
    targets = set(calls.get(title, ()))
    if INDIRECT in targets:
        targets.remove(INDIRECT)
        if name_of(title) == REPORTER:
            targets |= {t for t in stacks if name_of(t) == REPORT}
        elif name_of(title) != ROOT and name_of(title) != "prim_fault_call_before":
            faults.append(f"{name_of(title)} calls by a pointer")
    if name_of(title) in users:
        faults.append(f"{name_of(title)} has a thread-local variable")
    below = [deepest(t, stacks, calls, users, above + [title], faults) for t in sorted(targets)]
    size, chain = max(below, key=lambda b: b[0], default=(0, []))
    return size + (stacks[title] or 0), [f"{name_of(title)} {stacks[title]}"] + chain


def check(args, flags, budget):
    with tempfile.TemporaryDirectory() as directory:
        out = pathlib.Path(directory) / "static.o"
        command = [args.cc, "-std=gnu11", "-fPIC", "-fvisibility=hidden", "-fexceptions", "-fno-builtin-malloc", *flags,
                   "-fcallgraph-info=su", f"-I{args.include}", "-c", args.source, "-o", str(out)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        graph = out.with_suffix(".ci")
        if done.returncode != 0 or not graph.exists():
            print(f"skipped: {args.cc} has no -fcallgraph-info: {done.stderr[:200]}")
            sys.exit(77)
        stacks, calls = read_graph(graph.read_text(encoding="utf-8"))
        users = users_of_thread_local(out)
    faults = [] if users else ["no function has thread-local variables: they were not recognised"]
    roots = [t for t in stacks if name_of(t) == ROOT]
    if len(roots) != 1 or not any(name_of(t) == REPORT for t in stacks):
        print(f"{' '.join(flags)}: {ROOT} or {REPORT} was not found")
        return False
    size, chain = deepest(roots[0], stacks, calls, users, [], faults)
    size += RED_ZONE
    print(f"{' '.join(flags)}: {size} bytes of {budget}: {', '.join(chain)}")
    if size > budget:
        faults.append(f"{size} bytes are more than {budget}")
    for fault in sorted(set(faults)):
        print(f"  {fault}")
    return not faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cc", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--include", required=True)
    args = parser.parse_args()
    header = pathlib.Path(args.source).parent / "prim" / "prim.h"
    budget = int(re.search(r"#define MI_FAULT_STACK +(\d+)", header.read_text(encoding="utf-8"))[1])
    results = [check(args, flags, budget) for flags in BUILDS]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
