"""What the function of a program gets: ways to run things without and with the library, and a directory that is removed
afterwards.

A program is run for several builds of the library, one after the other.  What it did without the library is remembered
from the first one (Plain), so that every build is compared with the same run."""

import contextlib
import pathlib
import re
import shutil
import signal
import subprocess
import threading
import time

from outcome import Failed
from process import Cost, Process, StillRunning

PATH = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class Plain:
    """What the comparisons of a program gave without the library, in their order, with their costs."""

    def __init__(self):
        self.pairs = []


def shown(argv):
    """A command, short enough for a message."""
    text = " ".join(" ".join(map(str, argv)).split())
    return text if len(text) <= 100 else text[:97] + "..."


def pages_in(text):
    """For each table of statistics in a text: how many pages of blocks that process ever had."""
    return [int(m[1].replace(",", "")) for m in re.finditer(r"^\s*pages\s*:\s+\S+\s+([0-9]+)\b", text, re.MULTILINE)]


def difference(what, plain, preloaded):
    a, b = plain.splitlines(), preloaded.splitlines()
    for i in range(max(len(a), len(b))):
        x, y = (s[i] if i < len(s) else "(nothing)" for s in (a, b))
        if x != y:
            return f"{what}, line {i + 1}: '{x[:200]}' without the library, '{y[:200]}' with it"
    return f"{what} differs in its line ends"


def copy_stream(stream, path):
    with stream, open(path, "wb", buffering=0) as file:
        while piece := stream.read1():
            file.write(piece)


def with_or_without(preload):
    return "with the library" if preload else "without the library"


class Session:
    def __init__(self, name, lib, work, plain=None):
        self.name, self.lib, self.work = name, lib, work
        self.plain = plain or Plain()
        self.notes = []
        self.is_served = False
        self.costs = []      # of the comparisons so far: (without, with the library)
        self.cost = Cost()   # of what was run since the last comparison began

    def note(self, text):
        self.notes.append(text)

    def fresh(self, name):
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path

    def env(self, preload, stats=False, **more):
        """The environment of a program: nothing is inherited that could make two runs differ."""
        env = {"PATH": PATH, "HOME": str(self.work), "LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb", "TMPDIR": str(self.work)}
        if preload:
            env["LD_PRELOAD"] = str(self.lib)
        if stats:
            env["MIMALLOC_SHOW_STATS"] = "1"
        env.update(more)
        return env

    # ---- one run

    def run(self, argv, preload, stats=False, stdin="", timeout=180, env=None, cwd=None, user=None, is_counted=True):
        process = Process(argv, self.env(preload, stats, **(env or {})), cwd or self.work, stdin.encode(), user=user)
        try:
            out, err = process.communicate(timeout)
        except StillRunning:
            raise Failed(f"{shown(argv)}: still running after {timeout} s {with_or_without(preload)}") from None
        if is_counted:
            self.cost = self.cost.with_other(process.cost)
        return Result(process.status, out.decode(errors="replace"), err.decode(errors="replace"))

    def must(self, argv, preload, status=0, **options):
        result = self.run(argv, preload, **options)
        if result.status != status:
            raise Failed(f"{shown(argv)}: status {result.status}, not {status}, {with_or_without(preload)}\n"
                         f"{result.out[-1000:]}{result.err[-2000:]}")
        return result

    def client(self, argv, **options):
        """Runs a program that talks to one under test: without the library, and not counted."""
        return self.must(argv, False, is_counted=False, **options)

    @contextlib.contextmanager
    def serving(self, argv, preload, is_ready, stop=signal.SIGTERM, status=(0,), env=None, cwd=None, user=None,
                is_counted=True):
        """Runs a server while the block does something with it, then stops it and waits for its end. Gives the file of
        its output, which has statistics at the end if it is preloaded."""
        cwd = cwd or self.work
        log = cwd / "server-output"
        log.touch()
        server = Process(argv, self.env(preload, preload, **(env or {})), cwd, err=subprocess.STDOUT, user=user)
        # A pipe, since a server may forbid itself to make files larger, as sshd does.
        copier = threading.Thread(target=copy_stream, args=(server.out, log), daemon=True)
        copier.start()
        try:
            wait_for(f"the start of {argv[0]}", lambda: server.has_ended() or is_ready())
            if server.has_ended():
                status = ()   # too early, whatever it is
            else:
                yield log
                if stop is not None:
                    server.signal(stop)
                server.wait(60)
            copier.join(60)
            if server.status not in status:
                raise Failed(f"{shown(argv)}: ended with {server.status} {with_or_without(preload)}\n"
                             f"{log.read_text(errors='replace')[-2000:]}")
            if is_counted:
                self.cost = self.cost.with_other(server.cost)
        except StillRunning:
            raise Failed(f"{shown(argv)}: did not stop {with_or_without(preload)}") from None
        finally:
            server.kill()

    # ---- comparisons

    def pair(self, once):
        """(once(False), once(True)), the first of them remembered."""
        index = len(self.costs)
        if index == len(self.plain.pairs):
            self.cost = Cost()
            self.plain.pairs.append((once(False), self.cost))
        plain, plain_cost = self.plain.pairs[index]
        self.cost = Cost()
        preloaded = once(True)
        self.costs.append((plain_cost, self.cost))
        return plain, preloaded

    def same(self, once):
        """once(False) and once(True) must give the same text."""
        plain, preloaded = self.pair(once)
        if plain != preloaded:
            raise Failed(difference("the result", plain, preloaded))
        return preloaded

    def both(self, argv, stderr=True, clean=lambda text: text, status=0, **options):
        """Runs it without and with the library, in a fresh directory of the same name; the outputs must be the same."""
        def once(preload):
            return self.must(argv, preload, status, **{**options, "cwd": options.get("cwd") or self.fresh("both")})

        plain, preloaded = self.pair(once)
        if clean(plain.out) != clean(preloaded.out):
            raise Failed(difference("standard output", clean(plain.out), clean(preloaded.out)))
        if stderr and clean(plain.err) != clean(preloaded.err):
            raise Failed(difference("standard error", clean(plain.err), clean(preloaded.err)))
        return preloaded

    # ---- who served it

    def served(self, argv, least_pages=2, least_processes=1, **options):
        """Runs it with the library, which must say at the end that it had so many pages in so many processes."""
        options["cwd"] = options.get("cwd") or self.fresh("served")
        return self.check_served(self.must(argv, True, stats=True, **options).err, least_pages, least_processes)

    def check_served(self, text, least_pages=2, least_processes=1):
        pages = [n for n in pages_in(text) if n > 0]
        if len(pages) < least_processes or sum(pages) < least_pages:
            raise Failed(f"not served: statistics of {len(pages)} processes with {sum(pages)} pages, expected at least"
                         f" {least_processes} with {least_pages}; is the library preloaded, and is it this allocator?\n{text[-1500:]}")
        self.is_served = True
        self.note(f"{sum(pages)} pages in {len(pages)} process{'es' if len(pages) > 1 else ''}")

    def bindings(self, argv, **options):
        """Files to which the dynamic linker binds malloc, calloc, realloc and free of the processes of a command, one
        entry for each binding."""
        log = self.fresh("bound")
        log.chmod(0o777)
        more = options.pop("env", {})
        self.must(argv, True, env={**more, "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(log / "log"), "LD_BIND_NOW": "1"}, **options)
        text = "".join(f.read_text(errors="replace") for f in log.iterdir())
        return re.findall(r"binding file \S+ \[\d+\] to (\S+) \[\d+\]: normal symbol `(?:malloc|calloc|realloc|free)'", text)

    def bound(self, argv, **options):
        """For programs that close standard error before the statistics come: what the dynamic linker says about where
        their malloc, calloc, realloc and free lead."""
        targets = self.bindings(argv, **options)
        others = sorted({t for t in targets if t != str(self.lib)})
        if b"\0mi_malloc\0" not in self.lib.read_bytes():
            raise Failed(f"not served: {self.lib} is not this allocator")
        if not targets or others:
            raise Failed(f"not served: calls of malloc lead to {', '.join(others) or 'nobody'}")
        self.is_served = True
        self.note(f"{len(targets)} bindings")

    def own_allocator(self, executable, argv, what, **options):
        """For programs whose executable defines malloc, which comes before that of any library: they are not served,
        and this says so only if it is true.  Their helpers may be served, and are counted."""
        symbols = subprocess.run(["nm", "-D", "--defined-only", executable], capture_output=True, text=True, check=True).stdout
        if not re.search(r" [TWi] malloc(@@\S+)?$", symbols, re.MULTILINE):
            raise Failed(f"{executable} does not define malloc")
        options["cwd"] = options.get("cwd") or self.fresh("served")
        pages = pages_in(self.must(argv, True, stats=True, **options).err)
        self.is_served = True
        self.note(f"not served: {what}; {pages.count(0)} of {len(pages)} processes with statistics had no pages")


def wait_for(what, test, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if test():
            return
        time.sleep(0.05)
    raise Failed(f"{what} did not happen in {seconds} s")


def debian_directory(pattern):
    """The newest of the directories that Debian names by a version, or None."""
    found = sorted(pathlib.Path("/").glob(pattern))
    return found[-1] if found else None
