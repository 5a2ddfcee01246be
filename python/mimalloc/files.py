"""Reads files that somebody names, which may be large, and without an end; writes others, as a whole or not at all."""

import os
import pathlib
import tempfile

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


def write(path, text):
    """What was in the file stays there if the new text cannot be written.  What is no file, or in a directory of somebody else, is
    written as it is.  Raises OSError."""
    target = pathlib.Path(path).resolve()
    if target.exists() and not (target.is_file() and os.access(target.parent, os.W_OK) and os.access(target, os.W_OK)):
        target.write_text(text, encoding="utf-8")
        return
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
    fd, name = tempfile.mkstemp(prefix=".mimalloc-", dir=target.parent)
    try:
        with open(fd, "w", encoding="utf-8") as file:
            file.write(text)
            os.fchmod(file.fileno(), mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
