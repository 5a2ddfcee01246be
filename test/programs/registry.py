"""Which programs there are.  The modules in kinds/ fill it."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Program:
    def __init__(self, function, needs, quick, name):
        self.function, self.needs, self.quick = function, needs, quick
        self.kind = function.__module__.rpartition(".")[2]
        self.name = name or function.__name__.strip("_").replace("_", "-")
        self.about = (function.__doc__ or "").split("\n")[0]


PROGRAMS = []


def program(*needs, quick=False, name=None):
    """Registers a program; `needs` are Debian packages, as scripts/need.sh takes them."""
    def register(function):
        PROGRAMS.append(Program(function, needs, quick, name))
        return function
    return register
