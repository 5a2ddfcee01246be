#!/usr/bin/env python3
"""Runs a file of python/tests by pytest, with a Python that has the packages which the command needs.

  test/command/run.py FILE --lib LIBRARY

Exit status 77: a package is missing, or everything was skipped; the reason is printed."""

import argparse
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "test"))

from outcome import SKIPPED  # noqa: E402

MODULES = ("click", "rich", "pytest", "elftools", "prometheus_client")


def missing(python):
    """The modules that it lacks."""
    code = f"import importlib.util as u; print(*[m for m in {MODULES!r} if u.find_spec(m) is None])"
    run = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    return run.stdout.split() if run.returncode == 0 else list(MODULES)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--lib", required=True)
    args = parser.parse_args()
    pythons = [each for each in (sys.executable, "/usr/bin/python3") if os.access(each, os.X_OK)]
    python = next((each for each in pythons if not missing(each)), None)
    if python is None:
        print(f"SKIP: Python lacks {', '.join(missing(pythons[-1]))} (Debian: python3-click python3-rich python3-pytest "
              "python3-pyelftools python3-prometheus-client)")
        return SKIPPED
    run = subprocess.run([python, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", args.file], cwd=ROOT / "python",
                         env={**os.environ, "MI_COMMAND_LIBRARY": args.lib}, capture_output=True, text=True, check=False)
    print(run.stdout + run.stderr, end="")
    last = run.stdout.strip().splitlines()[-1] if run.stdout.strip() else ""
    if run.returncode == 0 and " passed" not in last:
        print(f"SKIP: {last}")
        return SKIPPED
    return run.returncode


if __name__ == "__main__":
    sys.exit(main())
