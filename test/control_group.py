"""Control groups with a limit on memory, for tests.  One of our own needs root, and a hierarchy that can be written to."""

import os
import pathlib
import time


def _base():
    """(directory where a group can be made, name of the file with the limit, name of that with the most that was used), or None"""
    groups = dict(reversed(line.split(":", 2)[1:]) for line in pathlib.Path("/proc/self/cgroup").read_text().splitlines())
    paths = {controllers: path for path, controllers in groups.items()}
    for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines():
        fields, _, rest = line.partition(" - ")
        kind, _, options = (rest.split() + ["", "", ""])[:3]
        where = pathlib.Path(fields.split()[4])
        if kind == "cgroup" and "memory" in options.split(","):
            path = next((p for c, p in paths.items() if "memory" in c.split(",")), "/")
            return where / path.lstrip("/"), "memory.limit_in_bytes", "memory.max_usage_in_bytes"
        if kind == "cgroup2" and "memory" in (where / "cgroup.controllers").read_text().split():
            return where, "memory.max", "memory.peak"
    return None


class Group:
    """A group with a limit, which ends with the block that it is made for.  Use make()."""

    def __init__(self, path, most):
        self._path = path
        self._most = path / most

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for _ in range(100):
            try:
                self._path.rmdir()
                return
            except OSError:
                time.sleep(0.05)

    def enter(self):
        """The calling process is in the group from here on."""
        (self._path / "cgroup.procs").write_text(str(os.getpid()))

    def most(self):
        """Bytes that the group had at most; None if the kernel does not say."""
        try:
            return int(self._most.read_text())
        except OSError:
            return None


def make(limit):
    """A group with so many bytes, None if there can be none."""
    base = _base()
    if base is None:
        return None
    path = base[0] / f"mimalloc-test-{os.getpid()}"
    try:
        path.mkdir()
        (path / base[1]).write_text(str(limit))
    except OSError:
        if path.is_dir():
            path.rmdir()
        return None
    return Group(path, base[2])
