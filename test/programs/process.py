"""A process of a real program, and what it cost.

The kernel counts the peak of a child from the memory of the process that started it: an interpreter's child would begin
with the interpreter's peak. setsid is small, forks and ends, and the process becomes our child, because this process is
what Linux calls a subreaper. It leads a session of its own, so that it can be ended with what it has started. It waits
for setsid to have ended: a program that asks to be killed when its parent ends (PR_SET_PDEATHSIG) means this process."""

import concurrent.futures
import ctypes
import dataclasses
import os
import pathlib
import select
import signal
import subprocess
import tempfile
import time

PR_SET_CHILD_SUBREAPER = 36
START = 'read -r _ < "$0/go"; echo $$ > "$0/number"; exec "$@"'


@dataclasses.dataclass
class Cost:
    """CPU time of a process and of those that it waited for, and the largest peak of resident memory among them."""
    cpu_s: float = 0.0
    peak_kib: int = 0

    def with_other(self, other):
        """The cost of both, one after the other."""
        return Cost(self.cpu_s + other.cpu_s, max(self.peak_kib, other.peak_kib))


class StillRunning(Exception):
    pass


def open_fifo(directory, name):
    """A new FIFO, open both ways: its other end never has to wait for this one, and any user may open that."""
    path = pathlib.Path(directory, name)
    os.mkfifo(path)
    path.chmod(0o666)
    return open(path, "r+b", buffering=0)


def adopt_orphans():
    """To be called once, before any process is started."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


class Process:
    """A started program. `out` and `err` are files, or subprocess.PIPE for communicate()."""

    def __init__(self, argv, env, cwd, stdin=b"", out=subprocess.PIPE, err=subprocess.PIPE, user=None):
        self.status = None   # of the end, as subprocess has it: negative for a signal
        self.cost = None
        # The environment is that of the program only: a library that is preloaded would also report of those before it.
        command = ["/usr/bin/env", "-i", *(f"{name}={value}" for name, value in env.items()), *map(str, argv)]
        with tempfile.TemporaryDirectory() as directory, tempfile.TemporaryFile() as words:
            os.chmod(directory, 0o755)
            words.write(stdin)
            words.seek(0)
            with open_fifo(directory, "go") as go, open_fifo(directory, "number") as number:
                starter = subprocess.Popen(["/usr/bin/setsid", "--fork", "/bin/sh", "-c", START, directory, *command],
                                           stdin=words, stdout=out, stderr=err, cwd=cwd, user=user)
                starter.wait()
                go.write(b"\n")
                if not select.select([number], [], [], 60)[0]:
                    raise OSError(f"{argv[0]} could not be started")
                self.pid = int(number.readline())
        self.out, self.err = starter.stdout, starter.stderr

    def has_ended(self):
        if self.status is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid != 0:
                self.status = os.waitstatus_to_exitcode(status)
                self.cost = Cost(usage.ru_utime + usage.ru_stime, usage.ru_maxrss)
        return self.status is not None

    def wait(self, timeout):
        """Until it ends; afterwards status and cost are set."""
        end, pause = time.monotonic() + timeout, 0.002
        while not self.has_ended():
            if time.monotonic() > end:
                raise StillRunning
            time.sleep(pause)
            pause = min(0.05, pause * 1.5)

    def communicate(self, timeout):
        """What it and its descendants write until they close their outputs: (standard output, standard error)."""
        with concurrent.futures.ThreadPoolExecutor(2) as readers:
            texts = [readers.submit(stream.read) for stream in (self.out, self.err)]
            try:
                self.wait(timeout)
                done, late = concurrent.futures.wait(texts, timeout)
                if late:
                    raise StillRunning
            except StillRunning:
                end_all_below()   # the readers wait for whoever has the outputs open
                raise
        self.out.close()
        self.err.close()
        return tuple(text.result() for text in texts)

    def signal(self, number):
        if not self.has_ended():
            os.kill(self.pid, number)

    def kill(self):
        """Ends it and all processes of its session's group."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        if self.status is None:
            self.wait(30)


def descendants():
    """The processes below this one, those that this process started or inherited."""
    parents = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            stat = pathlib.Path("/proc", pid, "stat").read_bytes()
        except OSError:
            continue
        parents[int(pid)] = int(stat.rpartition(b")")[2].split()[1])
    found = [os.getpid()]
    for above in found:
        found += [pid for pid, parent in parents.items() if parent == above]
    return found[1:]


def end_all_below():
    """Kills what a program left running; all of it becomes our children, as its parents end."""
    while True:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                pass
        try:
            os.wait4(-1, 0)
        except ChildProcessError:
            return
