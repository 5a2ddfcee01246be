#!/usr/bin/env python3
"""Runs the benchmark suite: `bench/bench.py --help`. The packages that it needs are installed into build/bench-venv."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

BENCH = pathlib.Path(__file__).resolve().parent
VENV = BENCH.parent / "build" / "bench-venv"
REQUIREMENTS = BENCH / "requirements.txt"
INSTALLED = VENV / "requirements.txt"  # a copy of what was installed, put there at the end
DIRECT = ("click", "jinja2", "matplotlib", "rich")


def succeeds(*command):
    return subprocess.run(command, stdout=sys.stderr).returncode == 0


def make_venv():
    print(f"bench.py: installing {', '.join(DIRECT)} into {VENV}", file=sys.stderr)
    create = [sys.executable, "-m", "venv", "--clear", str(VENV)]
    if subprocess.run(create, capture_output=True).returncode != 0:
        # Debian has a part of the module in a package of its own.
        if not succeeds(str(BENCH.parent / "scripts" / "need.sh"), "python3-venv") or not succeeds(*create):
            return False
    pip = (str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")
    if not succeeds(*pip, "install", "--quiet", "-r", str(REQUIREMENTS)):
        return False
    shutil.copy(REQUIREMENTS, INSTALLED)
    return True


def python():
    """An interpreter that has the packages."""
    if INSTALLED.exists() and INSTALLED.read_bytes() == REQUIREMENTS.read_bytes() or make_venv():
        return str(VENV / "bin" / "python")
    if all(importlib.util.find_spec(name) for name in DIRECT):
        print("bench.py: using the packages of this system, in other versions", file=sys.stderr)
        return sys.executable
    sys.exit(f"bench.py: needs {', '.join(DIRECT)}, see {REQUIREMENTS}")


def main():
    if sys.version_info < (3, 11):
        sys.exit(f"bench.py: needs Python 3.11, this is {sys.version.split()[0]}")
    path = os.pathsep.join(filter(None, [str(BENCH), os.environ.get("PYTHONPATH")]))
    interpreter = python()
    os.execve(interpreter, [interpreter, "-m", "suite", *sys.argv[1:]], os.environ | {"PYTHONPATH": path})


if __name__ == "__main__":
    main()
