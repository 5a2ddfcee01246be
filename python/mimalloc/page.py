"""Reads published pages: files in which processes keep their statistics (docs/design/publish.md has the format)."""

import dataclasses
import errno
import os
import pathlib
import re
import stat
import struct
import time

from . import output
from .errors import ToolError

NAME = re.compile(r"mimalloc-(\d+)-(\d+)\.stats\Z")
MAGIC = b"MISTATS\n"
FORMAT = 1
HEADER = struct.Struct("=8sIIQIIQQQqQIIIII60s")
ENTRY = struct.Struct("=40sIHH")
SEQUENCE = struct.Struct("=II")
SEQUENCE_AT = 24
ENDED = 2
COUNTER, AMOUNT, SIZE = 0, 1, 2
SIZE_MAX = 1 << 20      # a larger file is none of ours
BUSY_SECONDS = 0.5      # for which a reader waits until an update is over
LIVE_SECONDS = 60       # in other pid namespaces: a page that was written since then is taken for live


class PageError(ToolError):
    """The file is no published page, or cannot be read now."""


@dataclasses.dataclass
class Page:
    path: pathlib.Path
    pid: int
    pid_space: int
    started: int        # in clock ticks since the machine was
    program: str
    updated: float      # CLOCK_MONOTONIC, seconds
    n_updates: int
    is_ended: bool
    version: tuple
    stats: dict         # name: int, or {"total", "peak", "current"}
    bins: dict          # name: list of such
    bin_sizes: list     # the last is None: no limit

    @property
    def age(self):
        """Seconds since the process has written it."""
        return max(0.0, time.clock_gettime(time.CLOCK_MONOTONIC) - self.updated)

    def as_json(self):
        return {"pid": self.pid, "program": self.program, "version": ".".join(map(str, self.version)), "file": str(self.path),
                "age_seconds": round(self.age, 3), "is_ended": self.is_ended, **self.stats,
                **{name: [{**value, "block_size": size} for value, size in zip(values, self.bin_sizes)]
                   for name, values in self.bins.items()}}


# ---- one file -------------------------------------------------------------------------------------------------------

def _open(path):
    """Not through a link, and only what a user can have made for us."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        why = "it is a link" if error.errno == errno.ELOOP else error.strerror
        raise PageError(f"{path} cannot be read: {why}.") from error
    info = os.fstat(fd)
    if not stat.S_ISREG(info.st_mode) or info.st_size > SIZE_MAX:
        os.close(fd)
        raise PageError(f"{path} is no published page.")
    return fd


def _whole(fd, path):
    """The contents between two updates."""
    end = time.monotonic() + BUSY_SECONDS
    while True:
        before = os.pread(fd, SEQUENCE.size, SEQUENCE_AT)
        data = os.pread(fd, SIZE_MAX, 0)
        after = os.pread(fd, SEQUENCE.size, SEQUENCE_AT)
        if data[:len(MAGIC)] != MAGIC or len(before) < SEQUENCE.size:
            raise PageError(f"{path} is no published page, or is just being made.")
        numbers = {SEQUENCE.unpack(part)[0] for part in (before, data[SEQUENCE_AT:SEQUENCE_AT + SEQUENCE.size], after)
                   if len(part) == SEQUENCE.size}
        if len(numbers) == 1 and next(iter(numbers)) % 2 == 0:
            return data
        if time.monotonic() > end:
            raise PageError(f"{path} is in the middle of an update: its process was stopped or has ended there.")
        time.sleep(0.001)


def _text(data):
    return output.printable(data.split(b"\0", 1)[0].decode("utf-8", "replace"))


def _values(data, offset, kind, count):
    """The numbers of an entry; None if the kind is not known, or they lie outside of the file."""
    width = {COUNTER: 1, AMOUNT: 3, SIZE: 1}.get(kind)
    if width is None or offset + 8 * width * count > len(data):
        return None
    numbers = struct.unpack_from(f"={width * count}q", data, offset)
    if kind == AMOUNT:
        return [dict(zip(("total", "peak", "current"), numbers[i:i + 3])) for i in range(0, len(numbers), 3)]
    return list(numbers)


def parse(data, path):
    if len(data) < HEADER.size:
        raise PageError(f"{path} is cut off.")
    (_, number, _, size, _, state, pid, space, started, updated_ms, n_updates, table, n_entries, entry_size, version, _,
     program) = HEADER.unpack_from(data)
    if number != FORMAT:
        raise PageError(f"{path} has format {number}, and this command knows format {FORMAT}: install a newer one.")
    if size > len(data) or entry_size < ENTRY.size or table + n_entries * entry_size > len(data):
        raise PageError(f"{path} is damaged or cut off.")
    stats, bins, sizes = {}, {}, []
    for i in range(n_entries):
        name, offset, kind, count = ENTRY.unpack_from(data, table + i * entry_size)
        values = _values(data, offset, kind, count)
        if not values:
            continue
        if kind == SIZE:
            sizes = [value if value < (1 << 62) else None for value in values]
        elif count > 1 and kind == AMOUNT:
            bins[_text(name)] = values
        elif count == 1:
            stats[_text(name)] = values[0]
    return Page(pathlib.Path(path), pid, space, started, _text(program), updated_ms / 1000, n_updates, state == ENDED,
                (version // 10000, version // 100 % 100, version % 100), stats, bins, sizes)


def read(path):
    fd = _open(path)
    try:
        return parse(_whole(fd, path), path)
    finally:
        os.close(fd)


# ---- processes ------------------------------------------------------------------------------------------------------

def own_space():
    """The number of our pid namespace; 0: unknown."""
    try:
        return int(re.search(r"\d+", os.readlink("/proc/self/ns/pid"))[0])
    except (OSError, TypeError):
        return 0


def started_of(pid):
    """When a process was started, in clock ticks since the machine was; None: there is no such process, or it is a zombie."""
    try:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def is_live(page, space=None):
    """Does the process still exist that the page is of?"""
    space = own_space() if space is None else space
    if page.is_ended:
        return False
    if page.pid_space and space and page.pid_space != space:
        return page.age < LIVE_SECONDS
    return started_of(page.pid) == page.started


def directories():
    """Where pages are, each once."""
    found = [os.environ.get("MIMALLOC_PUBLISH_DIR"), os.environ.get("XDG_RUNTIME_DIR"), f"/run/user/{os.getuid()}", "/dev/shm"]
    return list(dict.fromkeys(pathlib.Path(name) for name in found if name and name.startswith("/")))


def _is_stale(path, pid, pid_space, space):
    """Has the process of a file ended?  By the file's name: what is in it may not even be complete."""
    if pid_space and pid_space != space:
        return False
    if started_of(pid) is None:
        return True
    try:
        return not is_live(read(path), space)
    except PageError:
        return False


def sweep(places=None):
    """Removes the files of processes that have ended; those of other pid namespaces are left alone.  Returns their paths."""
    removed, space = [], own_space()
    for path, pid, pid_space in _files(places):
        if not _is_stale(path, pid, pid_space, space):
            continue
        try:
            path.unlink()
            removed.append(path)
        except OSError:
            continue    # another user's, or somebody was faster
    return removed


def _files(places):
    for place in directories() if places is None else places:
        try:
            names = sorted(os.listdir(place))
        except OSError:
            continue
        for name in names:
            match = NAME.match(name)
            if match:
                yield pathlib.Path(place) / name, int(match[1]), int(match[2])


def of_process(pid):
    """The page of a process that exists."""
    if started_of(pid) is None:
        raise PageError(f"There is no process {pid}.")
    pages = live_pages(pids=[pid])
    if not pages:
        raise PageError(f"Process {pid} publishes no statistics: start it with MIMALLOC_PUBLISH=1, or by "
                        "`mimalloc run --publish=process`.")
    return pages[0]


def live_pages(places=None, pids=()):
    """The pages of processes that exist; those of processes that have ended are removed."""
    sweep(places)
    pages, space = [], own_space()
    for path, pid, _ in _files(places):
        if pids and pid not in pids:
            continue
        try:
            page = read(path)
        except PageError:
            continue    # being made, being removed, or of another user
        if is_live(page, space):
            pages.append(page)
    return pages
