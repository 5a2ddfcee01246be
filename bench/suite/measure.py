"""One run of a program: what it cost, or why it does not count.  Linux with glibc only."""

import ctypes
import os
import pathlib
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass

from .cost import Cost, Failure, reported_cost

# The program is started by a shell that ends at once, and is inherited from it (PR_SET_CHILD_SUBREAPER). A direct child
# would begin with the peak of resident memory of this interpreter, which is larger than some of the programs. It tells
# its number itself: a shell that goes on to print $! may reap a short program.
START = ('ulimit -c 0; { read -r pid _ </proc/self/stat; echo "$pid" >&3; exec 3>&-; '
         '[ -z "$0" ] || export LD_PRELOAD="$0"; exec "$@"; } &')
PR_SET_CHILD_SUBREAPER = 36
NOT_INHERITED = ("LD_PRELOAD", "LD_DEBUG", "LD_DEBUG_OUTPUT", "BENCH_PRELOAD", "BENCH_COST")
WATCH_S = 0.02
GRACE_S = 5  # for processes that a program leaves behind: a server may still be on its way out


@dataclass(frozen=True)
class Job:
    """A program and the library for it ("" for none). A script gets it as BENCH_PRELOAD, for its program alone."""
    argv: tuple
    library: str = ""
    is_script: bool = False


def prepare():
    """To be called once, before any thread is started: those would take our SIGCHLD."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])


# ---- processes

def reap(deadline):
    """The next of our processes to end: (pid, status, usage). Raises TimeoutError; ChildProcessError if none is left."""
    while True:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if pid:
            return pid, status, usage
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        signal.sigtimedwait([signal.SIGCHLD], left)


def descendants():
    """All processes below this one."""
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


def end_all():
    """Kills every process below this one; all of them become our children, as their parents end."""
    while True:
        for pid in descendants():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.wait4(-1, 0)
        except ChildProcessError:
            return


def wait_for_program(shell, pid_file, deadline, watch):
    """The status and the usage of the program, and when it ended. Meanwhile watch() is called until it gives True."""
    ended, is_watching = {}, watch is not None
    while True:
        try:
            pid, *rest = reap(min(deadline, time.monotonic() + WATCH_S) if is_watching else deadline)
        except TimeoutError:
            if time.monotonic() >= deadline:
                raise
            is_watching = not watch()
            continue
        except ChildProcessError:
            raise Failure("could not be started") from None
        ended[pid] = (*rest, time.perf_counter())
        program = pid_file.read_text().strip()
        if program and shell in ended and int(program) in ended:
            return ended[int(program)]


def expect_no_others():
    deadline = time.monotonic() + GRACE_S
    try:
        while True:
            reap(deadline)
    except ChildProcessError:
        pass
    except TimeoutError:
        raise Failure("left processes running") from None


def spawn(job, env, temp):
    preload = "" if job.is_script else job.library
    write = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    files = [(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)]
    files += [(os.POSIX_SPAWN_OPEN, fd, str(temp / name), write, 0o600)
              for fd, name in ((1, "out"), (2, "err"), (3, "pid"))]
    return os.posix_spawn("/bin/sh", ["/bin/sh", "-c", START, preload, *job.argv], env, file_actions=files,
                          setpgroup=0, setsigmask=[], setsigdef=[signal.SIGPIPE])


# ---- is the library there?

class LibraryCheck:
    """Is it in any process of the run? The dynamic loader tells it in files, unless the environment that asks for them
    gets lost on the way; so the processes are looked at too. A program without a loader, a static one, has no library."""

    def __init__(self, library, temp):
        self.library, self.temp, self.is_mapped = library, temp, False
        self.environment = {"LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(temp / "loader")}

    def watch(self):
        for pid in descendants():
            try:
                self.is_mapped |= self.library in pathlib.Path("/proc", str(pid), "maps").read_text(errors="replace")
            except OSError:
                pass
        return self.is_mapped

    def was_loaded(self):
        return self.is_mapped or any(
            self.library in line and "generating link map" in line
            for file in self.temp.glob("loader.*") for line in file.read_text(errors="replace").splitlines())


# ---- one run

def library_environment(library):
    """What the environment must hold for a library, from the file beside it: libNAME.env, lines NAME=VALUE."""
    file = library and pathlib.Path(library).with_suffix(".env")
    if not file or not file.is_file():
        return {}
    return dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)


def run_once(job, timeout_s, is_library_checked=False):
    """The cost and the output of a run. Raises Failure; then nothing of the run is left."""
    env = {name: value for name, value in os.environ.items() if name not in NOT_INHERITED}
    env |= library_environment(job.library)
    with tempfile.TemporaryDirectory(prefix="bench-") as directory:
        temp = pathlib.Path(directory)
        check = LibraryCheck(job.library, temp) if is_library_checked and job.library else None
        if job.is_script:
            env |= {"BENCH_PRELOAD": job.library, "BENCH_COST": str(temp / "cost")}
        if check:
            env |= check.environment
        start = time.perf_counter()
        shell = spawn(job, env, temp)
        try:
            deadline = time.monotonic() + timeout_s
            status, usage, end = wait_for_program(shell, temp / "pid", deadline, check and check.watch)
            expect_no_others()
        except TimeoutError:
            raise Failure(f"still running after {timeout_s:g} s") from None
        finally:
            end_all()
        output, errors = ((temp / name).read_text(errors="replace") for name in ("out", "err"))
        expect_success(status, output, errors)
        if check and not check.was_loaded():
            raise Failure("the library was not loaded")
        cost = Cost(usage.ru_utime + usage.ru_stime, end - start, usage.ru_maxrss, usage.ru_minflt, usage.ru_majflt)
        if (temp / "cost").exists():
            cost = reported_cost((temp / "cost").read_text(errors="replace"))
    return cost, output


def expect_success(status, output, errors):
    if "cannot be preloaded" in errors:
        raise Failure("the library could not be loaded")
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        name = signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"
        raise Failure(f"ended by {name}")
    if status != 0:
        said = (errors.strip() or output.strip() or "no message").splitlines()[-1]
        raise Failure(f"exit code {os.WEXITSTATUS(status)}: {said[:200]}")


def why_not(script):
    """Why a real program cannot run here; None if it can, and then its data is there."""
    for word, timeout_s in (("check", 60), ("setup", 600)):
        try:
            done = subprocess.run([script, word], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, errors="replace", timeout=timeout_s)
        except subprocess.TimeoutExpired:
            return f"its {word} runs for more than {timeout_s} s"
        except OSError as error:
            return error.strerror
        if done.returncode != 0:
            return (done.stdout.strip() or f"its {word} fails").splitlines()[-1][:200]
    return None
