"""Starts a program with the library preloaded.  The program takes the place of this process, so its exit status, signals and
terminal are its own."""

import os
import pathlib
import sys

from . import library, options
from .errors import ToolError

PUBLISH = {"process": "1", "forks": "2"}


def is_python(program):
    return pathlib.Path(program).name.startswith("python")


def as_command(program):
    """A Python source is a program for this Python."""
    path = pathlib.Path(program[0])
    return [sys.executable, *program] if path.suffix == ".py" and path.is_file() else program


def _resolved(prefix):
    try:
        return pathlib.Path(prefix).resolve()
    except FileNotFoundError as error:
        raise ToolError("The profile cannot be written: the directory in which the command was started is gone.") from error


def environment(base, profile=None, profile_signal=None, limit=None, stats=False, guard=None, publish="off"):
    """The variables that the options stand for."""
    env = dict(base)
    wanted = {
        options.RUN_STATS: "1" if stats else None,
        options.RUN_GUARD: guard,
        options.RUN_PROFILE: str(_resolved(profile)) if profile else None,
        options.RUN_PROFILE_SIGNAL: profile_signal,
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
    """The first of these options that the library does not have."""
    if not names:
        return None
    _, said = library.probe(lib, {options.variable(options.PROOF[name]): "0" for name in names})
    return next((name for name in names if f"option '{options.PROOF[name]}'" not in said), None)


def _check_profile_prefix(prefix):
    """The program writes its profile when it ends: too late to learn that there is no such directory."""
    if prefix is None:
        return
    if not prefix:
        raise ToolError("The profile needs a prefix for the names of its files: --profile PREFIX.")
    directory = _resolved(prefix).parent
    if not directory.is_dir():
        raise ToolError(f"The profile cannot be written: there is no directory {directory}.")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise ToolError(f"The profile cannot be written: this user may not write to {directory}.")


def run(program, secure=False, **settings):
    lib = library.find("secure" if secure else "release")
    library.check_loads(lib)
    command = as_command(program)
    path = library.find_program(command[0])
    _check_profile_prefix(settings.get("profile"))
    missing = _missing_option(lib, [name for name in options.PROOF if settings.get(name)])
    if missing:
        raise ToolError(f"The library {lib} has no option {options.variable(missing)}: it is older than this command.")
    env = library.preload(environment(os.environ, **settings), lib)
    if is_python(path):
        env.setdefault("PYTHONMALLOC", "malloc")
    sys.stdout.flush()
    try:
        os.execve(path, command, env)
    except OSError as error:
        raise library.not_executable(path, error) from error
