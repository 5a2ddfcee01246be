"""What the system says of a process."""

import os
import pathlib


def _read(pid, name, otherwise=b""):
    try:
        return pathlib.Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return otherwise


def resident(pid):
    """Bytes; None: unknown."""
    fields = _read(pid, "statm").split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") if len(fields) > 1 else None


def n_threads(pid):
    for line in _read(pid, "status").splitlines():
        if line.startswith(b"Threads:"):
            return int(line.split()[1])
    return None


def command_line(pid):
    return " ".join(part.decode("utf-8", "replace") for part in _read(pid, "cmdline").split(b"\0") if part)


def environment(pid):
    """None: it cannot be read."""
    text = _read(pid, "environ", None)
    if text is None:
        return None
    pairs = (os.fsdecode(entry).partition("=") for entry in text.split(b"\0") if entry)
    return {name: value for name, _, value in pairs}


def mapped_files(pid):
    """The paths of files that the process has mapped, each once; None: that cannot be read."""
    text = _read(pid, "maps", None)
    if text is None:
        return None
    paths = (line.split(None, 5) for line in text.decode("utf-8", "replace").splitlines())
    return list(dict.fromkeys(fields[5] for fields in paths if len(fields) == 6 and fields[5].startswith("/")))
