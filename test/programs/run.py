#!/usr/bin/env python3
"""Real programs with this allocator preloaded.

Each program (programs.py) does some work twice: as it is, and with the library preloaded.  Output and exit status must be
the same.  Then it runs once more with MIMALLOC_SHOW_STATS=1, and the statistics that each process prints as it ends must
show that the allocator served it: a library that was not loaded, or whose malloc was not the one in use, fails here.

  run.py --quick --lib L     the programs that take a few seconds
  run.py --all --lib L       all of them
  run.py --lib L NAME ...    these
  run.py --list              what there is

Packages that are missing are installed (as root, by scripts/need.sh).  A program that cannot be had is reported as SKIP by
its name.  Exit status 1: a program failed; 77: all of them were skipped."""

import argparse
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test"))
from outcome import SKIPPED, Failed, Skipped  # noqa: E402


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


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


class Session:
    """What a program's function gets: ways to run things, and a directory that is removed afterwards."""

    def __init__(self, name, lib, work):
        self.name, self.lib, self.work = name, lib, work
        self.notes = []
        self.is_served = False

    def note(self, text):
        self.notes.append(text)

    def env(self, preload, stats=False, **more):
        """The environment of a program: nothing is inherited that could make two runs differ."""
        env = {"PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": str(self.work), "LANG": "C.UTF-8",
               "TZ": "UTC", "TERM": "dumb", "TMPDIR": str(self.work)}
        if preload:
            env["LD_PRELOAD"] = str(self.lib)
        if stats:
            env["MIMALLOC_SHOW_STATS"] = "1"
        env.update(more)
        return env

    def run(self, argv, preload, stats=False, stdin="", timeout=120, env=None, cwd=None, user=None):
        argv = [str(a) for a in argv]
        process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env=self.env(preload, stats, **(env or {})), cwd=cwd or self.work,
                                   start_new_session=True, user=user)
        try:
            out, err = process.communicate(stdin.encode(), timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise Failed(f"{shown(argv)}: still running after {timeout} s"
                         f"{' with the library' if preload else ' without the library'}") from None
        return Result(process.returncode, out.decode(errors="replace"), err.decode(errors="replace"))

    def must(self, argv, preload, **options):
        result = self.run(argv, preload, **options)
        if result.status != 0:
            raise Failed(f"{shown(argv)}: status {result.status}"
                         f"{' with the library' if preload else ' without the library'}\n{result.out[-1000:]}{result.err[-2000:]}")
        return result

    def both(self, argv, stderr=True, clean=lambda text: text, status=0, **options):
        """Runs it without and with the library, in a fresh directory of the same name; the outputs must be the same."""
        results = []
        for preload in (False, True):
            cwd = options.get("cwd") or self.fresh("both")
            result = self.run(argv, preload, **{**options, "cwd": cwd})
            if result.status != status:
                raise Failed(f"{shown(argv)}: status {result.status}, not {status},"
                             f" {'with' if preload else 'without'} the library\n{result.out[-1000:]}{result.err[-2000:]}")
            results.append(result)
        plain, preloaded = results
        if clean(plain.out) != clean(preloaded.out):
            raise Failed(difference("standard output", clean(plain.out), clean(preloaded.out)))
        if stderr and clean(plain.err) != clean(preloaded.err):
            raise Failed(difference("standard error", clean(plain.err), clean(preloaded.err)))
        return preloaded

    def served(self, argv, least_pages=2, least_processes=1, **options):
        """Runs it with the library, which must say at the end that it had so many pages in so many processes."""
        options.setdefault("cwd", self.fresh("served"))
        return self.check_served(self.must(argv, True, stats=True, **options).err, least_pages, least_processes)

    def check_served(self, text, least_pages=2, least_processes=1):
        pages = [n for n in pages_in(text) if n > 0]
        if len(pages) < least_processes or sum(pages) < least_pages:
            raise Failed(f"not served: statistics of {len(pages)} processes with {sum(pages)} pages, expected at least"
                         f" {least_processes} with {least_pages}; is the library preloaded, and is it this allocator?")
        self.is_served = True
        self.note(f"{sum(pages)} pages in {len(pages)} process{'es' if len(pages) > 1 else ''}")

    def bound(self, argv, **options):
        """For programs that close standard error before the statistics come: what the dynamic linker says about where
        their malloc, calloc, realloc and free lead."""
        log = self.fresh("bound")
        self.must(argv, True, env={"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(log / "log"), "LD_BIND_NOW": "1"}, **options)
        text = "".join(f.read_text(errors="replace") for f in log.iterdir())
        targets = re.findall(r"binding file \S+ \[\d+\] to (\S+) \[\d+\]: normal symbol `(?:malloc|calloc|realloc|free)'", text)
        others = sorted({t for t in targets if t != str(self.lib)})
        if b"\0mi_malloc\0" not in self.lib.read_bytes():
            raise Failed(f"not served: {self.lib} is not this allocator")
        if not targets or others:
            raise Failed(f"not served: calls of malloc lead to {', '.join(others) or 'nobody'}")
        self.is_served = True
        self.note(f"{len(targets)} bindings")

    def fresh(self, name):
        path = self.work / name
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir()
        return path


# ---- which programs, and what they need ---------------------------------------------------------------------------------

class Program:
    def __init__(self, function, needs, quick):
        self.function, self.needs, self.quick = function, needs, quick
        self.name = function.__name__.replace("_", "-")
        self.about = (function.__doc__ or "").split("\n")[0]


PROGRAMS = []


def program(*needs, quick=False):
    """Registers a program; `needs` are Debian packages, as scripts/need.sh takes them."""
    def register(function):
        PROGRAMS.append(Program(function, needs, quick))
        return function
    return register


def run_one(chosen, lib):
    need = subprocess.run([ROOT / "scripts/need.sh", *chosen.needs], capture_output=True, text=True)
    if need.returncode != 0:
        text = (need.stderr.strip().splitlines() or ["cannot be installed"])[-1]
        return "SKIP", text.replace("need.sh: ", "")
    work = pathlib.Path(tempfile.mkdtemp(prefix=f"mi-{chosen.name}-"))
    work.chmod(0o755)
    session = Session(chosen.name, lib, work)
    try:
        chosen.function(session)
        if not session.is_served:
            raise Failed("nobody checked that the allocator served it")
        return "ok", ", ".join(session.notes)
    except Skipped as why:
        return "SKIP", str(why)
    except Failed as why:
        return "FAIL", str(why)
    except Exception:  # a mistake in a program's function must not end the others
        return "FAIL", traceback.format_exc()
    finally:
        shutil.rmtree(work, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quick", action="store_true")
    group.add_argument("--all", action="store_true")
    group.add_argument("--list", action="store_true")
    parser.add_argument("--lib", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    if args.list:
        for p in PROGRAMS:
            print(f"{p.name:<16}{'quick' if p.quick else '':<7}{p.about}")
        return 0
    if args.lib is None or not args.lib.exists():
        parser.error("--lib must name the shared library")
    unknown = set(args.names) - {p.name for p in PROGRAMS}
    if unknown:
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    chosen = [p for p in PROGRAMS if (p.name in args.names if args.names else args.all or p.quick)]

    # A copy that every user may read, and that nobody rebuilds meanwhile.
    with tempfile.TemporaryDirectory(prefix="mi-lib-") as directory:
        os.chmod(directory, 0o755)
        lib = pathlib.Path(directory) / "libmimalloc.so"
        shutil.copy(args.lib, lib)
        lib.chmod(0o755)
        outcomes = []
        for p in chosen:
            start = time.monotonic()
            outcome, text = run_one(p, lib)
            outcomes.append(outcome)
            print(f"{outcome:<5} {p.name:<16} {time.monotonic() - start:6.1f} s  {text}", flush=True)
    print(f"{len(outcomes)} programs: {outcomes.count('ok')} ok, {outcomes.count('FAIL')} failed, {outcomes.count('SKIP')} skipped")
    if "FAIL" in outcomes:
        return 1
    return SKIPPED if outcomes.count("SKIP") == len(outcomes) else 0


if __name__ == "__main__":
    sys.modules["run"] = sys.modules["__main__"]   # programs.py imports this file by its name
    import programs  # noqa: F401
    sys.exit(main())
