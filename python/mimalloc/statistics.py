"""Statistics of a process: from a published page, or from the JSON of mi_stats_get_json."""

import json
import pathlib
import sys

from . import files, output, page
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
TITLE = {"program", "pid", "version", "is_ended", "age_seconds"}     # of pages
BINS = ("malloc_bins", "page_bins")
BIN_COLUMNS = [("block size", True), ("blocks in use", True), ("bytes", True), ("pages", True)]


def load(source):
    """A dictionary with the fields of mi_stats_get_json, and those of a page if it is one."""
    if source == "-":
        if sys.stdin is None:
            raise ToolError("There is no standard input.")
        return _parse_json(files.take(sys.stdin.buffer, "standard input"), "standard input")
    path = pathlib.Path(source)
    if source.isdecimal() and not path.exists():
        return page.of_process(int(source)).as_json()
    data = files.read(source)
    return page.read(path).as_json() if data.startswith(page.MAGIC) else _parse_json(data, source)


def _no_number(text):
    raise ValueError(f"{text} is no number")


def _parse_json(data, what):
    try:
        value = json.loads(data.decode("utf-8", "replace"), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ToolError(f"{what} is neither a published page nor JSON: {error}.") from error
    if not isinstance(value, dict) or "committed" not in value:
        raise ToolError(f"{what} is JSON, but no statistics: it has no field \"committed\".")
    shown = {name for _, name, _ in ROWS}
    wrong = next((name for name, each in value.items() if not _has_form(each, name in BINS, name in shown)), None)
    if wrong is not None:
        raise ToolError(f"{what} is JSON, but no statistics: its field \"{wrong}\" is none of mi_stats_get_json.")
    return value


def _has_form(value, is_bins, is_shown):
    """Is a value what mi_stats_get_json writes there?  Fields that are not shown may be anything."""
    if is_bins:
        return isinstance(value, list) and all(_is_amount(each) and _is_number(each.get("block_size", 0) or 0) for each in value)
    return not is_shown or _is_number(value) or _is_amount(value)


def _is_number(value):
    return isinstance(value, (int, float)) and abs(value) < 1 << 64


def _is_amount(value):
    return isinstance(value, dict) and all(_is_number(value.get(part)) for part in ("current", "peak", "total"))


def current(values, name):
    """The present value of a field; None if it is not there."""
    value = values.get(name)
    return value.get("current") if isinstance(value, dict) else value


def peak(values, name):
    """None if the field has none."""
    value = values.get(name)
    return value.get("peak") if isinstance(value, dict) else None


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
    if not TITLE <= values.keys() or not _is_number(values["age_seconds"]):     # it is no page
        return None
    state = "ended" if values["is_ended"] else f"written {output.seconds(values['age_seconds'])} ago"
    return output.printable(f"{values['program']} (pid {values['pid']}), mimalloc {values['version']}, {state}")


def show(source, bins, as_json):
    values = load(source)
    if as_json:
        output.print_json(values)
        return
    output.print_table(COLUMNS, rows(values), title(values))
    if bins:
        print()
        output.print_table(BIN_COLUMNS, bin_rows(values))
