"""The allocators in a directory: each NAME.so and libNAME.so is one, unless there is a reason against it, which is said."""

import os
import pathlib
import platform
import re
import signal
import subprocess
import tempfile
from dataclasses import dataclass

from . import machine
from .measure import NOT_INHERITED, library_environment

PROBE = ("/bin/sh", "-c", ":")  # a program that calls malloc and ends
PROBE_TIMEOUT_S = 20
SHARED_OBJECT = 3  # ET_DYN
MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "ppc64le": 21, "s390x": 22, "i686": 3}  # EM_...
MAYBE_LIBRARY = re.compile(r"(?:lib)?(?P<name>.+?)\.so(?P<number>[.0-9]*)$")


@dataclass(frozen=True)
class Peer:
    name: str
    library: str  # absolute
    version: str


def find(directory, taken=(), wanted=()):
    """The peers, those in `wanted` if there is any, and {file: reason} of what could be meant as one and is none.
    No peer gets a name in `taken`."""
    versions, found, unused = machine.peer_versions(directory), {}, {}
    for file in sorted(os.listdir(directory)):
        match = MAYBE_LIBRARY.match(file)
        if not match or wanted and match["name"] not in wanted:
            continue
        name, path = match["name"], os.path.abspath(os.path.join(directory, file))
        reason = why_no_name(name, match["number"], taken, found) or why_no_peer(path)
        if reason:
            unused[file] = reason
        else:
            found[name] = Peer(name, path, versions.get(name, ""))
    return list(found.values()), unused


def why_no_name(name, number, taken, found):
    if number:
        return "the name does not end in .so"
    if name in taken:
        return f"the name '{name}' is taken"
    if name in found:
        return f"the name '{name}' is that of {os.path.basename(found[name].library)}"
    return None


def why_no_peer(path):
    """Why the file cannot serve malloc in other programs; None if it can."""
    if re.search("[ :]", path):
        return "LD_PRELOAD cannot hold this path"
    return why_no_library(path) or why_not_preloaded(path)


def why_no_library(path):
    """From the head of the file alone."""
    try:
        with open(path, "rb") as file:
            head = file.read(20)
    except OSError as error:
        return error.strerror
    if head[:4] != b"\x7fELF" or len(head) < 20:
        return "not a shared library"
    order = "little" if head[5] == 1 else "big"
    kind, number = (int.from_bytes(head[i:i + 2], order) for i in (16, 18))
    if kind != SHARED_OBJECT:
        return "not a shared library"
    if number != MACHINES.get(platform.machine(), number):
        return "for another kind of processor"
    return None


def why_not_preloaded(path):
    """A program is run with it, and the loader asked which library its malloc is bound to."""
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        env = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
        env |= library_environment(path)
        env |= {"LD_PRELOAD": path, "LD_BIND_NOW": "1", "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": f"{directory}/loader"}
        try:
            done = subprocess.run(PROBE, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, text=True, errors="replace", timeout=PROBE_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return f"a program that does nothing runs for more than {PROBE_TIMEOUT_S} s with it"
        said = "".join(file.read_text(errors="replace") for file in pathlib.Path(directory).glob("loader.*"))
    return why_not_loaded(done.stderr) or why_not_ended(done) or why_not_bound(said, path)


def why_not_loaded(errors):
    refused = re.search(r"from LD_PRELOAD cannot be preloaded \((.*)\)", errors)
    if refused:
        return f"cannot be loaded: {refused[1]}"
    missing = re.search(r"error while loading shared libraries: (.*)", errors)
    return f"cannot be loaded: {missing[1]}" if missing else None


def why_not_ended(done):
    if done.returncode == 0:
        return None
    if done.returncode > 0:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"a program that does nothing fails with it: {lines[-1][:200]}"
    return f"a program that does nothing fails with it: {signal.Signals(-done.returncode).name}"


def why_not_bound(said, path):
    bound = re.findall(rf"binding file {re.escape(PROBE[0])} .* to (\S+) .*`malloc'", said)
    if not bound:
        return "the loader does not say whose malloc a program uses"
    return None if bound[-1] == path else "it does not define malloc"
