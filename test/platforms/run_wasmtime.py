#!/usr/bin/env python3
"""Runs a program for WASI under wasmtime: run_wasmtime.py PROGRAM.wasm [ARGUMENT ...].  Its exit status is that of the program.

The Python package of wasmtime is installed from PyPI into build/venv-wasmtime when it is missing."""

import fcntl
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
VENV = ROOT / "build" / "venv-wasmtime"
PYTHON = VENV / "bin" / "python3"
ABORTED = 134


def install():
    """By one of the tests that run at the same time."""
    VENV.parent.mkdir(exist_ok=True)
    with open(VENV.parent / "venv-wasmtime.lock", "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (VENV / "done").exists():
            subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
            subprocess.run([str(PYTHON), "-m", "pip", "install", "--quiet", "wasmtime"], check=True)
            (VENV / "done").touch()


def run(arguments):
    import wasmtime  # pylint: disable=import-error,import-outside-toplevel

    engine = wasmtime.Engine()
    wasi = wasmtime.WasiConfig()
    wasi.argv = arguments
    wasi.env = list(os.environ.items())
    wasi.inherit_stdin()
    wasi.inherit_stdout()
    wasi.inherit_stderr()
    wasi.preopen_dir("/", "/")
    store = wasmtime.Store(engine)
    store.set_wasi(wasi)
    linker = wasmtime.Linker(engine)
    linker.define_wasi()
    instance = linker.instantiate(store, wasmtime.Module.from_file(engine, arguments[0]))
    try:
        instance.exports(store)["_start"](store)
    except wasmtime.ExitTrap as end:
        return end.code
    except wasmtime.Trap as trap:  # abort() is one
        print(f"{arguments[0]}: {trap}", file=sys.stderr)
        return ABORTED
    return 0


def main():
    if pathlib.Path(sys.prefix) != VENV:
        if not (VENV / "done").exists():
            install()
        os.execv(PYTHON, [str(PYTHON), __file__, *sys.argv[1:]])
    sys.exit(run(sys.argv[1:]))


main()
