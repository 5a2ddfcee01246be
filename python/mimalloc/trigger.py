"""Makes a running process write its heap profile: by the signal that it was started with."""

import os
import pathlib
import signal
import time

from . import options, output, page, proc
from .errors import ToolError


def _signal(text, pid):
    """The number of a signal that is given by number or by name."""
    name = text.strip().upper()
    try:
        return signal.Signals(int(name)) if name.isdigit() else signal.Signals["SIG" + name.removeprefix("SIG")]
    except (ValueError, KeyError) as error:
        raise ToolError(f"Process {pid} has {options.variable(options.PROFILE_SIGNAL)}={text}, which is no signal.") from error


def is_caught(pid, number):
    """Has the process a handler for the signal?  Otherwise the signal would end it."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _files(base):
    """The files whose names begin with that of the profile: (path: when it was written)."""
    base = pathlib.Path(base)
    try:
        return {path: path.stat().st_mtime_ns for path in base.parent.glob(f"{base.name}*") if path.is_file()}
    except OSError:
        return {}


def _written(base, before, seconds):
    end = time.monotonic() + seconds
    while True:
        new = [path for path, at in _files(base).items() if before.get(path) != at]
        if new:
            sizes = None
            while sizes != (sizes := [path.stat().st_size for path in new]):    # until it does not grow any more
                time.sleep(0.1)
            return sorted(new)
        if time.monotonic() > end:
            return []
        time.sleep(0.05)


def trigger(pid, seconds, as_json):
    if page.started_of(pid) is None:
        raise ToolError(f"There is no process {pid}.")
    env = proc.environment(pid)
    if env is None:
        raise ToolError(f"Process {pid} is another user's.")
    env = {name.upper(): value for name, value in env.items()}
    target, number = env.get(options.variable(options.RUN_PROFILE)), env.get(options.variable(options.PROFILE_SIGNAL))
    if not target:
        raise ToolError(f"Process {pid} makes no profile: start it by `mimalloc run --profile FILE`.")
    if not number:
        raise ToolError(f"Process {pid} writes its profile when it ends. To ask for it before, start it with "
                        f"{options.variable(options.PROFILE_SIGNAL)}=USR2, or another signal that the program does not use.")
    number = _signal(number, pid)
    if not is_caught(pid, number):
        raise ToolError(f"Process {pid} has no handler for {number.name}, which would end it. Nothing was sent.")
    base = pathlib.Path(target if os.path.isabs(target) else os.path.join(os.readlink(f"/proc/{pid}/cwd"), target))
    before = _files(base)
    os.kill(pid, number)
    written = _written(base, before, seconds)
    if not written:
        raise ToolError(f"Process {pid} has got {number.name}, and {base} was not written within {seconds:g} seconds.")
    if as_json:
        output.print_json([str(path) for path in written])
    else:
        print(*written, sep="\n")
