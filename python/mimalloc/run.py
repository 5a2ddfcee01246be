"""Starts a program with the library preloaded.  The program takes the place of this process, so its exit status, signals and
terminal are its own."""

import os
import pathlib
import shutil
import sys

import click

from . import library, options
from .errors import ToolError

NOT_FOUND, NOT_EXECUTABLE = 127, 126     # as shells have it
PUBLISH = {"process": "1", "forks": "2"}


def is_python(program):
    return pathlib.Path(program).name.startswith("python")


def as_command(program):
    """A Python source is a program for this Python."""
    path = pathlib.Path(program[0])
    return [sys.executable, *program] if path.suffix == ".py" and path.is_file() else program


def environment(base, profile=None, limit=None, stats=False, guard=None, publish="off"):
    """The variables that the options stand for."""
    env = dict(base)
    wanted = {
        options.RUN_STATS: "1" if stats else None,
        options.RUN_GUARD: guard,
        options.RUN_PROFILE: str(pathlib.Path(profile).resolve()) if profile else None,
        options.RUN_LIMIT: limit,
        options.RUN_PUBLISH: PUBLISH.get(publish),
    }
    for option, value in wanted.items():
        if value is not None:
            env[options.variable(option)] = str(value)
    if any(value is not None for option, value in wanted.items() if option != options.RUN_STATS):
        env.setdefault(options.variable(options.RUN_ERRORS), "1")   # what cannot be done is said
    return env


def _missing_option(lib, names):
    """The first of these options that the library does not know."""
    _, said = library.probe(lib, {options.variable(name): "0" for name in names})
    for name in names:
        if f"{options.variable(name)}=" in said and "is not known" in said:
            return name
    return None


def run(program, secure=False, profile=None, limit=None, **settings):
    lib = library.find("secure" if secure else "release")
    command = as_command(program)
    path = shutil.which(command[0])
    if path is None:
        is_there = pathlib.Path(command[0]).exists()
        click.echo(f"mimalloc: {command[0]} " + ("cannot be executed." if is_there else "was not found."), err=True)
        sys.exit(NOT_EXECUTABLE if is_there else NOT_FOUND)
    problem = library.obstacle(path)
    if problem:
        raise ToolError(problem)
    missing = _missing_option(lib, [name for name, value in ((options.RUN_PROFILE, profile), (options.RUN_LIMIT, limit)) if value])
    if missing:
        raise ToolError(f"The library {lib} has no option {options.variable(missing)}: it is older than this command.")
    env = library.preload(environment(os.environ, profile, limit, **settings), lib)
    if is_python(path):
        env.setdefault("PYTHONMALLOC", "malloc")
    sys.stdout.flush()
    try:
        os.execve(path, command, env)
    except OSError as error:
        click.echo(f"mimalloc: {path} cannot be executed: {error.strerror}.", err=True)
        sys.exit(NOT_EXECUTABLE)
