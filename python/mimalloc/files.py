"""Reads files that somebody names, which may be large, and without an end."""

import pathlib

from .errors import ToolError

SIZE_MAX = 1 << 28


def take(file, name):
    """What is in an open file."""
    try:
        data = file.read(SIZE_MAX + 1)
    except (OSError, MemoryError) as error:
        raise ToolError(f"{name} cannot be read: {getattr(error, 'strerror', None) or 'there is no memory for it'}.") from error
    if len(data) > SIZE_MAX:
        raise ToolError(f"{name} is larger than {SIZE_MAX >> 20} MiB.")
    return data


def read(path):
    try:
        with pathlib.Path(path).open("rb") as file:
            return take(file, path)
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}.") from error
