"""Makes a running process write its heap profile: by the signal that it was started for.  mimalloc-profile.h says what its values
mean."""

import ctypes
import glob
import os
import pathlib
import signal
import time

from . import options, output, page, proc
from .errors import ToolError

VALUES = {"start": 1, "stop": 2, "write": 3}
PREFIX = "mimalloc"     # of files, if MIMALLOC_PROFILE does not say


def signal_number(text):
    """Of a number or a name: 12, USR2, SIGUSR2.  None: it is no signal."""
    name = text.strip().upper()
    try:
        number = int(name) if name.isdecimal() else int(signal.Signals["SIG" + name.removeprefix("SIG")])
    except KeyError:
        return None
    return number if number in signal.valid_signals() else None     # most of real time have a number only


def _name(number):
    return signal.Signals(number).name if number in signal.Signals.__members__.values() else f"signal {number}"


def is_caught(pid, number):
    """Has the process a handler for the signal?  Otherwise the signal would end it."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith("SigCgt:"):
            return bool(int(line.split()[1], 16) >> (number - 1) & 1)
    return False


def _send(pid, number, value):
    """A signal with a value, which Python has no function for."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.sigqueue.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_void_p]
    if libc.sigqueue(pid, number, value) != 0:
        raise ToolError(f"Process {pid} cannot be sent a signal: {os.strerror(ctypes.get_errno())}.")


def _files(base, pid):
    """The profiles of the process."""
    try:
        return set(base.parent.glob(f"{glob.escape(base.name)}.{pid}.*.pb"))
    except OSError:
        return set()


def _written(base, pid, before, seconds):
    """A new one: it is empty until it is complete."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        new = [path for path in sorted(_files(base, pid) - before) if path.stat().st_size > 0]
        if new:
            return new[0]
        time.sleep(0.02)
    return None


def _settings(pid):
    """(the signal, the beginning of the names of files) that a process was started with."""
    if page.started_of(pid) is None:
        raise ToolError(f"There is no process {pid}.")
    env = proc.environment(pid)
    if env is None:
        raise ToolError(f"This user may not look into process {pid}.")
    env = {name.upper(): value for name, value in env.items()}
    text = env.get(options.variable(options.RUN_PROFILE_SIGNAL))
    if not text:
        raise ToolError(f"Process {pid} waits for no signal: start it by `mimalloc run --profile-signal USR2`, or another signal that "
                        "the program does not use.")
    number = signal_number(text)
    if number is None:
        raise ToolError(f"Process {pid} has {options.variable(options.RUN_PROFILE_SIGNAL)}={text}, which is no signal.")
    if not is_caught(pid, number):
        raise ToolError(f"Process {pid} has no handler for {_name(number)}, which would end it. Nothing was sent.")
    return number, env.get(options.variable(options.RUN_PROFILE)) or PREFIX


def trigger(pid, action, seconds, as_json):
    number, prefix = _settings(pid)
    base = pathlib.Path(os.readlink(f"/proc/{pid}/cwd")) / prefix
    before = _files(base, pid)
    _send(pid, number, VALUES[action])
    if action != "write":
        output.print_json({"pid": pid, "sent": action}) if as_json else print(f"Process {pid} was told to {action} its profile.")
        return
    path = _written(base, pid, before, seconds)
    if path is None:
        raise ToolError(f"Process {pid} has written no profile to {base}.{pid}.*.pb within {seconds:g} seconds. It writes one if the "
                        f"profile was started (mimalloc profile {pid} --start), and when it next allocates.")
    output.print_json({"pid": pid, "file": str(path)}) if as_json else output.print_path(path)
