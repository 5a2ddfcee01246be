"""Statistics of a process: from a published page, or from the JSON of mi_stats_get_json."""

import json
import pathlib
import sys

from . import output, page
from .errors import ToolError

# What people ask for first: (heading, field, is it an amount of bytes?).
ROWS = [
    ("in use", "malloc_requested", True),
    ("  in size classes", "malloc_normal", True),
    ("  in larger blocks", "malloc_huge", True),
    ("pages", "page_committed", True),
    ("committed", "committed", True),
    ("reserved", "reserved", True),
    ("purged", "purged", True),
    ("offered to the system", "reset", True),
    ("pages, number", "pages", False),
    ("pages without a thread", "pages_abandoned", False),
    ("threads", "threads", False),
    ("blocks in size classes", "malloc_normal_count", False),
    ("larger blocks, all", "malloc_huge_count", False),
    ("guarded blocks", "malloc_guarded_count", False),
    ("system calls: map", "mmap_calls", False),
    ("system calls: commit", "commit_calls", False),
    ("system calls: purge", "purge_calls", False),
]
COLUMNS = [("", False), ("current", True), ("peak", True), ("total", True)]
BIN_COLUMNS = [("block size", True), ("blocks in use", True), ("bytes", True), ("pages", True)]


def load(source):
    """A dictionary with the fields of mi_stats_get_json, and those of a page if it is one."""
    if source == "-":
        return _parse_json(sys.stdin.read(), "standard input")
    path = pathlib.Path(source)
    if source.isdigit() and not path.exists():
        pages = page.live_pages(pids=[int(source)])
        if not pages:
            raise ToolError(f"Process {source} publishes no statistics: start it with MIMALLOC_PUBLISH=1, or by "
                            "`mimalloc run --publish=process`.")
        return pages[0].as_json()
    try:
        with path.open("rb") as file:
            head = file.read(len(page.MAGIC))
    except OSError as error:
        raise ToolError(f"{source} cannot be read: {error.strerror}.") from error
    if head == page.MAGIC:
        return page.read(path).as_json()
    return _parse_json(path.read_text(encoding="utf-8", errors="replace"), source)


def _parse_json(text, what):
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ToolError(f"{what} is neither a published page nor JSON: {error}.") from error
    if not isinstance(value, dict) or "committed" not in value:
        raise ToolError(f"{what} is JSON, but no statistics: it has no field \"committed\".")
    return value


def current(values, name):
    """The present value of a field; None if it is not there."""
    value = values.get(name)
    return value.get("current") if isinstance(value, dict) else value


def rows(values):
    for heading, name, is_bytes in ROWS:
        value = values.get(name)
        if value is None:
            continue
        show = output.size if is_bytes else output.count
        if isinstance(value, dict):
            # Blocks are counted on request: their peak and total repeat what is current.
            has_history = name not in ("malloc_normal", "malloc_requested")
            yield (heading, show(value["current"]), show(value["peak"]) if has_history else "",
                   show(value["total"]) if has_history else "")
        elif name == "malloc_normal_count":
            yield heading, show(value), "", ""
        else:
            yield heading, "", "", show(value)


def bin_rows(values):
    pages = values.get("page_bins", [])
    for i, entry in enumerate(values.get("malloc_bins", [])):
        n, size = entry.get("current", 0), entry.get("block_size")
        if n == 0:
            continue
        is_last = size is None or size >= 1 << 60
        yield ("larger" if is_last else output.count(size), output.count(n), "" if is_last else output.size(n * size),
               output.count(pages[i]["current"]) if i < len(pages) and not is_last else "")


def title(values):
    if "pid" not in values:
        return None
    state = "ended" if values["is_ended"] else f"written {output.seconds(values['age_seconds'])} ago"
    return f"{values['program']} (pid {values['pid']}), mimalloc {values['version']}, {state}"


def show(source, bins, as_json):
    values = load(source)
    if as_json:
        output.print_json(values)
        return
    output.print_table(COLUMNS, rows(values), title(values))
    if bins:
        print()
        output.print_table(BIN_COLUMNS, bin_rows(values))
